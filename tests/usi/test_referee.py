"""Games against another engine under a referee that is not ours: cshogi's command line, a separate process.

cshogi is under the GPL, so it is not a dependency: KEISEI_REFEREE names a Python that has it (pip install
cshogi==1.1.0), otherwise the one that runs the tests is tried. The opponent is fairy-stockfish. --ponder is
not used: that referee may send `go ponder` after `gameover`, and then waits forever.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from keisei.shogi import Color, Reason, read_csa_games

pytest_plugins = ["usi_fixtures"]

REFEREE = os.environ.get("KEISEI_REFEREE") or (sys.executable if importlib.util.find_spec("cshogi") else None)
FAULTS = (Reason.ILLEGAL_MOVE, Reason.TIME, Reason.FORFEIT, Reason.RESIGNATION)
OPPONENT = shutil.which("fairy-stockfish") or shutil.which("fairy-stockfish", path="/usr/games")

needs_referee = pytest.mark.skipif(
    REFEREE is None, reason="cshogi is not installed and KEISEI_REFEREE not set"
)
needs_opponent = pytest.mark.skipif(OPPONENT is None, reason="fairy-stockfish is not installed")


def play(folder: Path, checkpoint: Path, games: int, *limits: str) -> None:
    """Play games on the referee's clocks, and check that none was lost by a fault."""
    engine = folder / "engine"
    engine.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m keisei.usi.main '{checkpoint}'\n")
    engine.chmod(0o755)
    done = subprocess.run(
        [
            *(
                str(REFEREE),
                "-m",
                "cshogi.cli",
                str(engine),
                str(OPPONENT),
                "--name1",
                "ours",
                "--name2",
                "theirs",
            ),
            *("--options2", "Skill Level:-20", "--games", str(games), *limits),
            *("--keep-process", "--csa", "games.csa", "--multi-csa"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{games} of {games} games finished." in done.stdout
    records = read_csa_games((folder / "games.csa").read_bytes())  # every move is checked again
    assert len(records) == games
    for record in records:
        assert record.outcome is not None
        ours = Color.BLACK if record.black == "ours" else Color.WHITE
        # What the opponent does wrong is its own affair.
        assert record.outcome.winner == ours or record.outcome.reason not in FAULTS
        assert {record.black, record.white} == {"ours", "theirs"}


@needs_referee
@needs_opponent
def test_two_short_games_without_a_fault(checkpoint: Path, tmp_path: Path) -> None:
    play(tmp_path, checkpoint, 2, "--time", "500", "--inc", "20", "--draw", "40")


@pytest.mark.slow
@needs_referee
@needs_opponent
@pytest.mark.parametrize(
    "limits", [["--time", "1500", "--inc", "30"], ["--byoyomi", "100"]], ids=["increment", "byoyomi"]
)
def test_ten_games_without_a_fault(checkpoint: Path, tmp_path: Path, limits: list[str]) -> None:
    play(tmp_path, checkpoint, 10, *limits, "--draw", "256")

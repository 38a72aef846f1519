"""Files that cannot be written, as on a full disk: one line names the file, and no part of a new one stays.

The limit on the size of files that each process has fails a write as a full disk does, for any user.
"""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("keisei")
GAME = "先手：甲\n後手：乙\n手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n   3 投了\n"


def keisei(*arguments: str, cwd: Path, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a command that can write to no file."""
    return subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", COMMAND, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "game.kif").write_text(GAME, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "convert game.kif x.csa",
        "convert game.kif x.usi",
        "analyze game.kif --visits 1 --out x.kif",
    ],
)
def test_a_file_that_cannot_be_written_is_named_and_no_part_of_it_stays(command: str, folder: Path) -> None:
    done = keisei(*command.split(), cwd=folder)
    name = command.split()[-1]
    assert (done.returncode, done.stderr) == (2, f"keisei: {name}: File too large\n")
    assert not (folder / name).exists()


def test_a_file_that_was_there_is_named_too(folder: Path) -> None:
    (folder / "old.csa").write_text("old", encoding="utf-8")
    done = keisei("convert", "game.kif", "old.csa", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "keisei: old.csa: File too large\n")
    assert (folder / "old.csa").exists()


def test_a_game_that_cannot_be_saved_is_told_with_its_moves(folder: Path) -> None:
    done = keisei("play", "random", "--save", "x.kif", cwd=folder, typed="7g7f\nsave y.kif\nresign\n")
    assert done.returncode == 2
    assert "y.kif: File too large\n" in done.stdout
    assert "not saved: x.kif: File too large\n" in done.stdout
    assert "its moves: position startpos moves 7g7f " in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["game.kif"]


def test_an_output_that_takes_nothing_is_told_without_numbers_of_errors(folder: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [COMMAND, "show", "game.kif"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            cwd=folder,
        )
    assert (done.returncode, done.stderr) == (2, "keisei: the output: No space left on device\n")

"""`keisei evaluate` and `keisei ladder` as a user sees them: what they print, keep and reject."""

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from small_runs import checkpoint_of, small_run, start_keisei

from keisei.cli import main
from keisei.evaluation.matches.results_store import ResultsStore, StoredGame
from keisei.shogi import read_csa_games

STAND_IN = Path(__file__).with_name("usi_stand_in.py")
PNG = b"\x89PNG\r\n\x1a\n"
# Short games, so that there are many.
FAST = ["--max-moves", "40", "--threads", "1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("evaluate") / "first", 1024, 2048, best=2048)


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with two checkpoints in `runs` of the current directory, not yet evaluated."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "runs" / "first"))


class Said:
    """Runs the command in this process: exit code, output and errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str | Path) -> tuple[object, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["keisei", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, errors = self._capsys.readouterr()
        return left.value.code, out, errors


@pytest.fixture
def keisei(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(monkeypatch, capsys)


def games_in(directory: Path) -> list[StoredGame]:
    with ResultsStore.open(directory / "results.sqlite") as results:
        return results.games()


def in_files(directory: Path) -> Counter[tuple[str, str, int, object]]:
    return Counter(
        (game.black, game.white, len(game.moves), None if game.outcome is None else game.outcome.winner)
        for path in (directory / "games").glob("*.csa")
        for game in read_csa_games(path.read_bytes())
    )


def report_in(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    return report


def test_a_network_is_rated_and_the_report_says_which_weights_it_was(run: Path, keisei: Said) -> None:
    code, out, errors = keisei("evaluate", "first", "--games", "4", *FAST)
    assert (code, errors) == (None, "")
    directory = run / "evaluation"
    weights = checkpoint_of(run, 2048) / "weights.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    lines = out.splitlines()
    assert lines[0].startswith("first@2048: checkpoint ")
    assert digest in lines[0]
    assert lines[1].startswith(
        "the scale: random, greedy, material play each other first, once per directory"
    )
    for line, opponent in zip(lines[2:5], ("random", "greedy", "material"), strict=True):
        assert line.startswith(f"first@2048 vs {opponent}: ")
        assert " of 4 " in line
    assert any(line.startswith("first@2048 ") and " to " in line for line in lines[6:])
    assert "a rating from fewer than 40 games says next to nothing: first@2048 (12)" in lines
    assert lines[-1] == f"report: {directory / 'report.json'}"

    report = report_in(directory)
    assert report["seed"] == 1
    assert report["conditions"] == "startpos, 4 random plies, at most 40 moves, declaration 27"
    assert [match["opponent"]["name"] for match in report["matches"]] == ["random", "greedy", "material"]
    for match in report["matches"]:
        assert match["player"]["weights sha256"] == digest
        assert match["wins"] + match["draws"] + match["losses"] == 4
        assert sum(match["pairs"]) == 2
    (identity,) = (one for one in report["players"] if one.startswith("network-"))
    assert report["players"][identity]["weights sha256"] == digest
    rated = {one["player"]: one for one in report["ratings"]}
    assert rated["random"]["elo"] == 0
    assert rated[identity]["games"] == 12
    assert len(games_in(directory)) == 212
    assert in_files(directory).total() == 212
    assert not (directory / "rating.png").exists()  # one checkpoint is no curve

    code, again, _ = keisei("evaluate", "first", "--games", "4", *FAST)
    assert code is None
    assert "the scale" not in again
    assert again.splitlines()[1:] == lines[2:]
    assert report_in(directory) == report
    assert len(games_in(directory)) == 212


def test_any_player_is_rated_beside_the_others_of_the_scale(run: Path, keisei: Said) -> None:
    code, out, errors = keisei("evaluate", "greedy", "--games", "2", *FAST)
    assert (code, errors) == (None, "")
    assert re.search(r"^greedy vs random: ", out, re.M)
    assert re.search(r"^greedy vs material: ", out, re.M)
    assert "greedy vs greedy" not in out
    assert (run.parents[1] / "evaluation" / "report.json").is_file()


def test_all_checkpoints_make_a_curve(run: Path, keisei: Said, tmp_path: Path) -> None:
    where = ("--against", "random", "--games", "2", "--out", "rated", *FAST)
    code, out, errors = keisei("evaluate", "runs/first", "--all", *where)
    assert (code, errors) == (None, "")
    assert (tmp_path / "rated" / "rating.png").read_bytes().startswith(PNG)
    assert "rating over training: rated/rating.png" in out
    assert re.search(r"\nthe best of 2: first@(1024|2048), Elo -?\d+, at least -?\d+\n", out)
    assert [match["player"]["step"] for match in report_in(tmp_path / "rated")["matches"]] == ["1024", "2048"]
    assert not (run / "evaluation").exists()
    shutil.copytree(checkpoint_of(run, 1024), tmp_path / "alone")
    code, _, errors = keisei("evaluate", "alone", "--all", *where)
    assert code == 2
    assert errors.endswith("--all: alone is a checkpoint outside any run, expected a run\n")


def test_options_reach_the_match(run: Path, keisei: Said, tmp_path: Path) -> None:
    (tmp_path / "openings.txt").write_text("startpos moves 7g7f\nstartpos moves 2g2f\n", encoding="utf-8")
    arguments = ("--against", "random", "--games", "6", "--openings", "openings.txt", "--visits", "2")
    code, out, errors = keisei("evaluate", "first@1024", *arguments, "--seed", "7", *FAST)
    assert (code, errors) == (None, "")
    assert "first@1024 2 visits vs random: " in out
    assert "openings: 2 for 3 pairs of games, and no random moves after them" in out
    (path,) = (run / "evaluation" / "games").glob("*.usi")
    firsts = [line.split()[3] for line in path.read_text(encoding="utf-8").splitlines()]
    assert Counter(firsts) == {"7g7f": 4, "2g2f": 2}
    assert report_in(run / "evaluation")["seed"] == 7
    code, out, _ = keisei(
        "evaluate", "first", "--against", "first", "--against", "random", "--games", "2", *FAST
    )
    assert code is None
    assert "first@2048 and first@2048 are the same player: nothing to play" in out
    code, out, _ = keisei(
        "evaluate",
        "first",
        "--against",
        "random",
        "--games",
        "60",
        "--sprt",
        "0,400",
        "--temperature",
        "0",
        *FAST,
    )
    assert code is None
    assert "first@2048 temperature 0.0 vs random" in out
    assert ", SPRT 0 to 400 Elo: H0" in out


def test_a_network_may_play_another_programs_engine(run: Path, keisei: Said) -> None:
    engine = f"usi:{sys.executable} -S -E {STAND_IN} --moves resign;depth=1;name=quitter"
    code, out, errors = keisei("evaluate", "first", "--against", engine, "--games", "2", *FAST)
    assert (code, errors) == (None, "")
    assert "first@2048 vs quitter: 2 wins, 0 draws, 0 losses of 2" in out
    assert "no ratings: they are relative to random, which has not played here; add --against random" in out
    (match,) = report_in(run / "evaluation")["matches"]
    assert match["reasons"] == {"resignation": 2}
    assert match["opponent"]["engine"]


def damaged(run: Path) -> None:
    weights = checkpoint_of(run, 2048) / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[100] ^= 1
    weights.write_bytes(data)


def no_database(run: Path) -> None:
    (run / "evaluation").mkdir()
    (run / "evaluation" / "results.sqlite").write_bytes(b"not a database, " * 100)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "no checkpoint at nowhere: expected latest, a run, RUN@best"),
        (["first@7"], "run runs/first has no checkpoint @7: expected best, latest or one of 1024, 2048"),
        (["first", "--games", "3"], "3 games, expected an even number, as each opening is played twice"),
        (["first", "--games", "0"], "--games"),
        (["first", "--against", "gredy"], "player 'gredy': not one of random, greedy, material, alphabeta-N"),
        (["first", "--against", "alphabeta-9"], "expected alphabeta-1 to alphabeta-6"),
        (["first", "--sprt", "50"], "--sprt 50: expected two numbers, the smaller first: 0,50"),
        (["first", "--sprt", "50,0"], "--sprt 50,0: expected two numbers, the smaller first: 0,50"),
        (["first", "--sprt", "a,b"], "--sprt a,b: expected two numbers"),
        (["first", "--openings", "missing.txt"], "missing.txt: No such file or directory"),
        (["first", "--openings", "bad.txt"], "bad.txt, line 2: bad sfen 'nonsense'"),
        (["first", "--openings", "long.txt", "--max-moves", "2"], "opening 1, startpos moves 7g7f 3c3d"),
        (["first", "--visits", "3", "--temperature", "1"], "visits and temperature are given, expected only"),
        (["first", "--seconds", "-1"], "seconds is -1, expected more than 0"),
        (["first", "--temperature", "nan"], "temperature"),
        (["first", "--device", "cuda:77"], "given cuda:77, expected auto or an available device"),
        (["first", "--against", "usi:engine"], "expected one of nodes, depth, byoyomi, movetime"),
        (["first", "--against", "greedy", "--against", "usi:/no/such/engine;depth=1"], "/no/such/engine"),
        (["first", "--out", "bad.txt"], "bad.txt"),
    ],
)
@pytest.mark.usefixtures("run")
def test_a_mistake_is_one_line_and_exit_code_2(
    keisei: Said, tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "bad.txt").write_text("startpos\nnonsense\n", encoding="utf-8")
    (tmp_path / "long.txt").write_text("startpos moves 7g7f 3c3d\n", encoding="utf-8")
    code, out, errors = keisei("evaluate", *arguments)
    assert code == 2
    assert says in errors
    assert errors.startswith("keisei: ")
    assert errors.count("\n") == 1
    assert "the scale" not in out  # before anything is played


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (damaged, "weights.safetensors is damaged, its SHA-256 does not match"),
        (no_database, "results.sqlite as a results store: file is not a database"),
    ],
)
def test_what_is_damaged_is_one_line_and_exit_code_2(run: Path, keisei: Said, harm: Any, says: str) -> None:
    harm(run)
    code, out, errors = keisei("evaluate", "first", *FAST)
    assert (code, out) == (2, "")
    assert says in errors
    assert errors.count("\n") == 1


def test_a_ladder_rates_everybody_and_goes_on(run: Path, keisei: Said, tmp_path: Path) -> None:
    arguments = ("ladder", "first", "first@1024", "--no-built-in", "--batch", "4", *FAST)
    code, out, errors = keisei(*arguments, "--precision", "3000")
    assert (code, errors) == (None, "")
    assert out.startswith("random\nfirst@2048: checkpoint ")
    assert "first@2048 vs random: " in out
    assert "first@1024 vs first@2048: " in out
    games = games_in(tmp_path / "ladder")
    assert len(games) == 8
    ratings = report_in(tmp_path / "ladder")["ratings"]
    assert len(ratings) == 3
    assert [one["elo"] for one in ratings if one["player"] == "random"] == [0]
    code, out, _ = keisei(*arguments, "--precision", "3000")
    assert code is None
    assert " vs " not in out
    assert games_in(tmp_path / "ladder") == games
    code, out, _ = keisei(*arguments, "--precision", "1", "--minutes", "0")
    assert code is None
    assert "time is up before every interval is ± 1 Elo; run the same command to continue" in out
    code, out, errors = keisei("ladder", "first", str(run), "--no-built-in", *FAST)
    assert code == 2
    assert errors == "keisei: first@2048 and first@2048 are the same player, expected different ones\n"


def test_a_ladders_time_is_kept_in_the_middle_of_a_match(run: Path, keisei: Said, tmp_path: Path) -> None:
    began = time.monotonic()
    arguments = ("--no-built-in", "--batch", "100000", "--minutes", "0.05", *FAST)
    code, out, _ = keisei("ladder", str(run), *arguments)
    assert code is None
    assert time.monotonic() - began < 240
    assert "stopped early" in out
    assert "time is up" in out
    assert 0 < len(games_in(tmp_path / "ladder")) < 100_000


def test_help_teaches(keisei: Said) -> None:
    for command, words in (
        (
            "evaluate",
            ["keisei evaluate runs/first --against random", "usi:COMMAND;depth=1", "--sprt", "--openings"],
        ),
        ("ladder", ["keisei ladder runs/first 'runs/first;visits=100'", "--precision", "--minutes"]),
    ):
        code, out, _ = keisei(command, "--help")
        assert code in (None, 0)
        text = " ".join(out.replace("│", " ").split())
        assert all(word in text for word in words), text


def wait_for_games(directory: Path, wanted: int, process: BaseProcess, of: str = "") -> None:
    """Wait until this many games of a player whose identity contains this text are stored."""
    end = time.monotonic() + 240
    while time.monotonic() < end and process.exitcode is None:
        if (directory / "results.sqlite").exists():
            with closing(sqlite3.connect(directory / "results.sqlite")) as connection:
                try:
                    query = "SELECT COUNT(*) FROM games WHERE black || white LIKE ?"
                    if connection.execute(query, (f"%{of}%",)).fetchone()[0] >= wanted:
                        return
                except sqlite3.OperationalError:  # it has no tables yet, or is being written
                    pass
        time.sleep(0.005)
    raise AssertionError(f"no {wanted} games in {directory}")


@pytest.mark.usefixtures("run")
def test_killed_and_interrupted_it_ends_as_if_undisturbed(keisei: Said, tmp_path: Path) -> None:
    arguments = (
        "evaluate",
        "first",
        "--against",
        "greedy",
        "--games",
        "160",  # more than are played side by side, so some are still to come when the first end
        "--max-moves",
        "100",
        "--threads",
        "1",
    )
    process = start_keisei(tmp_path, *arguments, "--out", "disturbed")
    wait_for_games(tmp_path / "disturbed", 10, process)
    process.kill()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    killed = games_in(tmp_path / "disturbed")
    assert 10 <= len(killed) < 260
    process = start_keisei(tmp_path, *arguments, "--out", "disturbed")
    wait_for_games(tmp_path / "disturbed", 6, process, of="network")
    os.kill(process.pid or 0, signal.SIGINT)
    process.join(120)
    assert process.exitcode == 130
    errors = (tmp_path / "errors.txt").read_text(encoding="utf-8")
    assert errors == "keisei: stopped; finished games are kept, run the same command to continue\n"
    interrupted = games_in(tmp_path / "disturbed")
    assert {*killed} < {*interrupted}
    assert len(interrupted) < 260
    assert not (tmp_path / "disturbed" / "report.json").exists()
    assert keisei(*arguments, "--out", "disturbed")[0] is None
    assert keisei(*arguments, "--out", "undisturbed")[0] is None
    assert games_in(tmp_path / "disturbed") == games_in(tmp_path / "undisturbed")
    assert in_files(tmp_path / "disturbed") == in_files(tmp_path / "undisturbed")
    assert in_files(tmp_path / "disturbed").total() == 260
    assert report_in(tmp_path / "disturbed") == report_in(tmp_path / "undisturbed")

"""The results store: each game counts once, whoever writes, and whoever is killed."""

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import results_writer
from results_writer import game

from keisei.evaluation.matches.results_store import (
    ResultsConflict,
    ResultsError,
    ResultsStore,
    StoredGame,
    StoredPlayer,
)
from keisei.evaluation.ratings.rating import PairResult, rate
from keisei.shogi import Color, Reason

WRITER = Path(results_writer.__file__)


@contextmanager
def writer(path: Path, name: str, number: int, size: int) -> Iterator["subprocess.Popen[str]"]:
    """A process that waits for a line and then stores games; killed at the end."""
    command = [sys.executable, str(WRITER), str(path), name, str(number), str(size)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_game_counts_once(tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "new" / "results.db") as results:
        assert results.add(game("a", pair) for pair in range(5)) == 5
        assert results.add(game("a", pair) for pair in range(3, 9)) == 4
        assert results.add([game("b", 1), game("b", 1)]) == 1
        assert results.add([]) == 0
        assert results.totals() == [PairResult("a", "random", 3, 3, 3), PairResult("b", "random", 0, 0, 1)]
    with ResultsStore.open(tmp_path / "new" / "results.db") as again:
        assert again.games() == [*(game("a", pair) for pair in range(9)), game("b", 1)]
        assert again.add([game("a", 8)]) == 0
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["results.db"]


def test_each_part_of_the_key_makes_another_game(tmp_path: Path) -> None:
    first = StoredGame("a", "b", "27 points", 1, 0, 0, "checkmate", 80)
    others = [
        first._replace(black="c"),
        first._replace(white="c"),
        first._replace(black="b", white="a"),
        first._replace(conditions="24 points"),
        first._replace(seed=2),
        first._replace(pair=1),
    ]
    with ResultsStore.open(tmp_path / "results.db") as results:
        assert results.add([first, *others]) == 7
        assert sorted(results.games()) == sorted([first, *others])
        assert results.games("24 points") == [others[3]]


@pytest.mark.parametrize("change", [{"winner": None}, {"winner": 1}, {"reason": "repetition"}, {"plies": 81}])
def test_another_result_of_a_game_is_named_and_nothing_is_stored(
    tmp_path: Path, change: dict[str, int | str | None]
) -> None:
    first = StoredGame("a", "b", "even", 2**64 - 1, 3, 0, "checkmate", 80)
    other = first._replace(**change)  # type: ignore[arg-type]
    with ResultsStore.open(tmp_path / "results.db") as results:
        results.add([first])
        with pytest.raises(ResultsConflict) as caught:
            results.add([game("c", 1), other])
        assert str(caught.value) == (
            f"{tmp_path / 'results.db'} has another result for a against b, conditions even,"
            f" seed 18446744073709551615, pair 3: winner, reason and plies are (0, 'checkmate', 80),"
            f" given {(other.winner, other.reason, other.plies)}"
        )
        assert results.games() == [first]
        assert results.add([game("c", 1)]) == 1  # and the store is good


def test_totals_are_by_identity_and_both_colours_together(tmp_path: Path) -> None:
    def played(
        black: str, white: str, winner: Color | None, pair: int, conditions: str = "even"
    ) -> StoredGame:
        return StoredGame(black, white, conditions, 0, pair, winner, Reason.CHECKMATE, 60)

    with ResultsStore.open(tmp_path / "results.db") as results:
        results.add(
            [
                played("b", "a", Color.BLACK, 0),
                played("a", "b", Color.BLACK, 0),
                played("b", "a", None, 1),
                played("a", "b", Color.WHITE, 1),
                played("c", "a", Color.WHITE, 0),
                played("a", "b", Color.BLACK, 0, "other"),
            ]
        )
        assert results.totals("even") == [PairResult("a", "b", 1, 1, 2), PairResult("a", "c", 1, 0, 0)]
        assert results.totals("other") == [PairResult("a", "b", 1, 0, 0)]
        assert results.totals() == [PairResult("a", "b", 2, 1, 2), PairResult("a", "c", 1, 0, 0)]
        assert results.totals("none") == []
        assert rate(results.totals(), anchor="a")["a"].games == 6


def test_a_match_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "results.db") as results:
        results.add([game("a", pair) for pair in (0, 1, 4)])
        assert results.known("a", "random", "test", 7) == {0, 1, 4}
        assert results.known("random", "a", "test", 7) == set()
        assert results.known("a", "random", "test", 8) == set()
        assert results.known("a", "random", "other", 7) == set()


def test_players_have_names_steps_and_facts(tmp_path: Path) -> None:
    with ResultsStore.open(tmp_path / "results.db") as results:
        results.add_player("sha256:1", "default@100", 100, {"run": "形勢", "sha256": "1"})
        results.add_player("random", "random")
        results.add_player("random", "Random")
        assert results.players() == {
            "random": StoredPlayer("random", "Random", None, {}),
            "sha256:1": StoredPlayer("sha256:1", "default@100", 100, {"run": "形勢", "sha256": "1"}),
        }


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (game("random", 0), "^expected two identities, given 'random' against itself$"),
        (game("a", 0)._replace(winner=2), "^winner is 2, expected 0 .black., 1 .white. or None in"),
        (game("a", 0)._replace(seed=-1), r"^seed is -1, expected 0 to 2\*\*64 - 1$"),
        (game("a", 0)._replace(seed=2**64), "^seed is 18446744073709551616, expected 0 to"),
        (game("a", -1), "^pair is -1, expected 0 or more in"),
    ],
)
def test_a_game_that_cannot_be_is_refused(tmp_path: Path, wrong: StoredGame, says: str) -> None:
    with ResultsStore.open(tmp_path / "results.db") as results:
        with pytest.raises(ResultsError, match=says):
            results.add([game("a", 1), wrong])
        assert results.games() == []


def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "results.db"

    def refusal() -> str:
        with pytest.raises(ResultsError) as caught:
            ResultsStore.open(path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    path.write_text("no database, but long enough to be taken for one\n" * 100)
    assert refusal() == f"cannot use {path} as a results store: file is not a database"
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    before = path.read_bytes()
    assert refusal() == f"{path} is not a results store: it is some other database"
    assert path.read_bytes() == before
    path.unlink()
    ResultsStore.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    assert refusal() == f"{path} has results of version 2, expected 1"
    path.unlink()
    path.mkdir()
    assert refusal() == f"cannot use {path} as a results store: unable to open database file"
    path = tmp_path / "results.db" / "file"
    path.touch()
    path = path / "results.db"
    assert refusal().startswith(f"cannot use {path} as a results store: ")


def test_a_damaged_store_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with ResultsStore.open(path) as results:
        results.add(game("a", pair) for pair in range(1000))
    data = bytearray(path.read_bytes())
    data[8192:] = bytes(len(data) - 8192)
    path.write_bytes(data)
    with ResultsStore.open(path) as results, pytest.raises(ResultsError, match="malformed"):
        results.totals()


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "results.db").touch()
    with ResultsStore.open(tmp_path / "results.db") as results:
        assert results.add([game("a", 0)]) == 1


def test_processes_that_store_the_same_games_at_once_count_each_once(tmp_path: Path) -> None:
    """They also create the store at the same time."""
    path = tmp_path / "results.db"
    with writer(path, "a", 400, 10) as first, writer(path, "a", 400, 10) as second:
        go(first)
        go(second)
        outputs = [process.communicate(timeout=100)[0] for process in (first, second)]
        assert [process.returncode for process in (first, second)] == [0, 0]
    new = [int(output.splitlines()[-1].split()[1]) for output in outputs]
    assert sum(new) == 400
    with ResultsStore.open(path) as results:
        assert results.games() == [game("a", pair) for pair in range(400)]


def test_many_may_make_the_store_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def make(number: int) -> None:
        for attempt in range(15):
            together.wait(30)
            with ResultsStore.open(tmp_path / f"{attempt}.db") as results:
                results.add([game("a", number)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(make, range(4)))
    for attempt in range(15):
        with ResultsStore.open(tmp_path / f"{attempt}.db") as results:
            assert results.known("a", "random", "test", 7) == {0, 1, 2, 3}


def test_what_was_stored_outlives_a_killed_process(tmp_path: Path) -> None:
    """All acknowledged batches are stored, and at most one more, which is complete."""
    path, size, choose = tmp_path / "results.db", 20, random.Random(1)
    for number in range(6):
        name = f"player{number}"
        with writer(path, name, 0, size) as process:
            go(process)
            assert process.stdout
            process.stdout.readline()
            time.sleep(choose.uniform(0, 0.1))
            process.kill()
            acknowledged = size
            for line in process.stdout:
                if line.endswith("\n"):
                    acknowledged = int(line.split()[0])
        with ResultsStore.open(path) as results:
            stored = results.known(name, "random", "test", 7)
            assert stored == set(range(len(stored)))
            assert len(stored) in (acknowledged, acknowledged + size)
            assert results.add([game(name, pair) for pair in range(len(stored) + 5)]) == 5
            assert len({game.black for game in results.games()}) == number + 1


def test_a_writer_waits_for_another_and_then_says_who_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.db"
    monkeypatch.setattr("keisei.evaluation.matches.results_store._BUSY_SECONDS", 0.2)
    with ResultsStore.open(path) as results, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ResultsError, match=r"is busy: another process has held it for 0.2 seconds$"):
            results.add([game("a", 0)])
        other.execute("ROLLBACK")
        assert results.add([game("a", 0)]) == 1

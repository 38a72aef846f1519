"""Contests: alternating turns, ratios within a round, failures of peers, tables."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import tables
from contest import (
    Contender,
    Contest,
    Result,
    Row,
    Stopwatch,
    TakeTurn,
    Turn,
    empty_result,
    ratios,
    run_contest,
)

ROOT = Path(__file__).parents[2]


def quiet(_text: str) -> None:
    pass


def scripted(log: list[str], name: str, values: list[float], peer: str = "") -> Contender:
    """Return a contender with known figures that logs what happens to it."""

    def open_it(stack: ExitStack) -> TakeTurn:
        log.append(f"open {name}")
        stack.callback(log.append, f"close {name}")
        figures = iter(values)

        def turn() -> Turn:
            log.append(name)
            return Turn(next(figures), 1.0, 2.0)

        return turn

    return Contender(name, open_it, peer=peer)


def test_contenders_take_turns_and_are_closed() -> None:
    log: list[str] = []
    contest = Contest("k", "t", "u", [scripted(log, "a", [1, 2]), scripted(log, "b", [3, 4])])
    result = empty_result(contest)
    run_contest(contest, 2, result, quiet)
    assert log == ["open a", "open b", "a", "b", "a", "b", "close b", "close a"]
    assert [row.values for row in result.rows] == [[1, 2], [3, 4]]


def test_a_ratio_is_taken_within_a_round() -> None:
    a, b = (
        Row("a", turns=[Turn(v, 1, 1) for v in (1, 100)]),
        Row("b", turns=[Turn(v, 1, 1) for v in (2, 200)]),
    )
    assert ratios(b, a) == [2, 2]
    assert tables.head_to_head(b, a, "higher") == 0.5
    assert tables.head_to_head(b, a, "lower") == 2


def test_a_peer_that_fails_is_out_and_named_but_one_of_ours_raises() -> None:
    log: list[str] = []
    theirs = Contest("k", "t", "u", [scripted(log, "a", [1, 2]), scripted(log, "b", [3], peer="b")])
    result = empty_result(theirs)
    run_contest(theirs, 2, result, quiet)
    assert result.rows[1].values == [3]
    assert result.rows[1].failed.startswith("StopIteration")
    assert "failed: StopIteration" in tables.table([result])
    ours = Contest("k", "t", "u", [scripted(log, "a", [1])])
    with pytest.raises(StopIteration):
        run_contest(ours, 2, empty_result(ours), quiet)


def test_a_peer_that_hangs_is_out_after_its_time_and_the_others_go_on() -> None:
    log: list[str] = []

    def hang(_stack: ExitStack) -> TakeTurn:
        def turn() -> Turn:
            time.sleep(60)
            raise AssertionError("it was not interrupted")

        return turn

    contest = Contest("k", "t", "u", [scripted(log, "a", [1, 2]), Contender("b", hang, peer="b")])
    result = empty_result(contest)
    run_contest(contest, 2, result, quiet, peer_seconds=0.1)
    assert result.rows[0].values == [1, 2]
    assert result.rows[1].failed == "TimeoutError: nothing in 0.1 s"


def test_an_interrupted_contest_keeps_its_turns_and_closes() -> None:
    log: list[str] = []

    def interrupt(_stack: ExitStack) -> TakeTurn:
        def turn() -> Turn:
            raise KeyboardInterrupt

        return turn

    contest = Contest("k", "t", "u", [scripted(log, "a", [1]), Contender("b", interrupt)])
    result = empty_result(contest)
    with pytest.raises(KeyboardInterrupt):
        run_contest(contest, 3, result, quiet)
    assert result.rows[0].values == [1]
    assert log[-1] == "close a"


def test_a_table_puts_the_best_first_and_says_our_place() -> None:
    rows = [Row("ours", turns=[Turn(10, 1, 1)]), Row("theirs", peer="p", turns=[Turn(20, 1, 1)])]
    result = Result("k", "t", "steps/s", "higher", rows)
    lines = tables.table([result]).splitlines()
    assert lines[2].startswith("| theirs | 20 | 0.5 |")
    assert lines[3].startswith("| **ours** | 10 | reference |")
    assert tables.place([result]) == "Keisei's best row is number 2 among 2 (itself and 1 peer row)."


def test_several_runs_show_the_spread_of_their_medians() -> None:
    def run(values: list[float]) -> Result:
        return Result("k", "t", "u", "higher", [Row("ours", turns=[Turn(v, 1, 1) for v in values])])

    assert "| **ours** | 20 | reference | 10–30 |" in tables.table(
        [run([10, 10]), run([20, 20]), run([30, 30])]
    )


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_cpu_time_of_a_child_process_counts() -> None:
    watch = Stopwatch()
    code = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert watch.turn(1).cpu_seconds > 0.25


def bench(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / "run.py"), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=250, env={**os.environ, "GOMP_SPINCOUNT": "5000"},
    )  # fmt: skip


def test_every_suite_runs_and_writes_its_three_files(tmp_path: Path) -> None:
    done = bench("--tiny", "--peers", "rsshogi,gymnasium", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "bench.md").read_text(encoding="utf-8")
    for words in (
        "**keisei serially, one game at a time**", "max_policy_lag 1", "bytes/move", "| yes |", "rsshogi",
        "gymnasium AsyncVectorEnv", "ms/move", "goes on with a new process", "Broken pipe",
    ):  # fmt: skip
        assert words in page, words
    assert "failed:" not in page
    assert (tmp_path / "out" / "bench.png").read_bytes().startswith(b"\x89PNG")
    compared = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "compare.py"), "out/bench.json", "out/bench.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "0 slower beyond noise, 0 missing" in compared.stdout


def test_an_unknown_suite_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = bench("--only", "rulez", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "--only: no 'rulez', expected some of rules, env, collect, train, transport, recovery, strength"
    )

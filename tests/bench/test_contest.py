"""Contests: alternating turns, ratios within a round, failures of peers, tables."""

import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import rules
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
    measured,
    ratios,
    run_contest,
)
from settings import Peers, Scale

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


def test_a_peer_whose_close_hangs_keeps_its_figures_and_its_processes_are_killed() -> None:
    log: list[str] = []
    started: list[multiprocessing.process.BaseProcess] = []

    def open_it(stack: ExitStack) -> TakeTurn:
        child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        child.start()
        started.append(child)
        for _ in range(2):
            stack.callback(time.sleep, 60)
        return lambda: Turn(3, 1.0, 1.0)

    contest = Contest("k", "t", "u", [scripted(log, "a", [1]), Contender("b", open_it, peer="b")])
    result = empty_result(contest)
    start = time.monotonic()
    run_contest(contest, 1, result, quiet, peer_seconds=0.5)
    assert time.monotonic() - start < 30
    assert result.rows[1].values == [3]
    assert result.rows[1].failed == "while closing: TimeoutError: nothing in 0.5 s"
    assert log[-1] == "close a"
    started[0].join(timeout=30)
    assert started[0].exitcode == -9


def test_a_peer_that_fails_is_closed_before_the_others_go_on() -> None:
    log: list[str] = []
    contest = Contest("k", "t", "u", [scripted(log, "a", [1, 2]), scripted(log, "b", [], peer="b")])
    run_contest(contest, 2, empty_result(contest), quiet)
    assert log == ["open a", "open b", "a", "b", "close b", "a", "close a"]


def test_a_peer_of_the_rules_is_imported_before_its_first_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def loop(games: int) -> float:
        log.append(f"{games} games")
        return games

    monkeypatch.setattr(rules, "cshogi_loop", loop)
    monkeypatch.setattr(Peers, "has", lambda _peers, name: name == "cshogi")
    contests = {one.key: one for one in rules.contests(Scale(share=0.15), Peers())}
    (peer,) = [one for one in contests["rules/play"].contenders if one.peer]
    with ExitStack() as stack:
        take_turn = peer.open(stack)
        assert log == ["2 games"]
        take_turn()
    assert log == ["2 games", "400 games"]


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


def test_a_row_that_does_part_of_the_work_takes_no_place_and_a_tie_is_said() -> None:
    alone = Row("network alone", partial=True, turns=[Turn(30, 1, 1)])
    rows = [Row("ours", turns=[Turn(10, 1, 1)]), alone, Row("theirs", peer="p", turns=[Turn(20, 1, 1)])]
    result = Result("k", "t", "steps/s", "higher", rows)
    assert tables.place([result]) == "Keisei's best row is number 2 among 2 (itself and 1 peer row)."
    rows[0].turns[0] = Turn(20, 1, 1)
    assert tables.place([result]).endswith("is number 1 among 2 (itself and 1 peer row), tied with 1.")


def test_cpu_seconds_that_were_not_counted_are_not_shown() -> None:
    result = Result("k", "t", "s", "lower", [Row("ours", turns=[Turn(1, 2, None)])])
    assert tables.table([result]).splitlines()[2] == "| **ours** | 1 | reference | 1–1 |  |"


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.4, "999"), (999.6, "1,000"), (1234, "1,230"), (999_600, "1,000,000"), (0.0123, "0.0123")],
)
def test_a_figure_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert tables.number(value) == text


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
    assert (watch.turn(1).cpu_seconds or 0) > 0.25


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


def test_an_unknown_run_is_one_line_and_exit_code_2_before_anything_is_measured(tmp_path: Path) -> None:
    done = bench("--tiny", "--only", "rules", "--run", "typo", cwd=tmp_path)
    assert done.returncode == 2
    assert "--run: no checkpoint at typo" in done.stderr.splitlines()[-1]
    assert "set up" not in done.stderr


def test_a_reference_without_a_score_is_not_so_many_times_as_good_as_anything() -> None:
    policy, search = (
        Row("policy", turns=[Turn(v, 1, 1) for v in (0, 0, 10)]),
        Row("search", turns=[Turn(20, 1, 1)] * 3),
    )
    assert tables.head_to_head(search, policy, "higher") is None
    assert tables.head_to_head(policy, search, "higher") is None
    assert tables.head_to_head(search, Row("other", turns=[Turn(10, 1, 1)] * 3), "higher") == 0.5


def test_a_turn_lasts_as_long_as_other_clocks_say() -> None:
    def work() -> float:
        time.sleep(0.05)
        return 10.0

    wall, cpu = time.monotonic(), time.process_time()
    turn = measured(work)
    assert 0.05 < turn.wall_seconds <= time.monotonic() - wall
    assert turn.cpu_seconds is not None
    # Something that earlier tests have started may still be ending.
    assert turn.cpu_seconds <= time.process_time() - cpu + 0.5
    assert turn.value == 10 / turn.wall_seconds


def test_a_contest_without_peers_has_no_place() -> None:
    rows = [Row("ours", turns=[Turn(10, 1, 1)]), Row("ours too", turns=[Turn(20, 1, 1)])]
    assert tables.place([Result("k", "t", "u", "higher", rows)]) == ""

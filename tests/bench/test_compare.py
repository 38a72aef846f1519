"""The comparison of two results, with made-up figures."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import compare
import performance_page
import pytest
import ratio_plot
import results
import tables
from contest import Result, Row, Turn
from results import Report, read, write


def row(name: str, values: Sequence[float], peer: str = "") -> Row:
    return Row(name, peer=peer, turns=[Turn(value, 1.0, 1.0) for value in values])


def report(
    *rows: Row, better: str = "higher", cpu: str = "a CPU", packages: dict[str, str] | None = None
) -> Report:
    contest = Result("env", "random play", "steps/s", better, list(rows))
    return Report(
        command="python bench/run.py",
        date="2026-01-01 00:00 UTC",
        commit="0123456789",
        dirty=False,
        machine={
            "cpu": cpu,
            "cores": "2",
            "os": "an OS",
            "compiler": "g++",
            "python": "3",
            "fairy-stockfish": "none",
        },
        packages=packages or {"torch": "1"},
        settings={},
        load_start=[0.0, 0.0, 0.0],
        complete=True,
        contests=[contest],
    )


def verdicts(old: Report, new: Report) -> dict[str, str]:
    return {change.row: change.verdict for change in compare.compared(old, new)}


OURS = row("ours", [100, 102, 98])


def test_a_row_that_lost_half_its_speed_against_the_reference_is_slower() -> None:
    old = report(OURS, row("dense", [50, 51, 49]))
    new = report(OURS, row("dense", [25, 26, 24]))
    assert verdicts(old, new) == {"ours": "same", "dense": "slower"}


def test_a_change_within_the_rounds_own_spread_is_noise() -> None:
    old = report(OURS, row("dense", [50, 70, 35]))
    new = report(OURS, row("dense", [40, 55, 30]))
    assert verdicts(old, new)["dense"] == "same"


def test_load_that_slows_all_contenders_alike_is_no_regression_of_a_row() -> None:
    old = report(OURS, row("dense", [50, 51, 49]), cpu="one")
    new = report(row("ours", [50, 51, 49]), row("dense", [25, 25.5, 24.5]), cpu="another")
    assert verdicts(old, new) == {"ours": "unknown", "dense": "same"}


def test_a_reference_that_lost_against_its_peer_is_slower_even_on_another_machine() -> None:
    old = report(OURS, row("theirs", [10, 10.1, 9.9], peer="theirs"), cpu="one")
    new = report(OURS, row("theirs", [20, 20.2, 19.8], peer="theirs"), cpu="another")
    assert verdicts(old, new)["ours, against theirs"] == "slower"
    assert verdicts(new, old)["ours, against theirs"] == "faster"


def test_a_faster_reference_makes_no_other_row_slower(tmp_path: Path) -> None:
    old = report(OURS, row("dense", [50, 51, 49]), row("theirs", [10, 10.1, 9.9], peer="theirs"))
    new = report(row("ours", [200, 204, 196]), *old.contests[0].rows[1:])
    assert verdicts(old, new) == {"ours": "faster", "dense": "same", "ours, against theirs": "faster"}
    assert run(tmp_path, old, new) == 0


def test_a_faster_peer_does_not_make_ours_slower() -> None:
    old = report(OURS, row("theirs", [10, 10.1, 9.9], peer="theirs"))
    new = report(OURS, row("theirs", [20, 20.2, 19.8], peer="theirs"))
    assert verdicts(old, new) == {"ours": "same", "ours, against theirs": "same"}


def test_a_halved_reference_is_slower_whatever_the_versions_of_keisei_and_of_peers() -> None:
    old = report(OURS, packages={"keisei": "1", "torch": "1", "pgx": "1"})
    new = report(row("ours", [50, 51, 49]), packages={"keisei": "2", "torch": "1", "jax": "1"})
    assert verdicts(old, new) == {"ours": "slower"}
    new.packages["torch"] = "2"
    assert verdicts(old, new) == {"ours": "unknown"}


def test_a_score_that_fell_to_0_is_slower() -> None:
    old, new = report(row("ours", [50, 60, 50])), report(row("ours", [0, 0, 0]))
    assert verdicts(old, new) == {"ours": "slower"}
    assert verdicts(new, old) == {"ours": "faster"}
    assert verdicts(new, new) == {"ours": "same"}
    zero = row("policy", [0, 0, 0])
    assert verdicts(report(zero, row("search", [50, 60, 50])), report(zero, row("search", [0, 0, 0]))) == {
        "policy": "same",
        "search": "slower",
    }


def test_fewer_seconds_are_an_improvement_where_lower_is_better() -> None:
    old, new = (
        report(row("ours", [4, 4.1, 3.9]), better="lower"),
        report(row("ours", [2, 2.1, 1.9]), better="lower"),
    )
    assert verdicts(old, new) == {"ours": "faster"}
    assert verdicts(new, old) == {"ours": "slower"}


def test_two_rounds_are_too_few_to_tell() -> None:
    old, new = report(row("ours", [100, 100])), report(row("ours", [10, 10]))
    assert verdicts(old, new) == {"ours": "unknown"}


def run(tmp_path: Path, old: Report, new: Report) -> int:
    write(old, tmp_path / "old.json")
    write(new, tmp_path / "new.json")
    return compare.main([str(tmp_path / "old.json"), str(tmp_path / "new.json")])


def test_a_regression_exits_with_1_and_names_the_row_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = report(OURS, row("dense", [50, 51, 49])), report(OURS, row("dense", [25, 26, 24]))
    assert run(tmp_path, old, new) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("slower   env: dense: 0.5 → 0.25, ×0.50 (noise: ×0.9")
    assert lines[-1] == "1 slower beyond noise, 0 missing, 2 compared"


def test_an_improvement_and_a_missing_row_exit_with_0_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = report(OURS, row("dense", [50, 51, 49]), row("gone", [1, 1, 1]))
    new = report(OURS, row("dense", [75, 76, 74]))
    assert run(tmp_path, old, new) == 0
    out = capsys.readouterr().out
    assert "missing  env: gone (the row is not in the new file)" in out
    assert "faster   env: dense: 0.5 → 0.75, ×1.50" in out


def test_another_machine_is_said_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, report(OURS, cpu="one"), report(OURS, cpu="another")) == 0
    out = capsys.readouterr().out
    assert "NOT THE SAME CONDITIONS" in out
    assert "cpu: one → another" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "format is None, expected 1"),
        ('{"format": 99}', "format is 99, expected 1"),
        ('{"format": 1, "contests": []}', "missing"),
        ('{"format": 1, "contests": [{"rows": [{}]}]}', "turns"),
        (None, "No such file"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert compare.main([str(path), str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"bench-compare: {path}: ")
    assert words in line


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = report(OURS, dataclasses.replace(row("theirs", [1.5], peer="theirs"), failed="it broke"))
    write(kept, tmp_path / "bench.json")
    assert read(tmp_path / "bench.json") == kept
    assert json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["format"] == 1


def test_the_page_gets_the_tables_of_all_runs_and_keeps_its_text(tmp_path: Path) -> None:
    folders = []
    for number, value in enumerate((10, 20, 30)):
        folders.append(tmp_path / f"run-{number}")
        folders[-1].mkdir()
        write(report(row("ours", [value] * 3)), folders[-1] / "bench.json")
    page = tmp_path / "performance.md"
    page.write_text(
        f"before\n{performance_page.BEGIN}\nstale figures\n{performance_page.END}\nafter\n", encoding="utf-8"
    )
    assert performance_page.main([*map(str, folders), "--docs", str(tmp_path)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "stale figures" not in text
    assert "| **ours** | 20 | reference | 10–30 |" in text
    assert len(list((tmp_path / "performance").iterdir())) == 3
    assert (tmp_path / "performance.png").stat().st_size > 1000


def test_the_plot_shows_the_medians_of_the_runs() -> None:
    runs = [report(row("ours", [value]), row("theirs", [1], peer="p")) for value in (10, 20, 60)]
    assert ratio_plot.bars(runs) == [("env", "theirs", 20)]


def test_a_busy_machine_and_an_interrupted_run_are_said() -> None:
    quiet, busy = report(OURS), dataclasses.replace(report(OURS), others=1.0, complete=False)
    assert "busy machine" not in tables.conditions([quiet])
    assert "interrupted" not in tables.conditions([quiet])
    assert "busy machine" in tables.conditions([quiet, busy])
    assert "interrupted" in tables.conditions([quiet, busy])


def test_a_page_without_markers_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(report(OURS), tmp_path / "bench.json")
    (tmp_path / "performance.md").write_text("text\n", encoding="utf-8")
    assert performance_page.main([str(tmp_path), "--docs", str(tmp_path)]) == 2
    assert "expected a line" in capsys.readouterr().err
    assert (tmp_path / "performance.md").read_text(encoding="utf-8") == "text\n"


def test_a_busy_core_is_seen_before_the_first_contest() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            while results.cores_in_use(0.2) < 0.5:  # until it has started
                assert other.poll() is None
        finally:
            other.kill()

"""Floors of coverage: what they count, and that a low figure fails the command."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_coverage import FLOORS, Floor, check, measure

ROOT = Path(__file__).parents[1]
PROGRAM = """\
def half(x):
    if x:
        return 1
    return 2

half(1)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return coverage's own summaries of a program that runs 4 of its 5 statements and 1 of 2 branches."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "rules").mkdir()
    (folder / "rules" / "half.py").write_text(PROGRAM)
    (folder / "whole.py").write_text("import rules.half\n")
    # These tests may run under coverage themselves.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE")}
    for command in (["run", "--branch", "--source=.", "whole.py"], ["json", "-o", "report.json"]):
        done = subprocess.run(
            [sys.executable, "-m", "coverage", *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    return {name: file["summary"] for name, file in report["files"].items()}


def test_statements_and_branches_are_counted_apart(files: dict[str, Any]) -> None:
    both, one = measure([Floor("both", 50, ("*",)), Floor("one", 50, ("rules/*",))], files)
    assert (both.files, both.statements, both.branches) == (2, 100 * 5 / 6, 50)
    assert (one.files, one.statements, one.branches) == (1, 80, 50)
    assert both.holds
    assert one.holds


def test_a_floor_that_one_of_the_two_misses_fails_by_name(
    files: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = measure([Floor("held", 50, ("*",)), Floor("missed", 50.1, ("rules/*",))], files)
    assert check(rows) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[2].split() == ["missed", "50.1", "%", "80.0", "%", "50.0", "%", "1"]
    assert printed.err == "coverage below its floor: missed\n"
    assert check(rows[:1]) == 0
    assert capsys.readouterr().err == ""


def test_a_floor_without_a_file_fails(files: dict[str, Any]) -> None:
    assert check(measure([Floor("moved", 0, ("gone/*",))], files)) == 1


def test_every_floor_names_files_of_the_package() -> None:
    summary = {"covered_lines": 1, "num_statements": 1, "covered_branches": 0, "num_branches": 0}
    paths = [str(path.relative_to(ROOT)) for path in (ROOT / "keisei").rglob("*.py")]
    rows = measure(FLOORS, dict.fromkeys(paths, summary))
    assert rows[0].files == len(paths)
    assert all(row.holds for row in rows)

"""python scripts/check_coverage.py [--html]

Combines what `make coverage` measured in all processes, prints the files with gaps, and checks the floors.
Output: a table with a row per floor; exit code 1 and the names of what is too low, 2 if nothing was measured.

A floor holds for statements and for branches, each by itself. A branch is one of several ways out of a line.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import coverage
from coverage.exceptions import CoverageWarning, NoDataError

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Floor:
    """The percentage that the files which match any of `patterns` must reach together."""

    name: str
    percent: float
    patterns: tuple[str, ...]


FLOORS = (
    Floor("whole package", 90, ("keisei/*",)),
    Floor("rules and their bindings", 95, ("keisei/shogi/*",)),
    Floor("advantages", 95, ("keisei/core/advantages.py",)),
    Floor("checkpoints", 95, ("keisei/runs/checkpoint*.py", "keisei/runs/durable.py")),
    Floor("parallel collection", 95, ("keisei/training/parallel/*",)),
)


@dataclass(frozen=True)
class Row:
    """What was measured for one floor."""

    floor: Floor
    files: int
    statements: float  # percent
    branches: float  # percent

    @property
    def holds(self) -> bool:
        """Whether files were found and both percentages reach the floor."""
        return self.files > 0 and min(self.statements, self.branches) >= self.floor.percent


def measure(floors: Iterable[Floor], files: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return a row per floor. files: summaries by path, as in coverage's JSON report."""
    rows = []
    for floor in floors:
        found = [
            summary
            for path, summary in files.items()
            if any(fnmatch(path.replace("\\", "/"), pattern) for pattern in floor.patterns)
        ]
        statements = _percent(found, "covered_lines", "num_statements")
        branches = _percent(found, "covered_branches", "num_branches")
        rows.append(Row(floor, len(found), statements, branches))
    return rows


def _percent(summaries: list[Mapping[str, Any]], covered: str, all_of: str) -> float:
    total = sum(int(summary[all_of]) for summary in summaries)
    return 100 * sum(int(summary[covered]) for summary in summaries) / total if total else 100.0


def check(rows: list[Row]) -> int:
    """Print the table, and to stderr what is below its floor; return the exit code."""
    print(f"{'':26}{'floor':>7}{'statements':>12}{'branches':>10}{'files':>7}")
    for row in rows:
        figures = f"{row.floor.percent:>5g} %{row.statements:>10.1f} %{row.branches:>8.1f} %{row.files:>7}"
        print(f"{row.floor.name:26}{figures}")
    low = [row.floor.name for row in rows if not row.holds]
    if low:
        print(f"coverage below its floor: {', '.join(low)}", file=sys.stderr)
    return 1 if low else 0


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Combine what `make coverage` measured and check the floors."
    )
    parser.add_argument("--html", action="store_true", help="also write build/coverage/html/index.html")
    arguments = parser.parse_args()
    measured = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    with warnings.catch_warnings():
        # A process that a test killed while it wrote its data leaves a file that cannot be read.
        warnings.simplefilter("ignore", CoverageWarning)
        measured.combine()
    try:
        measured.report()
    except NoDataError:
        print("check_coverage: nothing was measured here; run make coverage", file=sys.stderr)
        return 2
    path = ROOT / "build" / "coverage" / "report.json"
    measured.json_report(outfile=str(path))
    if arguments.html:
        measured.html_report(directory=str(path.with_name("html")))
    files = json.loads(path.read_text(encoding="utf-8"))["files"]
    print()
    return check(measure(FLOORS, {name: file["summary"] for name, file in files.items()}))


if __name__ == "__main__":
    sys.exit(main())

"""python bench/performance_page.py FOLDER...: put the tables of these runs of make bench into
docs/performance.md.

The part of the page between its two markers is replaced, docs/performance.png shows the medians of the runs,
and the runs' JSON is kept beside it (docs/performance/run-1.json …) for make bench-compare. `make bench-docs`
does the runs too.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import ratio_plot
import tables
from results import ROOT, BadResultError, read, write

BEGIN, END = "<!-- begin: make bench-docs -->", "<!-- end: make bench-docs -->"


def replaced(page: str, block: str) -> str:
    """Return a page with the part between the markers replaced; ValueError if it has no markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected a line {BEGIN} and later a line {END}")
    return f"{before}{BEGIN}\n\n{block}\n{END}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the page and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders with a bench.json, of the same commit")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    page = arguments.docs / "performance.md"
    try:
        reports = [read(folder / "bench.json") for folder in arguments.folders]
        page.write_text(replaced(page.read_text(encoding="utf-8"), tables.page(reports)), encoding="utf-8")
    except (BadResultError, ValueError, OSError) as error:
        print(f"performance_page: {error}", file=sys.stderr)
        return 2
    kept = arguments.docs / "performance"
    kept.mkdir(exist_ok=True)
    for old in kept.glob("run-*.json"):
        old.unlink()
    for number, report in enumerate(reports, 1):
        write(report, kept / f"run-{number}.json")
    ratio_plot.draw(reports, arguments.docs / "performance.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())

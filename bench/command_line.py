"""The command line of the benchmarks: run suites, show progress, write Markdown, JSON and a plot.

Ctrl-C keeps what was measured: the files are written after every contest, and once more at the end.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "5000")  # as `keisei train` does, before torch is loaded

import ratio_plot
import tables
from contest import Contest, empty_result, progress, run_contest
from results import Report, load, new_report, write
from settings import KNOWN, Peers, Scale

from keisei.core.device import cores, keep_freed_memory
from keisei.runs.checkpoint import CheckpointError
from keisei.runs.find import find_checkpoint

Suite = Callable[[Scale, Peers], list[Contest]]

# Rounds and share of the full amount of work in a turn.
FULL, QUICK, TINY = (5, 1.0), (3, 0.15), (1, 0.01)


def parsed(suites: Mapping[str, Suite], description: str | None, argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line; a mistake ends the program with one line and code 2."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="three short rounds, rough figures: up to a quarter of an hour with all peers",
    )
    size.add_argument("--tiny", action="store_true", help="one round of next to nothing: does it run at all")
    parser.add_argument("--rounds", type=int, help=f"turns of each contender (default {FULL[0]})")
    parser.add_argument("--only", help=f"suites, with commas: {','.join(suites)}")
    parser.add_argument(
        "--peers", help=f"peers, with commas, or none: {','.join(KNOWN)} (default: all installed)"
    )
    parser.add_argument("--workers", type=int, default=cores(), help="processes and threads (default: cores)")
    parser.add_argument("--run", help="a run or checkpoint whose network plays in the suite of strength")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder (default build/bench)")
    arguments = parser.parse_args(argv)
    arguments.suites = _picked(parser, "--only", arguments.only, suites)
    if arguments.peers is not None:
        wanted = "" if arguments.peers == "none" else arguments.peers
        arguments.peers = frozenset(_picked(parser, "--peers", wanted, KNOWN) if wanted else [])
    if arguments.run is not None:
        try:
            find_checkpoint(arguments.run)
        except CheckpointError as error:
            parser.error(f"--run: {error}")
    for name in ("rounds", "workers"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}, expected at least 1")
    return arguments


def _picked(
    parser: argparse.ArgumentParser, option: str, text: str | None, known: Mapping[str, object]
) -> list[str]:
    """Return the names in a text with commas, or all that are known."""
    names = [part.strip() for part in (text or "").split(",") if part.strip()]
    for name in names:
        if name not in known:
            parser.error(f"{option}: no {name!r}, expected some of {', '.join(known)}")
    return names or list(known)


def _without_out(argv: Sequence[str]) -> list[str]:
    """Return the arguments without the folder, which is nobody's business but the machine's."""
    kept = [one for one in argv if not one.startswith("--out=")]
    if "--out" in kept:
        at = kept.index("--out")
        del kept[at : at + 2]
    return kept


def main(suites: Mapping[str, Suite], description: str | None, argv: Sequence[str] | None = None) -> None:
    """Run the suites asked for, print the report and write it."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = parsed(suites, description, argv)
    rounds, share = TINY if arguments.tiny else QUICK if arguments.quick else FULL
    rounds = arguments.rounds or rounds
    network = (1, 8) if arguments.tiny else (3, 32)
    scale = Scale(share, arguments.tiny, arguments.workers, network, arguments.run)
    peers = Peers(arguments.peers)
    keep_freed_memory()  # as `keisei train` does; for all contenders
    command = shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *_without_out(argv)])
    settings = {"rounds": rounds, "share": share, "workers": scale.workers, "run": arguments.run}
    report = new_report(command, settings)
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        for name in arguments.suites:
            for contest in suites[name](scale, peers):
                report.contests.append(empty_result(contest))
                run_contest(contest, rounds, report.contests[-1], progress)
                report.missing = [f"{peer} ({install})" for peer, install in peers.missing.items()]
                save(report, arguments.out)
        report.complete = True
    except KeyboardInterrupt:
        progress("interrupted: what was measured so far is kept")
        sys.exit(130)
    finally:
        report.load_end = load()
        save(report, arguments.out)
        ratio_plot.draw([report], arguments.out / "bench.png")
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(tables.page([report]))
        print(f"{arguments.out}/bench.md, bench.json, bench.png")


def save(report: Report, folder: Path) -> None:
    """Write the report as JSON and Markdown."""
    write(report, folder / "bench.json")
    (folder / "bench.md").write_text(f"# Benchmark\n\n{tables.page([report])}", encoding="utf-8")

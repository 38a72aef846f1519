"""python bench/network.py [--quick]: how fast the network is computed: torch, onnxruntime, OpenVINO and our
own kernels.

For each network, batch size and number of threads: the forward pass alone, as in playing, and forward and
backward, as in learning (weights are loaded, a loss is computed, gradients are found and dropped).
onnxruntime and OpenVINO take part in the forward pass, if they are installed. docs/network.md explains our
kernels.

Contenders take turns in rounds, in one process; the best round counts. First all turns on one thread, then
those on two, since torch's threads go on polling after their work. Everything takes about an hour on 2 cores,
most of it for the largest network: choose with --networks. Ctrl-C prints what has been measured so far.

  python bench/network.py --quick                                   a minute, rough figures
  python bench/network.py --networks 3x32,4x64 --batches 1,64       some of it
  python bench/network.py --out build/network.md --json build/network.json
  python bench/compare.py OLD.json build/network.json               what became faster or slower
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from contest import Contest, Result, Row, Turn, empty_result, progress, run_contest
from results import Report, load, new_report, write
from tables import BUSY_CORES, number

from keisei.core.device import keep_freed_memory
from keisei.core.policy_labels import LABELS
from keisei.shogi.encoding import PLANES

NETWORKS, BATCHES, THREADS = "3x32,4x64,10x128,20x256", "1,8,64,256", "1,2"
QUICK_NETWORKS, QUICK_BATCHES = "3x32,4x64", "1,64"
# Seconds of a turn, and rounds.
FULL, QUICK = (0.3, 5), (0.05, 2)
# A call with more multiplications takes seconds, and so has fewer rounds.
LONG_CALL, LONG_ROUNDS = 100e9, 2

LEAST_SHARE = 0.95  # of a core, for a turn on one thread; with less, others were busy
# Multiplications of a 3×3 convolution over the board, for a pair of channels.
WINOGRAD, DIRECT = 9 * 25, 81 * 9


@dataclass(frozen=True)
class Cell:
    """One comparison: a network and a batch size, one direction or both, a number of threads."""

    threads: int
    backward: bool
    blocks: int
    channels: int
    batch: int

    @property
    def network(self) -> str:
        """The network as on the command line."""
        return f"{self.blocks}x{self.channels}"

    @property
    def passes(self) -> str:
        """What is computed."""
        return "forward and backward" if self.backward else "forward"

    @property
    def label(self) -> str:
        """The row of a table."""
        return f"{self.network}, batch {self.batch}"

    @property
    def title(self) -> str:
        """The cell in words."""
        return f"{self.passes}, {threads_text(self.threads)}, {self.label}"

    @property
    def key(self) -> str:
        """A short name."""
        direction = "both" if self.backward else "forward"
        return f"network/{direction}/{self.threads}/{self.network}/{self.batch}"

    def multiplications(self, convolution: int) -> int:
        """Return those of one position's forward pass, all labels' logits included; see WINOGRAD, DIRECT."""
        c = self.channels
        return convolution * (PLANES * c + 2 * self.blocks * c * c) + LABELS * c

    @property
    def is_long(self) -> bool:
        """Whether one call takes seconds."""
        return self.multiplications(DIRECT) * self.batch * (3 if self.backward else 1) > LONG_CALL


@dataclass
class Measured:
    """What has been measured: the cells, the peak, and the conditions in `report`."""

    report: Report
    versions: dict[str, str]
    peak: Result | None = None
    cells: dict[Cell, Result] = field(default_factory=dict)

    def complete_cells(self) -> dict[Cell, Result]:
        """Return the cells in which all contenders had a turn, or failed."""
        return {
            cell: result
            for cell, result in self.cells.items()
            if result.rows and all(row.turns or row.failed for row in result.rows)
        }


def threads_text(threads: int) -> str:
    """Return "1 thread" or "2 threads"."""
    return "1 thread" if threads == 1 else f"{threads} threads"


def best(row: Row) -> Turn | None:
    """Return the best turn."""
    return max(row.turns, key=lambda turn: turn.value or 0.0, default=None)


def speed(row: Row) -> float | None:
    """Return the best turn's positions per second."""
    turn = best(row)
    return turn.value if turn else None


def cpu_microseconds(row: Row) -> float | None:
    """Return the CPU time for one position in the best turn."""
    turn = best(row)
    if turn is None or not turn.value or turn.cpu_seconds is None:
        return None
    return 1e6 * turn.cpu_seconds / (turn.value * turn.wall_seconds)


def advantage(result: Result, *, float32: bool) -> float | None:
    """Return our speed with the kernels used by default, divided by that of the best of the others.

    float32: only of those who compute in float32; the others have a note.
    """
    ours = speed(result.rows[0])
    peers = [row for row in result.rows if row.peer and not (float32 and row.note)]
    others = [found for row in peers if (found := speed(row))]
    return ours / max(others) if ours and others else None


# --- the report ---


def page(measured: Measured) -> str:
    """Return the report as Markdown."""
    cells = measured.complete_cells()
    parts = ["# How fast the network is computed", conditions(measured), EXPLAINED]
    for (threads, _), group in itertools.groupby(cells, key=lambda cell: (cell.threads, cell.backward)):
        chosen = {cell: cells[cell] for cell in group}
        title = f"{next(iter(chosen)).passes}, {threads_text(threads)}".capitalize()
        parts += [f"## {title}: positions/s", speed_table(chosen)]
        parts += [f"## {title}: CPU µs per position", cpu_table(chosen)]
    parts += [f"## {name}\n\n{text}" for name, text in closing(measured, cells).items() if text]
    return "\n\n".join(parts) + "\n"


EXPLAINED = (
    "Contenders take turns; a figure is that of the best round. **Bold**: the best of a row. “native ÷”: our "
    "first column, the kernels used by default, divided by the best of the others, and by the best of those "
    "that compute in float32. Native computes the logits of the legal moves, the others those of all 2,187 "
    "labels."
)


def conditions(measured: Measured) -> str:
    """Return machine, versions, commit and command as a list."""
    report, machine = measured.report, measured.report.machine
    versions = ", ".join(f"{name} {found}" for name, found in measured.versions.items())
    dirty = " with uncommitted changes" if report.dirty else ""
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    lines = [
        f"machine: {machine['cpu']}, {machine['cores']} cores; {versions}",
        f"command: `{report.command}` ({settings}), {report.date}, commit {report.commit}{dirty}",
        *(f"missing: {one}" for one in report.missing),
    ]
    if report.others > BUSY_CORES or is_disturbed(measured.complete_cells()):
        lines.append("**busy machine: other programs ran too; trust CPU times, and nothing on 2 threads**")
    if not report.complete:
        lines.append("**interrupted: not everything was measured**")
    return "\n".join(f"- {line}" for line in lines)


def is_disturbed(cells: dict[Cell, Result]) -> bool:
    """Return whether turns on one thread often had to wait for a core."""
    alone = [result for cell, result in cells.items() if cell.threads == 1]
    turns = [turn for result in alone for row in result.rows if (turn := best(row))]
    shares = [turn.cpu_seconds / turn.wall_seconds for turn in turns if turn.cpu_seconds is not None]
    return bool(shares) and statistics.median(shares) < LEAST_SHARE


def closing(measured: Measured, cells: dict[Cell, Result]) -> dict[str, str]:
    """Return the last sections of the report by title; an empty one has nothing to say."""
    return {
        "Share of the peak": peak_table(measured.peak, cells) if measured.peak else "",
        "Differences": differences_table(cells) if cells else "",
        "Failures": "\n".join(f"- {line}" for line in failures(cells)),
        "Goals": goals_table(cells) if cells else "",
    }


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def columns(cells: dict[Cell, Result]) -> list[str]:
    """Return the names of the contenders that have a figure somewhere, in their order."""
    rows = [row for result in cells.values() for row in result.rows]
    return list(dict.fromkeys(row.name for row in rows if row.turns))


def figures(
    cells: dict[Cell, Result], of: Callable[[Row], float | None], choose: Callable[[Iterable[float]], float]
) -> Iterable[tuple[Cell, list[str]]]:
    """Yield each cell's figures as text, one for each column, the best in bold; `choose` finds the best."""
    for cell, result in cells.items():
        found = {row.name: of(row) for row in result.rows}
        figure = [found.get(name) for name in columns(cells)]
        top = choose(one for one in figure if one is not None)
        texts = ["–" if one is None else number(one) for one in figure]
        shown = [f"**{text}**" if one == top else text for one, text in zip(figure, texts, strict=True)]
        yield cell, [cell.label, *shown]


def speed_table(cells: dict[Cell, Result]) -> str:
    """Return positions per second, and how many times as fast ours is."""
    head = ["", *columns(cells), "native ÷ best other", "native ÷ best float32 other"]
    rows = [
        [*shown, *(times_text(advantage(cells[cell], float32=only)) for only in (False, True))]
        for cell, shown in figures(cells, speed, max)
    ]
    return markdown(head, rows)


def times_text(factor: float | None) -> str:
    """Return a factor as text."""
    return "–" if factor is None else f"×{factor:.2f}"


def cpu_table(cells: dict[Cell, Result]) -> str:
    """Return the CPU time of a position."""
    return markdown(["", *columns(cells)], (shown for _, shown in figures(cells, cpu_microseconds, min)))


def peak_table(peak: Result, cells: dict[Cell, Result]) -> str:
    """Return the share of the peak that our multiplications reach in the forward pass on one thread."""
    top = max((found for row in peak.rows if (found := speed(row))), default=0.0)
    chosen = {cell: result for cell, result in cells.items() if cell.threads == 1 and not cell.backward}
    if not top or not chosen:
        return ""
    rows = []
    for cell, result in chosen.items():
        ours = speed(result.rows[0]) or 0.0
        row = [cell.label]
        for count in (cell.multiplications(WINOGRAD), cell.multiplications(DIRECT)):
            row += [f"{count / 1e6:.3g}", f"{100 * count * ours / top:.0f} %"]
        rows.append(row)
    name = next(iter(chosen.values())).rows[0].name
    said = (
        f"Peak: {top / 1e9:.1f} thousand million multiplications/s on one thread, as torch's matrix product "
        f"reaches it (the best of {', '.join(row.name for row in peak.rows)}). The share of it that {name} "
        "reaches in the forward pass on one thread: counting the multiplications of a position as Winograd "
        "needs them, and as a direct convolution would. Both count the logits of all labels, though only "
        "those of legal moves are computed."
    )
    head = ["", "million, Winograd", "share", "million, direct", "share"]
    return f"{said}\n\n{markdown(head, rows)}"


def differences_table(cells: dict[Cell, Result]) -> str:
    """Return how far each contender's values are from torch's, at most."""
    most: dict[str, float] = {}
    for row in (row for result in cells.values() for row in result.rows):
        for turn in row.turns[:1]:
            for value in turn.extra.values():
                most[row.name] = max(value, most.get(row.name, 0.0))
    said = "The largest difference of a value, between -1 and 1, from torch's in contiguous float32."
    return f"{said}\n\n{markdown(['', 'difference'], ([name, f'{one:.1g}'] for name, one in most.items()))}"


def failures(cells: dict[Cell, Result]) -> list[str]:
    """Return a line for each different failure, with the first cell in which it was seen."""
    seen: dict[tuple[str, str], Cell] = {}
    for cell, result in cells.items():
        for row in result.rows:
            if row.failed:
                seen.setdefault((row.name, row.failed), cell)
    return [f"{name} is left out: {why} (first in {cell.title})" for (name, why), cell in seen.items()]


@dataclass(frozen=True)
class Goal:
    """How many times as fast as the best other ours shall be on one thread, in all of these cells.

    network: "" for all of them. batches: those meant.
    """

    backward: bool
    factor: float
    network: str = ""
    batches: tuple[int, ...] = (1, 8, 64, 256)

    def __str__(self) -> str:
        """Return the goal in words."""
        direction = "forward and backward" if self.backward else "forward"
        batches = ", ".join(map(str, self.batches))
        return f"{direction}, {self.network or 'all networks'}, batch {batches}: ≥ ×{self.factor:g}"

    def cells(self) -> list[Cell]:
        """Return the cells it is about."""
        networks = networks_in(self.network or NETWORKS)
        return [Cell(1, self.backward, *network, batch) for network in networks for batch in self.batches]


GOALS = (
    Goal(False, 2.5, "3x32", (64, 256)),
    Goal(False, 2.0, "4x64", (64, 256)),
    Goal(False, 1.3, "10x128", (64, 256)),
    Goal(False, 3.0, batches=(1,)),
    Goal(False, 1.0),
    Goal(True, 2.0, "3x32", (256,)),
    Goal(True, 1.6, "4x64", (256,)),
    Goal(True, 1.0),
)


def verdict(goal: Goal, cells: dict[Cell, Result], *, float32: bool) -> str:
    """Return whether a goal is reached, in how many cells, and the lowest factor."""
    meant = goal.cells()
    found = {cell: advantage(cells[cell], float32=float32) for cell in meant if cell in cells}
    known = {cell: factor for cell, factor in found.items() if factor is not None}
    if not known:
        return "not measured"
    lowest = min(known, key=lambda cell: known[cell])
    reached, unknown = sum(factor >= goal.factor for factor in known.values()), len(meant) - len(known)
    word = "**missed**" if reached < len(known) else "reached so far" if unknown else "reached"
    of = f"{reached} of {len(known)} cells" + (f", {unknown} not measured" if unknown else "")
    return f"{word}: {of}; lowest {times_text(known[lowest])} ({lowest.label})"


def goals_table(cells: dict[Cell, Result]) -> str:
    """Return the goals with reached or missed, against all others and against float32 only."""
    head = ["one thread: native ÷ best other", "all others", "float32 others"]
    rows = [[str(goal), *(verdict(goal, cells, float32=only) for only in (False, True))] for goal in GOALS]
    return markdown(head, rows)


# --- the command ---


def networks_in(text: str) -> list[tuple[int, int]]:
    """Return blocks and channels of networks such as "3x32,4x64"."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)x(\d+)\s*", part)
        if not match or int(match[2]) < 4 or int(match[2]) % 4:
            raise argparse.ArgumentTypeError(
                f"{part!r}, expected blocks x channels such as 3x32, with channels a multiple of 4"
            )
        found.append((int(match[1]), int(match[2])))
    return list(dict.fromkeys(found))


def counts_in(text: str) -> list[int]:
    """Return numbers from 1 up such as "1,64", in ascending order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}, expected numbers from 1 up such as 1,64")
    return sorted({int(part) for part in parts})


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line; a mistake ends the program with one line and code 2."""
    files = argparse.ArgumentParser(add_help=False)
    files.add_argument("--out", type=Path, help="write the report to this file too", metavar="FILE")
    files.add_argument("--json", type=Path, help="write all turns as bench/compare.py reads", metavar="FILE")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[files]
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"networks {QUICK_NETWORKS}, batches {QUICK_BATCHES}, {QUICK[1]} rounds of {QUICK[0]} s",
    )
    parser.add_argument("--networks", type=networks_in, help=f"blocks x channels (default {NETWORKS})")
    parser.add_argument("--batches", type=counts_in, help=f"positions in a call (default {BATCHES})")
    parser.add_argument("--threads", type=counts_in, help=f"threads (default {THREADS})")
    parser.add_argument(
        "--seconds", type=float, help=f"of a turn; one call at least (default {FULL[0]})", metavar="S"
    )
    parser.add_argument(
        "--rounds", type=int, help=f"turns of each contender (default {FULL[1]}; {LONG_ROUNDS} of long calls)"
    )
    parser.add_argument(
        "--compile", action="store_true", help="torch.compile too, in float32; half a minute or more a cell"
    )
    arguments = parser.parse_args(argv)
    # Without the files, which are nobody's business but the machine's.
    arguments.command = shlex.join(["python", "bench/network.py", *files.parse_known_args(argv)[1]])
    quick = arguments.quick
    seconds, rounds = QUICK if quick else FULL
    arguments.seconds = seconds if arguments.seconds is None else arguments.seconds
    arguments.rounds = rounds if arguments.rounds is None else arguments.rounds
    arguments.networks = arguments.networks or networks_in(QUICK_NETWORKS if quick else NETWORKS)
    arguments.threads = arguments.threads or counts_in(THREADS)
    arguments.batches = arguments.batches or counts_in(QUICK_BATCHES if quick else BATCHES)
    if arguments.seconds <= 0 or arguments.rounds < 1:
        parser.error("--seconds: expected more than 0; --rounds: expected at least 1")
    for path in (arguments.out, arguments.json):
        if path and not path.parent.is_dir():
            parser.error(f"{path}: expected an existing folder")
    return arguments


def measure(arguments: argparse.Namespace, measured: Measured, save: Callable[[], None]) -> None:
    """Measure all cells, those on one thread first, and save after each."""
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")  # as `keisei train` does, before torch is loaded
    import network_contenders  # not above: --help need not wait for torch

    keep_freed_memory()  # as `keisei train` does; for all contenders
    say = progress if sys.stderr.isatty() else lambda _: None
    measured.report.missing = [f"{name} ({how})" for name, how in network_contenders.missing().items()]
    peak = network_contenders.peak(arguments.seconds)
    measured.peak = empty_result(peak)
    measured.report.contests.append(measured.peak)
    run_contest(peak, arguments.rounds, measured.peak, say)
    cells = [
        Cell(threads, backward, blocks, channels, batch)
        for threads in arguments.threads
        for backward in (False, True)
        for blocks, channels in arguments.networks
        for batch in arguments.batches
    ]
    for done, cell in enumerate(cells, 1):
        work = network_contenders.Work.of(
            cell.blocks, cell.channels, cell.batch, backward=cell.backward, threads=cell.threads
        )
        found = network_contenders.contenders(work, arguments.seconds, compiled=arguments.compile)
        contest = Contest(cell.key, cell.title, "positions/s", found)
        result = measured.cells[cell] = empty_result(contest)
        measured.report.contests.append(result)
        rounds = min(LONG_ROUNDS, arguments.rounds) if cell.is_long else arguments.rounds
        run_contest(contest, rounds, result, say)
        save()
        say("")  # clears the line
        print(f"{done}/{len(cells)} {summary(cell, result)}", file=sys.stderr, flush=True)
    measured.report.complete = True


def summary(cell: Cell, result: Result) -> str:
    """Return a cell in one line."""
    first = result.rows[0]
    shown = number(speed(first) or 0.0)
    others = times_text(advantage(result, float32=False))
    return f"{cell.title}: {first.name} {shown} positions/s, {others} the best other"


def installed_versions() -> dict[str, str]:
    """Return the versions of what computes."""
    found = {}
    for name in ("torch", "onnxruntime", "openvino"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the report and write it; return the exit code."""
    arguments = parsed(sys.argv[1:] if argv is None else argv)
    settings = {"seconds": arguments.seconds, "rounds": arguments.rounds}
    measured = Measured(new_report(arguments.command, settings), installed_versions())

    def save() -> None:
        if arguments.out:
            arguments.out.write_text(page(measured), encoding="utf-8")
        if arguments.json:
            write(measured.report, arguments.json)

    try:
        measure(arguments, measured, save)
    except KeyboardInterrupt:
        print("\ninterrupted: what was measured so far is kept", file=sys.stderr)
        return 130
    finally:
        measured.report.load_end = load()
        save()
        print(page(measured), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

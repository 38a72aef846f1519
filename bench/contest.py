"""Contests: contenders that take turns, so that load on the machine hits all of them alike.

A suite is a list of contests. A contest has named contenders; in every round each of them has one turn. A
contender is opened once (its set-up is not timed) and closed at the end of the contest; a peer that fails is
closed at once. What comes out is every turn's figure with wall and CPU seconds, from which `medians`,
`ratios` and the spread are computed.
"""

import contextlib
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Literal

PEER_SECONDS = 300.0  # for a peer's set-up, for each of its turns, and for closing it


@dataclass(frozen=True)
class Turn:
    """One turn of a contender.

    value: in the contest's unit; None if there is nothing to compare, as when a peer hung. cpu_seconds: of
    this process and all its descendants; None if not counted. extra: further figures, named with their unit.
    facts: in words.
    """

    value: float | None
    wall_seconds: float
    cpu_seconds: float | None
    extra: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


TakeTurn = Callable[[], Turn]
Open = Callable[[ExitStack], TakeTurn]


@dataclass(frozen=True)
class Contender:
    """A contender: its name, how to open it, what its figure covers, and the peer it shows, if any.

    open: gets the contender's stack to register what must be closed, and returns the function for one turn.
    partial: it does only a part of the work, for comparison, and so takes no place among the others.
    """

    name: str
    open: Open
    note: str = ""
    peer: str = ""
    partial: bool = False


@dataclass(frozen=True)
class Contest:
    """A contest; the others are compared with its first contender, the reference."""

    key: str
    title: str
    unit: str
    contenders: Sequence[Contender]
    better: Literal["higher", "lower"] = "higher"
    rounds: int | None = None  # fewer than asked for, for what takes long


@dataclass
class Row:
    """The turns of one contender, in order of the rounds; `failed` says why there are no more."""

    name: str
    note: str = ""
    peer: str = ""
    partial: bool = False
    turns: list[Turn] = field(default_factory=list)
    failed: str = ""

    @property
    def values(self) -> list[float]:
        """The figures of the turns that have one."""
        return [turn.value for turn in self.turns if turn.value is not None]

    @property
    def median(self) -> float | None:
        """The median figure."""
        return statistics.median(self.values) if self.values else None


@dataclass
class Result:
    """What a contest found, complete or not."""

    key: str
    title: str
    unit: str
    better: str
    rows: list[Row]


def ratios(row: Row, reference: Row) -> list[float]:
    """Return the row's figure divided by the reference's, for every round that has both."""
    pairs = zip(row.turns, reference.turns, strict=False)  # a contender may have failed midway
    return [own.value / other.value for own, other in pairs if own.value is not None and other.value]


def run_contest(
    contest: Contest,
    rounds: int,
    result: Result,
    say: Callable[[str], None],
    peer_seconds: float = PEER_SECONDS,
) -> None:
    """Run a contest and fill in its result as it goes, so that an interrupted one keeps its turns.

    A peer that raises, or takes longer than peer_seconds for its set-up, a turn or its end, is out, with the
    error in its row, and its processes are killed; one of ours raises through.
    """
    result.rows += [Row(one.name, one.note, one.peer, one.partial) for one in contest.contenders]
    rounds = min(rounds, contest.rounds or rounds)
    resource_tracker.ensure_running()  # before a peer starts it, whose process it would seem to be
    with ExitStack() as stack:
        entrants = []
        for number, (one, row) in enumerate(zip(contest.contenders, result.rows, strict=True), 1):
            say(f"{contest.key}: set up {number}/{len(contest.contenders)} {one.name}")
            entrants.append(_Entrant(row, peer_seconds))
            stack.callback(entrants[-1].close)
            entrants[-1].open(one.open)
        for number in range(rounds):
            for entrant in entrants:
                if not entrant.row.failed:
                    say(f"{contest.key}: round {number + 1}/{rounds} {entrant.row.name}")
                    entrant.take_turn()


class _Entrant:
    """A contender during its contest, with a stack of its own and the processes that it started."""

    def __init__(self, row: Row, peer_seconds: float) -> None:
        self.row = row
        self._seconds = peer_seconds
        self._stack = ExitStack()
        self._processes: set[int] = set()
        self._turn: TakeTurn | None = None

    def open(self, open_it: Open) -> None:
        """Set it up."""
        with self._watched():
            self._turn = open_it(self._stack)

    def take_turn(self) -> None:
        """Let it take a turn and keep its figures."""
        assert self._turn is not None
        with self._watched():
            self.row.turns.append(self._turn())

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Note the processes that a peer starts; close it if it fails."""
        before = set(descendants(os.getpid())) if self.row.peer else set()
        with _failure_kept(self.row, self._seconds):
            yield
        if self.row.peer:
            self._processes |= set(descendants(os.getpid())) - before
        if self.row.failed:
            self.close()

    def close(self) -> None:
        """Close it, and kill what a peer leaves behind; the second time there is nothing to do."""
        with _failure_kept(self.row, self._seconds, "while closing: "):
            self._stack.close()
        for pid in self._processes.intersection(descendants(os.getpid())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._processes.clear()


@contextlib.contextmanager
def _failure_kept(row: Row, seconds: float, when: str = "") -> Iterator[None]:
    """Keep a peer's first exception in its row: others' code may fail or hang; that is a result too."""
    if not row.peer:
        yield
        return
    try:
        with _alarm(seconds):
            yield
    except Exception as error:
        what = f"{when}{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
        row.failed = row.failed or what


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after this time; an alarm that was set before is put back.

    It rings again after the same time, for code that swallows it and for a second thing that hangs.
    """

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"nothing in {seconds:g} s")

    handler, start = signal.signal(signal.SIGALRM, ring), time.monotonic()
    earlier, _ = signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, handler)
        left = max(0.001, earlier - (time.monotonic() - start)) if earlier else 0
        signal.setitimer(signal.ITIMER_REAL, left)


def empty_result(contest: Contest) -> Result:
    """Return a result without rows, to be filled by `run_contest`."""
    return Result(contest.key, contest.title, contest.unit, contest.better, [])


class Stopwatch:
    """Wall and CPU time from its creation on."""

    def __init__(self) -> None:
        self._others = _cpu_of_others()  # first here and last below, so that looking does not count
        self._own, self._start = time.process_time(), time.perf_counter()

    def turn(self, amount: float) -> Turn:
        """Return a turn that did this much since then, per second."""
        wall, own = time.perf_counter() - self._start, time.process_time() - self._own
        return Turn(amount / wall, wall, own + _cpu_of_others() - self._others)


def measured(work: Callable[[], float]) -> Turn:
    """Call `work`, which returns how much it did, and return a turn with that much per second."""
    watch = Stopwatch()
    return watch.turn(work())


def plain(work: Callable[[], float], prepare: Callable[[], object] = lambda: None) -> Open:
    """Return how to open a contender that needs nothing closed; `prepare` runs before the first turn."""

    def open_it(_stack: ExitStack) -> TakeTurn:
        prepare()
        return lambda: measured(work)

    return open_it


def _cpu_of_others() -> float:
    """Return the CPU seconds of all descendants, and of the children that have ended."""
    ended = os.times()
    living = sum(_cpu_of(pid) for pid in descendants(os.getpid()))
    return ended.children_user + ended.children_system + living


def descendants(root: int) -> list[int]:
    """Return the ids of all living descendants of a process; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            parent = int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, waiting = [], [root]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def _cpu_of(pid: int) -> float:
    """Return a process's CPU seconds, with its ended children's; 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def progress(text: str) -> None:
    """Show a line of progress on stderr: in place on a terminal, as lines elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:110]}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)

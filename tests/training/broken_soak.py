"""The soak with a defect that it must find: python broken_soak.py BREAKAGE --duration 5"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import test_parallel_stability as soak

from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.ledger import Ledger
from keisei.training.parallel.parallel_manager import ParallelManager

kept: list[Any] = []  # what is leaked


def put(owner: type[Any], name: str, method: Callable[..., Any]) -> None:
    """Replace a method with another one."""
    setattr(owner, name, method)


def lose_a_move() -> None:
    """Leave one move of every segment uncounted."""
    delivered = Ledger.delivered
    put(Ledger, "delivered", lambda ledger, worker, steps: delivered(ledger, worker, steps - 1))


def after_collecting(change: Callable[[ParallelManager, list[WorkerSegment]], None]) -> None:
    """Make the manager tamper with what it has collected, from the fifth time on."""
    collect = ParallelManager.collect_experiences
    times = iter(range(sys.maxsize))

    def changed(manager: ParallelManager, *arguments: Any, **options: Any) -> list[WorkerSegment]:
        played = collect(manager, *arguments, **options)
        if next(times) >= 4:
            change(manager, played)
        return played

    put(ParallelManager, "collect_experiences", changed)


def deliver_twice(_manager: ParallelManager, played: list[WorkerSegment]) -> None:
    """Deliver an earlier segment again."""
    kept[:] = kept or played
    played[0] = kept[0]


def tear(_manager: ParallelManager, played: list[WorkerSegment]) -> None:
    """Replace the second half of a segment's moves with another segment's."""
    half = len(played[0].segment.actions) // 2
    played[0].segment.actions[half:] = played[1].segment.actions[half:]


def kill_a_worker(manager: ParallelManager, _played: list[WorkerSegment]) -> None:
    """Kill a worker outside the schedule."""
    pid = manager.workers[0].pid
    if pid is not None and not kept:
        kept.append(pid)
        os.kill(pid, signal.SIGKILL)


def leak_memory(_manager: ParallelManager, _played: list[WorkerSegment]) -> None:
    """Make the learner keep what it does not need."""
    kept.append(b"x" * 8_000_000)


class LeakyWorker(soak.FaultyWorker):
    """A worker that keeps what it does not need."""

    def before_step(self) -> None:
        """Leak at every step."""
        super().before_step()
        kept.append(b"x" * 200_000)


def leak_in_workers() -> None:
    """Make the workers leak."""
    put(soak, "FaultyWorker", LeakyWorker)  # type: ignore[arg-type]


def leak_a_file(_manager: ParallelManager, _played: list[WorkerSegment]) -> None:
    """Leave a file open."""
    kept.append(os.open(os.devnull, os.O_RDONLY))


def leave_a_process() -> None:
    """Leave a process running after the shutdown."""
    shutdown = ParallelManager.shutdown

    def changed(manager: ParallelManager) -> None:
        if manager.is_running:
            context = multiprocessing.get_context("forkserver")
            context.Process(target=time.sleep, args=(60,), daemon=True).start()
        shutdown(manager)

    put(ParallelManager, "shutdown", changed)


BREAKAGES: dict[str, Callable[[], None]] = {
    "lose a move": lose_a_move,
    "deliver twice": lambda: after_collecting(deliver_twice),
    "tear": lambda: after_collecting(tear),
    "kill a worker": lambda: after_collecting(kill_a_worker),
    "leak memory": lambda: after_collecting(leak_memory),
    "leak in workers": leak_in_workers,
    "leak a file": lambda: after_collecting(leak_a_file),
    "leave a process": leave_a_process,
}

if __name__ == "__main__":
    BREAKAGES[sys.argv[1]]()
    sys.exit(soak.main(sys.argv[2:]))

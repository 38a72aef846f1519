"""`keisei train` with a trap: python trapped_train.py TRAP NUMBER train --config tiny …

The learner kills itself, or its workers fail, in a place that a test cannot hit from outside; everything else
is unchanged.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from keisei.cli import main
from keisei.core.ppo_agent import PPOAgent
from keisei.training import collector
from keisei.training.parallel import model_sync
from keisei.training.parallel.communication import WorkerCommunicator
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.self_play_worker import SelfPlayWorker


class FailingWorker(SelfPlayWorker):
    """A worker that cannot play."""

    def run(self) -> None:
        """Fail."""
        raise ZeroDivisionError("this worker cannot play")


class Failing(ParallelManager):
    """Workers that fail when they start."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, worker=FailingWorker, **options)


def die() -> None:
    """Die as if killed by the system, without a last word."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop_a_worker_and_die() -> None:
    """Leave behind a worker that cannot do anything, not even notice."""
    pid = multiprocessing.active_children()[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    die()


def trap(owner: Any, name: str, number: int, spring: Callable[[], None]) -> None:
    """Call `spring` instead of the function's nth call, counted from 0."""
    original, calls = getattr(owner, name), iter(range(sys.maxsize))

    def trapped(*arguments: Any, **options: Any) -> Any:
        if next(calls) == number:
            spring()
        return original(*arguments, **options)

    setattr(owner, name, trapped)


def lay(kind: str, number: int) -> None:
    """Set a trap that springs at its nth opportunity."""
    if kind == "collect":  # when a segment has arrived and is not yet read
        trap(WorkerCommunicator, "take_segment", number, die)
    elif kind == "update":
        trap(PPOAgent, "_gradient_step", number, die)
    elif kind == "broadcast":  # when the weights are written but not yet declared complete
        trap(model_sync, "_checksum", number, die)
    elif kind == "checkpoint":  # between two of its files
        trap(os, "fsync", number, die)
    elif kind == "stopped worker":
        trap(WorkerCommunicator, "take_segment", number, stop_a_worker_and_die)
    elif kind == "failing workers":
        collector.ParallelManager = Failing  # type: ignore[attr-defined]
    else:
        raise ValueError(f"trap {kind!r} is not known")


def trapped_train(arguments: Sequence[str]) -> None:
    """Train with a trap."""
    kind, number, *rest = arguments
    lay(kind, int(number))
    sys.argv = ["keisei", *rest]
    main()


if __name__ == "__main__":
    trapped_train(sys.argv[1:])

"""python bench/recovery.py [--rounds 5]: a worker gets SIGKILL while it plays.

recovery: the same collection with and without a kill when a quarter of its moves are played, in seconds, and
whether the two collected the same moves to the bit. recovery/peers: what everybody does, observed from
outside (bench/kill_a_worker.py).
"""

import functools
import os
import signal
import time
from contextlib import ExitStack
from dataclasses import fields

import command_line
import kill_a_worker
import numpy as np
from contest import Contender, Contest, Stopwatch, TakeTurn, Turn
from settings import Peers, Scale, config_of

from keisei.core.agents import agent_of
from keisei.core.segment import Segment
from keisei.training.parallel import ParallelManager


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contests of recovery."""
    ours = [
        Contender("keisei, undisturbed", functools.partial(_recovery, scale, False)),
        Contender("keisei, a worker killed", functools.partial(_recovery, scale, True)),
    ]
    # Ours needs a second, and a peer that has not gone on or ended by then has not been seen to do so later.
    others = kill_a_worker.contenders(scale, peers, 5 if scale.is_tiny else 10 if scale.share < 1 else 20)
    title = "a worker killed: seconds until the next moves arrive"
    return [
        Contest("recovery", "one collection", "s", ours, better="lower"),
        Contest("recovery/peers", title, "s", others, better="lower", rounds=1),
    ]


def _collect(scale: Scale, kill: bool) -> tuple[Turn, list[Segment]]:
    """Collect twice; in the second collection a worker is killed when a quarter of the moves are played."""
    config = config_of(scale, workers=scale.workers)
    moves = config.training.steps_per_epoch
    with ParallelManager(config, agent_of(config), notice=lambda _: None) as manager:
        manager.collect_experiences(moves)
        killed: list[int] = []
        quarter = manager.account().generated + moves // 4

        def kill_one() -> None:
            if kill and not killed:
                end = time.monotonic() + 60
                while manager.account().generated < quarter and time.monotonic() < end:
                    time.sleep(0.0005)  # before_wait is called too rarely for a collection this short
                pid = manager.workers[0].pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        watch = Stopwatch()
        played = manager.collect_experiences(moves, before_wait=kill_one)
        turn = watch.turn(1)
        segments = [one.segment for one in played]
        extra = {"moves played again": float(sum(manager.account().discarded.values()))}
        if kill:
            extra["replaced after s"] = manager.get_statistics()["replacement_seconds"][0]
    return Turn(turn.wall_seconds, turn.wall_seconds, turn.cpu_seconds, extra), segments


def _recovery(scale: Scale, kill: bool, _stack: ExitStack) -> TakeTurn:
    _, expected = _collect(scale, False)

    def turn() -> Turn:
        seen, segments = _collect(scale, kill)
        same = "yes" if _same(segments, expected) else "NO"
        return Turn(seen.value, seen.wall_seconds, seen.cpu_seconds, seen.extra, {"same to the bit": same})

    return turn


def _same(segments: list[Segment], expected: list[Segment]) -> bool:
    return len(segments) == len(expected) and all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for one, other in zip(segments, expected, strict=True)
        for field in fields(Segment)
    )


if __name__ == "__main__":
    command_line.main({"recovery": contests}, __doc__)

"""python bench/transport.py [--rounds 5]: what it costs to get a move from a worker to the learner.

Ours: CPU time on transport and bookkeeping in workers and learner together (reading weights and messages,
counting, checksums, sending, receiving), per move, of a real collection; and the bytes of a move. Plain
queue: the same moves as dense tensors, pickled through a multiprocessing.Queue by a child process, as one
would write it without thinking about it; CPU time of both ends.
"""

import functools
import multiprocessing
import time
from contextlib import ExitStack
from typing import Any

import command_line
import numpy as np
from contest import Contender, Contest, Stopwatch, TakeTurn, Turn
from settings import Peers, Scale, config_of

from keisei.core.agents import agent_of
from keisei.core.segment import SegmentShape
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.training.parallel import ParallelManager

DENSE_BYTES = PLANES * 81 * 4 + ACTIONS + 8 + 3 * 4 + 1  # planes, mask, action, log-prob, value, reward, end


def contests(scale: Scale, _peers: Peers) -> list[Contest]:
    """Return the contest of transport."""
    contenders = [
        Contender("keisei, shared memory", functools.partial(_workers, scale, True)),
        Contender("keisei, socket (use_shared_memory: false)", functools.partial(_workers, scale, False)),
        Contender(
            "plain queue of dense tensors",
            functools.partial(_plain_queue, scale),
            peer="multiprocessing.Queue",
        ),
    ]
    return [Contest("transport", "transport, CPU time per move", "µs/move", contenders, better="lower")]


def _workers(scale: Scale, shared: bool, stack: ExitStack) -> TakeTurn:
    workers = scale.workers
    config = config_of(scale, games=64 * workers, workers=workers, shared_memory=shared)
    agent = agent_of(config)
    manager = stack.enter_context(ParallelManager(config, agent))
    moves = config.training.steps_per_epoch
    shape = SegmentShape(moves // (64 * workers), 64)

    def in_workers() -> float:
        return float(sum(one["transport"] for one in manager.get_statistics()["worker_seconds"]))

    def turn() -> Turn:
        agent.version += 1
        watch, before, learner = Stopwatch(), in_workers(), time.process_time()
        manager.synchronize_models()
        played = sum(len(one.segment) for one in manager.collect_experiences(moves))
        cost = time.process_time() - learner + in_workers() - before
        seen = watch.turn(played)
        extra = {"bytes/move": shape.nbytes / shape.moves}
        return Turn(cost / played * 1e6, seen.wall_seconds, seen.cpu_seconds, extra)

    turn()
    return turn


def _send(queue: Any, chunks: int, games: int) -> None:
    """Send as many chunks as asked for, one move of each game in each."""
    chunk = {
        "planes": np.zeros((games, PLANES, 9, 9), np.float32),
        "mask": np.zeros((games, ACTIONS), np.bool_),
        "action": np.zeros(games, np.int64),
        **{name: np.zeros(games, np.float32) for name in ("log_prob", "value", "reward")},
        "ended": np.zeros(games, np.bool_),
    }
    for _ in range(chunks):
        queue.put(chunk)
    queue.close()
    queue.join_thread()


def _plain_queue(scale: Scale, _stack: ExitStack) -> TakeTurn:
    games, chunks = 64, scale.of(64, least=4)
    context = multiprocessing.get_context("forkserver")

    def turn() -> Turn:
        queue: Any = context.Queue(maxsize=8)
        child = context.Process(target=_send, args=(queue, chunks, games), daemon=True)
        child.start()
        queue.get(timeout=60)  # the start of the process is not counted
        watch = Stopwatch()
        received = sum(len(queue.get(timeout=60)["action"]) for _ in range(chunks - 1))
        seen = watch.turn(received)
        child.join(timeout=60)
        assert seen.cpu_seconds is not None
        extra = {"bytes/move": float(DENSE_BYTES)}
        return Turn(seen.cpu_seconds / received * 1e6, seen.wall_seconds, seen.cpu_seconds, extra)

    turn()
    return turn


if __name__ == "__main__":
    command_line.main({"transport": contests}, __doc__)

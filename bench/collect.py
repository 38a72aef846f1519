"""python bench/collect.py [--rounds 5]: moves per second collected with the default network, untrained.

Ours: serially (one game at a time; 64 games with one thread and with all), and by workers, 64 games in each.
Peers: the same network in the learner's process, with the games in other processes (bench/vectorizers.py),
and TorchRL's collectors: in workers with a network and 64 games each, as ours, and in one process with 64.
"""

import functools
from contextlib import ExitStack

import command_line
import learners
import vectorizers
from contest import Contender, Contest, TakeTurn, Turn, measured
from settings import Peers, Scale, config_of

from keisei.core.agents import agent_of
from keisei.core.self_play import SelfPlay
from keisei.training.parallel import ParallelManager


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contest of collecting."""
    many = scale.workers
    workers = functools.partial(open_workers, scale, many)
    ours = [
        Contender(f"keisei, {many} workers", workers),
        Contender("keisei, 1 worker", functools.partial(open_workers, scale, 1)),
        Contender(f"keisei serially, 64 games, {many} threads", functools.partial(_serial, scale, 64, many)),
        Contender("keisei serially, 64 games, 1 thread", functools.partial(_serial, scale, 64, 1)),
        Contender("keisei serially, one game at a time", functools.partial(_serial, scale, 1, 1)),
    ]
    others = [*vectorizers.contenders(scale, peers, "collect"), *learners.collectors(scale, peers)]
    return [Contest("collect", "collecting with the default network", "moves/s", [*ours, *others])]


def _serial(scale: Scale, games: int, threads: int, _stack: ExitStack) -> TakeTurn:
    config = config_of(scale)
    agent = agent_of(config)
    self_play = SelfPlay.begin(config.env, games=games, seed=1)
    moves = scale.of(512 if games == 1 else 64, least=8)

    def play() -> float:
        agent.use_threads(threads)
        return len(self_play.rollout(agent, moves).segment)

    play()
    return lambda: measured(play)


def open_workers(scale: Scale, workers: int, stack: ExitStack) -> TakeTurn:
    """Open a contender that collects in workers, 64 games in each; the weights are sent every time."""
    config = config_of(scale, games=64 * workers, workers=workers)
    agent = agent_of(config)
    manager = stack.enter_context(ParallelManager(config, agent))
    moves = config.training.steps_per_epoch * workers

    def play() -> float:
        agent.version += 1  # the same weights again, so that the broadcast is measured too
        manager.synchronize_models()
        return sum(len(one.segment) for one in manager.collect_experiences(moves))

    def turn() -> Turn:
        return measured(play)

    turn()
    return turn


if __name__ == "__main__":
    command_line.main({"collect": contests}, __doc__)

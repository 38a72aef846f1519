"""python bench/train.py [--rounds 5]: training end to end, 4,096 moves collected and learned from in a turn.

64 games, minibatches of 256, one pass, the same network everywhere. Peers have our vector of games behind
their interface. Their advantages are for a single player: they do the same work, but would not learn the
game.

network alone: an epoch's network passes and nothing else: forward over 64 positions, forward and backward
    over 256. What training takes beyond it is the cost of everything outside the network.
one game at a time: the same update, with the moves of one game after the other and one thread.
max_policy_lag 1: the workers play on while the learner learns.
learners: processes that compute a share of each minibatch; one learner has a thread per core.
"""

import functools
from contextlib import ExitStack

import command_line
import learners
import numpy as np
import torch
from contest import Contender, Contest, TakeTurn, measured
from settings import Peers, Scale, config_of, epoch_moves, midgame_positions

from keisei.core.native_tower import NativeTower
from keisei.training.collector import make_collector
from keisei.training.trainer import Trainer


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contest of training."""
    many = scale.workers
    train = functools.partial(_training, scale)
    contenders = [
        Contender(
            f"keisei, {many} workers, {many} learners", functools.partial(train, workers=many, learners=many)
        ),
        Contender(f"keisei, {many} workers, 1 learner", functools.partial(train, workers=many)),
        Contender(f"keisei, {many} workers, max_policy_lag 1", functools.partial(train, workers=many, lag=1)),
        Contender(f"keisei serially, {many} threads", train),
        Contender("keisei serially, 1 thread", functools.partial(train, threads=1)),
        Contender("keisei serially, one game at a time", functools.partial(train, games=1, threads=1)),
        Contender(
            f"keisei's network alone, {many} threads",
            functools.partial(_network_alone, scale, many),
            note="trains nothing: a bound",
            partial=True,
        ),
        *learners.trainers(scale, peers),
    ]
    title = f"training end to end, network of {scale.network[0]} × {scale.network[1]}"
    return [Contest("train", title, "moves/s", contenders)]


def _training(
    scale: Scale,
    stack: ExitStack,
    *,
    games: int = 64,
    workers: int = 0,
    threads: int | None = None,
    lag: int = 0,
    learners: int = 1,
) -> TakeTurn:
    """Return a turn that collects and learns; 0 workers: this process alone. threads: one per core."""
    threads = threads or scale.workers
    config = config_of(scale, games=games, workers=workers, lag=lag, learners=learners)
    trainer = Trainer(config, torch.device("cpu"))
    collector = make_collector(config, trainer.agent)
    stack.callback(lambda: collector.close(trainer.steps))
    collector.start_workers()

    def epoch() -> float:
        trainer.agent.use_threads(threads)
        segments = [one.segment for one in collector.collect_experiences(epoch_moves(scale))]
        trainer.perform_update(segments, exchange=collector.exchange)
        collector.synchronize_models()
        return sum(map(len, segments))

    epoch()
    return lambda: measured(epoch)


def _network_alone(scale: Scale, threads: int, _stack: ExitStack) -> TakeTurn:
    tower = NativeTower(config_of(scale).model, threads=threads)
    weights = (np.random.default_rng(1).standard_normal(tower.parameters) / 10).astype(np.float32)
    played, learned = (midgame_positions(count) for count in (64, 256))
    moves = epoch_moves(scale)

    def epoch() -> float:
        tower.load_flat(weights)
        for _ in range(moves // 64 + 1):  # one more for the values at the end
            tower.evaluate(played)
        for _ in range(moves // 256):
            tower.load_flat(weights, learning=True)
            found = tower.evaluate(learned, keep=True)
            tower.gradients(learned, found, np.ones_like(found.logits), np.ones_like(found.values))
        return moves

    epoch()
    return lambda: measured(epoch)


if __name__ == "__main__":
    command_line.main({"train": contests}, __doc__)

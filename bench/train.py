"""python bench/train.py [--rounds 5]: training end to end, 4,096 moves collected and learned from in a turn.

64 games, minibatches of 256, one pass, the same network everywhere. Peers have our vector of games behind
their interface. Their advantages are for a single player: they do the same work, but would not learn the
game.

network alone: an epoch's network passes and nothing else: forward over 64 positions, and forward, backward
    and Adam over 256. What training takes beyond it is the cost of everything outside the network.
one game at a time: the same update, with the moves of one game after the other and one thread.
max_policy_lag 1: the workers play on while the learner learns.
"""

import functools
from contextlib import ExitStack

import command_line
import learners
import torch
from contest import Contender, Contest, TakeTurn, measured
from settings import Peers, Scale, config_of, epoch_moves, midgame_positions

from keisei.core.models import model_factory
from keisei.core.native_learning import tower_operation
from keisei.core.native_tower import NativeTower
from keisei.training.collector import make_collector
from keisei.training.trainer import Trainer


def contests(scale: Scale, peers: Peers) -> list[Contest]:
    """Return the contest of training."""
    many = scale.workers
    contenders = [
        Contender(f"keisei, {many} workers", functools.partial(_training, scale, 64, many, many, 0)),
        Contender(
            f"keisei, {many} workers, max_policy_lag 1",
            functools.partial(_training, scale, 64, many, many, 1),
        ),
        Contender(f"keisei serially, {many} threads", functools.partial(_training, scale, 64, 0, many, 0)),
        Contender("keisei serially, 1 thread", functools.partial(_training, scale, 64, 0, 1, 0)),
        Contender("keisei serially, one game at a time", functools.partial(_training, scale, 1, 0, 1, 0)),
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


def _training(scale: Scale, games: int, workers: int, threads: int, lag: int, stack: ExitStack) -> TakeTurn:
    """Return a turn that collects and learns; 0 workers is this process alone."""
    config = config_of(scale, games=games, workers=workers, lag=lag)
    trainer = Trainer(config, torch.device("cpu"))
    collector = make_collector(config, trainer.agent)
    stack.callback(lambda: collector.close(trainer.steps))
    collector.start_workers()

    def epoch() -> float:
        trainer.agent.use_threads(threads)
        segments = [one.segment for one in collector.collect_experiences(epoch_moves(scale))]
        trainer.perform_ppo_update(segments)
        collector.synchronize_models()
        return sum(map(len, segments))

    epoch()
    return lambda: measured(epoch)


def _network_alone(scale: Scale, threads: int, _stack: ExitStack) -> TakeTurn:
    model = config_of(scale).model
    network, tower = model_factory(model), NativeTower(model, threads=threads)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    played, learned = (midgame_positions(count) for count in (64, 256))
    moves = epoch_moves(scale)

    def epoch() -> float:
        torch.set_num_threads(1)  # its waiting threads would take cores from the tower's
        for _ in range(moves // 64 + 1):  # one more for the values at the end
            tower.evaluate(played)
        for _ in range(moves // 256):
            logits, values = tower_operation(tower, network, learned)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward([logits, values], [torch.ones_like(logits), torch.ones_like(values)])
            optimizer.step()
        return moves

    epoch()
    return lambda: measured(epoch)


if __name__ == "__main__":
    command_line.main({"train": contests}, __doc__)

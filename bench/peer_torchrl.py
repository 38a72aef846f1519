"""TorchRL as a peer: our vector of games as its environment, our network as its policy, its collectors and
PPO.

It needs torchrl. The network has one forward pass for policy and value together, as ours has: TorchRL's loss
asks for the two one after the other, and the second gets the first one's result.
"""

import functools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from contest import TakeTurn, measured
from settings import Scale, config_of
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.collectors import Collector, MultiSyncCollector
from torchrl.data import Binary, Bounded, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from keisei.core.models import model_factory
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.vector import Batch, VectorGames


class Games(EnvBase):  # type: ignore[misc]  # TorchRL has no types
    """VectorGames as a batched environment; a finished game has begun anew by the time it is reset."""

    def __init__(self, count: int, max_moves: int, seed: int = 1) -> None:
        super().__init__(batch_size=torch.Size([count]))
        self._games, self._batch = (
            VectorGames(count, seed=seed, max_moves=max_moves),
            Batch.empty(count, mask=True),
        )
        self._games.observe(self._batch)
        self.observation_spec = Composite(
            planes=Bounded(0, 1, shape=(count, PLANES, 9, 9), dtype=torch.float32),
            mask=Binary(shape=(count, ACTIONS), dtype=torch.bool),
            shape=(count,),
        )
        self.action_spec = Categorical(ACTIONS, shape=(count,), dtype=torch.int64)
        self.reward_spec = Unbounded(shape=(count, 1))

    def _seen(self) -> dict[str, Tensor]:
        assert self._batch.planes is not None
        assert self._batch.mask is not None
        return {
            "planes": torch.from_numpy(self._batch.planes.copy()),
            "mask": torch.from_numpy(self._batch.mask.copy()),
        }

    def _reset(self, tensordict: Any = None, **_options: Any) -> Any:  # noqa: ARG002
        return TensorDict(self._seen(), batch_size=self.batch_size)

    def _step(self, tensordict: Any) -> Any:
        self._games.step(tensordict["action"].numpy().astype(np.int32), self._batch)
        ended = torch.from_numpy(self._batch.ended.astype(np.bool_))[:, None]
        rewards = torch.from_numpy(self._batch.rewards.copy())[:, None]
        return TensorDict(
            {**self._seen(), "reward": rewards, "done": ended, "terminated": ended.clone()},
            batch_size=self.batch_size,
        )

    def _set_seed(self, seed: int | None) -> None:
        pass


class Network(nn.Module):
    """Our network with logits for all 13,527 actions; remembers its last answer for the same planes."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        self.network = model_factory(config_of(scale).model).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.register_buffer("table", torch.from_numpy(self.network.logit_of_action).clamp_min(0))
        self._last: tuple[Tensor | None, Any] = (None, None)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [..., 13527] and values [..., 1] of planes [..., 46, 9, 9]."""
        if self._last[0] is planes:
            return self._last[1]  # type: ignore[no-any-return]
        logits, values = self.network(planes.reshape(-1, PLANES, 9, 9))
        shape = planes.shape[:-3]
        answer = logits[:, self.table].reshape(*shape, ACTIONS), values.reshape(*shape, 1)
        self._last = (planes, answer) if torch.is_grad_enabled() else (None, None)
        return answer


def _actor_and_critic(scale: Scale) -> tuple[Any, Any, Any]:
    """Return the actor for the loss, the one that plays (which keeps no logits), and the critic."""
    network = Network(scale)

    def actor() -> Any:
        return ProbabilisticActor(
            TensorDictModule(network, in_keys=["planes"], out_keys=["logits", "state_value"]),
            in_keys=["logits", "mask"],
            out_keys=["action"],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
        )

    critic = TensorDictModule(_Value(network), in_keys=["planes"], out_keys=["state_value"])
    return actor(), actor().select_out_keys("action", "action_log_prob"), critic


class _Value(nn.Module):
    """The network's values alone."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, planes: Tensor) -> Tensor:
        """Return values [..., 1]."""
        return self.network(planes)[1]  # type: ignore[no-any-return]


def _collector(scale: Scale, actor: Any, workers: int, share: int = 1) -> Any:
    """Return a collector of an epoch's moves: in this process, or in workers with a network each.

    share: how many times the default number of games and of moves.
    """
    config = config_of(scale, games=64 * share)
    training = config.training
    moves = training.steps_per_epoch * share
    if not workers:
        torch.set_num_threads(scale.workers)
        env = Games(training.games, config.env.max_moves)
        return Collector(env, actor, frames_per_batch=moves, total_frames=-1)
    make = [
        functools.partial(Games, training.games // workers, config.env.max_moves, seed)
        for seed in range(workers)
    ]
    return MultiSyncCollector(make, actor, frames_per_batch=moves, total_frames=-1, cat_results=0)


def batches(scale: Scale, workers: int, stack: ExitStack, share: int = 1) -> Iterator[float]:
    """Collect for ever and yield the number of moves of each batch; the weights are sent every time."""
    _, player, _ = _actor_and_critic(scale)
    collector = _collector(scale, player, workers, share)
    stack.callback(collector.shutdown)
    for batch in collector:
        yield float(batch.numel())
        if workers:
            collector.update_policy_weights_()


def open_collecting(scale: Scale, workers: int, stack: ExitStack) -> TakeTurn:
    """Return a turn that collects a batch; 0 workers is this process alone.

    Every worker has 64 games and an epoch's moves, as ours in bench/collect.py.
    """
    collected = batches(scale, workers, stack, max(1, workers))

    def play() -> float:
        torch.set_num_threads(scale.workers)
        return next(collected)

    play()
    return lambda: measured(play)


def open_training(scale: Scale, workers: int, stack: ExitStack) -> TakeTurn:
    """Return a turn that collects and learns for an epoch, with 64 games in all."""
    training = config_of(scale).training
    actor, player, critic = _actor_and_critic(scale)
    collector = _collector(scale, player, workers)
    stack.callback(collector.shutdown)
    collected: Iterator[Any] = iter(collector)
    advantages = GAE(gamma=training.gamma, lmbda=training.gae_lambda, value_network=critic, shifted=True)
    loss = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=training.clip_coef,
        entropy_coeff=training.entropy_coef,
        critic_coeff=training.value_coef,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    optimizer = torch.optim.Adam(loss.parameters(), lr=training.learning_rate, eps=1e-5, fused=True)

    def epoch() -> float:
        torch.set_num_threads(scale.workers)
        data = next(collected)
        with torch.no_grad():
            advantages(data)
        data = data.exclude("next").reshape(-1)
        for _ in range(training.ppo_epochs):
            for picks in torch.randperm(data.numel()).split(training.minibatch_size):
                losses = loss(data[picks])
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad(set_to_none=True)
                total.backward()
                nn.utils.clip_grad_norm_(loss.parameters(), training.max_grad_norm)
                optimizer.step()
        if workers:
            collector.update_policy_weights_()
        return float(data.numel())

    epoch()
    return lambda: measured(epoch)

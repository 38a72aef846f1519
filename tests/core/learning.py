"""Shared by the learner's tests: small networks far from their initial weights, positions, moves."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from conftest import random_play
from torch import Tensor, nn

from keisei.config.schema import AppConfig
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.gradient_step import LOSS_PARTS, PARTS, GradientStep
from keisei.core.models import model_factory
from keisei.core.native_tower import best_kernels
from keisei.core.numerics import Numerics
from keisei.core.policy import Policy
from keisei.core.ppo_agent import PPOAgent
from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import SelfPlay
from keisei.shogi import encoding

SMALL: dict[str, Any] = {"blocks": 1, "channels": 8, "norm_groups": 4, "value_hidden": 16}
SMALL["piece_values"] = "none"
MOST_MOVES = "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1"  # 593 of them
ONE_MOVE = "8k/8P/7G1/9/9/9/9/9/K8 w - 1"

NATIVE = Numerics(native=best_kernels())

Packed = npt.NDArray[np.uint8]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, so that sums are always in the same order and other tests keep their core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_config(
    model: dict[str, Any] | None = None, env: dict[str, Any] | None = None, **training: Any
) -> AppConfig:
    """Return a config of a small network on one thread, 64 moves per update, whatever the defaults."""
    plain: dict[str, Any] = {"algorithm": "ppo", "learning_rate": 1e-3, "learning_rate_floor": 0.2}
    plain |= {"material_reward": 0.0, "length_reward": 0.0, "value_coef": 0.5, "max_grad_norm": 0.5}
    return AppConfig.model_validate(
        {
            "env": {"late_start_share": 0.0, **(env or {})},
            "model": {**SMALL, **(model or {})},
            "training": {"games": 8, "steps_per_epoch": 64, "minibatch_size": 16, **plain, **training},
            "run": {"seed": 5, "threads": 1},
        }
    )


def small_agent(config: AppConfig | None = None, numerics: Numerics | None = None) -> PPOAgent:
    """Return an agent whose policy is far from uniform and whose values differ."""
    config = config or small_config()
    network = model_factory(config.model, seed=config.run.seed)
    shake(network)
    return PPOAgent(config, network=network, numerics=numerics or Numerics())


def shake(network: nn.Module, scale: float = 0.1, seed: int = 3) -> None:
    """Shift every weight, the same way for the same seed: a new network is too uniform to test with."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))


def positions(count: int, seed: int = 0) -> Packed:
    """Return positions of random games, half with White to move, then one with 593 moves and one with 1."""
    found = [encoding.pack([game]) for game in random_play(seed, 4 * count) if game.legal_moves()]
    chosen = np.concatenate(found)[np.linspace(0, len(found) - 1, count).astype(int)]
    return np.concatenate([chosen, encoding.pack_sfens([MOST_MOVES, ONE_MOVE])])


def random_moves(packed: Packed, seed: int = 0) -> npt.NDArray[np.int32]:
    """Return one legal action in each position."""
    offsets, actions = encoding.legal_actions(packed)
    chances = np.random.default_rng(seed).random(len(packed))
    return actions[offsets[:-1] + (chances * np.diff(offsets)).astype(np.int32)]


def made_up_segment(packed: Packed, streams: int, seed: int = 0) -> Segment:
    """Return legal moves in real positions with plausible numbers, otherwise unrelated."""
    random = np.random.default_rng(seed)
    steps = len(packed) // streams
    packed = packed[: steps * streams]
    segment = Segment.empty(SegmentShape(steps, streams, packed.shape[1]))
    segment.packed[:] = packed.reshape(segment.packed.shape)
    segment.actions[:] = random_moves(packed, seed).reshape(steps, streams)
    segment.log_probs[:] = -random.uniform(2, 5, (steps, streams))
    segment.values[:] = random.uniform(-1, 1, (steps, streams))
    segment.rewards[:] = random.choice([-1, 0, 0, 1], (steps, streams))
    segment.ended[:] = segment.rewards != 0
    segment.bootstrap[:] = random.uniform(-1, 1, streams)
    return segment


def buffer_of(*segments: Segment, gamma: float = 0.99, gae_lambda: float = 0.9) -> ExperienceBuffer:
    buffer = ExperienceBuffer(gamma=gamma, gae_lambda=gae_lambda)
    for segment in segments:
        buffer.add_batch(segment)
    return buffer


def played_segment(policy: Policy, *, games: int = 8, steps: int = 8, seed: int = 1) -> Segment:
    """Return what a policy plays against itself."""
    return SelfPlay.begin(policy.config.env, games=games, seed=seed).rollout(policy, steps).segment


def gradients_of(
    agent: PPOAgent, batch: Minibatch, entropy_coef: float
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Return the gradients of the loss of a minibatch by name, with the current weights, and its parts."""
    normalize = agent.config.training.normalize_advantages
    flat = agent.gradients(GradientStep.of(batch, entropy_coef, normalize=normalize))
    parts = flat[-PARTS:].tolist()
    return agent._flat.named(flat), dict(zip(LOSS_PARTS["ppo"], parts, strict=True))

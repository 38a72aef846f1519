"""PPO's loss and its gradients against a plain dense implementation, written from the paper.

Schulman et al., 2017, equations 7 and 9. It shares only the network with the agent: the softmax is over all
13,527 actions, in float64.
"""

import copy

import numpy as np
import numpy.typing as npt
import pytest
import torch
from learning import NATIVE, gradients_of, made_up_segment, positions, small_agent, small_config
from learning import one_thread as one_thread
from torch import Tensor, nn

from keisei.config.schema import TrainingConfig
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.core.segment import Segment
from keisei.shogi import encoding
from keisei.shogi.positions import Positions

ENTROPY_COEF = 0.03


def dense_loss(
    network: nn.Module, batch: Minibatch, training: TrainingConfig
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss to be minimised, and its parts."""
    mask = torch.from_numpy(encoding.legal_mask(batch.packed))
    labels, values = network(torch.from_numpy(encoding.planes(batch.packed)).double())
    logits = labels[:, torch.from_numpy(np.asarray(network.logit_of_action))]
    policy = torch.softmax(logits.masked_fill(~mask, -torch.inf), 1)
    taken = policy[torch.arange(len(mask)), torch.from_numpy(batch.actions.astype(np.int64))]
    old, old_values, advantages, returns = (
        torch.from_numpy(array).double()
        for array in (batch.log_probs, batch.values, batch.advantages, batch.returns)
    )
    if training.normalize_advantages:
        centred = advantages - advantages.mean()
        advantages = centred / centred.square().mean().sqrt()
    ratio = taken / old.exp()
    low, high = 1 - training.clip_coef, 1 + training.clip_coef
    objective = torch.zeros((), dtype=torch.float64)
    for r, a in zip(ratio, advantages, strict=True):
        objective = objective + torch.minimum(r * a, r.clip(low, high) * a)
    errors = (values - returns) ** 2
    if training.value_clip is not None:
        limited = torch.maximum(
            torch.minimum(values, old_values + training.value_clip), old_values - training.value_clip
        )
        errors = torch.maximum(errors, (limited - returns) ** 2)
    legal = policy[mask]
    mean_entropy = -(legal * legal.log()).sum() / len(mask)
    policy_loss = -objective / len(mask)
    loss = policy_loss + training.value_coef * errors.mean() - ENTROPY_COEF * mean_entropy
    parts = {
        "loss/policy": policy_loss,
        "loss/value": errors.mean(),
        "loss/total": loss,
        "policy/entropy": mean_entropy,
        "policy/approx_kl": ((ratio - 1) - ratio.log()).mean(),
        "policy/clip_fraction": ((ratio < low) | (ratio > high)).double().mean(),
    }
    return loss, {name: float(part.detach()) for name, part in parts.items()}


def log_probs_of(agent: PPOAgent, segment: Segment) -> npt.NDArray[np.float32]:
    """Return the agent's log-probabilities of the moves of a one-stream segment."""
    packed = segment.packed[:, 0]
    mask = torch.from_numpy(encoding.legal_mask(packed))
    with torch.no_grad():
        labels, _ = agent.network(torch.from_numpy(encoding.planes(packed)))
    logits = labels[:, torch.from_numpy(np.asarray(agent.network.logit_of_action))]
    policy = torch.log_softmax(logits.masked_fill(~mask, -torch.inf), 1)
    chosen: npt.NDArray[np.float32] = policy.numpy()[np.arange(len(packed)), segment.actions[:, 0]]
    return chosen


def off_policy_buffer(agent: PPOAgent, rows: int = 30) -> ExperienceBuffer:
    """Return moves whose old probabilities, values and advantages cover both sides of every clip."""
    packed = positions(rows)
    segment = made_up_segment(packed, 1, seed=4)
    random = np.random.default_rng(9)
    log_probs = log_probs_of(agent, segment)
    values = agent.get_value(encoding.planes(packed))
    segment.log_probs[:, 0] = log_probs + random.uniform(-0.5, 0.5, len(packed))
    segment.values[:, 0] = values + random.uniform(-0.4, 0.4, len(packed))
    buffer = ExperienceBuffer(gamma=0.9, gae_lambda=0.9)
    buffer.add_batch(segment)
    return buffer


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("value_clip", [None, 0.2])
@pytest.mark.parametrize("model", [{}, {"policy_head": "linear", "se_ratio": 0.5}])
def test_the_loss_and_all_gradients_are_those_of_the_paper(
    normalize: bool, value_clip: float | None, model: dict[str, object], numerics: Numerics
) -> None:
    config = small_config(model, normalize_advantages=normalize, value_clip=value_clip, value_coef=0.7)
    agent = small_agent(config, numerics)
    batch = off_policy_buffer(agent).all()
    plain = copy.deepcopy(agent.network).double()

    gradients, metrics = gradients_of(agent, batch, ENTROPY_COEF)
    dense, parts = dense_loss(plain, batch, config.training)
    dense.backward()

    assert 0.2 < parts["policy/clip_fraction"] < 0.8
    assert set(metrics) == set(parts) - {"loss/total"}
    for name in metrics:
        expected = parts[name]
        assert metrics[name] == pytest.approx(expected, rel=1e-5, abs=1e-6), name
    pairs = dict(plain.named_parameters())
    assert set(gradients) == set(pairs)
    for name, gradient in gradients.items():
        expected_gradient = pairs[name].grad
        assert expected_gradient is not None
        scale = float(expected_gradient.abs().max())
        assert scale > 0, name
        error = float((gradient.double() - expected_gradient).abs().max())
        assert error < 2e-5 * scale, name


def test_both_signs_of_advantage_and_both_clippings_are_in_the_moves_above() -> None:
    agent = small_agent()
    batch = off_policy_buffer(agent).all()
    choice = agent.select_action(Positions.of_packed(batch.packed), np.zeros(len(batch.packed)))
    beyond = np.abs(choice.values - batch.values) > 0.2
    assert 0.2 < beyond.mean() < 0.8
    assert 0.2 < (batch.advantages > 0).mean() < 0.8


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_a_step_in_learning_goes_down_the_gradient_of_the_paper(numerics: Numerics) -> None:
    """Adam's first step is lr * g / (|g| + eps): the learning rate, against the sign of each gradient."""
    config = small_config(
        steps_per_epoch=32,
        minibatch_size=32,
        entropy_coef=ENTROPY_COEF,
        learning_rate=1e-4,
        max_grad_norm=1e9,
    )
    agent = small_agent(config, numerics)
    buffer = off_policy_buffer(agent)
    plain = copy.deepcopy(agent.network).double()
    dense, parts = dense_loss(plain, buffer.all(), config.training)
    dense.backward()
    before = {name: parameter.detach().clone() for name, parameter in agent.network.named_parameters()}
    metrics = agent.learn(buffer)
    norm = torch.stack([p.grad.norm() for p in plain.parameters() if p.grad is not None]).norm()
    assert metrics["update/grad_norm"] == pytest.approx(float(norm), rel=1e-5)
    for name, expected in parts.items():
        assert metrics[name] == pytest.approx(expected, rel=1e-5, abs=1e-6), name
    for name, parameter in plain.named_parameters():
        assert parameter.grad is not None
        moved = dict(agent.network.named_parameters())[name].detach() - before[name]
        expected_move = -1e-4 * parameter.grad / (parameter.grad.abs() + 1e-5)
        np.testing.assert_allclose(moved, expected_move, atol=2e-6)

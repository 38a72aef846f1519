"""The loss of a policy that learns from searches, against a plain dense one and against paper."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from learning import NATIVE, made_up_segment, positions, shake, small_config
from learning import one_thread as one_thread
from torch import Tensor, nn

from keisei import _native
from keisei.config.schema import AppConfig
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.gradient_step import LOSS_PARTS, PARTS, GradientStep, tried_columns
from keisei.core.models import model_factory
from keisei.core.native_tower import usable_kernels
from keisei.core.numerics import Numerics
from keisei.core.search_agent import SearchAgent
from keisei.core.segment import Segment, SegmentShape
from keisei.shogi import encoding
from keisei.shogi.positions import Positions

ENTROPY_COEF = 0.03
CANDIDATES = 4


def searched_moves(count: int = 30, seed: int = 0) -> Minibatch:
    """Return real positions, half of them searched, with gains of all sizes, and weights."""
    random = np.random.default_rng(seed)
    plain = made_up_segment(positions(count, seed), 1, seed)
    shape = SegmentShape(plain.shape.steps, 1, candidates=CANDIDATES)
    segment = Segment.empty(shape)
    for name, *_ in shape.layout():
        if name not in ("tried", "gains", "surprise"):
            getattr(segment, name)[:] = getattr(plain, name)
    segment.tried[:] = -1
    for t in range(shape.steps):
        legal = encoding.legal_actions(segment.packed[t])[1]
        if t % 2:
            some = random.permutation(legal)[: random.integers(1, CANDIDATES + 1)]
            segment.tried[t, 0, : len(some)] = some
            segment.gains[t, 0, : len(some)] = random.uniform(-6, 6, len(some))
    buffer = ExperienceBuffer(gamma=0.99, gae_lambda=0.9)
    buffer.add_batch(segment)
    moves = buffer.all()
    moves.weights[:] = random.uniform(0.2, 3, len(moves))
    return moves


def config_of(**training: Any) -> AppConfig:
    return small_config(algorithm="search", search={"candidates": CANDIDATES}, **training)


def agent_of(numerics: Numerics, **training: Any) -> SearchAgent:
    config = config_of(**training)
    network = model_factory(config.model, seed=config.run.seed)
    shake(network)
    return SearchAgent(config, network=network, numerics=numerics)


def dense_loss(network: nn.Module, batch: Minibatch, value_coef: float) -> tuple[Tensor, dict[str, float]]:
    """Return the loss and its parts: over all 13,527 actions, in float64, one position at a time."""
    mask = torch.from_numpy(encoding.legal_mask(batch.packed))
    labels, values = network(torch.from_numpy(encoding.planes(batch.packed)).double())
    logits = labels[:, torch.from_numpy(np.asarray(network.logit_of_action))].masked_fill(~mask, -torch.inf)
    cross_entropies, divergences, agreements, entropies = [], [], [], []
    for row, logit in enumerate(logits):
        policy = torch.softmax(logit, 0)
        legal = policy[mask[row]]
        entropies.append(-(legal * legal.log()).sum())
        tried = [int(action) for action in batch.tried[row] if action >= 0]
        if not tried:
            continue
        gains = torch.zeros(len(logit), dtype=torch.float64)
        for action, gain in zip(tried, batch.gains[row], strict=False):
            gains[action] = float(gain)
        target = torch.softmax(logit.detach() + gains, 0)[mask[row]]
        cross_entropies.append(-(target * legal.log()).sum())
        divergences.append((target * (target / legal.detach()).log()).sum())
        agreements.append(float(target.argmax() == legal.argmax()))
    weights, returns = torch.from_numpy(batch.weights).double(), torch.from_numpy(batch.returns).double()
    policy_loss = torch.stack(cross_entropies).mean()
    value_loss = (weights * (values - returns) ** 2).mean()
    mean_entropy = torch.stack(entropies).mean()
    loss = policy_loss + value_coef * value_loss - ENTROPY_COEF * mean_entropy
    found = [policy_loss, value_loss, mean_entropy, torch.stack(divergences).mean()]
    parts = [*(float(part.detach()) for part in found), float(np.mean(agreements))]
    return loss, dict(zip(LOSS_PARTS["search"], parts, strict=True))


@pytest.mark.parametrize(
    "numerics",
    [Numerics(), Numerics(channels_last=True), NATIVE, *(Numerics(native=k) for k in usable_kernels()[1:])],
    ids=str,
)
def test_loss_and_gradients_are_those_of_the_plain_loss(numerics: Numerics) -> None:
    agent, batch = agent_of(numerics, value_coef=0.7), searched_moves()
    double = copy.deepcopy(agent.network).double()
    loss, expected = dense_loss(double, batch, 0.7)
    gradients = dict(
        zip(
            dict(double.named_parameters()),
            torch.autograd.grad(loss, list(double.parameters())),
            strict=True,
        )
    )
    step = GradientStep.of(batch, ENTROPY_COEF, normalize=False)
    assert step.targets == len(batch) // 2
    flat = agent.gradients(step)
    found = dict(zip(LOSS_PARTS["search"], flat[-PARTS:].tolist(), strict=True))
    assert found == pytest.approx(expected, rel=1e-4)
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    for name, gradient in agent._flat.named(flat).items():
        assert float((gradient.double() - gradients[name]).abs().max()) < 2e-4 * largest, name


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
@pytest.mark.parametrize("shares", [2, 3, 7])
def test_shares_sum_to_the_whole(numerics: Numerics, shares: int) -> None:
    agent, batch = agent_of(numerics), searched_moves()
    step = GradientStep.of(batch, ENTROPY_COEF, normalize=False)
    whole = agent.gradients(step)
    parts = sum(agent.gradients(step.share(number, shares)) for number in range(shares))
    assert isinstance(parts, Tensor)
    assert float((parts - whole).abs().max()) < 3e-6 * float(whole.abs().max())


def by_hand(**changes: Any) -> tuple[tuple[float, ...], dict[str, Any]]:
    """Return the parts and the arrays of two positions, three legal moves each; the first is searched.

    Its policy is (1/2, 1/4, 1/4). The search would double the odds of the first move and halve those of the
    last: weights 1, 1/4, 1/8, so the target is (8, 2, 1) / 11.
    """
    arrays: dict[str, Any] = {
        "offsets": np.array([0, 3, 6], np.int32),
        "logits": np.log(np.array([0.5, 0.25, 0.25, 0.2, 0.3, 0.5], np.float32)),
        "values": np.array([0.25, -0.5], np.float32),
        "legal": np.array([10, 20, 30, 11, 21, 31], np.int32),
        "tried": np.array([[30, 10], [-1, -1]], np.int16),
        "gains": np.log(np.array([[0.5, 2], [1, 1]], np.float32)),
        "returns": np.array([1, -1], np.float32),
        "weights": np.array([1, 2], np.float32),
        "d_logits": np.zeros(6, np.float32),
        "d_values": np.zeros(2, np.float32),
        **changes,
    }
    settings: dict[str, Any] = {"minibatch": 2, "targets": 1, "value_coef": 0.5, "entropy_coef": 0.0}
    return _native.search_gradients(**arrays, **settings, kernels=usable_kernels()[0]), arrays


def test_a_target_worked_out_by_hand() -> None:
    (policy, value, _, divergence, agreement), arrays = by_hand()
    target, probabilities = np.array([8, 2, 1]) / 11, np.array([0.5, 0.25, 0.25])
    assert policy == pytest.approx(-(target * np.log(probabilities)).sum(), rel=1e-5)
    assert divergence == pytest.approx((target * np.log(target / probabilities)).sum(), rel=1e-5)
    assert agreement == 1
    # The first value is 3/4 too low, the second 1/2 too high and counts twice.
    assert value == pytest.approx((0.75**2 + 2 * 0.5**2) / 2)
    assert arrays["d_logits"][:3] == pytest.approx(probabilities - target, abs=1e-6)
    assert not arrays["d_logits"][3:].any()  # not searched, and no entropy bonus
    assert arrays["d_values"] == pytest.approx([0.5 * -0.75, 0.5 * 2 * 0.5])


def test_the_policy_moves_to_what_the_search_preferred_and_the_value_to_the_return() -> None:
    """A step against the gradient: signs, in the words of the game."""
    _, arrays = by_hand()
    better, worse = arrays["d_logits"][0], arrays["d_logits"][2]
    assert better < 0 < worse
    assert arrays["d_values"][0] < 0 < arrays["d_values"][1]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tried": np.array([[30, 12], [-1, -1]], np.int16)}, r"tried\[0\] has an action that is illegal"),
        ({"tried": np.array([[-1, -1], [10, -1]], np.int16)}, r"tried\[1\] has an action that is illegal"),
        ({"tried": np.zeros((2, 3), np.int16)}, "tried"),
        ({"gains": np.zeros(2, np.float32)}, "gains"),
        ({"weights": np.zeros(3, np.float32)}, "weights"),
        ({"legal": np.zeros(5, np.int32)}, "legal"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        by_hand(**change)


def test_columns_of_tried_moves() -> None:
    some = Positions.of_packed(positions(6))
    tried = np.full((len(some), 3), -1, np.int16)
    for row in range(len(some)):
        legal = some.legal(row)
        tried[row, 0] = legal[-1]
        tried[row, 1] = legal[len(legal) // 2]
    columns = tried_columns(some, tried)
    assert columns[:, 0].tolist() == (np.diff(some.offsets) - 1).tolist()
    assert columns[:, 1].tolist() == (np.diff(some.offsets) // 2).tolist()
    assert (columns[:, 2] == -1).all()
    tried[2, 1] = next(a for a in range(encoding.ACTIONS) if a not in some.legal(2))
    with pytest.raises(ValueError, match="illegal"):
        tried_columns(some, tried)


def test_gains_of_zero_teach_nothing() -> None:
    """The target is the policy itself, however old the gains are."""
    agent, batch = agent_of(NATIVE, value_coef=0.0), searched_moves()
    batch.gains[:] = 0
    flat = agent.gradients(GradientStep.of(batch, 0.0, normalize=False))
    assert float(flat[:-PARTS].abs().max()) < 1e-6
    assert math.isclose(float(flat[-2]), 0, abs_tol=1e-6)

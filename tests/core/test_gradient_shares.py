"""A gradient step in shares is the step of the whole minibatch, however many shares there are."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from learning import (
    NATIVE,
    buffer_of,
    made_up_segment,
    played_segment,
    positions,
    small_agent,
    small_config,
)
from learning import one_thread as one_thread

from keisei.core.exchange import Alone
from keisei.core.experience_buffer import ExperienceBuffer, Minibatch
from keisei.core.flat_weights import FlatWeights
from keisei.core.gradient_step import GradientStep
from keisei.core.models import model_factory
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent

NUMERICS = pytest.mark.parametrize("numerics", [Numerics(), Numerics(channels_last=True), NATIVE], ids=str)
# Of the largest gradient: sums in another order. Seen: 4e-7 (native), 3e-7 (torch).
TOLERANCE = 3e-6


def minibatch(rows: int = 50) -> Minibatch:
    """Return moves whose advantages differ, so that normalising them in parts would be something else."""
    batch = buffer_of(made_up_segment(positions(rows - 2), 1, seed=4)).all()
    batch.advantages[:] = np.linspace(-3, 9, rows)
    return batch


def weights(agent: PPOAgent) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in agent.tensors()["weights"].items()}


def learned(agent: PPOAgent, buffer: ExperienceBuffer, shares: int | None) -> Mapping[str, float]:
    return agent.learn(buffer, exchange=None if shares is None else Alone(shares))


@NUMERICS
@pytest.mark.parametrize("value_clip", [None, 0.2])
def test_the_shares_add_up_to_the_whole(numerics: Numerics, value_clip: float | None) -> None:
    agent = small_agent(small_config(value_clip=value_clip), numerics)
    step = GradientStep.of(minibatch(), 0.03, normalize=True)
    whole = Alone().total(agent, step)
    assert torch.equal(whole, agent.gradients(step)), "alone is a world of one, to the bit"
    scale = float(whole.abs().max())
    assert scale > 0.1
    for shares in (2, 3, 4, 7):
        total = Alone(shares).total(agent, step)
        assert not torch.equal(total, whole), "this would not notice if shares were ignored"
        assert float((total - whole).abs().max()) < TOLERANCE * scale
        assert torch.equal(total, Alone(shares).total(agent, step))


@NUMERICS
def test_shares_without_moves_add_nothing(numerics: Numerics) -> None:
    agent = small_agent(numerics=numerics)
    step = GradientStep.of(minibatch(3), 0.03, normalize=True)
    assert [len(step.share(number, 5)) for number in range(5)] == [0, 1, 0, 1, 1]
    assert not agent.gradients(step.share(0, 5)).any()
    whole, total = agent.gradients(step), Alone(5).total(agent, step)
    assert float((total - whole).abs().max()) < TOLERANCE * float(whole.abs().max())


def test_the_shares_are_all_moves_in_order_and_as_even_as_possible() -> None:
    step = GradientStep.of(minibatch(), 0.03, normalize=True)
    for of in (1, 2, 3, 4, 8, 50):
        shares = [step.share(number, of) for number in range(of)]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
        assert {share.minibatch for share in shares} == {50}
        for name in Minibatch.__slots__:
            joined = np.concatenate([getattr(share.moves, name) for share in shares])
            assert np.array_equal(joined, getattr(step.moves, name)), name


def test_advantages_are_normalised_over_the_whole_minibatch() -> None:
    batch = minibatch()
    step = GradientStep.of(batch, 0.0, normalize=True)
    plain = batch.advantages.astype(np.float64)
    np.testing.assert_allclose(step.moves.advantages, (plain - plain.mean()) / plain.std(), rtol=1e-6)
    assert GradientStep.of(batch, 0.0, normalize=False).moves is batch
    equal = GradientStep.of(batch.rows(np.zeros(4, np.intp)), 0.0, normalize=True)
    assert not equal.moves.advantages.any(), "no division by 0"


@NUMERICS
@pytest.mark.parametrize("shares", [2, 3, 4])
def test_one_step_is_that_of_one_learner(numerics: Numerics, shares: int) -> None:
    config = small_config(minibatch_size=64, learning_rate=1e-3)
    one, several = small_agent(config, numerics), small_agent(config, numerics)
    buffer = buffer_of(played_segment(one))
    expected, found = learned(one, buffer, 1), learned(several, buffer, shares)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    before = dict(small_agent(config, numerics).network.named_parameters())
    for (name, a), b in zip(one.network.named_parameters(), several.network.parameters(), strict=True):
        moved = (a - before[name]).detach().abs().max()
        assert float(moved) > 5e-4, name  # Adam's first step is nearly the learning rate
        # Where a gradient is about Adam's epsilon, 1e-5, its rounding shows: a share of the step's length.
        assert float((a - b).detach().abs().max()) < 0.05 * float(moved), name


@NUMERICS
def test_the_number_of_learners_in_the_config_is_that_of_the_shares(numerics: Numerics) -> None:
    buffer = buffer_of(played_segment(small_agent(numerics=numerics)))
    found = {}
    for learners in (1, 3):
        for shares in (None, 1, 3):
            agent = small_agent(small_config(learners=learners), numerics)
            learned(agent, buffer, shares)
            found[learners, shares] = weights(agent)
    assert found[1, None] == found[1, 1] == found[3, 1]
    assert found[3, None] == found[1, 3] == found[3, 3]
    assert found[1, 1] != found[3, 3]


@NUMERICS
def test_a_share_that_is_not_finite_skips_the_step_for_all(numerics: Numerics) -> None:
    agent = small_agent(small_config(minibatch_size=64), numerics)
    segment = played_segment(agent)
    segment.log_probs[0, 0] = np.nan  # a move of one share alone
    before = weights(agent)
    metrics = learned(agent, buffer_of(segment), 4)
    assert (metrics["update/skipped"], metrics["update/minibatches"]) == (1, 0)
    assert weights(agent) == before


@NUMERICS
def test_the_kl_of_the_whole_minibatch_stops_an_update(numerics: Numerics) -> None:
    config = small_config(target_kl=1e-4, learning_rate=0.05, ppo_epochs=4)
    stopped = []
    for shares in (1, 3):
        agent = small_agent(config, numerics)
        metrics = learned(agent, buffer_of(played_segment(agent)), shares)
        stopped.append((metrics["update/early_stop"], metrics["update/minibatches"]))
    assert stopped[0] == stopped[1]
    assert stopped[0][0] == 1
    assert stopped[0][1] < 16


@pytest.mark.parametrize("channels_last", [False, True])
def test_parameters_are_views_of_the_flat_weights_in_their_own_layout(channels_last: bool) -> None:
    network, same = (model_factory(small_config().model, seed=5) for _ in range(2))
    if channels_last:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    strides = [parameter.stride() for parameter in network.parameters()]
    flat = FlatWeights(network)
    assert len(flat) == sum(parameter.numel() for parameter in same.parameters())
    assert [parameter.stride() for parameter in network.parameters()] == strides
    for mine, other in zip(network.parameters(), same.parameters(), strict=True):
        assert torch.equal(mine, other)
    flat.weights.data.fill_(7)
    assert all(bool((parameter == 7).all()) for parameter in network.parameters())
    again = flat.flattened(list(same.parameters()), more=2)
    assert len(again) == len(flat) + 2
    for name, view in flat.named(again).items():
        assert torch.equal(view, same.get_parameter(name)), name


def test_optimiser_tensors_that_do_not_belong_together_are_refused() -> None:
    agent = small_agent()
    agent.learn(buffer_of(played_segment(agent)))
    tensors = agent.tensors()
    some = dict(tensors["optimizer"])
    del some["stem.bias.exp_avg"]
    with pytest.raises(ValueError, match=r"optimiser tensor stem.bias.exp_avg is absent \(1 are\)"):
        agent.load_tensors({**tensors, "optimizer": some})
    some = {**tensors["optimizer"], "stem.bias.step": torch.tensor(9.0)}
    with pytest.raises(ValueError, match=r"different numbers of steps: \[4.0, 9.0\]"):
        agent.load_tensors({**tensors, "optimizer": some})

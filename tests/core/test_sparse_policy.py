"""The policy over the legal moves: equal to a dense masked softmax, and how moves are sampled from it."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning import SMALL, positions, shake, small_agent, small_config
from learning import one_thread as one_thread
from torch import Tensor

from keisei.config.schema import ModelConfig
from keisei.core.models import ActorCriticResTower, model_factory
from keisei.core.sparse_policy import LegalMoves, entropy, sample
from keisei.shogi import encoding
from keisei.shogi.positions import Positions

CPU = torch.device("cpu")
HEADS = pytest.mark.parametrize("head", ["labels", "linear"])


def legal_of(packed: npt.NDArray[np.uint8], logit_of_action: npt.NDArray[np.int64]) -> LegalMoves:
    return LegalMoves.of(Positions.of_packed(packed), logit_of_action, CPU)


def legal_lists(actions: list[list[int]], logit_of_action: npt.NDArray[np.int64]) -> LegalMoves:
    offsets = np.cumsum([0, *map(len, actions)], dtype=np.int32)
    planes = np.zeros((len(actions), 1), np.float32)
    return LegalMoves.of(
        Positions(planes, offsets, np.concatenate(actions).astype(np.int32)), logit_of_action, CPU
    )


def logits_of(packed: npt.NDArray[np.uint8], head: str) -> tuple[Tensor, npt.NDArray[np.int64]]:
    network = model_factory(ModelConfig.model_validate({**SMALL, "policy_head": head}), seed=2)
    assert isinstance(network, ActorCriticResTower)
    shake(network, 0.3)
    with torch.no_grad():
        logits, _ = network(torch.from_numpy(encoding.planes(packed)))
    return logits, network.logit_of_action


def dense_log_probs(
    logits: Tensor, packed: npt.NDArray[np.uint8], logit_of_action: npt.NDArray[np.int64]
) -> Tensor:
    """Return the masked log-softmax over all 13,527 actions, minus infinity if illegal: [B, 13527]."""
    mask = torch.from_numpy(encoding.legal_mask(packed))
    every = logits.double()[:, torch.from_numpy(logit_of_action)]
    return torch.log_softmax(every.masked_fill(~mask, -torch.inf), 1)


@HEADS
def test_log_probs_and_entropy_are_those_of_the_dense_masked_softmax(head: str) -> None:
    packed = positions(40)
    logits, logit_of_action = logits_of(packed, head)
    legal = legal_of(packed, logit_of_action)
    counts = legal.legal.sum(1)
    assert {1, 593} <= set(counts.tolist())
    sparse, dense = legal.log_probs(legal.pick(logits)), dense_log_probs(logits, packed, logit_of_action)
    spread = sparse[0, : int(counts[0])]
    assert spread.max() - spread.min() > 0.5, "too uniform to show anything"

    offsets, actions = encoding.legal_actions(packed)
    for i, count in enumerate(counts.tolist()):
        row = torch.from_numpy(actions[offsets[i] : offsets[i + 1]].astype(np.int64))
        torch.testing.assert_close(sparse[i, :count].double(), dense[i, row], atol=1e-6, rtol=1e-6)
    probabilities = dense.exp()
    dense_entropy = -(probabilities * dense.masked_fill(dense == -torch.inf, 0)).sum(1)
    torch.testing.assert_close(entropy(sparse).double(), dense_entropy, atol=2e-6, rtol=1e-6)
    assert entropy(sparse)[-1] == 0, "there is only one move"
    assert (sparse.exp()[~legal.legal] == 0).all()


@HEADS
def test_gradients_are_finite_and_nothing_illegal_gets_any(head: str) -> None:
    packed = positions(12)
    logits, logit_of_action = logits_of(packed, head)
    legal = legal_of(packed, logit_of_action)
    logits.requires_grad_()
    log_probs = legal.log_probs(legal.pick(logits))
    chosen = log_probs[:, 0].sum()
    (gradient,) = torch.autograd.grad(chosen + entropy(log_probs).sum(), logits)
    assert torch.isfinite(log_probs).all()
    assert torch.isfinite(gradient).all()
    illegal = torch.ones_like(logits, dtype=torch.bool)
    for i in range(len(packed)):
        illegal[i, legal.logits[i, legal.legal[i]]] = False
    assert (gradient[illegal] == 0).all()
    assert (gradient[:-1][~illegal[:-1]] != 0).float().mean() > 0.99
    assert (gradient[-1] == 0).all(), "with one move there is nothing to learn"


def test_shorter_lists_are_padded() -> None:
    legal = legal_lists([[2], [0, 1]], np.array([10, 11, 12]))
    assert legal.logits.tolist() == [[12, 0], [10, 11]]
    assert legal.legal.tolist() == [[True, False], [True, True]]


@settings(max_examples=100)
@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=6), st.integers(0, 3))
def test_no_logits_give_nan(numbers: list[float], padding: int) -> None:
    count = len(numbers)
    legal = legal_lists([list(range(count)), list(range(count + padding))], np.arange(count + padding))
    logits = torch.tensor([numbers + [0.0] * padding] * 2, requires_grad=True)
    log_probs = legal.log_probs(legal.pick(logits))
    (log_probs[:, 0].sum() + entropy(log_probs).sum()).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(2))


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_the_temperature_divides_the_logits(temperature: float) -> None:
    legal = legal_lists([[0, 2], [0, 1, 2]], np.arange(3))
    logits = torch.tensor([[1.0, 9.0, -2.0], [0.5, -1.0, 3.0]])
    weights = np.exp(np.array([1.0, -2.0]) / temperature)
    first = legal.log_probs(legal.pick(logits), temperature)[0].exp()
    np.testing.assert_allclose(first[:2], weights / weights.sum(), rtol=1e-6)
    assert first[2] == 0
    weights = np.exp(np.array([0.5, -1.0, 3.0]) / temperature)
    np.testing.assert_allclose(
        legal.log_probs(legal.pick(logits), temperature)[1].exp(), weights / weights.sum(), rtol=1e-5
    )


@pytest.mark.parametrize("temperature", [1e-3, 1e-9, 1e-38])
def test_a_temperature_near_zero_takes_the_best_move_and_no_padding(temperature: float) -> None:
    legal = legal_lists([[0, 1], [0, 1, 2]], np.arange(3))
    logits = torch.tensor([[-30.0, -20.0, 5.0], [1.0, 2.0, 3.0]])
    log_probs = legal.log_probs(legal.pick(logits), temperature)
    assert log_probs.exp().tolist() == [[0, 1, 0], [0, 0, 1]]


def test_a_great_temperature_makes_all_moves_equal_and_no_padding() -> None:
    legal = legal_lists([[0, 1], [0, 1, 2]], np.arange(3))
    log_probs = legal.log_probs(legal.pick(torch.tensor([[-30.0, -20.0, 5.0], [1.0, 2.0, 3.0]])), 1e12)
    torch.testing.assert_close(log_probs.exp(), torch.tensor([[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]))


# ------------------------------------------------------------------------ sampling a move


def test_moves_are_drawn_as_often_as_they_are_probable() -> None:
    weights = torch.tensor([5.0, 0.0, 1.0, 2.0, 0.25, 1.75])
    log_probs = torch.log_softmax(torch.where(weights > 0, weights.log(), -1e9), 0)
    draws = 40_000
    uniforms = torch.from_numpy(np.random.default_rng(11).random(draws))
    seen = np.bincount(sample(log_probs.expand(draws, 6), uniforms), minlength=6)
    expected = draws * weights.double().numpy() / 10
    assert seen[1] == 0
    some = expected > 0
    chi_square = ((seen - expected)[some] ** 2 / expected[some]).sum()
    assert chi_square < 18.5  # of 4 degrees of freedom, exceeded once in a thousand


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([0.0, 1e-30, 0.1, 1.0, 7.0]), min_size=1, max_size=7).filter(any),
    st.sampled_from([0.0, 2.0**-53, 0.3, 0.5, 1 - 2.0**-24, 1 - 2.0**-53]),
)
def test_what_has_no_probability_is_never_drawn(weights: list[float], uniform: float) -> None:
    log_probs = torch.log_softmax(torch.tensor([[np.log(w) if w else -1e9 for w in weights]]), 1)
    column = int(sample(log_probs, torch.tensor([uniform], dtype=torch.float64)))
    assert log_probs[0, column].double().exp() > 0


def test_the_first_and_the_last_number_draw_the_first_and_the_last_move() -> None:
    log_probs = torch.tensor([[-1e9, np.log(0.5), -1e9, np.log(0.5), -1e9]]).expand(4, 5)
    uniforms = torch.tensor([0.0, 0.4999, 0.5001, 1 - 2.0**-53], dtype=torch.float64)
    assert sample(log_probs, uniforms).tolist() == [1, 1, 3, 3]


def test_small_probabilities_add_up() -> None:
    """In float32 they would vanish next to 1."""
    weights = np.array([1 - 6e-7, *[1e-9] * 600])
    log_probs = torch.from_numpy(np.log(weights)).float()[None]
    uniforms = 1 - 6e-7 + 1e-9 * (np.arange(10, 600, 10) + 0.5)
    columns = sample(log_probs.expand(len(uniforms), 601), torch.from_numpy(uniforms))
    # Rounding the first one's logarithm shifts them all a little.
    assert np.diff(columns.numpy()).tolist() == [10] * (len(uniforms) - 1)


def test_rows_are_drawn_each_by_its_own_number() -> None:
    random = np.random.default_rng(3)
    log_probs = torch.log_softmax(torch.from_numpy(random.normal(size=(200, 9))).float(), 1)
    uniforms = random.random(200)
    expected = [
        int(np.searchsorted(row.cumsum(), u, side="right"))
        for row, u in zip(log_probs.double().exp().numpy(), uniforms, strict=True)
    ]
    assert sample(log_probs, torch.from_numpy(uniforms)).tolist() == expected


@HEADS
def test_an_agent_draws_legal_moves_with_their_log_probs(head: str) -> None:
    agent, packed = small_agent(small_config({"policy_head": head})), positions(30)
    decoded = Positions.of_packed(packed)
    uniforms = np.random.default_rng(5).random(len(packed))
    uniforms[:2] = 0.0, 1 - 2.0**-53
    logits, values = agent.network(torch.from_numpy(decoded.planes))
    logit_of_action = np.asarray(agent.network.logit_of_action)
    for temperature in (1.0, 0.5):
        choice = agent.select_action(decoded, uniforms, temperature)
        assert (choice.actions.dtype, choice.log_probs.dtype) == (np.dtype(np.int32), np.dtype(np.float32))
        dense = dense_log_probs(logits.detach() / temperature, packed, logit_of_action).numpy()
        rows = np.arange(len(packed))
        np.testing.assert_allclose(choice.log_probs, dense[rows, choice.actions], atol=1e-5)
        np.testing.assert_allclose(choice.values, values.detach(), atol=1e-6)
    best = agent.select_action(decoded, uniforms, 0.0)
    dense = dense_log_probs(logits.detach(), packed, logit_of_action).numpy()
    assert np.array_equal(best.actions, dense.argmax(1))
    assert not np.array_equal(best.actions, choice.actions)

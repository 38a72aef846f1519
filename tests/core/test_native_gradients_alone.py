"""PPO's loss in C++, without torch: its gradients are the slopes of the loss, and bad input is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import random_play

from keisei import _native
from keisei.config.schema import AppConfig
from keisei.core.experience_buffer import Minibatch
from keisei.core.gradient_step import PARTS, GradientStep
from keisei.core.native_gradients import NativeGradients
from keisei.shogi import encoding

KERNELS = _native.tower_kernels()
WIDTHS = [1, 3, 17, 593, 80]
COEFS = {"clip": 0.2, "value_coef": 0.7, "entropy_coef": 0.03}

Arrays = dict[str, npt.NDArray[Any]]


def moves(seed: int = 1) -> Arrays:
    """Return played moves on both sides of every clip, in positions with 1 to 593 legal moves."""
    random = np.random.default_rng(seed)
    offsets = np.cumsum([0, *WIDTHS * 4]).astype(np.int32)
    count = len(offsets) - 1
    logits = random.normal(0, 2, offsets[-1]).astype(np.float32)
    columns = (random.random(count) * np.diff(offsets)).astype(np.int32)
    taken = [log_softmax(logits[a:b])[c] for a, b, c in zip(offsets, offsets[1:], columns, strict=False)]
    values = random.uniform(-1, 1, count)
    numbers = {
        "values": values,
        "log_probs": taken + random.uniform(-0.5, 0.5, count),
        "old_values": values + random.uniform(-0.4, 0.4, count),
        "advantages": random.normal(0, 1, count),
        "returns": random.uniform(-1, 1, count),
    }
    given = {name: array.astype(np.float32) for name, array in numbers.items()}
    return {"offsets": offsets, "logits": logits, "columns": columns, **given}


def log_softmax(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    shifted = logits.astype(np.float64) - float(logits.max())
    found: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return found


def loss_parts(given: Arrays, value_clip: float) -> npt.NDArray[np.float64]:
    """The five sums, written from the paper, in float64."""
    found = np.zeros(5)
    offsets = given["offsets"]
    for i, column in enumerate(given["columns"]):
        log_probs = log_softmax(given["logits"][offsets[i] : offsets[i + 1]])
        old, old_value, advantage, target, value = (
            float(given[name][i]) for name in ("log_probs", "old_values", "advantages", "returns", "values")
        )
        ratio = np.exp(log_probs[column] - old)
        error = (value - target) ** 2
        if value_clip:
            near = min(max(value, old_value - value_clip), old_value + value_clip)
            error = max(error, (near - target) ** 2)
        found += [
            -min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage),
            error,
            -(np.exp(log_probs) * log_probs).sum(),
            ratio - 1 - np.log(ratio),
            not 0.8 <= ratio <= 1.2,
        ]
    return found / len(given["columns"])


def loss(given: Arrays, value_clip: float) -> float:
    policy, value, entropy, *_ = loss_parts(given, value_clip)
    return float(policy + COEFS["value_coef"] * value - COEFS["entropy_coef"] * entropy)


def computed(
    given: Arrays, *, value_clip: float = 0.0, minibatch: int | None = None, kernels: str = KERNELS[0]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], tuple[float, ...]]:
    d_logits, d_values = np.empty_like(given["logits"]), np.empty_like(given["values"])
    arguments: dict[str, Any] = {**given, **COEFS}
    parts = _native.ppo_gradients(
        **arguments,
        minibatch=len(given["columns"]) if minibatch is None else minibatch,
        value_clip=value_clip,
        kernels=kernels,
        d_logits=d_logits,
        d_values=d_values,
    )
    return d_logits, d_values, parts


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("value_clip", [0.0, 0.2])
def test_the_gradients_are_the_slopes_of_the_loss(kernels: str, value_clip: float) -> None:
    given = moves()
    d_logits, d_values, parts = computed(given, value_clip=value_clip, kernels=kernels)
    np.testing.assert_allclose(parts, loss_parts(given, value_clip), rtol=1e-5, atol=1e-7)
    assert 0.2 < parts[4] < 0.8
    for name, gradients in (("logits", d_logits), ("values", d_values)):
        exact = given[name].astype(np.float64)
        for i in np.random.default_rng(2).permutation(len(exact))[:150]:
            slopes = []
            for h in (1e-5, -1e-5):
                moved = exact.copy()
                moved[i] += h
                slopes.append(loss({**given, name: moved}, value_clip))
            slope = (slopes[0] - slopes[1]) / 2e-5
            assert gradients[i] == pytest.approx(slope, abs=2e-6), (name, i)


def test_shares_add_up_to_the_minibatch() -> None:
    given = moves()
    whole = computed(given)
    middle = 9
    cut = given["offsets"][middle]
    parts = []
    for rows, listed in ((slice(0, middle), slice(0, cut)), (slice(middle, None), slice(cut, None))):
        share = {name: array[rows] for name, array in given.items() if name not in ("offsets", "logits")}
        bounds = given["offsets"][:10] if rows.start == 0 else given["offsets"][middle:] - cut
        share |= {"offsets": np.ascontiguousarray(bounds), "logits": given["logits"][listed]}
        parts.append(computed(share, minibatch=len(given["columns"])))
    for i in range(2):
        assert np.array_equal(np.concatenate([part[i] for part in parts]), whole[i])
    np.testing.assert_allclose(np.sum([part[2] for part in parts], 0), whole[2], rtol=1e-12)


@pytest.mark.parametrize("kernels", KERNELS)
def test_the_ratio_of_a_move_just_chosen_is_exactly_one(kernels: str) -> None:
    given = moves()
    count = len(given["columns"])
    columns, log_probs = np.empty(count, np.int32), np.empty(count, np.float32)
    chances = np.random.default_rng(3).random(count)
    _native.choose_moves(given["offsets"], given["logits"], chances, 1.0, kernels, columns, log_probs)
    *_, parts = computed({**given, "columns": columns, "log_probs": log_probs}, kernels=kernels)
    assert parts[3:] == (0.0, 0.0)


@pytest.mark.parametrize("name", ["logits", "values", "log_probs", "advantages", "returns"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_shows_in_the_loss(name: str, value: float) -> None:
    given = moves()
    given[name][3] = value
    *_, parts = computed(given, value_clip=0.2)
    assert not np.isfinite(parts).all()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"columns": np.full(20, -1, np.int32)}, r"columns\[0\] is -1, expected 0 to 0"),
        ({"columns": np.full(20, 593, np.int32)}, r"columns\[0\] is 593, expected 0 to 0"),
        ({"columns": np.zeros(20, np.int64)}, "columns: expected a C-contiguous int32"),
        ({"values": np.zeros(19, np.float32)}, "values: expected a C-contiguous float32"),
        ({"offsets": np.zeros(21, np.int32)}, "offsets: expected to rise"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: Arrays, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        computed({**moves(), **change})


def test_a_minibatch_has_moves() -> None:
    with pytest.raises(ValueError, match="minibatch"):
        computed(moves(), minibatch=0)


def test_gradients_come_from_packed_positions_and_do_not_depend_on_threads() -> None:
    model = {"blocks": 1, "channels": 8, "value_hidden": 16}
    config = AppConfig.model_validate({"model": model, "training": {"algorithm": "ppo"}})
    packed = np.concatenate([encoding.pack([game]) for game in random_play(1, 40) if game.legal_moves()])
    offsets, actions = encoding.legal_actions(packed)
    numbers = np.random.default_rng(1).normal(0, 1, (4, len(packed))).astype(np.float32)
    moves = Minibatch.over(memoryview(bytearray(Minibatch.nbytes(len(packed), 104, 0))), len(packed), 104, 0)
    played = dict(zip(("log_probs", "values", "advantages", "returns"), numbers, strict=True))
    moves = replace(moves, packed=packed, actions=actions[offsets[:-1]], **played)
    step = GradientStep.of(moves, 0.01, normalize=True)
    found = []
    for threads in (1, 2):
        gradients = NativeGradients(config, kernels=KERNELS[0], threads=threads)
        weights = np.random.default_rng(2).normal(0, 0.1, gradients.tower.parameters).astype(np.float32)
        gradients.load_flat(weights)
        out = np.full(gradients.size, np.nan, np.float32)
        gradients.write_gradients(step, out)
        assert np.isfinite(out).all()
        assert np.abs(out[:-PARTS]).max() > 1e-3
        found.append(out.tobytes())
        gradients.write_gradients(step.share(0, 1000), out)
        assert not out.any(), "a share without moves"
    assert found[0] == found[1]
    step.moves.actions[3] = 12_000
    with pytest.raises(ValueError, match="an action that is illegal in its position"):
        gradients.write_gradients(step, np.empty(gradients.size, np.float32))

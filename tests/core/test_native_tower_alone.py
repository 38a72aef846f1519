"""The native network without torch: by its formulas in float64, by derivatives, and by golden numbers.

These tests also run under sanitizers and where torch is not installed.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tower_reference
from conftest import random_play
from tower_reference import random_weights

from keisei._native import Tower, choose_moves, move_probabilities
from keisei.config.schema import AppConfig, ModelConfig
from keisei.core.native_policy import NativePolicy
from keisei.core.native_tower import Evaluated, NativeTower, usable_kernels
from keisei.errors import NetworkError
from keisei.shogi import encoding
from keisei.shogi.positions import Positions

KERNELS = usable_kernels()
MODELS: dict[str, dict[str, Any]] = {
    "plain": {"blocks": 2, "channels": 12, "norm_groups": 3, "value_hidden": 10},
    "excited": {"blocks": 1, "channels": 20, "norm_groups": 5, "value_hidden": 7, "se_ratio": 0.3},
    "linear": {"blocks": 1, "channels": 6, "norm_groups": 1, "value_hidden": 5, "policy_head": "linear"},
    "shallow": {"blocks": 0, "channels": 36, "norm_groups": 4, "value_hidden": 64},
    "counting": {"blocks": 1, "channels": 8, "norm_groups": 4, "value_hidden": 6, "piece_values": "learned"},
}
for _model in MODELS.values():
    _model.setdefault("piece_values", "none")

Floats = npt.NDArray[np.float32]


def some_positions(count: int = 11, seed: int = 3) -> Positions:
    packed = [encoding.pack([game]) for game in random_play(seed, 4 * count) if game.legal_moves()]
    return Positions.of_packed(np.concatenate(packed[: 4 * count : 4]))


POSITIONS = some_positions()


def ends(some: Positions) -> tuple[Floats, Floats]:
    """Return gradients of logits and values to begin with, the same on every machine."""
    raw = np.random.Philox(5).random_raw(len(some.actions) + len(some)) % 257
    numbers: Floats = ((raw.astype(np.float64) - 128) / 64).astype(np.float32)
    return numbers[: len(some.actions)], numbers[len(some.actions) :]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("model", MODELS)
def test_the_results_are_those_of_the_formulas(model: str, kernels: str) -> None:
    config = ModelConfig.model_validate(MODELS[model])
    weights = random_weights(config, 1)
    logits, values = tower_reference.evaluate(config, weights, POSITIONS)
    assert np.ptp(logits) > 0.5
    assert np.ptp(values) > 1e-3
    tower = NativeTower(config, kernels=kernels, threads=2)
    tower.load(weights)
    found = tower.evaluate(POSITIONS)
    np.testing.assert_allclose(found.logits, logits, atol=2e-5)
    np.testing.assert_allclose(found.values, values, atol=5e-6)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_the_derivatives_in_any_direction(model: str, kernels: str) -> None:
    """The derivative of the formulas by small steps, along a random direction of each weight."""
    config, some = ModelConfig.model_validate(MODELS[model]), some_positions(5)
    weights, (d_logits, d_values) = random_weights(config, 2), ends(some)
    tower = NativeTower(config, kernels=kernels)
    tower.load(weights, learning=True)
    gradients = tower.gradients(some, tower.evaluate(some, keep=True), d_logits, d_values)
    chance = np.random.default_rng(1)
    scale = max(float(np.linalg.norm(gradient)) for gradient in gradients.values())
    for name, weight in weights.items():
        direction = chance.standard_normal(weight.shape)
        direction /= np.linalg.norm(direction)
        losses = []
        for step in (1e-6, -1e-6):
            moved: dict[str, npt.NDArray[np.floating]] = {**weights, name: weight + step * direction}
            logits, values = tower_reference.evaluate(config, moved, some)
            losses.append(logits @ d_logits + values @ d_values)
        expected = (losses[0] - losses[1]) / 2e-6
        assert abs(np.sum(gradients[name] * direction) - expected) < 1e-5 * scale, name


def digest(evaluated: Evaluated, gradients: dict[str, Floats]) -> str:
    """Return a hash of the results and gradients."""
    parts = [evaluated.logits, evaluated.values, *gradients.values()]
    data = b"".join(part.tobytes() for part in parts)
    return hashlib.sha256(data).hexdigest()[:16]


# Of each kernels' own: they add in different orders, and portable ones round products. Those of neon are from
# an x86 build in which the one instruction that differs was replaced by AVX2's.
GOLDEN = {
    ("plain", "avx512"): "0b1d634b1f416e26",
    ("plain", "avx2"): "35e31157d175259c",
    ("plain", "portable"): "ecee0b2a0257901c",
    ("excited", "avx512"): "6da8096c5185924b",
    ("excited", "avx2"): "19a871b775e9bf50",
    ("excited", "portable"): "9df96f99b4f1b211",
    ("linear", "avx512"): "84b1fe6294700ec6",
    ("linear", "avx2"): "6bda11b6027d7d52",
    ("linear", "portable"): "f8e3e227d3444ea0",
    ("shallow", "avx512"): "645193f8a6357716",
    ("shallow", "avx2"): "9feb805fcd270e1d",
    ("shallow", "portable"): "d1148c5132e84dd8",
    ("counting", "avx512"): "07cb102ca981afa8",
    ("counting", "avx2"): "07cb102ca981afa8",
    ("counting", "portable"): "7f2418792ef612a4",
    ("plain", "neon"): "30a941cba5720fcf",
    ("excited", "neon"): "1a87474a0b127384",
    ("linear", "neon"): "100357eed9603418",
    ("shallow", "neon"): "77d535032a152906",
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("model", "kernels"), [key for key in GOLDEN if key[1] in KERNELS])
def test_the_bits_are_the_same_on_every_machine_with_these_kernels(
    model: str, kernels: str, threads: int
) -> None:
    config = ModelConfig.model_validate(MODELS[model])
    tower = NativeTower(config, kernels=kernels, threads=threads)
    tower.load(random_weights(config, 3), learning=True)
    evaluated = tower.evaluate(POSITIONS, keep=True)
    d_logits, d_values = ends(POSITIONS)
    found = digest(evaluated, tower.gradients(POSITIONS, evaluated, d_logits, d_values))
    assert found == GOLDEN[model, kernels]


@pytest.mark.parametrize("kernels", KERNELS)
def test_the_choice_of_moves_is_that_of_the_formulas(kernels: str) -> None:
    counts = [1, 2, 7, 8, 9, 100, 593]
    offsets = np.cumsum([0, *counts]).astype(np.int32)
    chance = np.random.default_rng(4)
    logits = (5 * chance.standard_normal(offsets[-1])).astype(np.float32)
    found = np.empty_like(logits)
    move_probabilities(offsets, logits, kernels, found)
    for temperature in (1.0, 0.25, 4.0, 1e-9, 0.0):
        chances = chance.random(len(counts))
        columns, log_probs = np.empty(len(counts), np.int32), np.empty(len(counts), np.float32)
        choose_moves(offsets, logits, chances, temperature, kernels, columns, log_probs)
        for i in range(len(counts)):
            own = logits[offsets[i] : offsets[i + 1]].astype(np.float64)
            exponents = (own - own.max()) / (temperature or 1.0)
            weights = np.exp(exponents)
            shares = np.cumsum(weights) / weights.sum()
            drawn = int(np.searchsorted(shares, chances[i], "right"))
            expected = drawn if temperature else int(own.argmax())
            assert columns[i] == expected
            # Without a temperature the probability is that of the network's own policy.
            assert log_probs[i] == pytest.approx(exponents[expected] - np.log(weights.sum()), abs=1e-5)
            if temperature == 1:
                priors = found[offsets[i] : offsets[i + 1]]
                np.testing.assert_allclose(priors, weights / weights.sum(), rtol=1e-5)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_unless_a_learner_wants_to_see(
    bad: float, strict: bool
) -> None:
    config = AppConfig.model_validate({"model": MODELS["plain"]})
    weights, policy = random_weights(config.model, 6), NativePolicy(config, strict=strict)
    policy.load_arrays(weights)
    before = policy.get_value(POSITIONS.planes)
    weights["blocks.0.conv2.weight"][0, 0, 0, 0] = bad
    if strict:
        with pytest.raises(ValueError, match=r"^the weights are NaN or infinite$"):
            policy.load_arrays(weights)
        assert np.array_equal(policy.get_value(POSITIONS.planes), before)
    else:
        policy.load_arrays(weights)
        choice = policy.select_action(POSITIONS, np.full(len(POSITIONS), 0.5))
        assert np.isnan(choice.values).all()
        assert all(action in POSITIONS.legal(i) for i, action in enumerate(choice.actions))


# Which weights are too large to be multiplied by this power of 10: a variance must fit into float32.
REFUSED: dict[int, list[str]] = {power: [] for power in (-40, -20, 5, 15)}
REFUSED |= {power: ["stem", "blocks.0.conv1"] for power in (25, 30, 34, 37, 38)}


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("power", REFUSED)
def test_tiny_and_huge_weights_are_computed_or_refused(power: int, kernels: str) -> None:
    config = AppConfig.model_validate({"model": MODELS["excited"]})
    weights = random_weights(config.model, 6)
    policy = NativePolicy(config, kernels=kernels)
    refused = []
    for part in ("stem", "blocks.0.conv1", "blocks.0.excitation.excite", "policy.conv"):
        name = f"{part}.weight"
        scaled = {**weights, name: np.asarray(weights[name] * np.float64(10) ** power, np.float32)}
        with np.errstate(over="ignore", invalid="ignore"):
            logits, values = tower_reference.evaluate(config.model, scaled, POSITIONS)
        policy.load_arrays(scaled)
        try:
            policy.evaluate(POSITIONS)
        except NetworkError as error:
            assert str(error) == "the network's results are NaN or infinite: its weights are too large"  # noqa: PT017
            refused.append(part)
            continue
        found = policy.tower.evaluate(POSITIONS)
        np.testing.assert_allclose(found.values, values, atol=1e-4)
        np.testing.assert_allclose(found.logits, logits, atol=1e-4 * max(1.0, np.abs(logits).max()))
    assert refused == REFUSED[power]


def test_nonsense_from_python_is_refused() -> None:
    tower = NativeTower(ModelConfig.model_validate(MODELS["plain"]))._tower
    planes, out = np.zeros((2, 46, 9, 9), np.float32), np.empty(2, np.float32)
    for offsets, moves, message in (
        ([0, 1, 3], [5, 6], "offsets: expected to rise from 0 to 2"),
        ([0, 2, 1], [5], "offsets: expected to rise from 0 to 1"),
        ([1, 1, 2], [5, 6], "offsets: expected to rise from 0 to 2"),
        ([0, 1, 2], [5, 2187], r"moves\[1\] is 2187, expected 0 to 2186"),
        ([0, 1, 2], [-1, 5], r"moves\[0\] is -1, expected 0 to 2186"),
    ):
        with pytest.raises(ValueError, match=message):
            tower._evaluate(
                planes,
                np.array(offsets, np.int32),
                np.array(moves, np.int32),
                np.empty(len(moves), np.float32),
                out,
                None,
            )


def test_nonsense_to_choose_from_is_refused() -> None:
    logits, columns, log_probs = np.zeros(3, np.float32), np.empty(2, np.int32), np.empty(2, np.float32)
    for offsets, temperature, kernels, message in (
        ([0, 0, 3], 1.0, KERNELS[0], "offsets: expected to rise from 0 to 3 in steps of 1 to 600"),
        ([0, 1, 2], 1.0, KERNELS[0], "offsets: expected to rise from 0 to 3 in steps of 1 to 600"),
        ([0, 1, 3], -1.0, KERNELS[0], r"temperature is -1\.0+, expected at least 0"),
        ([0, 1, 3], float("nan"), KERNELS[0], "temperature is nan, expected at least 0"),
        ([0, 1, 3], 1.0, "mmx", "this machine has no kernels 'mmx', expected one of "),
    ):
        with pytest.raises(ValueError, match=message):
            choose_moves(
                np.array(offsets, np.int32), logits, np.zeros(2), temperature, kernels, columns, log_probs
            )


def test_networks_that_cannot_be_are_refused() -> None:
    good = {"blocks": 1, "channels": 8, "groups": 2, "excitation": 0, "value_hidden": 4}
    good |= {"pieces": False, "linear_head": False}
    for name, value, message in (
        ("blocks", -1, "blocks is -1, expected 0 to 1000"),
        ("channels", 0, "channels is 0, expected 1 to 4096"),
        ("groups", 3, "groups 3 must divide channels 8"),
        ("threads", 0, "threads is 0, expected at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            Tower(**{**good, "kernels": KERNELS[0], "threads": 1, name: value})  # type: ignore[arg-type]

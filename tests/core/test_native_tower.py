"""NativeTower computes what torch does in float64, forwards and backwards: any shape, batch and kernels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from learning import one_thread as one_thread
from learning import positions
from network_errors import random_network

from keisei import _native
from keisei.config.schema import ModelConfig
from keisei.core.models import ActorCriticResTower, model_factory
from keisei.core.native_tower import NativeTower, weight_shapes
from keisei.shogi.positions import Positions

KERNELS = _native.tower_kernels()
SMALL = {"blocks": 2, "channels": 12, "norm_groups": 3, "value_hidden": 10}
POSITIONS = Positions.of_packed(positions(20))

Floats = npt.NDArray[np.float32]


def first(count: int) -> Positions:
    """Return so many positions, the same again where there are more than exist."""
    return Positions.of_packed(np.resize(positions(20), (count, 104)))


def arrays(network: ActorCriticResTower) -> dict[str, Floats]:
    return {name: tensor.detach().float().numpy() for name, tensor in network.state_dict().items()}


@dataclass(frozen=True)
class Results:
    """Logits of the legal moves, values, and gradients by name.

    nearest: the number nearest to 0 that goes into a ReLU. Rounding may change its sign, and so a gradient.
    """

    logits: npt.NDArray[np.floating]
    values: npt.NDArray[np.floating]
    gradients: dict[str, npt.NDArray[np.floating]]
    nearest: float = 0.0


def ends(some: Positions, seed: int = 0) -> tuple[Floats, Floats]:
    """Return gradients of logits and values to begin with."""
    chance = np.random.default_rng(seed)
    return (
        chance.standard_normal(len(some.actions), np.float32),
        chance.standard_normal(len(some), np.float32),
    )


def in_float64(network: ActorCriticResTower, some: Positions) -> Results:
    """Return what torch computes in float64."""
    network.double()
    nearest = []
    for name, module in network.named_modules():
        if name.rpartition(".")[2] in ("norm", "norm1", "norm2", "squeeze", "narrow"):
            module.register_forward_hook(
                lambda _module, _given, out: nearest.append(float(out.detach().abs().min()))
            )
    logits, values = network(torch.from_numpy(some.planes).double())
    rows = np.repeat(np.arange(len(some)), np.diff(some.offsets))
    chosen = logits[torch.from_numpy(rows), torch.from_numpy(network.logit_of_action[some.actions])]
    d_logits, d_values = (torch.from_numpy(array).double() for array in ends(some))
    ((chosen * d_logits).sum() + (values * d_values).sum()).backward()
    gradients = {name: weight.grad.numpy() for name, weight in network.named_parameters()}  # type: ignore[union-attr]
    network.zero_grad()
    network.float()
    return Results(chosen.detach().numpy(), values.detach().numpy(), gradients, min(nearest))


def natively(
    config: ModelConfig, weights: dict[str, Floats], some: Positions, kernels: str = "", threads: int = 1
) -> Results:
    """Return what the kernels compute."""
    tower = NativeTower(config, kernels=kernels, threads=threads)
    tower.load(weights, learning=True)
    found = tower.evaluate(some, keep=True)
    return Results(found.logits, found.values, tower.gradients(some, found, *ends(some)))


def worst(found: npt.NDArray[np.floating], expected: npt.NDArray[np.floating], scale: float = 0.0) -> float:
    """Return the largest error, relative to the largest expected value or the scale."""
    return float(np.abs(found - expected).max(initial=0) / max(np.abs(expected).max(initial=0), scale, 1e-30))


def assert_close(found: Results, expected: Results, tolerance: float) -> None:
    assert worst(found.logits, expected.logits, 1.0) < tolerance
    assert worst(found.values, expected.values, 1.0) < tolerance
    assert list(found.gradients) == list(expected.gradients)
    size = max(float(np.abs(gradient).max()) for gradient in expected.gradients.values())
    for name, gradient in expected.gradients.items():
        assert found.gradients[name].shape == gradient.shape
        # Some vanish in exact arithmetic, such as that of a bias before a normalisation of one channel.
        assert worst(found.gradients[name], gradient, 0.1 * size) < 20 * tolerance, name


CONFIGS = [
    ModelConfig(),
    ModelConfig(se_ratio=0.5, policy_head="linear", blocks=1),
    ModelConfig(piece_values="textbook"),
]
configs = st.builds(
    lambda blocks, group, groups, se_ratio, head, hidden, piece_values: ModelConfig(
        blocks=blocks,
        channels=max(4, group * groups) if groups * group >= 4 else 4 * groups,
        norm_groups=groups,
        se_ratio=se_ratio,
        policy_head=head,
        value_hidden=hidden,
        piece_values=piece_values,
    ),
    st.integers(0, 3),
    st.integers(1, 9),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.0, 0.25, 1.0]),
    st.sampled_from(["labels", "labels", "labels", "linear"]),
    st.integers(1, 40),
    st.sampled_from(["none", "learned"]),
)


@pytest.mark.parametrize("kernels", KERNELS)
@examples(max_examples=40)
@given(config=configs, count=st.integers(1, 22), seed=st.integers(0, 1000))
def test_any_network_is_computed_as_in_float64(
    kernels: str, config: ModelConfig, count: int, seed: int
) -> None:
    network, some = random_network(config, seed), first(count)
    weights, expected = arrays(network), in_float64(network, some)
    assume(expected.nearest > 3e-6)
    assert_close(natively(config, weights, some, kernels), expected, 2e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    ("blocks", "channels", "count"), [(10, 4, 9), (10, 32, 5), (1, 128, 9), (2, 256, 3), (0, 16, 1024)]
)
def test_deep_and_wide_networks_and_large_batches_too(
    kernels: str, blocks: int, channels: int, count: int
) -> None:
    config = ModelConfig(blocks=blocks, channels=channels)
    network, some = random_network(config), first(count)
    assert_close(natively(config, arrays(network), some, kernels), in_float64(network, some), 3e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("head", ["labels", "linear"])
def test_a_position_does_not_know_its_neighbours(kernels: str, head: str) -> None:
    config = ModelConfig.model_validate({**SMALL, "se_ratio": 0.5, "policy_head": head})
    weights = arrays(random_network(config))
    together = [natively(config, weights, POSITIONS, kernels, threads) for threads in (1, 2, 3)]
    for other in together[1:]:
        assert np.array_equal(other.logits, together[0].logits)
        assert np.array_equal(other.values, together[0].values)
        for name, gradient in together[0].gradients.items():
            assert np.array_equal(other.gradients[name], gradient), name
    tower = NativeTower(config, kernels=kernels)
    tower.load(weights)
    for i in range(len(POSITIONS)):
        alone = Positions(
            POSITIONS.planes[i : i + 1],
            POSITIONS.offsets[i : i + 2] - POSITIONS.offsets[i],
            POSITIONS.legal(i),
        )
        found = tower.evaluate(alone)
        assert found.values[0] == together[0].values[i]
        own = slice(POSITIONS.offsets[i], POSITIONS.offsets[i + 1])
        assert np.array_equal(found.logits, together[0].logits[own])


@pytest.mark.parametrize("config", CONFIGS)
def test_names_and_shapes_are_those_of_the_network(config: ModelConfig) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model_factory(config).state_dict().items()}
    assert list(weight_shapes(config).items()) == list(expected.items())
    assert NativeTower(config).parameters == sum(map(np.prod, expected.values()))


def test_new_weights_replace_all_old_ones() -> None:
    config = ModelConfig.model_validate({**SMALL, "se_ratio": 0.5})
    old, new = arrays(random_network(config, 1)), arrays(random_network(config, 2))
    tower = NativeTower(config)
    tower.load(old, learning=True)
    tower.load(new)
    fresh = natively(config, new, POSITIONS)
    assert np.array_equal(tower.evaluate(POSITIONS).logits, fresh.logits)
    tower.load(new, learning=True)
    found = tower.evaluate(POSITIONS, keep=True)
    gradients = tower.gradients(POSITIONS, found, *ends(POSITIONS))
    assert all(np.array_equal(gradients[name], fresh.gradients[name]) for name in gradients)


def test_wrong_weights_are_refused_and_the_old_ones_stay() -> None:
    config = ModelConfig.model_validate(SMALL)
    tower, weights = NativeTower(config), arrays(random_network(config))
    tower.load(weights)
    before = tower.evaluate(POSITIONS)
    with pytest.raises(ValueError, match=r"another architecture: norm\.bias is absent, expected \[12\] \(1 "):
        tower.load({name: array for name, array in weights.items() if name != "norm.bias"})
    assert np.array_equal(tower.evaluate(POSITIONS).logits, before.logits)
    with pytest.raises(ValueError, match="this machine has no kernels 'mmx', expected one of "):
        NativeTower(config, kernels="mmx")


def test_the_memory_of_an_evaluation_serves_once() -> None:
    config, some = ModelConfig.model_validate(SMALL), first(9)
    tower = NativeTower(config)
    tower.load(arrays(random_network(config)), learning=True)
    evaluated, other = tower.evaluate(some, keep=True), tower.evaluate(some, keep=True)
    d_logits, d_values = np.ones_like(evaluated.logits), np.ones_like(evaluated.values)
    expected = tower.gradients(some, evaluated, d_logits, d_values)
    with pytest.raises(ValueError, match=r"^this evaluation was not kept .*, or they were computed already$"):
        tower.gradients(some, evaluated, d_logits, d_values)
    again = tower.evaluate(some, keep=True)
    for evaluation in (again, other):
        found = tower.gradients(some, evaluation, d_logits, d_values)
        assert all(np.array_equal(found[name], gradient) for name, gradient in expected.items())


def test_gradients_need_weights_that_were_loaded_for_them() -> None:
    config, some = ModelConfig.model_validate(SMALL), first(9)
    weights, expected = arrays(random_network(config)), natively(config, arrays(random_network(config)), some)
    tower = NativeTower(config)
    for earlier in (False, True):
        tower.load(arrays(random_network(config, 2)), learning=earlier)
        tower.load(weights)
        with pytest.raises(ValueError, match=r"^the weights were not loaded for learning$"):
            tower.gradients(some, tower.evaluate(some, keep=True), *ends(some))
    tower.load(weights, learning=True)
    evaluated = tower.evaluate(some, keep=True)
    tower.use_threads(2)
    found = tower.gradients(some, evaluated, *ends(some))
    assert all(np.array_equal(found[name], gradient) for name, gradient in expected.gradients.items())

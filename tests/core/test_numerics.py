"""How a network is computed: natively, or in formats chosen by measuring, with similar results."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from learning import buffer_of, played_segment, positions, small_agent, small_config
from learning import one_thread as one_thread
from torch import Tensor

from keisei.config.config_errors import ConfigError
from keisei.config.schema import ModelConfig, RunConfig
from keisei.core.evaluator import NATIVE_CHANNELS, NEON, Evaluator, choose_numerics, synchronize
from keisei.core.models import ActorCriticResTower, model_factory
from keisei.core.native_tower import best_kernels, usable_kernels
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.ppo_agent import PPOAgent
from keisei.shogi import encoding
from keisei.shogi.positions import Positions

CPU = torch.device("cpu")


def planes() -> Tensor:
    return torch.from_numpy(encoding.planes(positions(14)))


def network() -> ActorCriticResTower:
    made = small_agent().network
    assert isinstance(made, ActorCriticResTower)
    return made


def first_convolution(tower: ActorCriticResTower) -> Tensor:
    return dict(tower.named_parameters())["blocks.0.conv1.weight"]


def wide_network() -> ActorCriticResTower:
    """Return one too wide for our own kernels."""
    made = model_factory(ModelConfig(blocks=1, channels=NATIVE_CHANNELS + 4))
    assert isinstance(made, ActorCriticResTower)
    return made


@pytest.mark.skipif(best_kernels() == NEON, reason="measured on ARM")
def test_auto_is_native_up_to_a_width_and_for_the_tower_on_a_cpu() -> None:
    numerics = choose_numerics(network(), RunConfig(), CPU, planes())
    assert numerics.native == best_kernels()
    assert str(numerics) == f"native {best_kernels()} (as always on such a CPU)"
    assert not choose_numerics(wide_network(), RunConfig(), CPU, planes()).native

    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tower = network()

        def forward(self, planes: Tensor) -> Tensor:
            return self.tower(planes)  # type: ignore[no-any-return]

    assert not choose_numerics(Own(), RunConfig(), CPU, planes()).native


@pytest.mark.parametrize("name", [*usable_kernels(), ""])
def test_kernels_can_be_named(name: str) -> None:
    config = RunConfig(numerics=f"native-{name}" if name else "native")
    for made in (network(), wide_network()):
        assert choose_numerics(made, config, CPU, planes()) == Numerics(native=name or best_kernels())


def test_kernels_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^run.numerics: given native, expected .* network on meta$"):
        choose_numerics(network(), RunConfig(numerics="native"), torch.device("meta"), planes())
    monkeypatch.setattr("keisei.core.evaluator.usable_kernels", lambda: ["portable"])
    says = r"^run.numerics: given native-avx2, but this CPU has no avx2, expected native or native-portable$"
    with pytest.raises(ConfigError, match=says):
        choose_numerics(network(), RunConfig(numerics="native-avx2"), CPU, planes())


def test_auto_measures_other_networks_and_says_so_and_leaves_no_trace() -> None:
    measured = wide_network()
    before = {name: tensor.clone() for name, tensor in measured.state_dict().items()}
    numerics = choose_numerics(measured, RunConfig(numerics="auto"), CPU, planes())
    assert re.fullmatch(r"channels-last ×\d+\.\d\d, bfloat16 ×\d+\.\d\d, both ×\d+\.\d\d", numerics.why)
    assert not numerics.compiled
    after = measured.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert all(parameter.grad is None for parameter in measured.parameters())
    gains = [1.0, *(float(gain) for gain in re.findall(r"×([\d.]+)", numerics.why))]
    options = [(False, False), (True, False), (False, True), (True, True)]
    chosen = gains[options.index((numerics.channels_last, numerics.bfloat16))]
    assert chosen >= max(gains) - 0.01 or (chosen == 1.0 and max(gains) <= 1.06)


def test_a_hopeless_format_is_given_up_after_a_few_positions() -> None:
    rows_in_bfloat16 = []

    class SlowInBfloat16(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
            if torch.is_autocast_enabled("cpu"):
                rows_in_bfloat16.append(len(planes))
                until = time.process_time() + 0.05
                while time.process_time() < until:
                    pass
            return planes.flatten(1) * self.weight, planes[:, 0, 0, 0] * self.weight

    numerics = choose_numerics(SlowInBfloat16(), RunConfig(), CPU, planes())
    assert not numerics.bfloat16
    assert re.search(r"bfloat16 ×0\.\d\d, both ×0\.\d\d", numerics.why)
    assert rows_in_bfloat16
    assert max(rows_in_bfloat16) < len(planes())


@pytest.mark.parametrize("compiled", ["", "+compile"])
@pytest.mark.parametrize("layout", ["", "+channels_last"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_configured_is_not_measured(precision: str, layout: str, compiled: str) -> None:
    config = RunConfig(numerics=f"{precision}{layout}{compiled}")
    numerics = choose_numerics(network(), config, CPU, planes())
    assert numerics == Numerics(layout != "", precision == "bfloat16", compiled != "", "as configured")
    words = [precision, "channels-last" if layout else "contiguous", *(["compiled"] if compiled else [])]
    assert str(numerics) == f"{', '.join(words)} (as configured)"


def test_a_layout_that_is_named_is_kept_while_the_precision_is_measured() -> None:
    numerics = choose_numerics(network(), RunConfig(numerics="auto+channels_last"), CPU, planes())
    assert numerics.channels_last
    assert re.fullmatch(r"bfloat16 ×\d+\.\d\d", numerics.why)


def test_compiling_is_measured_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refuse)
    numerics = choose_numerics(network(), RunConfig(numerics="auto+compile"), CPU, planes())
    assert numerics.why.endswith(", torch.compile does not work here")
    assert not numerics.compiled
    assert "compile" not in choose_numerics(wide_network(), RunConfig(), CPU, planes()).why


def test_layouts_agree_and_can_be_changed_back() -> None:
    plain = network()
    with torch.no_grad():
        logits, values = plain(planes())
    for channels_last in (True, False, True):
        evaluate = Evaluator(plain, Numerics(channels_last=channels_last), CPU)
        assert first_convolution(plain).is_contiguous() != channels_last
        with torch.no_grad():
            other_logits, other_values = evaluate(planes())
        torch.testing.assert_close(other_logits, logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(other_values, values, atol=1e-5, rtol=1e-5)


def test_bfloat16_gives_float32_that_is_nearly_the_same() -> None:
    plain = network()
    exact, rounded = (Evaluator(plain, Numerics(bfloat16=b), CPU) for b in (False, True))
    with torch.no_grad():
        logits, values = exact(planes())
        other_logits, other_values = rounded(planes())
    assert other_logits.dtype == other_values.dtype == torch.float32
    assert not torch.equal(logits, other_logits)
    torch.testing.assert_close(other_logits, logits, atol=0.05, rtol=0.05)
    torch.testing.assert_close(other_values, values, atol=0.05, rtol=0.05)


def test_an_agent_in_bfloat16_learns_from_what_it_has_played_and_keeps_float32_weights() -> None:
    agent = small_agent(small_config(minibatch_size=64), Numerics(bfloat16=True))
    metrics = agent.learn(buffer_of(played_segment(agent)))
    assert metrics["policy/approx_kl"] < 1e-3
    assert metrics["update/minibatches"] == 1
    assert {tensor.dtype for tensor in agent.tensors()["weights"].values()} == {torch.float32}


def test_an_agent_without_numerics_chooses() -> None:
    fixed = small_config()
    fixed.run.numerics = "auto+channels_last"
    assert "×" in PPOAgent(fixed).numerics.why
    fixed.run.numerics = "float32"
    assert PPOAgent(fixed).numerics == Numerics()


def test_the_network_is_not_left_in_a_layout_that_lost() -> None:
    plain = wide_network()
    for channels_last in (False, True):
        choose_numerics(plain, RunConfig(), CPU, planes())
        Evaluator(plain, Numerics(channels_last=channels_last), CPU)
        assert first_convolution(plain).is_contiguous(memory_format=torch.channels_last) == channels_last


@pytest.mark.parametrize(
    ("device", "waited_for"), [("cpu", []), ("cuda:1", ["cuda:1"]), ("mps", ["mps"]), ("xpu", ["xpu"])]
)
def test_every_device_but_the_cpu_is_waited_for(
    device: str, waited_for: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda given: waited.append(str(given)))
    synchronize(torch.device(device))
    assert waited == waited_for


class TellingClock(PhaseClock):
    """A clock that tells when a phase ends."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self._events = events

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        with super().__call__(phase):
            yield
        self._events.append(phase)


def test_choosing_moves_waits_for_the_device_before_inference_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(
        "keisei.core.network_policy.synchronize", lambda device: events.append(f"wait for {device}")
    )
    agent = small_agent()
    agent.clock = TellingClock(events)
    given = Positions.of_packed(positions(2))
    agent.select_action(given, np.zeros(len(given)))
    assert events == ["wait for cpu", "inference", "sampling"]

"""PPOAgent: it starts from the policy it played with, learns reproducibly, and survives NaN and infinity."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
import torch
from learning import (
    NATIVE,
    buffer_of,
    gradients_of,
    made_up_segment,
    played_segment,
    positions,
    shake,
    small_agent,
    small_config,
)
from learning import one_thread as one_thread

from keisei.config.schema import AppConfig
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learning_agent import NotFiniteError
from keisei.core.models import model_factory
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.shogi import Color, ShogiGame, encoding
from keisei.shogi.positions import Positions


def collect(agent: PPOAgent, seed: int = 1, *, games: int = 8, steps: int = 8) -> ExperienceBuffer:
    return buffer_of(played_segment(agent, games=games, steps=steps, seed=seed))


def weights(agent: PPOAgent) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in agent.tensors()["weights"].items()}


def train(agent: PPOAgent, updates: range) -> list[Mapping[str, float]]:
    """Make some updates, each on what the current weights have played."""
    return [agent.learn(collect(agent, seed=update), progress=update / 10) for update in updates]


def spoilt(value: float, moves: int = 64) -> ExperienceBuffer:
    """Return moves, one of which had this reward in a game to itself."""
    segment = made_up_segment(positions(moves - 2), 1)
    segment.ended[:] = True
    segment.rewards[moves // 2] = value
    return buffer_of(segment)


# ------------------------------------------------------------------------ the same policy in both places


@pytest.mark.parametrize("numerics", [Numerics(channels_last=True), Numerics(), NATIVE], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        {"blocks": 3, "channels": 32, "value_hidden": 64},
        {"se_ratio": 0.25},
        {"policy_head": "linear"},
        {"blocks": 2, "se_ratio": 0.5, "policy_head": "linear"},
    ],
)
def test_learning_starts_from_the_policy_that_has_played(
    model: dict[str, object], numerics: Numerics
) -> None:
    """Before the first step nothing has changed, so any difference would come from the computation."""
    config = small_config(model, steps_per_epoch=60, games=6, minibatch_size=60, learning_rate=3e-3)
    agent = small_agent(config, numerics)
    for update in range(3):
        buffer = collect(agent, update, games=6, steps=10)
        some = next(buffer.minibatches(13, np.random.default_rng(1)))
        seen = [gradients_of(agent, some, 0.0)[1], agent.learn(buffer)]
        for metrics in seen:
            assert metrics["policy/approx_kl"] < 1e-5
            assert metrics["policy/clip_fraction"] == 0
        assert gradients_of(agent, some, 0.0)[1]["policy/approx_kl"] > 1e-5, "the policy has not changed"


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_values_are_the_networks_however_they_are_asked_for(numerics: Numerics) -> None:
    agent, packed = small_agent(numerics=numerics), positions(20)
    planes = encoding.planes(packed)
    choice = agent.select_action(Positions.of_packed(packed), np.full(len(planes), 0.5))
    with torch.no_grad():
        _, values = agent.network(torch.from_numpy(planes))
    assert np.ptp(values.numpy()) > 0.05
    for given in (choice.values, agent.get_value(planes)):
        assert given.dtype == np.float32
        np.testing.assert_allclose(given, values, atol=1e-6)


# ------------------------------------------------------------------------ an update


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_the_same_seed_learns_the_same_twice(numerics: Numerics) -> None:
    config = small_config(ppo_epochs=2)
    first, second = small_agent(config, numerics), small_agent(config, numerics)
    before = weights(first)
    assert train(first, range(3)) == train(second, range(3))
    assert weights(first) == weights(second) != before
    assert first.version == second.version == 3


def test_every_move_is_learned_from_once_in_an_epoch() -> None:
    seen: list[bytes] = []

    def decode(packed: npt.NDArray[np.uint8], threads: int) -> Positions:
        seen.extend(row.tobytes() for row in packed)
        return Positions.of_packed(packed, threads)

    config = small_config(ppo_epochs=2)
    agent = PPOAgent(config, decode=decode, numerics=Numerics())
    calls: list[int] = []
    buffer = buffer_of(made_up_segment(positions(62), 1))
    metrics = agent.learn(buffer, before_minibatch=lambda: calls.append(len(seen)))
    rows = [row.tobytes() for row in buffer.all().packed]
    assert sorted(seen[:64]) == sorted(seen[64:]) == sorted(rows)
    assert seen[:64] != seen[64:]
    assert seen[:64] != rows
    assert calls == [16 * i for i in range(8)]
    assert metrics["update/minibatches"] == 8


def test_the_orders_of_two_updates_have_nothing_in_common() -> None:
    orders: list[list[int]] = []

    def decode(packed: npt.NDArray[np.uint8], threads: int) -> Positions:
        orders.append(encoding.plies(packed).tolist())
        return Positions.of_packed(packed, threads)

    config = small_config(steps_per_epoch=256, minibatch_size=256, ppo_epochs=2)
    agent = PPOAgent(config, decode=decode, numerics=Numerics())
    segment = made_up_segment(positions(254), 1)
    segment.packed.view(encoding.PACKED)["ply"] = np.arange(256)[:, None, None]  # to tell them apart
    for _ in range(2):
        agent.learn(buffer_of(segment))
    assert len(orders) == 4
    for i, one in enumerate(orders):
        assert sorted(one) == list(range(256))
        for other in orders[:i]:
            for shift in range(-32, 33):
                same = np.mean(np.array(one)[32:-32] == np.roll(other, shift)[32:-32])
                assert same < 0.06, f"{same:.0%} are the same {shift} places on"


def test_what_is_raised_before_a_minibatch_ends_the_update() -> None:
    agent = small_agent()
    buffer, calls = collect(agent), []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent.learn(buffer, before_minibatch=stop)
    assert len(calls) == 3
    assert agent.version == 0


def test_an_update_ends_when_the_policy_has_gone_too_far() -> None:
    free = small_agent(small_config(ppo_epochs=3, learning_rate=0.01))
    buffer = collect(free)
    metrics = free.learn(buffer)
    assert (metrics["update/minibatches"], metrics["update/early_stop"]) == (12, 0)
    assert metrics["policy/approx_kl"] > 0.01
    held = small_agent(small_config(ppo_epochs=9, learning_rate=0.01, target_kl=0.001))
    metrics = held.learn(buffer)
    assert metrics["update/early_stop"] == 1
    assert 1 < metrics["update/minibatches"] <= 4, "in the first epoch, with no other after it"
    assert weights(held) != weights(free)


def test_gradients_are_scaled_down_to_their_norm() -> None:
    agent = small_agent(small_config(max_grad_norm=1e-3, minibatch_size=64))
    metrics = agent.learn(collect(agent))
    (flat,) = agent.optimizer.param_groups[0]["params"]
    assert metrics["update/grad_norm"] > 0.01
    assert float(flat.grad.norm()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_learning_rate_and_entropy_fall_to_their_floors(schedule: str) -> None:
    config = small_config(
        learning_rate=0.01,
        learning_rate_floor=0.25,
        entropy_coef=0.2,
        schedule=schedule,
        minibatch_size=64,
    )
    agent = small_agent(config)
    buffer = collect(agent)
    quarter = {"constant": (0.01, 0.2), "linear": (0.008125, 0.16), "cosine": (0.00890165, 0.1765685)}
    end = (0.01, 0.2) if schedule == "constant" else (0.0025, 0.04)
    expected = {0.0: (0.01, 0.2), 0.25: quarter[schedule], 1.0: end, 1.2: end}
    for progress, (learning_rate, entropy_coef) in expected.items():
        metrics = agent.learn(buffer, progress=progress)
        assert metrics["schedule/learning_rate"] == pytest.approx(learning_rate)
        assert metrics["schedule/entropy_coef"] == pytest.approx(entropy_coef)
        assert agent.optimizer.param_groups[0]["lr"] == pytest.approx(learning_rate)
        parts = metrics["loss/policy"] + 0.5 * metrics["loss/value"]
        assert metrics["loss/total"] == pytest.approx(
            parts - entropy_coef * metrics["policy/entropy"], abs=1e-5
        )


def test_the_explained_variance_is_that_of_the_returns_by_the_values() -> None:
    agent = small_agent()
    segment = made_up_segment(positions(62), 1)
    segment.ended[:] = True
    segment.rewards[:, 0] = np.tile([1.0, -1.0], 32)
    for values, expected in (
        (segment.rewards, 1.0),
        (0 * segment.rewards + 0.5, 0.0),
        (segment.rewards / 2, 0.75),
        (-segment.rewards, -3.0),
    ):
        segment.values[:] = values
        metrics = agent.learn(buffer_of(segment))
        assert metrics["value/explained_variance"] == pytest.approx(expected, abs=1e-6)
    segment.rewards[:] = 0
    assert agent.learn(buffer_of(segment))["value/explained_variance"] == 0


# ------------------------------------------------------------------------ NaN and infinity


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_step_that_is_not_finite_is_skipped_and_counted(value: float, numerics: Numerics) -> None:
    agent = small_agent(small_config(minibatch_size=64), numerics)
    before = weights(agent)
    metrics = agent.learn(spoilt(value))
    assert (metrics["update/skipped"], metrics["update/minibatches"]) == (1, 0)
    assert weights(agent) == before
    assert agent.version == 1
    agent.learn(collect(agent))
    assert weights(agent) != before
    assert all(torch.isfinite(tensor).all() for part in agent.tensors().values() for tensor in part.values())


def test_only_the_minibatch_that_is_not_finite_is_skipped() -> None:
    agent = small_agent(small_config(minibatch_size=16))
    metrics = agent.learn(spoilt(float("nan")))
    assert (metrics["update/skipped"], metrics["update/minibatches"]) == (1, 3)
    assert np.isfinite(metrics["loss/total"])


def test_three_in_a_row_are_an_error() -> None:
    agent = small_agent(small_config(minibatch_size=64))
    before = weights(agent)
    for _ in range(2):
        agent.learn(spoilt(float("nan")))
    assert agent.learn(collect(agent))["update/skipped"] == 0
    between = weights(agent)
    assert between != before
    for _ in range(2):
        agent.learn(spoilt(float("nan")))
    with pytest.raises(NotFiniteError, match=r"3 gradient steps in a row, in update 5: .*loss/total nan"):
        agent.learn(spoilt(float("nan")))
    assert weights(agent) == between


# ------------------------------------------------------------------------ its whole state


@pytest.mark.parametrize("numerics", [Numerics(channels_last=True), Numerics(), NATIVE], ids=str)
def test_a_loaded_agent_goes_on_as_if_it_had_never_stopped(numerics: Numerics) -> None:
    whole, halved = small_agent(numerics=numerics), small_agent(numerics=numerics)
    expected = train(whole, range(4))
    first = train(halved, range(2))
    tensors = {
        part: {name: torch.from_numpy(tensor.numpy().copy(order="C")) for name, tensor in named.items()}
        for part, named in halved.tensors().items()
    }
    again = PPOAgent(small_config(), numerics=numerics)
    assert weights(again) != weights(halved)
    again.load_tensors(tensors)
    again.version = halved.version
    assert first + train(again, range(2, 4)) == expected
    assert weights(again) == weights(whole)
    mine, other = again.tensors()["optimizer"], whole.tensors()["optimizer"]
    assert mine.keys() == other.keys()
    assert len(mine) == 3 * len(list(whole.network.parameters()))
    assert all(torch.equal(mine[name], other[name]) for name in mine)


def test_the_tensors_are_copies() -> None:
    agent = small_agent()
    agent.learn(collect(agent))

    def everything() -> dict[str, bytes]:
        return {name: t.numpy().tobytes() for part in agent.tensors().values() for name, t in part.items()}

    before, tensors = everything(), agent.tensors()
    for part in tensors.values():
        for tensor in part.values():
            tensor += 1
    assert everything() == before
    agent.load_tensors(tensors)
    loaded = everything()
    for part in tensors.values():
        for tensor in part.values():
            tensor += 1
    assert everything() == loaded
    assert all(loaded[name] != before[name] for name in before)


def test_weights_alone_can_be_loaded_and_the_optimiser_begins_anew() -> None:
    agent, fresh = small_agent(), PPOAgent(small_config(), numerics=Numerics())
    agent.learn(collect(agent))
    tensors = agent.tensors()
    agent.load_tensors({"weights": tensors["weights"]})
    fresh.load_tensors({"weights": tensors["weights"]})
    agent.version = fresh.version
    assert not agent.tensors()["optimizer"]
    buffer = collect(fresh)
    assert agent.learn(buffer) == fresh.learn(buffer)
    assert weights(agent) == weights(fresh)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"channels": 16}, r"blocks.0.conv1.weight is \[16, 16, 3, 3\], expected \[8, 8, 3, 3\]"),
        ({"blocks": 2}, r"blocks.1.conv1.weight is \[8, 8, 3, 3\], expected absent \(6 tensors"),
        ({"blocks": 0}, r"blocks.0.conv1.weight is absent, expected \[8, 8, 3, 3\] \(6 tensors"),
    ],
)
def test_weights_of_another_architecture_are_refused_by_name(model: dict[str, int], message: str) -> None:
    agent, before = small_agent(), weights(small_agent())
    other = small_agent(small_config(model))
    with pytest.raises(ValueError, match=f"weights are of another architecture: {message}"):
        agent.load_tensors(other.tensors())
    assert weights(agent) == before


def test_optimiser_tensors_of_another_shape_are_refused_by_name() -> None:
    agent = small_agent()
    agent.learn(collect(agent))
    tensors, before = agent.tensors(), weights(agent)
    tensors["optimizer"]["stem.bias.exp_avg"] = torch.zeros(1)
    shake(agent.network)
    shaken = weights(agent)
    with pytest.raises(ValueError, match=r"stem.bias.exp_avg is \[1\], expected \[8\]"):
        agent.load_tensors(tensors)
    tensors = {**tensors, "optimizer": {"stem.bias.momentum": torch.zeros(8)}}
    with pytest.raises(ValueError, match=r"stem.bias.momentum does not belong to Adam on this network"):
        agent.load_tensors(tensors)
    assert weights(agent) == shaken != before


def test_the_random_state_of_torch_is_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    agent = PPOAgent(small_config())
    agent.learn(collect(agent))
    assert torch.equal(torch.rand(4), expected)


def test_a_config_that_was_spoilt_after_loading_is_refused() -> None:
    config = small_config()
    config.training.clip_coef = 1.5
    with pytest.raises(ValueError, match="clip_coef"):
        PPOAgent(config, numerics=Numerics())
    config = AppConfig()
    config.model.norm_groups = 5
    with pytest.raises(ValueError, match="norm_groups 5 must divide channels 32"):
        PPOAgent(config, numerics=Numerics())


def test_the_network_is_that_of_the_seed() -> None:
    config = small_config()
    agent = PPOAgent(config, numerics=Numerics())
    expected = model_factory(config.model, seed=5).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in agent.network.state_dict().items())


def test_an_action_that_is_not_legal_in_its_position_is_refused() -> None:
    agent = small_agent()
    buffer = ExperienceBuffer(gamma=0.99, gae_lambda=0.95)
    start = encoding.pack([ShogiGame()])[0]
    for action in (encoding.action_of("7g7f", Color.BLACK), encoding.action_of("5e5d", Color.BLACK)):
        buffer.add(start, action, -3.4, 0.0, 0.0, ended=False)
    buffer.close()
    with pytest.raises(ValueError, match="an action that is illegal in its position"):
        agent.learn(buffer)

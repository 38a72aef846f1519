"""Policies: they play like the agent with the same weights, and reject weights of another network."""

import numpy as np
import pytest
import torch
from learning import NATIVE, buffer_of, gradients_of, played_segment, positions, small_agent, small_config
from learning import one_thread as one_thread

from keisei.core.native_policy import NativePolicy, policy_on_cpu
from keisei.core.network_policy import NetworkPolicy
from keisei.core.numerics import Numerics
from keisei.core.segment import Segment
from keisei.shogi.positions import Positions


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_it_plays_what_the_agent_plays_once_it_has_its_weights(numerics: Numerics) -> None:
    agent, policy = small_agent(numerics=numerics), policy_on_cpu(small_config(), numerics)
    assert isinstance(policy, NativePolicy if numerics.native else NetworkPolicy)
    expected, other = played_segment(agent), played_segment(policy)
    assert not np.array_equal(other.actions, expected.actions)
    policy.load_arrays(agent.arrays())
    found = played_segment(policy)
    for name in Segment.__slots__:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize("temperature", [1.0, 0.25, 0.0])
def test_both_policies_choose_the_same_moves(temperature: float) -> None:
    some = Positions.of_packed(positions(40))
    uniforms = np.random.default_rng(2).random(len(some))
    expected, found = (
        small_agent(numerics=numerics).select_action(some, uniforms, temperature)
        for numerics in (Numerics(), NATIVE)
    )
    assert np.array_equal(found.actions, expected.actions)
    assert not np.array_equal(found.log_probs, expected.log_probs), "they were computed in the same way"
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)


def test_the_number_of_threads_changes_nothing_but_speed() -> None:
    some, policies = Positions.of_packed(positions(40)), []
    for numerics in (Numerics(), NATIVE):
        agent = small_agent(numerics=numerics)
        policies += [agent, policy_on_cpu(agent.config, numerics)]
        policies[-1].load_arrays(agent.arrays())
    for policy in policies:
        priors, values = policy.evaluate(some)
        policy.use_threads(3)
        again, values_again = policy.evaluate(some)
        tolerance = 0 if isinstance(policy, NativePolicy) else 1e-6
        np.testing.assert_allclose(again, priors, rtol=0, atol=tolerance)
        np.testing.assert_allclose(values_again, values, rtol=0, atol=tolerance)
        policy.use_threads(1)
        assert np.array_equal(policy.evaluate(some)[0], priors)


def test_a_policy_notices_new_weights_however_they_came() -> None:
    agent, some = small_agent(numerics=NATIVE), Positions.of_packed(positions(5))
    seen = [agent.get_value(some.planes)]
    with torch.no_grad():
        agent.network.get_parameter("stem.weight").mul_(1.5)
    seen.append(agent.get_value(some.planes))
    agent.learn(buffer_of(played_segment(agent)))
    seen.append(agent.get_value(some.planes))
    agent.load_weights({name: 0.5 * tensor for name, tensor in agent.weights().items()})
    seen.append(agent.get_value(some.planes))
    with torch.inference_mode():
        expected = agent.network(torch.from_numpy(some.planes))[1]
    np.testing.assert_allclose(seen[-1], expected, atol=1e-6)
    assert len({values.tobytes() for values in seen}) == 4


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_playing_between_steps_changes_nothing_and_sees_each_step(numerics: Numerics) -> None:
    agents = [small_agent(numerics=numerics) for _ in range(2)]
    some = Positions.of_packed(positions(5))
    buffer = buffer_of(played_segment(agents[0]))
    seen: list[bytes] = []
    agents[0].learn(buffer)
    agents[1].learn(buffer, before_minibatch=lambda: seen.append(agents[1].get_value(some.planes).tobytes()))
    assert len(seen) == len(set(seen)) == 4
    first, second = (agent.get_value(some.planes) for agent in agents)
    assert np.array_equal(first, second)
    with torch.inference_mode():
        expected = agents[0].network(torch.from_numpy(some.planes))[1]
    np.testing.assert_allclose(first, expected, atol=1e-6)


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_gradients_are_of_the_weights_of_now_however_they_were_changed(numerics: Numerics) -> None:
    agent = small_agent(numerics=numerics)
    batch = buffer_of(played_segment(agent)).all()

    def gradients() -> bytes:
        return b"".join(one.numpy().tobytes() for one in gradients_of(agent, batch, 0.0)[0].values())

    before = gradients()
    assert gradients() == before
    with torch.no_grad():
        agent.network.get_parameter("blocks.0.conv1.weight").add_(1)
    changed = gradients()
    assert changed != before
    agent.load_flat(agent.flat_weights() + 1)
    assert gradients() not in (before, changed)


@pytest.mark.parametrize("numerics", [Numerics(), NATIVE], ids=str)
def test_priors_are_the_probabilities_by_which_it_chooses(numerics: Numerics) -> None:
    agent, some = small_agent(numerics=numerics), Positions.of_packed(positions(20))
    priors, values = agent.evaluate(some)
    np.testing.assert_allclose(np.add.reduceat(priors, some.offsets[:-1]), 1, rtol=1e-5)
    choice = agent.select_action(some, np.random.default_rng(1).random(len(some)))
    for row, action in enumerate(choice.actions):
        own = slice(some.offsets[row], some.offsets[row + 1])
        (prior,) = priors[own][some.legal(row) == action]
        assert prior == pytest.approx(np.exp(choice.log_probs[row]), rel=1e-5)
    assert np.array_equal(values, choice.values)


def test_the_weights_are_copies() -> None:
    policy = NetworkPolicy(small_config(), numerics=Numerics())
    before = {name: tensor.numpy().tobytes() for name, tensor in policy.weights().items()}
    for tensor in policy.weights().values():
        tensor += 1
    assert {name: tensor.numpy().tobytes() for name, tensor in policy.weights().items()} == before


def test_weights_of_another_architecture_are_refused_and_nothing_is_loaded() -> None:
    policy = NetworkPolicy(small_config(), numerics=Numerics())
    before, wide = policy.weights(), small_agent(small_config({"channels": 16})).weights()
    message = r"^weights are of another architecture: blocks.0.conv1.weight is \[16, 16, 3, 3\], expected"
    with pytest.raises(ValueError, match=message):
        policy.load_weights(wide)
    with pytest.raises(ValueError, match=r"stem.bias is absent, expected \[8\] \(1 tensors differ\)"):
        policy.load_weights({name: tensor + 1 for name, tensor in before.items() if name != "stem.bias"})
    assert all(torch.equal(tensor, before[name]) for name, tensor in policy.weights().items())

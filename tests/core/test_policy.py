"""NetworkPolicy: it plays as the agent with its weights does, and takes no weights of another network."""

import numpy as np
import pytest
import torch
from learning import one_thread as one_thread
from learning import played_segment, positions, small_agent, small_config

from keisei.core.numerics import Numerics
from keisei.core.policy import NetworkPolicy
from keisei.core.segment import Segment
from keisei.shogi.positions import Positions


def test_it_plays_what_the_agent_plays_once_it_has_its_weights() -> None:
    agent, policy = small_agent(), NetworkPolicy(small_config(), numerics=Numerics())
    expected, other = played_segment(agent), played_segment(policy)
    assert not np.array_equal(other.actions, expected.actions)
    policy.load_weights(agent.weights())
    assert policy.parameters == agent.parameters
    found = played_segment(policy)
    for name in Segment.__slots__:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_priors_are_the_probabilities_by_which_it_chooses() -> None:
    agent, some = small_agent(), Positions.of_packed(positions(20))
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

"""Networks: the same for the same seed, the same function for any batch, the mover's view."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from learning import SMALL, positions, shake
from learning import one_thread as one_thread

from keisei.config.schema import ModelConfig
from keisei.core.material import material
from keisei.core.models import ActorCriticResTower, model_factory
from keisei.shogi import encoding

KINDS = pytest.mark.parametrize(
    "kind",
    [
        {},
        {"se_ratio": 0.25},
        {"policy_head": "linear"},
        {"policy_head": "linear", "se_ratio": 1.0, "blocks": 2},
        {"piece_values": "learned"},
    ],
)


def network_of(kind: dict[str, object], seed: int = 1) -> ActorCriticResTower:
    made = model_factory(ModelConfig.model_validate({**SMALL, **kind}), seed=seed)
    assert isinstance(made, ActorCriticResTower)
    return made


def shaken(kind: dict[str, object]) -> ActorCriticResTower:
    network = network_of(kind)
    shake(network, 0.3)
    return network


@KINDS
def test_the_same_seed_gives_the_same_weights_and_torch_is_left_alone(kind: dict[str, object]) -> None:
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    first, second, other = (network_of(kind, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert first.keys() == second.keys() == other.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["stem.weight"], other["stem.weight"])
    assert not torch.equal(first["policy.conv.weight"], other["policy.conv.weight"])


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        # stem 46*32*9 + 32; 3 blocks of 2*(32*32*9) + 4*32; norm 64; policy 32*27 + 27; value 64*64 + 64,
        # norm 128, 65
        ({}, 13_280 + 3 * 18_560 + 64 + 891 + 4_160 + 128 + 65),
        # plus 32*8 + 8 and 8*32 + 32 in each block
        ({"se_ratio": 0.25}, 13_280 + 3 * (18_560 + 552) + 64 + 891 + 4_160 + 128 + 65),
        # a policy of 32*8 + 8 and 648*13527 + 13527
        ({"policy_head": "linear"}, 13_280 + 3 * 18_560 + 64 + 264 + 8_779_023 + 4_160 + 128 + 65),
    ],
)
def test_the_number_of_weights_is_that_of_the_drawing(kind: dict[str, object], parameters: int) -> None:
    network = model_factory(ModelConfig.model_validate({"piece_values": "none", **kind}))
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert all(parameter.dtype == torch.float32 for parameter in network.parameters())


@KINDS
def test_shapes_and_the_first_policy_and_value(kind: dict[str, object]) -> None:
    network = network_of(kind)
    planes = torch.from_numpy(encoding.planes(positions(6)))
    with torch.no_grad():
        logits, values = network(planes)
    assert logits.shape == (8, 13_527 if kind.get("policy_head") == "linear" else 2_187)
    assert values.shape == (8,)
    assert logits.abs().max() < 0.5, "the first policy is nearly uniform"
    assert values.abs().max() < 0.5
    _, actions = encoding.legal_actions(positions(6))
    assert network.logit_of_action.shape == (13_527,)
    assert network.logit_of_action[actions].min() >= 0
    assert network.logit_of_action.max() < logits.shape[1]


@KINDS
def test_values_stay_within_a_win_and_a_loss(kind: dict[str, object]) -> None:
    network = network_of(kind)
    shake(network, 5.0)
    with torch.no_grad():
        _, values = network(torch.from_numpy(encoding.planes(positions(30))))
    assert values.abs().max() <= 1
    assert values.abs().max() > 0.9


@KINDS
def test_it_is_the_same_function_for_any_batch_and_in_both_modes(kind: dict[str, object]) -> None:
    network = shaken(kind)
    planes = torch.from_numpy(encoding.planes(positions(20)))
    with torch.no_grad():
        logits, values = network.train()(planes)
        others = [network.eval()(planes)]
        others.append([torch.cat(parts) for parts in zip(*map(network, planes.split(1)), strict=True)])
        others.append([part.flip(0) for part in network(planes.flip(0))])
        others.append([part[: len(planes)] for part in network(torch.cat([planes, 100 * planes]))])
    assert float(values.std()) > 0.02
    assert float(logits.std(0).max()) > 0.02
    for other_logits, other_values in others:
        torch.testing.assert_close(other_logits, logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(other_values, values, atol=1e-5, rtol=1e-5)


def turned(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the same positions with colours and directions swapped."""
    result = packed.copy()
    before, after = packed.view(encoding.PACKED)[:, 0], result.view(encoding.PACKED)[:, 0]
    board = before["board"][:, ::-1]
    after["board"] = np.where(board > 0, board ^ 16, 0)
    after["hands"] = before["hands"][:, ::-1]
    after["flags"] = before["flags"] ^ 1
    return result


@KINDS
def test_both_colours_see_the_same_but_for_the_plane_that_says_which(kind: dict[str, object]) -> None:
    network, packed = shaken(kind), positions(30)
    planes, others = encoding.planes(packed), encoding.planes(turned(packed))
    assert np.array_equal(encoding.turns(packed), 1 - encoding.turns(turned(packed)))
    assert not np.array_equal(planes[:, 42], others[:, 42])
    others[:, 42] = planes[:, 42]
    assert np.array_equal(planes, others)
    with torch.no_grad():
        network.stem.weight[:, 42] = 0
        logits, values = network(torch.from_numpy(encoding.planes(packed)))
        other_logits, other_values = network(torch.from_numpy(encoding.planes(turned(packed))))
    assert torch.equal(logits, other_logits)
    assert torch.equal(values, other_values)
    for one, other in zip(
        encoding.legal_actions(packed), encoding.legal_actions(turned(packed)), strict=True
    ):
        assert sorted(one.tolist()) == sorted(other.tolist())


def test_squeeze_and_excitation_looks_at_the_whole_board() -> None:
    """Without it, one block of two convolutions does not carry a change from one corner to the other."""
    inputs = torch.randn(1, 8, 9, 9, generator=torch.Generator().manual_seed(1)).repeat(2, 1, 1, 1)
    inputs[1, :, 0, 0] += 3
    for kind, far in (({"se_ratio": 0.5}, True), ({}, False)):
        block = shaken({**kind, "blocks": 1}).blocks[0]
        block.norm1 = block.norm2 = torch.nn.Identity()  # which look at the whole board too
        with torch.no_grad():
            first, second = block(inputs)
        assert torch.equal(first[:, 8, 8], second[:, 8, 8]) != far


def test_every_weight_is_learned() -> None:
    for kind in ({}, {"se_ratio": 0.25, "policy_head": "linear"}):
        network = shaken(kind)
        logits, values = network(torch.from_numpy(encoding.planes(positions(10))))
        (logits.square().mean() + values.square().mean()).backward()
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("norm_groups", 3, "norm_groups 3 must divide channels 32"),
        ("blocks", -1, "blocks"),
        ("policy_head", "softmax", "policy_head"),
        ("channels", 2, "channels"),
        ("se_ratio", 1.5, "se_ratio"),
    ],
)
def test_a_config_that_was_spoilt_after_loading_is_refused_where_it_is_used(
    field: str, value: object, message: str
) -> None:
    config = ModelConfig()
    setattr(config, field, value)
    with pytest.raises(ValueError, match=message):
        model_factory(config)


def test_textbook_piece_values_are_those_of_material() -> None:
    """Without the head's own part, the value of a new network is the material's."""
    network = network_of({"piece_values": "textbook"})
    packed = positions(20)
    with torch.no_grad():
        network.value.out.weight.zero_()
        values = network(torch.from_numpy(encoding.planes(packed)))[1].numpy()
    assert values == pytest.approx(np.tanh(0.07 * material(packed)), abs=1e-5)
    assert len(set(values.tolist())) > 5

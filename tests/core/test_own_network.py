"""Networks of one's own: imported from the current directory, checked at the start, one line per breach."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from keisei.config.config_errors import ConfigError
from keisei.config.files import differences, load_config, to_yaml
from keisei.config.schema import AppConfig, ModelConfig
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.models import model_factory, number_of_weights
from keisei.core.ppo_agent import PPOAgent
from keisei.core.self_play import SelfPlay

MODULE = '''
import torch
from torch import nn


class Net(nn.Module):
    """A linear network; what the options say is wrong with it."""

    def __init__(self, actions=2187, fault=""):
        super().__init__()
        self.fault, self.calls = fault, 0
        if fault == "constructor":
            raise RuntimeError("no luck\\nat all")
        self.policy, self.value = nn.Linear(46 * 81, actions), nn.Linear(46 * 81, 1)
        nn.init.normal_(self.policy.weight, std=0.01)
        self.norm = nn.BatchNorm1d(46 * 81) if fault == "batch" else nn.Identity()
        self.drop = nn.Dropout(0.5 if fault == "random" else 0.0)
        if fault == "frozen":
            self.value.weight.requires_grad = False
        if fault == "double":
            self.double()

    def forward(self, planes):
        x = self.drop(self.norm(planes.flatten(1)))
        if self.fault == "centred":
            x = x - x.mean(0)
        values = torch.tanh(self.value(x))
        if self.fault == "forward":
            raise RuntimeError("no luck")
        if self.fault == "nan":
            values = values / 0 * 0
        if self.fault == "large":
            values = values + 3
        if self.fault == "one":
            return self.policy(x)
        return self.policy(x), values if self.fault == "values" else values.squeeze(1)


class Other:
    pass
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current directory with a module, which no other test sees."""
    (tmp_path / "own_net.py").write_text(MODULE)
    (tmp_path / "own_broken.py").write_text("import nothing_like_that\n")
    (tmp_path / "own_raising.py").write_text("1 / 0\n")
    (tmp_path / "own_leaving.py").write_text("import sys\nsys.exit('usage: own_leaving')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    for name in ("own_net", "own_broken", "own_raising", "own_leaving"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def config_of(name: str = "own_net:Net", **options: object) -> ModelConfig:
    return ModelConfig.model_validate({"name": name, "options": options})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("actions", [2187, 13527])
def test_an_agent_plays_and_learns_with_it(actions: int) -> None:
    config = load_config("tiny", ["model.name=own_net:Net", f"model.options={{actions: {actions}}}"])
    config.run.numerics = "float32"
    agent = PPOAgent(config)
    assert type(agent.network).__module__ == "own_net"
    before = agent.weights()
    collected = SelfPlay.begin(config.env, games=4, seed=1).rollout(agent, steps=4)
    buffer = ExperienceBuffer(gamma=1, gae_lambda=1)
    buffer.add_batch(collected.segment)
    metrics = agent.learn(buffer)
    assert metrics["policy/approx_kl"] < 1e-5, "the same function in play and in learning"
    assert not torch.equal(agent.weights()["policy.weight"], before["policy.weight"])
    assert agent.parameters == number_of_weights(config.model) == 46 * 81 * (actions + 1) + actions + 1


@pytest.mark.usefixtures("here")
def test_the_same_seed_gives_the_same_weights() -> None:
    one, same, other = (model_factory(config_of(), seed=seed).state_dict() for seed in (5, 5, 6))
    assert np.array_equal(one["policy.weight"], same["policy.weight"])
    assert not np.array_equal(one["policy.weight"], other["policy.weight"])


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("own_absent:Net", {}, "no module own_absent in {here} or among the installed packages"),
        ("own_net.inner:Net", {}, "no module own_net.inner in {here} or among"),
        ("own_broken:Net", {}, "importing own_broken raised ModuleNotFoundError: No module named 'noth"),
        ("own_raising:Net", {}, "importing own_raising raised ZeroDivisionError: division by zero"),
        ("own_net:Nets", {}, "{here}/own_net.py has no Nets"),
        ("own_net:Other", {}, "it makes a Other, expected a torch.nn.Module"),
        ("own_leaving:Net", {}, "importing own_leaving raised SystemExit: usage: own_leaving"),
        ("own_net:Net", {"width": 3}, "Net(width=3) raised TypeError: "),
        ("own_net:Net", {"fault": "constructor"}, "Net(fault='constructor') raised RuntimeError: no luck"),
        ("own_net:Net", {"fault": "forward"}, "forward raised RuntimeError: no luck, given planes [5, 46, 9"),
        ("own_net:Net", {"fault": "one"}, "forward returned Tensor, expected a tuple of logits and values"),
        ("own_net:Net", {"actions": 100}, "logits are [5, 100] for 5 positions, expected [5, 2187] or [5, 1"),
        ("own_net:Net", {"fault": "values"}, "values are [5, 1] for 5 positions, expected [5]"),
        ("own_net:Net", {"fault": "nan"}, "values are NaN or infinite"),
        ("own_net:Net", {"fault": "large"}, "values reach "),
        ("own_net:Net", {"fault": "random"}, "the same positions give other results the second time"),
        ("own_net:Net", {"fault": "batch"}, "forward raised ValueError: Expected more than 1 value per chan"),
        ("own_net:Net", {"fault": "centred"}, "a position's result depends on the rest of the batch"),
        ("own_net:Net", {"fault": "frozen"}, "parameter value.weight has requires_grad=False"),
        ("own_net:Net", {"fault": "double"}, "parameter policy.weight is float64, expected float32"),
    ],
)
def test_a_breach_of_the_contract_is_a_line(
    here: Path, name: str, options: dict[str, object], line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        model_factory(config_of(name, **options))
    first, *more = str(caught.value).splitlines()
    assert first.startswith(f"model.name: {name}: {line.format(here=here)}")
    assert all(other.startswith(f"model.name: {name}: parameter ") for other in more)


def test_options_keep_their_types_and_belong_to_a_network_of_ones_own() -> None:
    text = "{width: 64, deep: true, scale: 0.5, kind: plain}"
    config = load_config(None, ["model.name=mine:Net", f"model.options={text}"])
    expected = {"width": 64, "deep": True, "scale": 0.5, "kind": "plain"}
    assert config.model.options == expected
    assert [type(one) for one in config.model.options.values()] == [int, bool, float, str]
    assert AppConfig.model_validate(config.model_dump()).model.options == expected
    (found,) = differences(config, load_config(None, ["model.name=mine:Net"]))
    assert str(found) == f"model.options: {text} -> {{}}"
    with pytest.raises(ConfigError, match=r"^model: options are for a network of your own, not res_tower$"):
        load_config(None, ["model.options={width: 64}"])
    with pytest.raises(ConfigError, match=r"^model.name: given Net, expected res_tower or text like mypack"):
        load_config(None, ["model.name=Net"])


def test_a_config_with_options_is_read_back_equal(tmp_path: Path) -> None:
    config = load_config(None, ["model.name=mine:Net", "model.options={width: 64, kind: plain}"])
    (tmp_path / "config.yaml").write_text(to_yaml(config))
    assert load_config(tmp_path / "config.yaml") == config

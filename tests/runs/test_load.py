"""Networks loaded from checkpoints: which weights, and what of the stored settings playing needs."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_runs import checkpoint_of, small_run

from keisei.config.config_errors import ConfigError
from keisei.core.native_policy import NativePolicy
from keisei.core.native_tower import best_kernels
from keisei.runs.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from keisei.runs.load import load_network, read_network


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("runs") / "first", 512)


def test_the_network_is_named_by_its_run_step_and_hash(run: Path) -> None:
    path = checkpoint_of(run, 512)
    network = load_network(path)
    assert network.name == "first@512"
    assert network.sha256 == hashlib.sha256((path / "weights.safetensors").read_bytes()).hexdigest()
    stored = load_checkpoint(path)
    weights = read_network(path).weights
    assert {name: weight.tobytes() for name, weight in weights.items()} == {
        name: weight.numpy().tobytes() for name, weight in stored.tensors["weights"].items()
    }


def test_settings_of_training_that_no_longer_exist_do_not_keep_a_network_from_playing(
    run: Path, tmp_path: Path
) -> None:
    stored = load_checkpoint(checkpoint_of(run, 512))
    config = json.loads(json.dumps(stored.state["config"]))
    config["training"] |= {"entropy_floor": 0.7, "learning_rate_schedule": "cosine", "warmth": 3}
    config["env"] |= {"late_start_pool": 7, "max_moves": 99}
    path = save_checkpoint(tmp_path, replace(stored, state={**stored.state, "config": config}))
    network = load_network(path)
    assert network.policy.config.env.max_moves == 99
    assert network.policy.config.model.channels == config["model"]["channels"]


def damaged(run: Path, to: Path, name: str, value: float) -> Path:
    """Write a checkpoint in which one weight has this value."""
    stored = load_checkpoint(checkpoint_of(run, 512))
    tensors = {part: dict(named) for part, named in stored.tensors.items()}
    tensors["weights"][name] = torch.full_like(tensors["weights"][name], value)
    return save_checkpoint(to, replace(stored, tensors=tensors))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
def test_a_network_that_cannot_be_computed_is_refused(run: Path, tmp_path: Path, value: float) -> None:
    path = damaged(run, tmp_path, "blocks.0.conv1.weight", value)
    with pytest.raises(CheckpointError, match=r"has no playable network: the (weights are|network's)"):
        load_network(path)


def test_a_network_plays_with_the_kernels_of_its_run(run: Path, tmp_path: Path) -> None:
    stored = load_checkpoint(checkpoint_of(run, 512))
    for kernels, expected in (("portable", "portable"), ("mmx", best_kernels()), ("", best_kernels())):
        numerics = {**stored.state["numerics"], "native": kernels}
        path = save_checkpoint(tmp_path, replace(stored, state={**stored.state, "numerics": numerics}))
        policy = load_network(path).policy
        assert isinstance(policy, NativePolicy)
        assert policy.tower.kernels == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evaluate", "CHECKPOINT", "--against", "random", "--games", "2"], "random"),
        (["play", "CHECKPOINT", "--visits", "4"], "you are black, against"),
        (["usi", "CHECKPOINT"], "readyok"),
    ],
)
def test_playing_needs_no_torch(run: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    code = "import sys; sys.modules['torch'] = None; from keisei.cli import main; main()"
    given = [str(run) if word == "CHECKPOINT" else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-c", code, *given],
        input="isready\nquit\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_without_torch_auto_is_the_cpu_also_where_a_driver_is(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkpoint_of(run, 512)
    monkeypatch.setattr("keisei.runs.load.may_have_accelerator", lambda: True)
    assert isinstance(load_network(path, "auto").policy, NativePolicy)  # torch finds no accelerator
    monkeypatch.setattr("keisei.runs.load.find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert isinstance(load_network(path, "auto").policy, NativePolicy)


def test_a_device_that_is_not_there_is_no_damage_of_the_checkpoint(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"^device: given cuda, expected auto or an available device"):
        load_network(checkpoint_of(run, 512), "cuda")


def test_weights_of_another_architecture_are_refused(run: Path, tmp_path: Path) -> None:
    stored = load_checkpoint(checkpoint_of(run, 512))
    tensors = {part: dict(named) for part, named in stored.tensors.items()}
    tensors["weights"]["stem.bias"] = torch.zeros(9)
    path = save_checkpoint(tmp_path, replace(stored, tensors=tensors))
    for read in (read_network, load_network):
        with pytest.raises(
            CheckpointError, match=r"another architecture: stem\.bias is \[9\], expected \[8\]"
        ):
            read(path)

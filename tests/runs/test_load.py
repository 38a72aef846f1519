"""Networks loaded from checkpoints: which weights, and what of the stored settings playing needs."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import checkpoint_of, small_run

from keisei.runs.checkpoint import load_checkpoint, save_checkpoint
from keisei.runs.load import load_network


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("runs") / "first", 512)


def test_the_network_is_named_by_its_run_step_and_hash(run: Path) -> None:
    path = checkpoint_of(run, 512)
    network = load_network(path)
    assert network.name == "first@512"
    assert network.sha256 == hashlib.sha256((path / "weights.safetensors").read_bytes()).hexdigest()
    stored = load_checkpoint(path)
    weights = network.policy.weights()
    assert {name: weight.numpy().tobytes() for name, weight in weights.items()} == {
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

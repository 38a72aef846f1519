"""Runs with a network of one's own, on the command line: trained by workers, and imported only by name."""

import os
import subprocess
from pathlib import Path

import pytest
from training_runs import KEISEI

NAME = "own_net:Net"
MODULE = """
import torch
from torch import nn

open("imported", "a").close()


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.body = nn.Conv2d(46, hidden, 3, padding=1)
        self.policy, self.value = nn.Conv2d(hidden, 27, 1), nn.Linear(hidden, 1)

    def forward(self, planes):
        x = torch.relu(self.body(planes))
        return self.policy(x).flatten(1), torch.tanh(self.value(x.mean((2, 3)))).squeeze(1)
"""
SETTINGS = [
    "training.total_timesteps=512",
    "training.parallel.enabled=true",
    "training.parallel.num_workers=1",
    "run.numerics=float32",
    "evaluation.every=0",
    "evaluation.final_games=0",
    "run.name=first",
]


def keisei(*arguments: str, cwd: Path, own_network: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the command; own_network: what the environment names."""
    environment = {**os.environ, **({} if own_network is None else {"KEISEI_OWN_NETWORK": own_network})}
    return subprocess.run(
        [KEISEI, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a module, and a run of its network that a worker has played."""
    place = tmp_path_factory.mktemp("place")
    (place / "own_net.py").write_text(MODULE)
    options = "model.options={hidden: 4}"
    done = keisei("train", "--config", "tiny", f"model.name={NAME}", options, *SETTINGS, cwd=place)
    assert done.returncode == 0, done.stderr
    (place / "imported").unlink()
    (place / "said").write_text(done.stdout, encoding="utf-8")
    return place


def test_a_checkpoint_alone_imports_nothing(place: Path) -> None:
    for command in (
        ["evaluate", "first", "--against", "random", "--games", "2"],
        ["train", "--resume", "first", "training.total_timesteps=1024"],
        ["export", "first"],
    ):
        done = keisei(*command, cwd=place)
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.splitlines()
        assert f"its network is {NAME}, which would be imported: if you trust that module, set" in line
    assert not (place / "imported").exists()


def test_whoever_names_it_can_play_and_resume(place: Path) -> None:
    command = ["evaluate", "first", "--against", "random", "--games", "2", "--max-moves", "20"]
    matched = keisei(*command, cwd=place, own_network=f"other:Net,{NAME}")
    assert matched.returncode == 0, matched.stderr
    more = [f"model.name={NAME}", "training.total_timesteps=1024"]
    resumed = keisei("train", "--resume", "first", *more, cwd=place)
    assert resumed.returncode == 0, resumed.stderr
    assert "trained on 1,024 moves" in resumed.stdout


def test_the_commands_that_a_run_names_at_its_end_name_its_network(place: Path) -> None:
    said = (place / "said").read_text(encoding="utf-8").splitlines()
    trusted = f"KEISEI_OWN_NETWORK={NAME} "
    assert [line.partition("#")[0].strip() for line in said if line.startswith("  ")] == [
        f"{trusted}keisei play runs/first",
        f"{trusted}keisei evaluate runs/first",
        "keisei plot runs/first",
        f"{trusted}keisei train --resume runs/first training.total_timesteps=1024",
    ]


def test_a_module_that_is_missing_is_named_and_nothing_is_left_behind(place: Path, tmp_path: Path) -> None:
    command = ["evaluate", str(place / "runs" / "first"), "--against", "random", "--games", "2"]
    done = keisei(*command, cwd=tmp_path, own_network=NAME)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    missing = f"model.name: {NAME}: no module own_net in {tmp_path} or among the installed packages"
    assert line.endswith(missing)
    begun = keisei("train", "--config", "tiny", f"model.name={NAME}", *SETTINGS, cwd=tmp_path)
    assert begun.returncode == 2
    assert begun.stderr == f"keisei: {missing}\n"
    assert [*tmp_path.iterdir()] == []

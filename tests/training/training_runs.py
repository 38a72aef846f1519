"""Shared by the tests of whole runs: real processes that train, and what a run leaves behind."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from keisei.config.files import load_config
from keisei.runs.checkpoint import Checkpoint, checkpoint_steps, newest_checkpoint
from keisei.runs.find import find_run

KEISEI = str(Path(sys.executable).with_name("keisei"))

# A few seconds of training with everything in it: decisive games, late starts, material, evaluations.
SMALL = [
    "training.algorithm=ppo",
    "training.length_reward=0",
    "training.total_timesteps=6144",
    "training.games=16",
    "training.steps_per_epoch=256",
    "training.minibatch_size=64",
    "training.material_reward=0.01",
    "training.schedule=cosine",
    "env.max_moves=200",
    "env.random_plies=150",
    "env.late_start_share=0.5",
    "env.scattered_start_share=0.3",
    "evaluation.every=2048",
    "evaluation.games=2",
    "evaluation.max_moves=40",
    "evaluation.final_games=2",
    "run.checkpoint_every=512",
    "run.console=plain",
]


# The same with searches, and a window that fills soon.
SEARCHING = [
    "training.algorithm=search",
    "training.length_reward=0.5",
    "training.search.simulations=6",
    "training.search.candidates=4",
    "training.search.window=700",
    "training.search.reuse=1.9",  # not a whole number of minibatches in an update
    "training.search.priority=policy",
    "training.material_reward=0",
]


def keisei(
    *arguments: str, cwd: Path, timeout: float = 240, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    return subprocess.run(
        [KEISEI, *arguments], cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False, **options
    )


def _in_child(folder: str, resume: bool, overrides: list[str]) -> None:
    from keisei.training import run

    os.chdir(folder)
    with open("out.txt", "a", encoding="utf-8") as sys.stdout:
        if resume:
            code = run.resume_run(find_run("latest", None, overrides), None, overrides, ["test"]).exit_code
        else:
            code = run.begin_run(load_config("tiny", overrides), ["test"]).exit_code
        sys.stdout.flush()
    os._exit(code)


def start(folder: Path, *, resume: bool, overrides: list[str]) -> BaseProcess:
    """Start a run in its own process, forked from a server that has torch loaded already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["keisei.training.run", "keisei.evaluation.ratings.rating_plot"])
    process = context.Process(target=_in_child, args=(str(folder), resume, overrides))
    process.start()
    return process


def saved_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints of the only run in a folder, newest first."""
    return [step for parent in folder.glob("runs/*/checkpoints") for step in checkpoint_steps(parent)]


def wait_for_a_new_checkpoint(process: BaseProcess, folder: Path, before: list[int]) -> None:
    """Wait until the run has saved more than it had before, or has ended."""
    ends = time.monotonic() + 120
    while process.is_alive() and saved_steps(folder)[:1] == before[:1]:
        assert time.monotonic() < ends
        time.sleep(0.005)


def train(folder: Path, overrides: list[str], *, resume: bool = False) -> None:
    """Run a training to its end in its own process."""
    folder.mkdir(exist_ok=True)
    process = start(folder, resume=resume, overrides=overrides)
    process.join(120)
    assert process.exitcode == 0, (folder / "out.txt").read_text(encoding="utf-8")


def the_run(folder: Path) -> Path:
    """The only run in a folder."""
    (run,) = (folder / "runs").iterdir()
    return run


def metrics(run: Path) -> list[dict[str, float]]:
    """What a run recorded, without what depends on the machine's speed."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if not name.startswith(("time/", "speed/"))}
        for line in lines
    ]


def assert_same(first: Checkpoint, second: Checkpoint) -> None:
    """Check that two checkpoints are equal, tensors bit for bit."""
    assert first.step == second.step
    assert first.state == second.state
    assert first.blobs == second.blobs
    assert first.tensors.keys() == second.tensors.keys()
    for group, tensors in first.tensors.items():
        assert tensors.keys() == second.tensors[group].keys()
        for name, tensor in tensors.items():
            assert tensor.numpy().tobytes() == second.tensors[group][name].numpy().tobytes(), name


def last(run: Path) -> Checkpoint:
    """The newest checkpoint of a run; none newer may be damaged."""
    checkpoint, damaged = newest_checkpoint(run / "checkpoints")
    assert not damaged
    return checkpoint

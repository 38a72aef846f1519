"""Shared by the tests of evaluation: runs of a small network, with checkpoints of different weights."""

import multiprocessing
import os
import signal
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from keisei.config.files import load_config
from keisei.core.self_play import SelfPlay
from keisei.runs.checkpoint import mark_best, save_checkpoint
from keisei.training.trainer import Trainer


def small_run(path: Path, *steps: int, best: int | None = None) -> Path:
    """Make a run's directory with a checkpoint at each of these steps."""
    config = load_config("tiny", [f"run.name={path.name}", "training.games=2"])
    trainer = Trainer(config, torch.device("cpu"))
    games = SelfPlay.begin(config.env, games=2, seed=1).save()
    (path / "checkpoints").mkdir(parents=True)
    for step in steps:
        with torch.no_grad():
            for number, weights in enumerate(trainer.agent.network.parameters()):
                noise = torch.Generator().manual_seed(1000 * step + number)
                weights.add_(0.05 * torch.randn(weights.shape, generator=noise))
        trainer.steps = step
        save_checkpoint(path / "checkpoints", trainer.snapshot([games]))
    if best is not None:
        mark_best(path / "checkpoints", best, 0.5)
    return path


def checkpoint_of(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step_{step:012d}"


def _in_child(folder: str, arguments: list[str]) -> None:
    from keisei.cli import main

    os.chdir(folder)
    # As a terminal has it: a server that workers were forked from before has the signal blocked.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    sys.argv = ["keisei", *arguments]
    with (
        open("out.txt", "w", encoding="utf-8") as sys.stdout,
        open("errors.txt", "w", encoding="utf-8") as sys.stderr,
    ):
        main()


def start_keisei(folder: Path, *arguments: str) -> BaseProcess:
    """Start the command in its own process, forked from a server that has everything loaded already."""
    context = multiprocessing.get_context("forkserver")
    # As the tests of training do, whose server it may be.
    context.set_forkserver_preload(["keisei.training.run", "keisei.evaluation.ratings.rating_plot"])
    process = context.Process(target=_in_child, args=(str(folder), [*arguments]))
    process.start()
    return process

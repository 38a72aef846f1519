"""Which checkpoint is meant. Needs no torch: a USI engine must answer before that is loaded."""

from pathlib import Path

from keisei.training.checkpoint import (
    BEST,
    CheckpointError,
    best_checkpoint,
    checkpoint_path,
    checkpoint_steps,
)
from keisei.training.checkpoint_format import MANIFEST

CHECKPOINTS = "checkpoints"


def find_checkpoint(where: str, directory: Path = Path("runs")) -> Path:
    """Return the directory of a checkpoint: one itself, or one of a run.

    where: a checkpoint, or a run (its path, or its name in `directory`); a run may be followed by @ and
    best, latest or a number of steps. Without it the best is meant, or the latest if none was marked.
    """
    name, _, which = where.rpartition("@") if "@" in where else (where, "", "")
    for path in (Path(name), directory / name):
        if (path / MANIFEST).is_file():
            if which:
                raise CheckpointError(f"{name} is a checkpoint itself, and has no @{which}")
            return path
        if (path / CHECKPOINTS).is_dir():
            return _of_run(path, which)
    raise CheckpointError(
        f"no checkpoint at {where}: expected a run or one of its {CHECKPOINTS}/, perhaps @best"
    )


def _of_run(run: Path, which: str) -> Path:
    parent = run / CHECKPOINTS
    steps = checkpoint_steps(parent)
    if not steps:
        raise CheckpointError(f"run {run} has no checkpoint yet")
    if which in ("", "best"):
        best = best_checkpoint(parent)
        if best is not None:
            return checkpoint_path(parent, best[0])
        if which == "best":
            raise CheckpointError(f"run {run} has no best checkpoint: there is no {parent / BEST}")
    if which in ("", "latest"):
        return checkpoint_path(parent, steps[0])
    if which.isascii() and which.isdigit() and int(which) in steps:
        return checkpoint_path(parent, int(which))
    known = ", ".join(map(str, sorted(steps)))
    raise CheckpointError(f"run {run} has no checkpoint @{which}: expected best, latest or one of {known}")


def checkpoints_of(run: Path) -> list[Path]:
    """Return all checkpoints of a run, the oldest first."""
    parent = run / CHECKPOINTS
    return [checkpoint_path(parent, step) for step in reversed(checkpoint_steps(parent))]

"""Which checkpoint is meant. Needs no torch: a USI engine must answer before that is loaded."""

import os
from pathlib import Path

from keisei.runs.checkpoint import (
    BEST,
    CheckpointError,
    best_checkpoint,
    checkpoint_path,
    checkpoint_steps,
)
from keisei.runs.checkpoint_format import MANIFEST

CHECKPOINTS = "checkpoints"


def find_checkpoint(where: str, directory: Path = Path("runs")) -> Path:
    """Return the directory of a checkpoint: one itself, or one of a run.

    where: a checkpoint, or a run (its path, or its name in `directory`); a run may be followed by @ and
    best, latest or a number of steps. Without it the best is meant, or the latest if none was marked.
    """
    name, _, which = where.rpartition("@")
    # As it is first: a directory's own name may have an @.
    for run, wanted in [(where, "")] + [(name, which)] * ("@" in where):
        for path in (Path(run), directory / run):
            if (path / MANIFEST).is_file():
                if wanted:
                    raise CheckpointError(f"{run} is a checkpoint itself, and has no @{wanted}")
                return path
            if (path / CHECKPOINTS).is_dir():
                return _of_run(path, wanted)
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


def run_of(checkpoint: Path) -> Path | None:
    """Return the directory of the run that a checkpoint lies in; None if it lies elsewhere."""
    parent = Path(os.path.abspath(checkpoint)).parent  # without "..": a run is called by its own name
    return parent.parent if parent.name == CHECKPOINTS else None


def checkpoints_of(run: Path) -> list[Path]:
    """Return all checkpoints of a run, the oldest first."""
    parent = run / CHECKPOINTS
    return [checkpoint_path(parent, step) for step in reversed(checkpoint_steps(parent))]

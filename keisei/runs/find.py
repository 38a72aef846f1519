"""Find the run or checkpoint that a text names. Needs no torch: a USI engine must answer before it is loaded.

    shipped            the trained network that comes with the package
    latest             the run in `directory` that saved last
    RUN                its path, or its name in `directory`
    RUN@best           a checkpoint of a run: @best, @latest or @STEP; also latest@best
    CHECKPOINT         its path

If only a run is named, playing takes its best checkpoint, or its last; resuming takes its last.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keisei.config.files import load_config
from keisei.runs.checkpoint import (
    BEST,
    CheckpointError,
    best_checkpoint,
    checkpoint_path,
    checkpoint_steps,
)
from keisei.runs.checkpoint_format import MANIFEST

CHECKPOINTS, RUN = "checkpoints", "run.json"
LATEST = "latest"
SHIPPED, SHIPPED_PATH = "shipped", Path(__file__).parent / "shipped"


class NothingFoundError(CheckpointError):
    """A text that names neither a run nor a checkpoint."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run, a checkpoint or both, as named by a text.

    run: None for a checkpoint outside any run. checkpoint: None if only a run is named. any_valid: `latest`
    was asked for, so the newest undamaged checkpoint will do.
    """

    run: Path | None
    checkpoint: Path | None = None
    any_valid: bool = False


def find(where: str, directory: Path = Path("runs")) -> Found:
    """Return what a text names; CheckpointError if it does not exist."""
    if where == SHIPPED:
        return Found(None, SHIPPED_PATH)
    if where == LATEST:
        return Found(_latest(directory), any_valid=True)
    name, at, which = where.rpartition("@")
    # Verbatim first: a directory's name may contain an @.
    for text, wanted in [(where, "")] + [(name, which)] * bool(at and which):
        if text == LATEST:
            return _of_run(_latest(directory), wanted)
        for path in (Path(text), directory / text):
            if _is_checkpoint(path):
                if wanted:
                    raise CheckpointError(f"{text} is itself a checkpoint and has no @{wanted}")
                return Found(run_of(path), path)
            if _is_run(path):
                return _of_run(path, wanted)
    named = where or "an empty name"
    raise NothingFoundError(
        f"no checkpoint at {named}: expected latest, a run, RUN@best, a checkpoint in RUN/{CHECKPOINTS} "
        f"or {SHIPPED}"
    )


def find_run(where: str, source: str | None, overrides: Sequence[str]) -> Found:
    """Return what a text names, looking in the run.directory set by a config and overrides."""
    directories = [change for change in overrides if change.startswith("run.directory=")]
    return find(where, Path(load_config(source, directories).run.directory))


def find_checkpoint(where: str, directory: Path = Path("runs")) -> Path:
    """Return the checkpoint to play: the one named, else the run's best, else its last."""
    found = find(where, directory)
    if found.checkpoint is not None:
        return found.checkpoint
    assert found.run is not None
    return checkpoint_of(found.run, "best" if (found.run / CHECKPOINTS / BEST).exists() else LATEST)


def run_started_by(directory: Path, parent: int) -> Path | None:
    """Return the newest run with a checkpoint that a child of this process began or resumed, if any."""
    found = []
    for run in (path.parent for path in directory.glob(f"*/{RUN}") if has_checkpoint(path.parent)):
        described = json.loads((run / RUN).read_text(encoding="utf-8"))
        if any(one.get("parent") == parent for one in [described, *described.get("resumed", [])]):
            found.append(((run / RUN).stat().st_mtime, run))
    return max(found)[1] if found else None


def run_of(checkpoint: Path) -> Path | None:
    """Return the directory of a checkpoint's run, or None if it is outside any run."""
    parent = Path(os.path.abspath(checkpoint)).parent  # without "..", so that the run's own name shows
    return parent.parent if parent.name == CHECKPOINTS else None


def checkpoint_of(run: Path, which: str) -> Path:
    """Return a checkpoint of a run: best, latest or a step."""
    if not has_checkpoint(run):
        raise CheckpointError(f"run {run} has no checkpoint yet")
    parent = run / CHECKPOINTS
    steps = checkpoint_steps(parent)
    if which == LATEST:
        return checkpoint_path(parent, steps[0])
    if which == "best":
        best = best_checkpoint(parent)
        if best is None:
            raise CheckpointError(f"run {run} has no best checkpoint: {parent / BEST} does not exist")
        return checkpoint_path(parent, best[0])
    if which.isascii() and which.isdigit() and int(which) in steps:
        return checkpoint_path(parent, int(which))
    known = ", ".join(map(str, sorted(steps)))
    raise CheckpointError(f"run {run} has no checkpoint @{which}: expected best, latest or one of {known}")


def checkpoints_of(run: Path) -> list[Path]:
    """Return all checkpoints of a run, oldest first."""
    parent = run / CHECKPOINTS
    return [checkpoint_path(parent, step) for step in reversed(checkpoint_steps(parent))]


def has_checkpoint(run: Path) -> bool:
    """Return whether a run has saved anything."""
    return (run / CHECKPOINTS).is_dir() and bool(checkpoint_steps(run / CHECKPOINTS))


def _is_run(path: Path) -> bool:
    return (path / RUN).is_file() or (path / CHECKPOINTS).is_dir()


def _is_checkpoint(path: Path) -> bool:
    """Return whether a directory is a checkpoint; one in a run counts even if it is damaged."""
    if (path / MANIFEST).is_file():
        return True
    run = run_of(path)
    return path.is_dir() and run is not None and (run / RUN).is_file()


def _latest(directory: Path) -> Path:
    """Return the run that saved last."""
    try:
        runs = [path for path in directory.iterdir() if (path / RUN).is_file()]
    except OSError as error:
        raise CheckpointError(f"no run in {directory}: {error.strerror}") from error
    # A directory's mtime is when a name in it last appeared, changed or went: that of a checkpoint.
    saved = [((run / CHECKPOINTS).stat().st_mtime_ns, run) for run in runs if has_checkpoint(run)]
    if not saved:
        raise CheckpointError(f"no run in {directory} has a checkpoint ({len(runs)} without one)")
    return max(saved)[1]


def _of_run(run: Path, which: str) -> Found:
    return Found(run, checkpoint_of(run, which) if which else None)

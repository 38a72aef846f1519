"""The checkpoints of a run: save one atomically, find the newest valid one, prune old ones.

Each is a directory such as `step_000000409600`, with the files described in keisei.runs.checkpoint_format.
Only one process at a time may write there: RunDirectory holds the lock. A kill or a full disk at any moment
leaves all saved checkpoints intact.
"""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from keisei.runs import durable
from keisei.runs.checkpoint_format import (
    MANIFEST,
    STEP_NAME,
    Checkpoint,
    CheckpointError,
    json_bytes,
    manifest_of,
    parsed,
    parsed_json,
    serialized,
    verified,
)

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "best_checkpoint",
    "checkpoint_path",
    "checkpoint_steps",
    "load_checkpoint",
    "mark_best",
    "newest_checkpoint",
    "prune_checkpoints",
    "save_checkpoint",
    "spread_steps",
]

BEST = "best.json"
SPREAD = 10  # checkpoints that are kept of a whole run, for a curve of its strength
MARGIN_BYTES = 4 << 20  # for directories, rounding to blocks, and what other programs write meanwhile

_REPLACED = ".replaced"


def checkpoint_path(parent: Path, step: int) -> Path:
    """Return the path of a step's checkpoint, whether or not it exists."""
    return parent / f"step_{step:012d}"


def checkpoint_steps(parent: Path) -> list[int]:
    """Return the steps that have a checkpoint, damaged or not, newest first."""
    return sorted({step for step, _ in _directories(parent)}, reverse=True)


def save_checkpoint(parent: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint and return its path; when this returns, it is on disk.

    If an identical checkpoint exists, it is left as it is; a different one of the same step is replaced.
    """
    path = checkpoint_path(parent, checkpoint.step)
    files = serialized(path, checkpoint)
    try:
        durable.sweep(parent)
        settle_replaced(parent)
        if _holds(path, files[MANIFEST]):
            return path
        _check_room(path, sum(map(len, files.values())))
        aside = durable.temporary_beside(path)
        try:
            _write_directory(aside, files)
            _move_into_place(aside, path)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)  # the next save removes whatever is left
            raise
    except OSError as error:
        raise CheckpointError(f"checkpoint {path} cannot be written: {durable.reason(error)}") from error
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint at a path; CheckpointError unless every byte is as it was written."""
    return parsed(path, *verified(path))


def newest_checkpoint(parent: Path) -> tuple[Checkpoint, list[str]]:
    """Return the newest valid checkpoint, and one line for each newer, damaged one."""
    refused: list[str] = []
    for _, path in _directories(parent):
        try:
            return load_checkpoint(path), [f"skipped a damaged checkpoint: {why}" for why in refused]
        except CheckpointError as error:
            refused.append(str(error))
    raise CheckpointError(f"no valid checkpoint in {parent}: {'; '.join(refused) or 'it has none'}")


def prune_checkpoints(parent: Path, keep: int, spare: Collection[int] = ()) -> list[int]:
    """Remove all but the newest `keep` valid ones and the steps to spare; return the steps removed.

    A damaged one does not count towards `keep`: it is removed once there are `keep` newer valid ones.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}, expected at least 1")
    try:
        settle_replaced(parent)
        valid, surplus = 0, []
        for step, path in _directories(parent):
            if valid < keep:
                valid += _is_valid(path)
            elif step not in spare:
                surplus.append((step, path))
        for _, path in reversed(surplus):
            durable.remove_whole(path)
    except OSError as error:
        raise CheckpointError(f"{parent} cannot be pruned: {durable.reason(error)}") from error
    return [step for step, _ in reversed(surplus)]


def spread_steps(steps: Collection[int]) -> set[int]:
    """Return a few of these steps, at most SPREAD, about evenly spread from the first to the last.

    What is kept now is all that is needed later: the run is divided into parts that double in length as it
    grows, and the first step of each is kept.
    """
    length = 1
    while max(steps, default=0) // length >= SPREAD:
        length *= 2
    first_of_part: dict[int, int] = {}
    for step in sorted(steps):
        first_of_part.setdefault(step // length, step)
    return set(first_of_part.values())


def mark_best(parent: Path, step: int, score: float) -> None:
    """Record that this step's checkpoint is the best so far, for `best_checkpoint` to return."""
    path = parent / BEST
    if step not in checkpoint_steps(parent):
        raise CheckpointError(
            f"{path} cannot name step {step}: {checkpoint_path(parent, step)} does not exist"
        )
    data = json_bytes(path, {"step": step, "score": float(score)})
    try:
        durable.write_durably(path, data)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {durable.reason(error)}") from error


def best_checkpoint(parent: Path) -> tuple[int, float] | None:
    """Return the step and score of the best checkpoint, or None if none was marked."""
    path = parent / BEST
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {durable.reason(error)}") from error
    best = parsed_json(path, data)
    if {key: type(value) for key, value in best.items()} != {"step": int, "score": float}:
        raise CheckpointError(f"{path} holds {best}, expected an integer step and a fractional score")
    return best["step"], best["score"]


def _directories(parent: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of all checkpoint directories, newest first, a replaced one after its successor."""
    try:
        names = os.listdir(parent)
    except OSError as error:
        raise CheckpointError(f"no checkpoints in {parent}: {error.strerror}") from error
    matches = [match for name in names if (match := STEP_NAME.fullmatch(name))]
    found = sorted(((int(match[1]), match[2] is None, match[0]) for match in matches), reverse=True)
    return [(step, parent / name) for step, _, name in found]


def _is_valid(path: Path) -> bool:
    try:
        verified(path)
    except CheckpointError:
        return False
    return True


def _holds(path: Path, manifest: bytes) -> bool:
    """Return whether the path holds a valid checkpoint with this manifest, and so with this content."""
    try:
        return manifest_of(*verified(path)) == manifest
    except CheckpointError:
        return False


def _check_room(path: Path, size: int) -> None:
    free, needed = durable.free_bytes(path.parent), size + MARGIN_BYTES
    if free is not None and free < needed:
        raise CheckpointError(
            f"checkpoint {path} cannot be written: it needs "
            f"{durable.megabytes(needed)} of disk, {durable.megabytes(free)} are free"
        )


def _write_directory(path: Path, files: Mapping[str, bytes]) -> None:
    path.mkdir()
    for name, data in files.items():
        durable.write_new(path / name, data)
    durable.sync_directory(path)


def _move_into_place(aside: Path, path: Path) -> None:
    """Rename a finished directory to its final name.

    A directory cannot be renamed over another. An existing one is first moved to a name that
    `newest_checkpoint` also reads, so a crash between the two renames loses nothing.
    """
    replaced = path.with_name(path.name + _REPLACED)
    if os.path.lexists(path):
        os.rename(path, replaced)
        durable.sync_directory(path.parent)
    os.rename(aside, path)
    durable.sync_directory(path.parent)
    if os.path.lexists(replaced):
        durable.remove_whole(replaced)


def settle_replaced(parent: Path) -> None:
    """Finish or undo an interrupted replacement."""
    for _, replaced in _directories(parent):
        if replaced.name.endswith(_REPLACED):
            path = replaced.with_name(replaced.name.removesuffix(_REPLACED))
            if not _is_valid(path):
                if os.path.lexists(path):
                    durable.remove_whole(path)
                os.rename(replaced, path)
                durable.sync_directory(parent)
            else:
                durable.remove_whole(replaced)

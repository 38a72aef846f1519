"""The files of a checkpoint: from a `Checkpoint` to their bytes, and from a directory to a `Checkpoint`.

    weights.safetensors optimizer.safetensors …    one per group of tensors
    games.bin …                                    one per blob
    state.json                                     the rest
    manifest.json                                  size and SHA-256 of each file, and a checksum of itself

Reading trusts nothing and unpickles nothing. Each file is read once, and the bytes that were hashed are the
bytes that are parsed, so nobody can swap a file in between.

Functions that need torch load it themselves: finding checkpoints does not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from keisei.errors import UserError
from keisei.runs.durable import reason

if TYPE_CHECKING:
    import torch

FORMAT = 1
STATE, MANIFEST = "state.json", "manifest.json"
STEP_NAME = re.compile(r"step_([0-9]{12}|[1-9][0-9]{12,})(\.replaced)?")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_MANIFEST_BYTES = 1 << 20

# What safetensors and its torch bridge raise for what they cannot store or read.
UNFIT = (SafetensorError, AssertionError, KeyError, RuntimeError, TypeError, ValueError)


class CheckpointError(UserError):
    """A checkpoint that cannot be written or is invalid; the message names its path, the file and why."""


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint; the writer chooses the names.

    tensors: groups by name, each of tensors by name, of any shape; loaded ones are contiguous and on the CPU.
    blobs: bytes by name. state: anything that survives JSON unchanged.
    """

    step: int
    tensors: Mapping[str, Mapping[str, torch.Tensor]]
    blobs: Mapping[str, bytes]
    state: Mapping[str, Any]


def serialized(path: Path, checkpoint: Checkpoint) -> dict[str, bytes]:
    """Return a checkpoint's files by name, the manifest last; the path is only for messages."""
    if checkpoint.step < 0:
        raise CheckpointError(f"checkpoint {path}: step is {checkpoint.step}, expected 0 or more")
    for name in (*checkpoint.tensors, *checkpoint.blobs):
        if not _NAME.fullmatch(name):
            raise CheckpointError(f"checkpoint {path}: name {name!r}, expected {_NAME.pattern}")
    files = {f"{name}.safetensors": _stored(path, name, group) for name, group in checkpoint.tensors.items()}
    files |= {f"{name}.bin": bytes(blob) for name, blob in checkpoint.blobs.items()}
    files[STATE] = json_bytes(path / STATE, dict(checkpoint.state))
    files[MANIFEST] = manifest_of(checkpoint.step, files)
    return files


def weights_sha256(weights: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 that these weights would have as a checkpoint's file."""
    return hashlib.sha256(_stored(Path(), "weights", weights)).hexdigest()


def manifest_of(step: int, files: Mapping[str, bytes]) -> bytes:
    """Return the manifest of these files; the same content gives the same bytes."""
    return _manifest(step, {name: _entry(data) for name, data in files.items()})


def verified(path: Path) -> tuple[int, dict[str, bytes]]:
    """Return the step and the bytes of every file but the manifest, checked against the manifest."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        why = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise CheckpointError(f"checkpoint {path} cannot be opened: {why}") from error
    try:
        names = set(os.listdir(directory))
        if MANIFEST not in names:
            raise CheckpointError(f"checkpoint {path}: {MANIFEST} is missing; not a complete checkpoint")
        step, entries = _parsed_manifest(path, _read(path, directory, MANIFEST, _MAX_MANIFEST_BYTES))
        for name in sorted(names ^ {*entries, MANIFEST}):
            defect = "is missing" if name in entries else "does not belong there"
            raise CheckpointError(f"checkpoint {path}: {name} {defect}")
        files: dict[str, bytes] = {}
        for name, entry in entries.items():
            files[name] = _read(path, directory, name, entry["bytes"])
            if len(files[name]) != entry["bytes"]:
                found = f"{len(files[name])} bytes, expected {entry['bytes']}"
                raise CheckpointError(f"checkpoint {path}: {name} has {found}")
            if _entry(files[name]) != entry:
                raise CheckpointError(f"checkpoint {path}: {name} is damaged, its SHA-256 does not match")
    finally:
        os.close(directory)
    return step, files


def parsed(path: Path, step: int, files: Mapping[str, bytes]) -> Checkpoint:
    """Return the checkpoint in verified files, its tensors sorted by name."""
    import safetensors.torch

    tensors: dict[str, dict[str, torch.Tensor]] = {}
    blobs: dict[str, bytes] = {}
    for name, data in files.items():
        stem, _, kind = name.partition(".")
        if kind == "safetensors":
            try:
                tensors[stem] = dict(sorted(safetensors.torch.load(data).items()))
            except UNFIT as error:
                raise CheckpointError(f"checkpoint {path}: {name} is not safetensors: {error}") from error
        elif kind == "bin":
            blobs[stem] = data
    return Checkpoint(step, tensors, blobs, parsed_json(path / STATE, files[STATE]))


def json_bytes(path: Path, value: Mapping[str, Any]) -> bytes:
    """Return JSON that reads back as the same value; tuples and keys that are not strings are errors."""
    try:
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be written: not JSON: {error}") from error
    for key, back in json.loads(text).items():
        if key not in value or back != value[key]:
            raise CheckpointError(f"{path} cannot be written: {key!r} would be read back as {back!r}")
    return text.encode() + b"\n"


def parsed_json(path: Path, data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file's bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, expected a JSON object")
    return value


def _stored(path: Path, name: str, group: Mapping[str, torch.Tensor]) -> bytes:
    """Return a group as safetensors: contiguous, which channels_last is not, and without shared memory."""
    import safetensors.torch
    import torch

    if "__metadata__" in group:
        raise CheckpointError(
            f"checkpoint {path}: tensors {name!r}: the name __metadata__ is reserved by the format"
        )
    try:
        copies = {
            key: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for key, tensor in group.items()
        }
        return safetensors.torch.save(copies)
    except UNFIT as error:
        raise CheckpointError(f"checkpoint {path}: tensors {name!r} cannot be stored: {error}") from error


def _entry(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _manifest(step: int, entries: Mapping[str, Mapping[str, Any]]) -> bytes:
    body = {"format": FORMAT, "step": step, "files": dict(sorted(entries.items()))}
    checksum = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    return json.dumps({**body, "manifest_sha256": checksum}, indent=1).encode() + b"\n"


def _parsed_manifest(path: Path, data: bytes) -> tuple[int, dict[str, dict[str, Any]]]:
    manifest = parsed_json(path / MANIFEST, data)
    if (version := manifest.get("format")) != FORMAT:
        raise CheckpointError(
            f"checkpoint {path}: {MANIFEST} has format {version!r}, this version of keisei reads {FORMAT}"
        )
    step: Any = manifest.get("step")
    entries: Any = manifest.get("files")
    well_formed = type(step) is int and isinstance(entries, dict) and all(map(_is_entry, entries.items()))
    # Written again it must give the same bytes: that compares the checksum, and the white space too.
    if not well_formed or _manifest(step, entries) != data:
        raise CheckpointError(f"checkpoint {path}: {MANIFEST} is damaged, its checksum does not match")
    if STATE not in entries:
        raise CheckpointError(f"checkpoint {path}: {MANIFEST} does not name {STATE}")
    match = STEP_NAME.fullmatch(path.name)
    if step < 0 or (match and int(match[1]) != step):
        raise CheckpointError(f"checkpoint {path}: {MANIFEST} says step {step}, unlike the directory's name")
    return step, entries


def _is_entry(item: tuple[str, Any]) -> bool:
    """Return whether it is a file name of ours, which cannot leave the directory, with size and hash."""
    name, entry = item
    stem, _, kind = name.partition(".")
    known = name == STATE or (kind in ("safetensors", "bin") and _NAME.fullmatch(stem) is not None)
    return known and isinstance(entry, dict) and type(entry.get("bytes")) is int


def _read(path: Path, directory: int, name: str, limit: int) -> bytes:
    """Return the bytes of a regular file no longer than the limit."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its other end.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise CheckpointError(f"checkpoint {path}: {name} is not a regular file")
            if found.st_size > limit:
                raise CheckpointError(
                    f"checkpoint {path}: {name} has {found.st_size} bytes, expected {limit}"
                )
            return file.read(found.st_size)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path}: {name} cannot be read: {reason(error)}") from error
    except MemoryError as error:
        raise CheckpointError(f"checkpoint {path}: {name} does not fit into memory") from error

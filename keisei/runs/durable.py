"""Atomic files: written under a temporary name, synced to disk, then renamed.

Whatever is being written or removed has a name that starts with `.tmp-`. After a crash such leftovers are
worthless, and `sweep` removes them. Everything here raises OSError; callers translate it.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"


def write_durably(path: Path, data: bytes) -> None:
    """Write or replace a file so that a crash at any moment leaves either the old or the new content."""
    with _replacing(path) as aside:
        write_new(aside, data)
    sync_directory(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write or replace a file so that readers see it whole, whenever they look and whoever dies.

    It is not synced: if the machine crashes, it may be lost.
    """
    with _replacing(path) as aside:
        aside.write_bytes(data)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside a file that takes its place at the end, or is removed on failure."""
    aside = temporary_beside(path)
    try:
        with naming(path):
            yield aside
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet, and sync it to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Sync the content of a file to disk."""
    _sync(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to disk."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_beside(path: Path) -> Path:
    """Return a new temporary path in the same directory."""
    return path.with_name(f"{TEMPORARY}{path.name}-{secrets.token_hex(4)}")


def remove_whole(path: Path) -> None:
    """Remove a directory so that a crash midway leaves nothing under its name."""
    aside = temporary_beside(path)
    os.rename(path, aside)
    sync_directory(path.parent)
    _remove(aside)


def sweep(parent: Path) -> None:
    """Remove the leftovers of interrupted writes and removals in a directory."""
    for leftover in parent.glob(f"{TEMPORARY}*"):
        _remove(leftover)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def reserve(path: Path, size: int) -> None:
    """Make a file that takes this much space on the disk, whatever it holds; a smaller one grows."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.write(descriptor, bytes(size))
    finally:
        os.close(descriptor)


def free_bytes(path: Path) -> int | None:
    """Return the free space on a directory's disk, or None if the system does not report it."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else None


def megabytes(size: int) -> str:
    """Return a size for people, such as "77.0 MB"."""
    return f"{size / 1e6:,.1f} MB"


def is_full(error: OSError) -> bool:
    """Return whether a write has failed for want of space."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Name the file in an OSError that does not: those of writes to an open file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def reason(error: OSError) -> str:
    """Return the system's message for an error, and the file it is about."""
    return f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")

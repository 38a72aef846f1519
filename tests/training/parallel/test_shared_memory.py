"""Shared memory on systems that lack what Linux has."""

import errno
import os
import resource
from pathlib import Path

import pytest

from keisei.training.parallel.shared_memory import SharedMemory


def test_an_unlinked_file_serves_where_there_is_no_file_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    memory = SharedMemory(10_000)
    assert bytes(memory.view) == bytes(10_000)
    memory.view[9_999] = 7
    assert list(tmp_path.iterdir()) == []
    memory.close()
    assert memory.view[9_999] == 7  # who has it keeps it
    del memory
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_may_not_grow_is_an_error_by_size_and_leaves_nothing_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        with pytest.raises(
            OSError, match="cannot allocate 10,000 bytes of shared memory: File too large"
        ) as told:
            SharedMemory(10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told.value.errno == errno.EFBIG
    assert len(os.listdir("/proc/self/fd")) == before

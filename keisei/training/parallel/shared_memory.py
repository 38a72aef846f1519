"""Memory that the learner shares with its workers. It has no name, so it cannot be left behind."""

import errno
import mmap
import os
import sys
import tempfile
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any


class SharedMemory:
    """Zero-initialised memory, shared with processes that get it as an argument when they start.

    It is allocated at once: if the machine lacks memory, this raises OSError instead of a SIGBUS later. It is
    freed with the last process, or with the last array over `view`.
    """

    def __init__(self, size: int) -> None:
        self.size, self._fd = size, -1
        available = _available_bytes()
        if size > available:  # the kernel would hand out what it has and then kill some process
            raise OSError(
                errno.ENOMEM, f"{size:,} bytes of shared memory, but only {available:,} are available"
            )
        self._fd = _anonymous_file()
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, 0, size)
            else:
                os.ftruncate(self._fd, size)
            self.view = memoryview(mmap.mmap(self._fd, size))
        except OSError as error:
            self.close()
            text = f"cannot allocate {size:,} bytes of shared memory: {error.strerror}"
            raise OSError(error.errno, text) from error

    def close(self) -> None:
        """Stop sharing with new processes; those that have it keep it. A second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def __getstate__(self) -> tuple[int, Any]:
        return self.size, DupFd(self._fd)  # a descriptor valid in the process being started

    def __setstate__(self, state: tuple[int, Any]) -> None:
        self.size, duplicate = state
        self._fd = duplicate.detach()
        self.view = memoryview(mmap.mmap(self._fd, self.size))
        self.close()


def _available_bytes() -> int:
    """Return how much memory the machine can give, unlimited where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return sys.maxsize
    return next(
        (1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), sys.maxsize
    )


def _anonymous_file() -> int:
    """Return an unnamed file: in memory where the system supports that, else an unlinked one."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("keisei")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

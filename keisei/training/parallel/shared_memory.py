"""Memory that the learner shares with its workers. It has no name, so it cannot be left behind."""

import errno
import mmap
import os
import tempfile
from multiprocessing.reduction import DupFd
from typing import Any

from keisei.core.device import available_memory


class SharedMemory:
    """Zero-initialised memory, shared with processes that get it as an argument when they start.

    It is allocated at once: if the machine lacks memory, this raises OSError instead of a SIGBUS later. It is
    freed with the last process, or with the last array over `view`.
    """

    def __init__(self, size: int) -> None:
        self.size, self._fd = size, -1
        available = available_memory()
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


def _anonymous_file() -> int:
    """Return an unnamed file: in memory where the system supports that, else an unlinked one."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("keisei")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

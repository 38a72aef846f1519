"""The processes of a training as the kernel sees them: which there are, their memory and CPU seconds."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keisei.profiling.sampler import Sampler
from keisei.training.parallel.supervised_worker import resident_bytes

_PROC = Path("/proc")
_SAMPLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A learner's process and its workers', by process id."""

    learner: int
    workers: tuple[int, ...]

    def names(self) -> dict[int, str]:
        """Return a name for each process id; workers are numbered in the order in which they started."""
        return {self.learner: "learner", **{pid: f"worker {n}" for n, pid in enumerate(self.workers)}}


def process_tree(pid: int) -> ProcessTree:
    """Return the processes of the training whose learner has this process id.

    Workers are the children of the learner's fork server.
    """
    known = _parents()
    servers = [
        child for child in _children(pid, known) if "multiprocessing.forkserver" in command_line(child)
    ]
    return ProcessTree(pid, tuple(worker for server in servers for worker in _children(server, known)))


def _parents() -> dict[int, tuple[int, int]]:
    """Return the parent and the start time of every process."""
    stats = {int(path.name): _stat(int(path.name)) for path in _PROC.glob("[0-9]*")}
    return {pid: (int(fields[1]), int(fields[19])) for pid, fields in stats.items() if fields}


def _children(pid: int, known: Mapping[int, tuple[int, int]]) -> list[int]:
    """Return a process's children in the order in which they started."""
    own = [(started, child) for child, (parent, started) in known.items() if parent == pid]
    return [child for _, child in sorted(own)]


def command_line(pid: int) -> str:
    """Return the command that started a process, "" if it has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used so far; 0 if it has ended."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on; none if the process has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


class MemorySampler(Sampler):
    """The memory of processes over time.

    samples: by process id, (seconds since the start, resident bytes).
    """

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        super().__init__(_SAMPLE_SECONDS, "sample memory")
        self._pids = pids
        self._began = time.perf_counter()
        self.samples: dict[int, list[tuple[float, int]]] = {}

    def sample(self) -> None:
        """Add the memory of each process that lives."""
        seconds = time.perf_counter() - self._began
        for pid in self._pids():
            if size := resident_bytes(pid):
                self.samples.setdefault(pid, []).append((seconds, size))

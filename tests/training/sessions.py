"""Shared by the tests of runs with workers: a learner in its own session, and the processes in it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from training_runs import KEISEI

TRAPPED = [sys.executable, str(Path(__file__).with_name("trapped_train.py"))]
PATIENCE = 300.0  # seconds, for a busy machine
END_SECONDS = 30.0  # for processes to end with their learner: orphans would stay for good
Learner = subprocess.Popen[str]


def members(session: int) -> dict[int, int]:
    """Return the running processes of a session, with the parent of each."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        state, parent, _, its_session = fields[:4]
        if int(its_session) == session and state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def workers_of(learner: Learner) -> list[int]:
    """Return the worker processes: the children of the learner's fork server."""
    processes = members(learner.pid)
    return sorted(pid for pid, parent in processes.items() if processes.get(parent) == learner.pid)


def fork_server_of(learner: Learner) -> int:
    """Return the parent process of the workers."""
    return members(learner.pid)[workers_of(learner)[0]]


def named_memory() -> set[str]:
    """Return the names of shared memory on this machine that a run could have created."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("keisei", "psm_", "torch_"))}


@contextmanager
def learner(*arguments: str, cwd: Path, command: list[str] | None = None) -> Iterator[Learner]:
    """Start a training in its own session; at the end none of its processes or memory may be left."""
    memory = named_memory()
    output = (cwd / "output.txt").open("w", encoding="utf-8")
    with output, (cwd / "errors.txt").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [*(command or [KEISEI]), *arguments],
            cwd=cwd,
            stdout=output,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
            process.wait(PATIENCE)
            deadline = time.monotonic() + END_SECONDS
            while members(process.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert not members(process.pid), f"processes are left {END_SECONDS:g} s after the learner's end"
            assert named_memory() <= memory, "shared memory is left"
        finally:
            for pid in members(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE)


def output(cwd: Path) -> str:
    """The output of the last learner in a folder."""
    return (cwd / "output.txt").read_text(encoding="utf-8")


def errors(cwd: Path) -> str:
    """The error output of the last learner in a folder and its workers."""
    return (cwd / "errors.txt").read_text(encoding="utf-8")


def train(*arguments: str, cwd: Path, command: list[str] | None = None) -> int:
    """Train until the run ends, in its own session; return the exit code."""
    cwd.mkdir(exist_ok=True)
    with learner("train", *arguments, cwd=cwd, command=command) as process:
        return process.wait(PATIENCE)


def wait_for(text: str, process: Learner, cwd: Path) -> None:
    """Wait until a learner has printed something."""
    deadline = time.monotonic() + PATIENCE
    while text not in output(cwd):
        assert process.poll() is None, f"the learner ended without saying {text!r}: {errors(cwd)}"
        assert time.monotonic() < deadline, f"the learner does not say {text!r}"
        time.sleep(0.01)

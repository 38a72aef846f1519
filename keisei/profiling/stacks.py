"""Sampled call stacks: by py-spy, with native frames, or by a thread of the process itself, without.

Stacks are counted as text, outermost frame first: {"run (loop.py);learn (agent.py)": samples}. py-spy reads
the memory of other processes, which takes root, CAP_SYS_PTRACE or, under Yama's ptrace_scope 1, the
permission that `allow_tracing` gives; the thread needs nothing. Stacks that wait are left out.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from keisei.profiling.sampler import Sampler

RATE = 50  # samples a second; more makes py-spy fall behind when it unwinds torch's frames (2 cores)
_STOP_SECONDS = 60.0  # for py-spy to resolve symbols and write its file
_PR_SET_PTRACER, _PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)
_PROCESS = re.compile(r'(?:^|;)process (\d+):"')
_RECORD_END = re.compile(r'(?<=\d)\n(?=process \d+:")')
_START = re.compile(r"^0x[0-9a-f]+ \(libc\.so")  # below the program's first frame
# Innermost frames of a thread that waits for a message, a lock or the time; py-spy takes some for busy.
_WAITS = re.compile(
    r"(^|;)(_*(p?poll|p?select|epoll_wait|(clock_)?nanosleep|pthread_cond_\w*wait|futex\w*) \(libc[^;]*"
    r"|PyThread_acquire_lock_timed \([^;]*"
    r"|(wait|Condition\.wait|Event\.wait|_PollLikeSelector\.select"
    r"|WorkerEnd\.receive) \([^;]*)$"
)

Stacks = Counter[str]


def allow_tracing() -> None:
    """Let processes of the same user trace this one, where the kernel would let only its ancestors."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)  # fails where there is nothing to allow


def py_spy() -> str | None:
    """Return the path of py-spy, beside this Python or on the PATH; None if it is not installed."""
    return shutil.which("py-spy", path=sysconfig.get_path("scripts")) or shutil.which("py-spy")


class PySpy:
    """py-spy recording a process and its children, native frames included, inside the `with` block.

    seconds: when py-spy ends by itself, should nobody end it. stacks: after the block, by process id.
    problem: after the block, why there are none, "" if there are some.
    """

    def __init__(self, pid: int, folder: Path, *, seconds: int | None = None) -> None:
        self._file = folder / "py-spy.txt"
        self._log = folder / "py-spy.log"
        self._command = ["record", "--pid", str(pid), "--native", "--nolineno", "--subprocesses"]
        self._command += ["--format", "raw", "--rate", str(RATE), "--output", str(self._file)]
        self._command += ["--duration", "unlimited" if seconds is None else str(seconds)]
        self._process: subprocess.Popen[bytes] | None = None
        self.stacks: dict[int, Stacks] = {}
        self.problem = ""

    def __enter__(self) -> Self:
        program = py_spy()
        if program is None:
            self.problem = "py-spy is not installed: pip install py-spy"
            return self
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # nosec B603 # no shell, fixed arguments
                [program, *self._command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._file.is_file():
            self.stacks = parse_py_spy(self._file.read_text(encoding="utf-8", errors="replace"))
        if not self.stacks:
            said = " ".join(self._log.read_text(encoding="utf-8", errors="replace").split())
            self.problem = f"py-spy saw nothing: {said or 'it was stopped too soon'}"


def parse_py_spy(text: str) -> dict[int, Stacks]:
    """Return the stacks of each process in py-spy's raw output: `process 1:"…";process 2:"…";frame;frame 7`.

    The innermost process of a line is the one that was sampled. In quotes is its command, in which anything
    may stand, even the end of a line.
    """
    found: dict[int, Stacks] = {}
    if not text.strip():
        return found
    for record in _RECORD_END.split(text.removesuffix("\n")):
        stack, _, count = record.rpartition(" ")
        *_, last = [None, *_PROCESS.finditer(stack)]
        if last is None or not count.isdigit():
            raise ValueError(f"expected a process, frames and a count from py-spy, got {record[:80]!r}")
        _, _, after = stack[last.end() :].partition('";')
        frames = [frame for frame in after.split(";") if frame and not _START.match(frame)]
        if frames and not waits(";".join(frames)):
            found.setdefault(int(last.group(1)), Counter())[";".join(frames)] += int(count)
    return found


def waits(stack: str) -> bool:
    """Return whether the innermost frame of a stack only waits."""
    return _WAITS.search(stack) is not None


class ThreadSampler(Sampler):
    """The main thread's Python stack, sampled by another thread of the same process.

    A sample waits for the interpreter lock. Torch and the games release it while they compute, so their time
    is seen; numpy mostly does not, and its time goes to whatever runs next.
    """

    def __init__(self) -> None:
        super().__init__(1 / RATE, "sample stacks")
        self.stacks: Stacks = Counter()
        self._main = threading.main_thread().ident

    def sample(self) -> None:
        """Count the stack, unless it waits."""
        frame = sys._current_frames().get(self._main or 0)
        stack = "" if frame is None else _text(frame)
        if stack and not waits(stack):
            self.stacks[stack] += 1


def _text(innermost: FrameType) -> str:
    frames = []
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        frames.append(f"{code.co_qualname} ({_short(code.co_filename)})")
        frame = frame.f_back
    return ";".join(reversed(frames)).replace("\n", " ")


def _short(path: str) -> str:
    """Return a file's path below the directory that Python found it in: keisei/core/policy.py."""
    inside = [path.removeprefix(f"{root}{os.sep}") for root in sys.path if root and path.startswith(root)]
    return min(inside, key=len, default=Path(path).name)


def write_stacks(path: Path, stacks: Mapping[str, int]) -> None:
    """Write stacks as text, one `frame;frame;frame count` a line: what speedscope and flamegraph.pl read."""
    lines = [f"{stack} {count}\n" for stack, count in sorted(stacks.items())]
    path.write_text("".join(lines), encoding="utf-8")


def read_stacks(path: Path) -> Stacks:
    """Read what write_stacks wrote."""
    pairs = (line.rpartition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return Counter({stack: int(count) for stack, _, count in pairs})


def is_py_spy_allowed() -> bool:
    """Return whether py-spy is installed and may look at a process of ours, by trying it on this one."""
    program = py_spy()
    if program is None:
        return False
    allow_tracing()
    try:
        done = subprocess.run(  # nosec B603 # no shell, fixed arguments
            [program, "dump", "--pid", str(os.getpid())], capture_output=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0

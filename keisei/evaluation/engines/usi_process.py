"""USI engines as processes: started, queried within time limits, and ended with all their children.

Input: a command line, lines to send, the first word of the expected answer, and how long to wait for it.
Output: that answer, or an EngineError that says what went wrong. All engines are read at once, so that none
is blocked by a full pipe while another is slow. An engine that failed is killed and not used again. Whatever
an engine does, no wait outlasts its limit, and little of its output is kept.

Each engine has its own session, so that Ctrl-C does not reach it. If this process dies, the engine sees the
end of its input, on which well-behaved engines exit. Needs Linux.
"""

import contextlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

from keisei.errors import UserError

DEFAULT_MEMORY_BYTES = 4 << 30
START_SECONDS = 30.0  # some read hundreds of megabytes first
QUIT_SECONDS = 0.5

_GAMES = "/usr/games"  # where Debian puts engines; root has it not in its PATH
_LINE_BYTES = 1 << 16  # far more than the longest variation
_KEPT_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
_DRAIN_CHUNKS = 16  # more than a pipe holds
_ERROR_LINES = 5
_ERROR_BYTES = 300
_POLL_SECONDS = 0.05  # how soon an exit is noticed if a child of the engine keeps its output open
_EXIT_SECONDS = 0.5  # between the end of the output and the exit


class Fault(StrEnum):
    """The kind of failure in an EngineError."""

    START = "did not start"
    CRASH = "crashed"
    SILENCE = "silent"
    PROTOCOL = "protocol"


class EngineError(UserError):
    """A failure of an engine, which the message names. fault: its kind."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class UsiProcess:
    """A running program that speaks USI; `exchange` talks to it.

    name: for messages. command: the program, looked up in PATH and in Debian's directory of games, and its
    arguments, without a shell.
    memory_bytes: the address space limit for it and for each of its children, or None. Programs that reserve
    much more than they use, such as on a GPU or a Java VM, need None.
    """

    def __init__(
        self, name: str, command: Sequence[str], memory_bytes: int | None = DEFAULT_MEMORY_BYTES
    ) -> None:
        self.name = name
        pipe = subprocess.PIPE
        program = shutil.which(command[0]) or shutil.which(command[0], path=_GAMES) or command[0]
        try:
            self._process = subprocess.Popen(  # nosec B603 # no shell; the user names the program to run
                [program, *command[1:]],
                bufsize=0,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{name} did not start: {command[0]}: {error.strerror}"
            raise EngineError(Fault.START, reason) from error
        self._answers, self._tail = bytearray(), bytearray()
        self._errors: deque[bytes] = deque(maxlen=_ERROR_LINES)
        for stream in self._streams():
            os.set_blocking(stream.fileno(), False)
        if memory_bytes is not None:
            self._limit_memory(memory_bytes)

    @property
    def pid(self) -> int:
        """The id of the process and of its process group."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether it was killed or closed."""
        return self._process.stdout is None or self._process.stdout.closed

    def tell(self, line: str) -> None:
        """Send a line that needs no answer. If that fails, the next exchange reports why."""
        with contextlib.suppress(OSError):
            os.write(self._streams()[0].fileno(), f"{line}\n".encode())

    def kill(self) -> None:
        """Kill the process and its children at once, and close its pipes."""
        # Until the process is reaped, its id cannot become another process group's.
        if self._process.returncode is None:
            _signal_group(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel; ends when it returns
                self._process.wait(5)
        for stream in self._streams():
            stream.close()

    def close(self) -> None:
        """Ask it to quit, terminate it after half a second, and kill it after another."""
        close_all([self])

    def _streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        return process.stdin, process.stdout, process.stderr

    def _limit_memory(self, memory_bytes: int) -> None:
        # The program has just started. Any earlier would mean Python after a fork, unsafe with threads.
        try:
            _, most = resource.prlimit(self.pid, resource.RLIMIT_AS)
            limit = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
            resource.prlimit(self.pid, resource.RLIMIT_AS, (limit, limit))
        except OSError as error:  # a set-user-id program runs as another user
            self.kill()
            reason = f"{self.name} did not start: its memory cannot be limited: {error.strerror}"
            raise EngineError(Fault.START, reason) from error

    def _ended(self) -> str | None:
        """Return how the process ended, such as SIGSEGV, None while it runs; it is not reaped."""
        info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if info is None:
            return None
        if info.si_code == os.CLD_EXITED:
            return f"exit code {info.si_status}"
        try:
            return signal.Signals(info.si_status).name
        except ValueError:  # a real-time signal
            return f"signal {info.si_status}"

    def _read_errors(self, chunk: bytes) -> None:
        *lines, rest = (self._tail + chunk).split(b"\n")
        self._errors.extend(bytes(line[:_ERROR_BYTES]) for line in lines[-_ERROR_LINES:] if line.strip())
        self._tail = rest[:_ERROR_BYTES]

    def _last_error(self) -> str:
        """Return its last words on stderr, to append to a message."""
        last = bytes(self._tail).strip() or (self._errors[-1].strip() if self._errors else b"")
        return f"; it last said: {last.decode(errors='replace')}" if last else ""


@dataclass(frozen=True, slots=True)
class Request:
    """Lines to send to an engine, and the answer to wait for.

    until: the first word of that answer. seconds: the time limit for it. keep: first words of other lines to
    return.
    """

    process: UsiProcess
    lines: Sequence[str]
    until: str
    seconds: float
    keep: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer. line: the expected one. kept: others that were requested. seconds: time taken."""

    line: str
    kept: tuple[str, ...]
    seconds: float


def exchange(requests: Sequence[Request]) -> list[Reply | EngineError]:
    """Send all requests at once; return each engine's answer or failure. Engines that failed are killed."""
    talks = [_Talk(request) for request in requests]
    try:
        with selectors.DefaultSelector() as selector:
            for talk in talks:
                talk.begin(selector)
            while open_talks := [talk for talk in talks if talk.result is None]:
                wait = min(talk.deadline for talk in open_talks) - time.monotonic()
                for key, _ in selector.select(min(max(wait, 0.0), _POLL_SECONDS)):
                    talk, handle = key.data
                    if talk.result is None:  # an earlier event may have ended it
                        handle()
                for talk in open_talks:
                    talk.check()
    except BaseException:  # an engine that is still thinking would give this answer to the next question
        for talk in talks:
            talk.process.kill()
        raise
    results = []
    for talk in talks:
        assert talk.result is not None
        if isinstance(talk.result, EngineError):
            talk.process.kill()
        results.append(talk.result)
    return results


def close_all(processes: Iterable[UsiProcess]) -> None:
    """Ask these engines to quit, terminate those still running after half a second, and kill the rest."""
    running = [process for process in processes if not process.closed]
    for process in running:
        process.tell("quit")
        process._streams()[0].close()
    _wait_for_exits(running)
    for process in running:
        if process._ended() is None:
            _signal_group(process.pid, signal.SIGTERM)
    _wait_for_exits(running)
    for process in running:
        process.kill()


class _Talk:
    """A request in progress; `result` is set when it is done."""

    def __init__(self, request: Request) -> None:
        self.process = request.process
        self.result: Reply | EngineError | None = None
        self._request = request
        self._unsent = "".join(f"{line}\n" for line in request.lines).encode()
        self._until = request.until.encode()
        self._keep = {word.encode() for word in request.keep}
        self._kept: list[str] = []
        self._kept_bytes = 0
        self._closed_at: float | None = None
        self._closed_what = ""

    def begin(self, selector: selectors.BaseSelector) -> None:
        """Drop unsolicited output and start to send."""
        self._selector = selector
        self._asked = time.monotonic()
        self.deadline = self._asked + self._request.seconds
        if self.process.closed:
            self._fail(Fault.CRASH, "is no longer running")
            return
        stdin, stdout, stderr = self.process._streams()
        for _ in range(_DRAIN_CHUNKS):
            if not _read(stdout):
                break
        self.process._answers.clear()
        selector.register(stdin, selectors.EVENT_WRITE, (self, self._write))
        selector.register(stdout, selectors.EVENT_READ, (self, self._read_answers))
        selector.register(stderr, selectors.EVENT_READ, (self, self._read_errors))

    def check(self) -> None:
        """Notice an exit or a timeout."""
        if self.result is not None:
            return
        ended = self.process._ended()
        if ended is not None:
            self._hear_the_rest()
            if self.result is None:
                self._fail(Fault.CRASH, f"crashed: {ended}{self.process._last_error()}")
            return
        now = time.monotonic()
        if self._closed_at is not None and now > self._closed_at + _EXIT_SECONDS:
            self._fail(Fault.PROTOCOL, f"closed its {self._closed_what}{self.process._last_error()}")
        elif now >= self.deadline:
            seconds = self._request.seconds
            said = self.process._last_error()
            self._fail(Fault.SILENCE, f"sent no {self._request.until} within {seconds:g} s{said}")

    def _write(self) -> None:
        stdin = self.process._streams()[0]
        try:
            self._unsent = self._unsent[os.write(stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = b""
            self._note_closed("input")
        if not self._unsent:
            self._selector.unregister(stdin)

    def _read_answers(self) -> None:
        stdout = self.process._streams()[1]
        chunk = _read(stdout)
        if chunk == b"":
            self._selector.unregister(stdout)
            self._note_closed("output")
        elif chunk:
            self._hear(chunk)

    def _read_errors(self) -> None:
        stderr = self.process._streams()[2]
        chunk = _read(stderr)
        if chunk == b"":
            self._selector.unregister(stderr)
        elif chunk:
            self.process._read_errors(chunk)

    def _hear_the_rest(self) -> None:
        """Read what an exited engine left in its pipes; its children may still be writing."""
        _, stdout, stderr = self.process._streams()
        for _ in range(_DRAIN_CHUNKS):
            if self.result is None and (chunk := _read(stdout)):
                self._hear(chunk)
            if chunk := _read(stderr):
                self.process._read_errors(chunk)

    def _hear(self, chunk: bytes) -> None:
        *lines, rest = (self.process._answers + chunk).split(b"\n")
        self.process._answers = rest
        for line in lines:
            if self.result is not None:
                return
            self._hear_line(bytes(line))
        if self.result is None and len(rest) > _LINE_BYTES:
            self._fail(Fault.PROTOCOL, f"sent a line of more than {_LINE_BYTES} bytes")

    def _hear_line(self, line: bytes) -> None:
        word = line.split(maxsplit=1)[0] if line.strip() else b""
        if word == self._until:
            seconds = time.monotonic() - self._asked
            self._finish(Reply(line.decode(errors="replace").strip(), tuple(self._kept), seconds))
        elif word in self._keep:
            self._kept.append(line.decode(errors="replace").strip())
            self._kept_bytes += len(line)
            if self._kept_bytes > _KEPT_BYTES:
                self._fail(Fault.PROTOCOL, f"sent more than {_KEPT_BYTES} bytes before {self._request.until}")

    def _note_closed(self, what: str) -> None:
        if self._closed_at is None:
            self._closed_at, self._closed_what = time.monotonic(), what

    def _fail(self, fault: Fault, what: str) -> None:
        self._finish(EngineError(fault, f"{self.process.name} {what}"))

    def _finish(self, result: Reply | EngineError) -> None:
        self.result = result
        if not self.process.closed:
            for stream in self.process._streams():
                if stream in self._selector.get_map():
                    self._selector.unregister(stream)


def _read(stream: IO[bytes]) -> bytes | None:
    """Return the available bytes, b"" at the end of file, None if there are none yet."""
    try:
        return os.read(stream.fileno(), _CHUNK_BYTES)
    except BlockingIOError:
        return None


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _wait_for_exits(processes: Iterable[UsiProcess]) -> None:
    deadline = time.monotonic() + QUIT_SECONDS
    while any(process._ended() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)

"""Shared by the tests of the engine: conversations with real processes."""

import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

PATIENCE = 60.0


class Conversation:
    """An engine's process, what it has said, and when.

    wait: returns its exit code, None if it does not exit within this many seconds.
    """

    def __init__(
        self,
        pid: int,
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
        wait: Callable[[float], int | None],
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.streams = (stdin, stdout, stderr)
        self._wait = wait
        self._lines: queue.SimpleQueue[tuple[bytes, float]] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._listen, args=(stdout,), daemon=True),
            threading.Thread(target=lambda: self._errors.append(stderr.read()), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, out: Iterable[bytes]) -> None:
        for line in out:
            self._lines.put((line, time.monotonic()))
        self._lines.put((b"", time.monotonic()))

    def say(self, *lines: str | bytes) -> None:
        """Send lines."""
        self.stdin.write(
            b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        )
        self.stdin.flush()

    def hear(self, patience: float = PATIENCE) -> tuple[str, float]:
        """Return the next line, empty at the end, and its time of arrival."""
        line, at = self._lines.get(timeout=patience)
        assert line.endswith(b"\n") or not line, f"not a whole line: {line!r}"
        return line.decode("ascii").removesuffix("\n"), at

    def until(self, word: str) -> list[str]:
        """Return the lines up to the first one that begins with this word, and check that all are USI."""
        return self.until_timed(word)[0]

    def until_timed(self, word: str) -> tuple[list[str], float]:
        """Return the lines up to the first one that begins with this word, and its time of arrival."""
        lines: list[str] = []
        while True:
            line, at = self.hear()
            assert line, f"the engine ended, expected {word}: {lines} {b''.join(self._errors)!r}"
            lines.append(line)
            if line.split()[0] == word:
                return lines, at

    def ask(self, line: str, word: str) -> list[str]:
        """Send a line and return the answer up to the line that begins with this word."""
        self.say(line)
        return self.until(word)

    def ready(self) -> list[str]:
        """Return what was said before the answer to isready."""
        return self.ask("isready", "readyok")[:-1]

    def bestmove(self, *lines: str) -> str:
        """Return the answer to the last of these lines."""
        self.say(*lines)
        return self.until("bestmove")[-1]

    def state(self) -> tuple[str, dict[str, str]]:
        """Return the SFEN of the position and the values of the options."""
        self.say("d")
        while not (line := self.hear()[0]).startswith("info string position "):
            assert line.startswith("info "), line
        sfen = line.removeprefix("info string position ")
        options = self.hear()[0].removeprefix("info string options ")
        return sfen, dict(pair.split("=", 1) for pair in options.split())

    def end(self, *, close: bool = True) -> tuple[int | None, list[str], str]:
        """Return the exit code, the unread lines, and standard error."""
        if close:
            self.stdin.close()
        code = self._wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        lines = []
        while line := self.hear()[0]:
            lines.append(line)
        return code, lines, b"".join(self._errors).decode()


@contextmanager
def talk(checkpoint: Path, *options: str) -> Iterator[Conversation]:
    """Start an engine as a GUI does, and leave nothing of it behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "keisei.usi.main", str(checkpoint), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    conversation = Conversation(process.pid, process.stdin, process.stdout, process.stderr, process.wait)
    try:
        yield conversation
    finally:
        process.kill()
        process.wait(PATIENCE)
        for stream in conversation.streams:
            stream.close()


def _be_engine(checkpoint: Path, stdin: Connection, stdout: Connection, stderr: Connection) -> None:
    from keisei.usi.main import main

    for number, stream in enumerate((stdin, stdout, stderr)):
        os.dup2(stream.fileno(), number)
        stream.close()
    os._exit(main(str(checkpoint), {}))


@contextmanager
def quick_talk(checkpoint: Path) -> Iterator[Conversation]:
    """Start an engine that has torch already, forked from a server: for states, not for the start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["keisei.training.run"])  # as other tests do: the first one starts it
    ends = [context.Pipe(duplex=False) for _ in range(3)]
    (its_stdin, stdin), (stdout, its_stdout), (stderr, its_stderr) = ends
    process = context.Process(target=_be_engine, args=(checkpoint, its_stdin, its_stdout, its_stderr))
    process.start()
    for end in (its_stdin, its_stdout, its_stderr):
        end.close()

    def wait(seconds: float) -> int | None:
        process.join(seconds)
        return process.exitcode

    streams = [
        os.fdopen(os.dup(end.fileno()), mode)
        for end, mode in zip((stdin, stdout, stderr), ("wb", "rb", "rb"), strict=True)
    ]
    for end in (stdin, stdout, stderr):
        end.close()
    assert process.pid is not None
    conversation = Conversation(process.pid, streams[0], streams[1], streams[2], wait)
    try:
        yield conversation
    finally:
        process.kill()
        process.join(PATIENCE)
        for stream in streams:
            stream.close()

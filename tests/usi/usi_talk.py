"""Shared by the tests of the engine: a conversation with a real process."""

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0


class Conversation:
    """An engine's process, what it has said, and when."""

    def __init__(self, checkpoint: Path, *options: str, command: list[str] | None = None) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "keisei.usi.main", str(checkpoint), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[tuple[bytes, float]] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, errors = self.process.stdout, self.process.stderr
        self._threads = [
            threading.Thread(target=self._listen, args=(out,), daemon=True),
            threading.Thread(target=lambda: self._errors.append(errors.read()), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, out: "Iterator[bytes]") -> None:
        for line in out:
            self._lines.put((line, time.monotonic()))
        self._lines.put((b"", time.monotonic()))

    def say(self, *lines: str | bytes) -> None:
        """Send lines."""
        assert self.process.stdin is not None
        data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self, patience: float = PATIENCE) -> tuple[str, float]:
        """Return the next line, empty at the end, and when it came."""
        line, at = self._lines.get(timeout=patience)
        assert line.endswith(b"\n") or not line, f"not a whole line: {line!r}"
        return line.decode("ascii").removesuffix("\n"), at

    def until(self, word: str) -> list[str]:
        """Return the lines up to the first one that begins with this word, and check that all are USI."""
        return self.until_timed(word)[0]

    def until_timed(self, word: str) -> tuple[list[str], float]:
        """Return the lines up to the first one that begins with this word, and when that came."""
        lines = []
        while True:
            line, at = self.hear()
            assert line, f"the engine ended, expected {word}: {lines} {b''.join(self._errors)!r}"
            lines.append(line)
            if line.split()[0] == word:
                return lines, at

    def ask(self, line: str, word: str) -> list[str]:
        """Say a line and return the answer up to the line that begins with a word."""
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

    def end(self, *, close: bool = True) -> tuple[int, list[str], str]:
        """Return exit code, the lines that were not heard yet, and standard error."""
        if close:
            assert self.process.stdin is not None
            self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        lines = []
        while line := self.hear()[0]:
            lines.append(line)
        return code, lines, b"".join(self._errors).decode()


Talk = Callable[..., Conversation]


@contextmanager
def talk(checkpoint: Path, *options: str, command: list[str] | None = None) -> Iterator[Conversation]:
    """Start an engine, and leave nothing of it behind."""
    conversation = Conversation(checkpoint, *options, command=command)
    try:
        yield conversation
    finally:
        conversation.process.kill()
        conversation.end()
        for stream in (conversation.process.stdout, conversation.process.stderr):
            assert stream is not None
            stream.close()

import os
import pty
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import TextIO

import pytest

from keisei.evaluation.progress import MatchProgress

LABEL = "default@2596864 400 visits vs fairy-stockfish-depth1 with a long name"


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal of 60 columns: what writes to it, and the descriptor that reads what it shows."""
    reader, writer = pty.openpty()
    ioctl(writer, TIOCSWINSZ, pack("HHHH", 24, 60, 0, 0))
    with os.fdopen(writer, "w") as stream:
        yield stream, reader
    os.close(reader)


def test_a_line_that_is_rewritten_is_never_wider_than_the_terminal(terminal: tuple[TextIO, int]) -> None:
    stream, reader = terminal
    progress = MatchProgress(LABEL, stream)
    progress(0, 200)
    progress(10, 200)
    progress.clear()
    shown = os.read(reader, 10_000).decode().split("\r")
    assert max(map(len, shown)) < 60  # one that is full to the edge may wrap
    assert shown[1].startswith("default@2596864")
    assert shown[1].endswith("…: 0 of 200 games")
    assert ": 10 of 200 games, " in shown[2]
    assert shown[3].strip() == ""


def test_the_width_is_asked_for_each_time(terminal: tuple[TextIO, int]) -> None:
    stream, reader = terminal
    progress = MatchProgress(LABEL, stream)
    ioctl(stream.fileno(), TIOCSWINSZ, pack("HHHH", 24, 200, 0, 0))
    progress(0, 200)
    assert os.read(reader, 10_000).decode() == f"\r{LABEL}: 0 of 200 games"


def test_a_file_gets_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.evaluation.progress._SECONDS_BETWEEN_LINES", 0)
    with (tmp_path / "log").open("w") as stream:
        MatchProgress(LABEL, stream)(0, 200)
    assert (tmp_path / "log").read_text() == f"{LABEL}: 0 of 200 games\n"

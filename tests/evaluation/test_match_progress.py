import os
import pty
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import TextIO

import pytest

from keisei.evaluation.matches.match_progress import MatchProgress

LABEL = "default@2596864 400 visits vs fairy-stockfish-depth1 with a long name"


@pytest.fixture
def terminal() -> Iterator[tuple[TextIO, int]]:
    """A terminal of 60 columns: the stream to write to, and the descriptor to read its output from."""
    reader, writer = pty.openpty()
    ioctl(writer, TIOCSWINSZ, pack("HHHH", 24, 60, 0, 0))
    with os.fdopen(writer, "w") as stream:
        yield stream, reader
    os.close(reader)


def shown_on(reader: int, returns: int) -> list[str]:
    """Return a terminal's output up to this many carriage returns; it may arrive in several pieces."""
    text = ""
    while text.count("\r") < returns or not text.endswith(("\r", "games", "go")):
        text += os.read(reader, 10_000).decode()
    return text.split("\r")


def test_a_line_that_is_rewritten_is_never_wider_than_the_terminal(terminal: tuple[TextIO, int]) -> None:
    stream, reader = terminal
    progress = MatchProgress(LABEL, stream)
    progress(0, 200)
    progress(10, 200)
    progress.clear()
    shown = shown_on(reader, 4)
    assert max(map(len, shown)) < 60  # a line that fills the width may wrap
    assert shown[1].startswith("default@2596864")
    assert shown[1].endswith("…: 0 of 200 games")
    assert ": 10 of 200 games, " in shown[2]
    assert shown[3].strip() == ""


def test_the_width_is_asked_for_each_time(terminal: tuple[TextIO, int]) -> None:
    stream, reader = terminal
    progress = MatchProgress(LABEL, stream)
    ioctl(stream.fileno(), TIOCSWINSZ, pack("HHHH", 24, 200, 0, 0))
    progress(0, 200)
    assert shown_on(reader, 1) == ["", f"{LABEL}: 0 of 200 games"]


def test_a_file_gets_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.evaluation.matches.match_progress._SECONDS_BETWEEN_LINES", 0)
    with (tmp_path / "log").open("w") as stream:
        MatchProgress(LABEL, stream)(0, 200)
    assert (tmp_path / "log").read_text() == f"{LABEL}: 0 of 200 games\n"


def test_the_time_to_go_is_reckoned_from_the_games_of_this_time(terminal: tuple[TextIO, int]) -> None:
    stream, reader = terminal
    now = 100.0
    progress = MatchProgress("a vs b", stream, lambda: now)
    progress(10, 100)  # games that were played before say nothing about the speed
    now = 110.0
    progress(30, 100)
    now = 4110.0
    progress(31, 100)
    progress.clear()
    shown = shown_on(reader, 5)
    assert shown[1:4] == [
        "a vs b: 10 of 100 games",
        "a vs b: 30 of 100 games, 35 s to go",
        "a vs b: 31 of 100 games, 3.7 h to go",
    ]
    assert shown[4] == " " * len(shown[3])
    progress.clear()  # nothing is left to erase
    progress(100, 100)
    assert shown_on(reader, 1) == ["", "a vs b: 100 of 100 games, 0 s to go"]


def test_a_file_gets_a_line_now_and_then(tmp_path: Path) -> None:
    now = 100.0
    with (tmp_path / "log").open("w") as stream:
        progress = MatchProgress("a vs b", stream, lambda: now)
        for now in (100.0, 110.0, 129.0, 131.0, 140.0, 162.0):
            progress(int(now) - 100, 1000)
        progress.clear()
    assert (tmp_path / "log").read_text().splitlines() == [
        "a vs b: 31 of 1000 games, 16 min to go",
        "a vs b: 62 of 1000 games, 16 min to go",
    ]

"""How far a match has come: one line that is rewritten on a terminal, few lines in a file."""

import io

from keisei.evaluation.progress import MatchProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_with_the_time_to_go() -> None:
    now = 100.0
    stream = Terminal()
    told = MatchProgress("a vs b", stream, lambda: now)
    told(10, 100)  # games that were played before say nothing about the speed
    now = 110.0
    told(30, 100)
    now = 4110.0
    told(31, 100)
    assert stream.getvalue().split("\r")[1:] == [
        "a vs b: 10 of 100 games",
        "a vs b: 30 of 100 games, 35 s to go",
        "a vs b: 31 of 100 games, 3.7 h to go",
    ]
    told.clear()
    assert stream.getvalue().endswith(f"\r{' ' * len('a vs b: 31 of 100 games, 3.7 h to go')}\r")
    length = len(stream.getvalue())
    told.clear()
    assert len(stream.getvalue()) == length


def test_a_shorter_line_leaves_nothing_of_a_longer_one() -> None:
    stream = Terminal()
    told = MatchProgress("a vs b", stream, lambda: now)
    told(100_000, 100_001)
    told(1, 2)
    assert len(stream.getvalue().split("\r")[2]) == len("a vs b: 100000 of 100001 games")


def test_a_file_has_a_line_now_and_then() -> None:
    now = 100.0
    stream = io.StringIO()
    told = MatchProgress("a vs b", stream, lambda: now)
    for now in (100.0, 110.0, 129.0, 131.0, 140.0, 162.0):
        told(int(now) - 100, 1000)
    told.clear()
    assert (
        stream.getvalue()
        == "a vs b: 31 of 1000 games, 16 min to go\na vs b: 62 of 1000 games, 16 min to go\n"
    )

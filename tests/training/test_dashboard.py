"""The picture at many sizes: it fits, and leaves out what does not."""

import io

import pytest
from fake_run import FACTS, STEPS, UPDATES, fake_metrics
from rich.cells import cell_len
from rich.console import Console

from keisei.shogi import ShogiGame
from keisei.training.dashboard import draw
from keisei.training.progress import Progress

NOTICES = [f"notice {number}" for number in range(1, 6)]


def progress(updates: int) -> Progress:
    now = [0.0]
    told = Progress(FACTS, lambda: now[0])
    for update in range(1, updates + 1):
        now[0] += 2.0
        told.update(update * STEPS, fake_metrics(update))
    return told


def drawn(width: int, height: int, updates: int = UPDATES, board: str | None = str(ShogiGame())) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True)
    console.print(draw(progress(updates), board, NOTICES, width, height))
    return console.export_text().splitlines()


@pytest.mark.parametrize("height", [12, 14, 18, 20, 24, 29, 30, 40, 60, 90])
@pytest.mark.parametrize("width", [40, 80, 116, 117, 120, 200])
def test_it_fits_and_leaves_a_row_to_the_cursor(width: int, height: int) -> None:
    lines = drawn(width, height)
    assert len(lines) < height
    assert {cell_len(line) for line in lines if line.startswith(("│", "╭", "╰"))} == {width}


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (20, 60), (500, 3)])
@pytest.mark.parametrize("updates", [0, 1])
def test_an_odd_size_is_no_crash(size: tuple[int, int], updates: int) -> None:
    assert drawn(*size, updates=updates)


def test_a_small_terminal_shows_everything_but_the_board() -> None:
    text = "\n".join(drawn(80, 24))
    for part in ("learning", "results of 20 updates", "where the time goes", "evaluation", "notice 5"):
        assert part in text
    assert "notice 3" not in text
    assert "手数" not in text


def test_below_it_the_lower_panels_go() -> None:
    text = "\n".join(drawn(80, 15))
    assert "learning" in text
    assert "where the time goes" not in text


def test_a_board_keeps_its_shape_beside_the_panels() -> None:
    lines = drawn(120, 40)
    rank = next(line for line in lines if "|v香v桂v銀v金v玉v金v銀v桂v香|一" in line)
    frame = next(line for line in lines if "+---------------------------+" in line)
    assert cell_len(rank[: rank.index("|v香")]) == cell_len(frame[: frame.index("+---")])
    assert all(f"notice {number}" in "\n".join(lines) for number in range(1, 6))


def test_a_board_needs_117_columns_and_29_rows() -> None:
    assert all("手数" not in "".join(drawn(120, height)) for height in range(16, 29))
    assert "手数" in "".join(drawn(120, 29))
    assert "手数" not in "".join(drawn(116, 40))
    assert "手数" in "".join(drawn(117, 40))


def test_without_a_game_the_panels_take_the_room() -> None:
    lines = drawn(120, 40, board=None)
    assert "a game" not in "\n".join(lines)
    assert {cell_len(line) for line in lines if line.startswith("│")} == {120}


def test_full_hands_stay_inside_the_panel() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1")
    lines = drawn(120, 40, board=str(game))
    assert {cell_len(line) for line in lines if line.startswith("│")} == {120}
    assert "歩十八" in "".join(lines)


def test_before_the_first_update_figures_are_absent_not_wrong() -> None:
    text = "\n".join(drawn(120, 40, updates=0))
    assert "none yet" in text
    assert "– to go" in text
    assert "nan" not in text


def test_words_in_brackets_are_shown_as_they_are() -> None:
    console = Console(width=80, height=24, file=io.StringIO(), record=True)
    console.print(draw(progress(1), None, ["worker [red]3[/red] died"], 80, 24))
    assert "worker [red]3[/red] died" in console.export_text()

"""The dashboard at many sizes: it fits, and drops what does not."""

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from fake_run import FACTS, STEPS, UPDATES, fake_metrics, fake_parallel_metrics, fake_workers
from rich.cells import cell_len
from rich.console import Console

from keisei.shogi import ShogiGame
from keisei.training.dashboard import STATE_COLORS, draw
from keisei.training.metrics import OPPONENTS
from keisei.training.panel_layout import PanelLayout
from keisei.training.parallel.worker_status import State
from keisei.training.run_progress import Progress

BOARDS = [str(ShogiGame())] * 8
NOTICES = [f"notice {number}" for number in range(1, 6)]


def progress(updates: int, workers: int = 0) -> Progress:
    now = [0.0]
    told = Progress(FACTS, lambda: now[0])
    for update in range(1, updates + 1):
        now[0] += 2.0
        statuses = fake_workers(update, workers)
        metrics = fake_parallel_metrics(update, statuses) if workers else fake_metrics(update)
        told.update(update * STEPS, metrics, statuses)
    return told


def shown(
    told: Progress,
    width: int,
    height: int,
    boards: Sequence[str] = BOARDS,
    notices: Sequence[str] = NOTICES,
) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True)
    console.print(draw(told, boards, notices, width, height))
    return console.export_text().splitlines()


def drawn(
    width: int,
    height: int,
    updates: int = UPDATES,
    boards: Sequence[str] = BOARDS,
    workers: int = 0,
) -> list[str]:
    return shown(progress(updates, workers), width, height, boards)


@pytest.mark.parametrize("workers", [0, 2, 64])
@pytest.mark.parametrize("height", [12, 14, 18, 19, 20, 23, 24, 29, 30, 40, 60, 90])
@pytest.mark.parametrize("width", [40, 80, 116, 117, 120, 200])
def test_it_fits_and_leaves_a_row_to_the_cursor(width: int, height: int, workers: int) -> None:
    lines = drawn(width, height, workers=workers)
    assert len(lines) < height
    assert {cell_len(line) for line in lines if line.startswith(("│", "╭", "╰"))} == {width}


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (20, 60), (500, 3)])
@pytest.mark.parametrize("updates", [0, 1])
@pytest.mark.parametrize("workers", [0, 1, 2, 64])
def test_an_odd_size_is_no_crash(size: tuple[int, int], updates: int, workers: int) -> None:
    assert drawn(*size, updates=updates, workers=workers)


def test_a_small_terminal_shows_everything_but_the_board() -> None:
    text = "\n".join(drawn(80, 24))
    for part in ("learning", "games of 20 updates", "where the time goes", "strength", "notice 5"):
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
    lines = drawn(120, 40, boards=[])
    assert "game 1" not in "\n".join(lines)
    assert {cell_len(line) for line in lines if line.startswith("│")} == {120}


def test_full_hands_stay_inside_the_panel() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1")
    lines = drawn(120, 40, boards=[str(game)])
    assert {cell_len(line) for line in lines if line.startswith("│")} == {120}
    assert "歩十八" in "".join(lines)


def test_before_the_first_update_figures_are_absent_not_wrong() -> None:
    text = "\n".join(drawn(120, 40, updates=0))
    assert "no evaluation yet" in text
    assert "– to go" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("start", "every", "at"),
    [(0, 250_000, "250,000"), (250_000, 250_000, "500,000"), (0, 10**9, "2,000,000")],
)
def test_the_first_evaluation_is_announced(start: int, every: int, at: str) -> None:
    facts = replace(FACTS, start_step=start, total_steps=2_000_000, evaluate_every=every)
    text = f"no evaluation before move {at}"
    assert strength_lines(shown(Progress(facts, lambda: 0.0), 80, 24))[0].rstrip() == text


def test_words_in_brackets_are_shown_as_they_are() -> None:
    text = "\n".join(shown(progress(1), 80, 24, notices=["worker [red]3[/red] died"]))
    assert "worker [red]3[/red] died" in text


def strength_lines(lines: list[str]) -> list[str]:
    """The rows of the panel on the upper left, without its borders."""
    begin = next(index for index, line in enumerate(lines) if line.startswith("╭─ strength"))
    end = next(index for index in range(begin, len(lines)) if lines[index].startswith("╰"))
    return [line[1:].split("│")[0].strip() for line in lines[begin + 1 : end]]


def test_the_rating_is_first_and_every_opponent_is_shown_on_a_small_terminal() -> None:
    lines = drawn(80, 24)
    assert any(line.startswith("╭─ strength at move 204,800 ─") for line in lines)
    rating, curve, *scores = strength_lines(lines)
    assert rating == "Elo 600 (540 to 660)  before 500"
    assert len(curve) == 36
    assert (curve[0], curve[-1]) == ("▁", "█")
    assert [line.split("%")[0].split() for line in scores] == [
        ["random", "74"],
        ["greedy", "32"],
        ["alphabeta-1", "15"],
        ["best", "55"],
    ]


def test_a_large_terminal_has_a_tall_curve_and_details() -> None:
    lines = strength_lines(drawn(200, 50))
    assert lines[1].startswith("600 ")
    assert lines.index(next(line for line in lines if line.startswith("200 "))) > 10
    assert lines[-1] == "before 55 %, draws 30 %, 135 plies"
    assert strength_lines(drawn(120, 40))[-1] == lines[-1]


def test_more_opponents_than_rows_share_rows() -> None:
    told = progress(UPDATES)
    told.update(STEPS * (UPDATES + 1), {f"evaluation/{name}_score": 0.5 for name in OPPONENTS})
    text = "\n".join(strength_lines(shown(told, 80, 24)))
    assert all(f"{name} 50 %" in text for name in OPPONENTS)


def test_without_a_rating_there_are_scores_alone() -> None:
    told = Progress(FACTS, lambda: 0.0)
    told.update(STEPS, {"evaluation/greedy_score": 0.25})
    assert strength_lines(shown(told, 80, 24))[0].startswith("greedy  25 % ██")


def test_a_rating_without_bounds_is_a_gap() -> None:
    told = Progress(FACTS, lambda: 0.0)
    lost = {f"evaluation/rating{end}": -math.inf for end in ("", "_low")} | {"evaluation/rating_high": 9.0}
    told.update(STEPS, {"evaluation/random_score": 0.0, **lost})
    assert strength_lines(shown(told, 80, 24))[:2] == ["Elo below 9", ""]


@pytest.mark.parametrize("width", [80, 100, 130])
def test_a_long_notice_is_wrapped_and_not_cut(width: int) -> None:
    words = [f"word{number}" for number in range(18)]
    lines = shown(progress(1), width, 24, notices=["old", " ".join(words)])
    begin = next(index for index, line in enumerate(lines) if line.startswith("╭─ notices"))
    assert " ".join(" ".join(lines[begin + 1 : begin + 3]).replace("│", " ").split()).endswith(
        " ".join(words)
    )


def test_a_notice_without_end_says_where_the_rest_is() -> None:
    lines = shown(progress(1), 80, 24, notices=["word " * 100])
    assert lines[-2].endswith("… (see train.log) │")
    assert {cell_len(line) for line in shown(progress(1), 80, 24, notices=["将棋" * 100])[-4:]} == {80}


def test_the_screen_says_that_ctrl_c_saves() -> None:
    hint = "╰─ Ctrl-C saves; resume with: keisei train --resume runs/2026-05-01_120000 ─"
    assert drawn(80, 24)[-1].startswith(hint)
    assert drawn(200, 50)[-1].startswith(hint)
    assert drawn(80, 18)[0].startswith("Keisei 形勢  Ctrl-C saves  runs/")


def test_a_large_terminal_shows_more_games_and_uses_every_row() -> None:
    lines = drawn(200, 50)
    text = "\n".join(lines)
    assert [f"game {number} ─" in text for number in range(1, 6)] == [True] * 4 + [False]
    assert len(lines) == 49
    few = "\n".join(drawn(200, 50, boards=BOARDS[:1]))
    assert few.count("手数") == 1
    assert [len(drawn(120, height)) for height in range(24, 60)] == list(range(23, 59))


def worker_lines(lines: list[str]) -> list[str]:
    """The rows of the workers' panel without its borders, at a width without a board."""
    begin = next(index for index, line in enumerate(lines) if line.startswith("╭─ workers"))
    end = next(index for index in range(begin, len(lines)) if lines[index].startswith("╰"))
    return [line.strip("│ ") for line in lines[begin + 1 : end]]


def test_workers_have_a_row_each_also_on_a_small_terminal() -> None:
    lines = drawn(80, 24, workers=2)
    bars = "█" * 14 + "▍", "███▊" + " " * 11
    assert worker_lines(lines) == [
        f"0 playing    {bars[0]} 96 % 102k moves 875 games v49 0 restarts 412 MB",
        f"1 restarting {bars[1]} 25 % 102k moves 875 games v49 2 restarts      –",
    ]
    text = "\n".join(lines)
    assert "╭─ workers 1/2, queue 1.5, lag 0.2 (max 1), discarded 384 ─" in text
    assert "╰─ weights v50, sync 4.2 ms, 346 kB, inference 64 %, env 21 %, sampling 12 % ─" in text
    for part in ("learning", "games of 20 updates", "where the time goes", "strength", "notice 5"):
        assert part in text
    assert "collect" in text


def test_the_document_shows_the_panel_as_it_is_drawn() -> None:
    lines = drawn(80, 24, workers=2)
    begin = next(index for index, line in enumerate(lines) if line.startswith("╭─ workers"))
    document = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert "\n".join(["```", *lines[begin : begin + 4], "```"]) in document.read_text(encoding="utf-8")


def test_without_workers_there_is_no_panel_of_them() -> None:
    text = "\n".join(drawn(120, 60))
    assert "workers" not in text
    assert "collect" not in text
    assert "synchronize" not in text


def test_workers_that_do_not_fit_are_counted() -> None:
    assert worker_lines(drawn(80, 24, workers=13))[-1] == "… and 12 more: 11 playing, 1 restarting"
    lines = worker_lines(drawn(80, 40, workers=64))
    assert [line.split()[0] for line in lines] == [*map(str, range(8)), "…"]
    assert lines[-1] == "… and 56 more: 55 playing, 1 restarting"
    assert worker_lines(drawn(80, 20, workers=2)) == ["2 workers: 1 playing, 1 restarting"]


def test_as_many_workers_as_there_are_rows_are_all_shown() -> None:
    rows = PanelLayout.of(80, 40, 64).worker_rows - 2
    assert len(worker_lines(drawn(80, 40, workers=rows))) == rows
    assert "more" not in "".join(drawn(80, 40, workers=rows))
    assert "… and 2 more" in "".join(drawn(80, 40, workers=rows + 1))


def test_many_workers_take_the_rows_of_the_board() -> None:
    assert "手数" in "".join(drawn(120, 29, workers=2))
    assert "手数" not in "".join(drawn(120, 29, workers=16))
    assert "手数" not in "".join(drawn(120, 33, workers=64))
    assert "手数" in "".join(drawn(120, 34, workers=64))


def test_many_workers_leave_the_other_panels_their_place() -> None:
    for height in range(24, 70):
        plan = PanelLayout.of(80, height, 1000)
        assert plan.lower_rows >= 5
        assert plan.notice_rows >= 1
        assert plan.worker_rows >= 4


def test_the_workers_panel_needs_20_rows() -> None:
    assert "workers" not in "".join(drawn(80, 19, workers=2))
    assert "workers" in "".join(drawn(80, 20, workers=2))
    assert PanelLayout.of(80, 19, 2) == PanelLayout.of(80, 19)


def test_a_narrow_panel_leaves_out_the_last_figures() -> None:
    first, last = worker_lines(drawn(40, 30, workers=2))
    assert first == "0 playing    ██████▊ 96 % 102k moves"
    assert last == "1 restarting █▊      25 % 102k moves"


def test_a_wide_panel_has_no_endless_bars() -> None:
    first, _ = worker_lines(drawn(200, 40, boards=[], workers=2))
    assert first == f"0 playing    {'█' * 28}▊  96 % 102k moves 875 games v49 0 restarts 412 MB"


def test_large_figures_fit_into_80_columns() -> None:
    told = progress(1, 2)
    large = replace(
        told.workers[0],
        worker=63,
        utilization=1.0,
        steps=99_900_000,
        games=99_900,
        weights_version=12_345,
        restarts=12,
        memory_bytes=99_900_000,
    )
    told.update(STEPS, {}, [large])
    (line,) = worker_lines(shown(told, 80, 24))
    assert line == "63 playing    █████ 100 % 99.9M moves 99.9k games v12345 12 restarts 99.9 MB"


def test_figures_of_the_collection_that_are_absent_are_not_wrong() -> None:
    told = progress(1, 2)
    told.update(STEPS, {}, told.workers)
    text = "\n".join(shown(told, 80, 24))
    assert "╭─ workers –/2, queue –, lag – (max –), discarded – ─" in text
    assert "╰─ weights v–, sync – ms, – ─" in text


def test_moves_that_the_learner_played_itself_are_told() -> None:
    told = progress(1, 2)
    told.update(STEPS, {"parallel/active_workers": 0.0, "parallel/serial_steps": 4096.0}, told.workers)
    text = "\n".join(shown(told, 80, 24))
    assert "╭─ workers 0/2, " in text
    assert "╰─ learner played 4,096, weights " in text


def test_every_state_of_a_worker_has_a_color() -> None:
    assert set(STATE_COLORS) == set(get_args(State))


def test_a_long_phase_keeps_its_distance_from_its_share() -> None:
    told = Progress(FACTS, lambda: 0.0)
    told.update(STEPS, {"time/synchronize": 1.0})
    assert "synchronize 100 % " in "\n".join(shown(told, 80, 24))

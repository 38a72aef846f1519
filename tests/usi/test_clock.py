import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.shogi import Color
from keisei.usi.clock import Control, seconds_to_think
from keisei.usi.protocol import Limits

MILLISECONDS = st.none() | st.integers(0, 10**7)
DELAY = 100


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (Limits(), None),
        (Limits(nodes=5, depth=3), None),
        (Limits(infinite=True, clocks=(1, 1), byoyomi=5), None),
        (Limits(movetime=1100), 1.0),
        (Limits(clocks=(0, 0), byoyomi=1100), 1.0),
        (Limits(byoyomi=1100), 1.0),
        (Limits(byoyomi=1100, movetime=600), 0.5),
        (Limits(clocks=(30_000, 1)), 0.9),  # a thirtieth of what is left
        (Limits(clocks=(30_000, 1), byoyomi=1000), 1.9),
        (Limits(clocks=(30_000, 1), increments=(1000, 5)), 1.9),
        (Limits(clocks=(300, 1), increments=(1000, 5)), 0.2),  # the increment may come after the move
        (Limits(clocks=(0, 1), increments=(1000, 5)), 0.9),
        (Limits(clocks=(-50, 1), byoyomi=200), 0.1),
        (Limits(byoyomi=80), 0.02),  # less than the delay: a quarter of it
        (Limits(clocks=(0, 0), byoyomi=0), 0.0),
        (Limits(clocks=(-50, -50)), 0.0),
    ],
)
def test_time_to_think(limits: Limits, seconds: float | None) -> None:
    assert seconds_to_think(limits, Color.BLACK, DELAY) == pytest.approx(seconds)


def test_each_side_has_its_own_clock() -> None:
    limits = Limits(clocks=(30_000, 60_000), increments=(0, 500))
    assert seconds_to_think(limits, Color.BLACK, DELAY) == pytest.approx(0.9)
    assert seconds_to_think(limits, Color.WHITE, DELAY) == pytest.approx(2.4)


@given(MILLISECONDS, MILLISECONDS, MILLISECONDS, MILLISECONDS, st.integers(0, 10_000))
def test_no_more_is_taken_than_there_is(
    clock: int | None, increment: int | None, byoyomi: int | None, movetime: int | None, delay: int
) -> None:
    limits = Limits(clocks=(clock, None), increments=(increment, None), byoyomi=byoyomi, movetime=movetime)
    seconds = seconds_to_think(limits, Color.BLACK, delay)
    if seconds is None:
        assert (clock, movetime) == (None, None)
        assert not byoyomi
        assert not increment
    else:
        there_is = [(clock or 0) + (byoyomi or 0) or increment or 0] if clock or byoyomi or increment else []
        there_is += [movetime] if movetime is not None else []
        most = min(there_is, default=0) / 1000
        assert 0 <= seconds <= max(most - delay / 1000, most / 4) + 1e-9


def test_a_clock_alone_lasts_for_a_long_game() -> None:
    left = 60_000.0
    for _ in range(150):
        seconds = seconds_to_think(Limits(clocks=(int(left), 0)), Color.BLACK, 120)
        assert seconds is not None
        left -= 1000 * seconds + 2  # for the way to the GUI
        assert left > 0


def test_the_next_step_must_end_in_time_as_well() -> None:
    control = Control(time.monotonic(), 0.5, waits=False)
    steps = 0
    while not control.over():
        time.sleep(0.2)
        steps += 1
    assert steps == 2  # a third would end at 0.6 s


def test_a_pause_is_no_step() -> None:
    control = Control(time.monotonic(), 1.0, waits=False)
    assert not control.over()
    control.pause()
    time.sleep(0.55)
    assert not control.over()


def test_the_clock_runs_from_the_hit() -> None:
    control = Control(time.monotonic() - 100, 1.0, waits=True)
    assert control.waits
    assert not control.over()
    control.hit(time.monotonic(), 30.0)
    assert not control.over()
    assert not control.waits
    control.hit(time.monotonic() - 40, 30.0)
    assert control.over()

"""The clock of a table: main time first, then byoyomi anew for each move."""

import pytest

from keisei.shogi import Color
from keisei.web.table_clock import TableClock


class Time:
    """The time, which passes when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def passes(self, seconds: float) -> None:
        self.seconds += seconds


def test_main_time_is_used_by_the_side_to_move_alone() -> None:
    time = Time()
    clock = TableClock(2.0, 10.0, now=time)
    assert (clock.until_flag(), clock.facts()["running"]) == (None, None)
    clock.run(Color.BLACK)
    time.passes(30)
    assert clock.until_flag() == pytest.approx(100)
    assert (clock.main_time(Color.BLACK), clock.main_time(Color.WHITE)) == pytest.approx((90, 120))
    clock.run(Color.WHITE)
    time.passes(5)
    assert clock.facts() == {
        "black_ms": 90_000,
        "white_ms": 115_000,
        "byoyomi_ms": 10_000,
        "byoyomi_left_ms": 10_000,
        "running": "white",
    }
    clock.run(None)
    time.passes(1000)
    assert (clock.main_time(Color.BLACK), clock.main_time(Color.WHITE)) == pytest.approx((90, 115))


def test_byoyomi_begins_anew_with_each_move() -> None:
    time = Time()
    clock = TableClock(1.0, 10.0, now=time)
    clock.run(Color.BLACK)
    time.passes(67)
    assert (clock.facts()["black_ms"], clock.facts()["byoyomi_left_ms"]) == (0, 3_000)
    clock.run(Color.WHITE)
    clock.run(Color.BLACK)
    assert (clock.facts()["black_ms"], clock.facts()["byoyomi_left_ms"]) == (0, 10_000)
    time.passes(11)
    assert clock.until_flag() == pytest.approx(-1)
    assert clock.facts()["byoyomi_left_ms"] == 0

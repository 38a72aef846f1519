"""PhaseClock: all time is in some phase, and none of it in two."""

import time

import pytest

from keisei.core.phase_clock import PhaseClock


class Hands:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def move_and_fail(self, seconds: float) -> None:
        self.now += seconds
        raise KeyError


@pytest.fixture
def hands() -> Hands:
    return Hands()


def test_seconds_are_counted_by_phase_and_the_rest_is_other(hands: Hands) -> None:
    clock = PhaseClock(hands)
    hands.now += 1
    for seconds in (2, 4):
        with clock("env"):
            hands.now += seconds
    with clock("update"):
        hands.now += 8
    hands.now += 16
    assert clock.lap() == {"env": 6, "update": 8, "other": 17}
    hands.now += 3
    assert clock.lap() == {"other": 3}


def test_a_phase_inside_another_counts_as_the_outer_one(hands: Hands) -> None:
    clock = PhaseClock(hands)
    with clock("evaluation"):
        hands.now += 1
        with clock("env"):
            hands.now += 2
        hands.now += 4
    with clock("env"):
        hands.now += 8
    assert clock.lap() == {"evaluation": 7, "env": 8, "other": 0}


def test_a_phase_that_raises_is_counted_and_left(hands: Hands) -> None:
    clock = PhaseClock(hands)
    with pytest.raises(KeyError), clock("env"):
        hands.move_and_fail(2)
    with clock("update"):
        hands.now += 1
    assert clock.lap() == {"env": 2, "update": 1, "other": 0}


def test_real_time_passes() -> None:
    clock = PhaseClock()
    with clock("sleep"):
        time.sleep(0.01)
    assert clock.lap()["sleep"] >= 0.01

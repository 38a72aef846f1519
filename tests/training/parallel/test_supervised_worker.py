"""SupervisedWorker: when the next process is started, and when the worker is given up."""

import os
import signal
from multiprocessing.process import BaseProcess

import pytest

from keisei.training.parallel.communication import Activity
from keisei.training.parallel.supervised_worker import (
    SupervisedWorker,
    Supervision,
    cause_of_death,
    resident_bytes,
)

LIMITS = Supervision(
    restarts=3,
    window_seconds=100.0,
    first_backoff_seconds=1.0,
    longest_backoff_seconds=4.0,
    retry_seconds=30.0,
    start_seconds=20.0,
)


class Clock:
    """A clock that advances only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A worker and its clock; processes are just names here."""

    def __init__(self, limits: Supervision = LIMITS) -> None:
        self.clock = Clock()
        self.worker = SupervisedWorker(0, limits, self.clock)

    def start(self, *, deliver: bool = False) -> None:
        self.worker.started(BaseProcess())
        self.worker.is_ready()
        if deliver:
            self.worker.has_delivered = True

    def end(self) -> float | None:
        return self.worker.ended()

    def silent(self, beats: int, seconds: float, timeout: float = 5.0) -> bool:
        """Advance the clock in tenths of a second, checking each time; whether it was silent for too long."""
        for _ in range(round(seconds * 10)):
            self.clock.now += 0.1
            if self.worker.is_silent(beats, timeout):
                return True
        return False


def test_backoff_doubles_while_nothing_is_delivered() -> None:
    bench = Bench(Supervision(restarts=100, first_backoff_seconds=1.0, longest_backoff_seconds=5.0))
    waits = []
    for _ in range(5):
        bench.start()
        waits.append(bench.end())
    assert waits == [1, 2, 4, 5, 5]
    bench.start(deliver=True)
    assert bench.end() == 1
    bench.start()
    assert bench.end() == 1
    bench.start()
    assert bench.end() == 2


def test_a_process_is_due_when_its_backoff_is_over() -> None:
    bench = Bench()
    assert bench.worker.is_due()
    bench.start()
    assert not bench.worker.is_due()
    assert bench.end() == 1
    assert (bench.worker.phase, bench.worker.process) == ("restarting", None)
    assert not bench.worker.is_due()
    bench.clock.now += 0.9
    assert not bench.worker.is_due()
    bench.clock.now += 0.1
    assert bench.worker.is_due()


def test_beyond_the_budget_it_is_given_up_and_tried_again_later() -> None:
    bench = Bench()
    for incarnation in (0, 1, 2):
        bench.start(deliver=True)
        assert bench.end() is not None
        assert bench.worker.incarnation == incarnation
    bench.start(deliver=True)
    assert bench.end() is None
    assert bench.worker.phase == "given up"
    assert not bench.worker.can_be_relied_on()
    bench.clock.now += 29.9
    assert not bench.worker.is_due()
    bench.clock.now += 0.1
    assert bench.worker.is_due()


def test_restarts_long_ago_do_not_count() -> None:
    bench = Bench()
    for _ in range(20):
        bench.start(deliver=True)
        assert bench.end() is not None
        bench.clock.now += 34
    for wait in (1, None):  # two within the last hundred seconds, and these
        bench.start()
        assert bench.end() == wait


def test_one_on_trial_is_relied_on_when_it_is_ready_and_given_up_at_once_if_it_ends_before() -> None:
    bench = Bench(Supervision(restarts=0, retry_seconds=30))
    bench.start()
    assert bench.end() is None
    bench.clock.now += 1000
    bench.worker.started(BaseProcess())
    assert bench.worker.on_trial
    assert not bench.worker.can_be_relied_on()
    assert bench.end() is None
    bench.worker.started(BaseProcess())
    bench.worker.is_ready()
    assert bench.worker.can_be_relied_on()
    assert not bench.worker.on_trial


def test_one_on_trial_has_no_restarts_although_the_old_ones_are_forgotten() -> None:
    bench = Bench(Supervision(restarts=1, window_seconds=10))
    bench.start()
    bench.end()
    bench.start()
    assert bench.end() is None
    bench.clock.now += 100
    bench.worker.started(BaseProcess())
    assert bench.end() is None


def test_a_new_process_begins_afresh() -> None:
    bench = Bench()
    for incarnation in range(3):
        bench.start()
        assert (bench.worker.incarnation, bench.worker.has_delivered) == (incarnation, False)
        bench.worker.has_delivered = True
        bench.end()


def test_it_tells_how_long_it_was_without_a_process() -> None:
    bench = Bench()
    bench.worker.started(BaseProcess())
    assert bench.worker.is_ready() is None
    bench.end()
    bench.clock.now += 1.5
    bench.worker.started(BaseProcess())
    bench.clock.now += 1
    assert bench.worker.is_ready() == 2.5


def test_silence_beyond_the_timeout_is_noticed_and_a_sign_of_life_ends_it() -> None:
    bench = Bench()
    bench.start()
    assert not bench.silent(0, 4.8)
    assert not bench.silent(1, 4.8)
    assert not bench.silent(2, 4.8)
    assert bench.silent(2, 0.4)


def test_one_that_starts_may_be_silent_for_longer() -> None:
    bench = Bench()
    bench.worker.started(BaseProcess())
    assert not bench.silent(0, 19.8)
    assert bench.silent(0, 0.4)


def test_silence_at_the_start_is_not_held_against_one_that_is_ready() -> None:
    bench = Bench()
    bench.worker.started(BaseProcess())
    assert not bench.silent(0, 15)
    bench.worker.is_ready()
    assert not bench.silent(0, 4.8)
    assert bench.silent(0, 0.4)


def test_silence_of_the_one_before_is_not_held_against_the_next() -> None:
    bench = Bench()
    bench.start()
    assert not bench.silent(7, 4.8)
    bench.end()
    bench.clock.now += 100
    bench.start()
    assert not bench.silent(7, 4.8)


def test_a_learner_that_slept_does_not_blame_the_worker() -> None:
    bench = Bench()
    bench.start()
    assert not bench.worker.is_silent(3, 5.0)
    bench.clock.now += 1000
    assert not bench.worker.is_silent(3, 5.0)
    bench.clock.now += 1000
    assert not bench.worker.is_silent(3, 5.0)


def test_the_state_is_a_word() -> None:
    bench = Bench()
    assert bench.worker.state(Activity.PLAYING) == "restarting"
    bench.worker.started(BaseProcess())
    assert bench.worker.state(Activity.PLAYING) == "starting"
    bench.worker.is_ready()
    words = [bench.worker.state(activity) for activity in Activity]
    assert words == ["starting", "waiting", "playing", "paused", "learning"]


@pytest.mark.parametrize(
    ("exitcode", "words"),
    [
        (None, "it closed its channel"),
        (0, "exit code 0"),
        (1, "exit code 1"),
        (-signal.SIGKILL, "SIGKILL, probably out of memory"),
        (-signal.SIGBUS, "SIGBUS"),
        (-99, "signal 99"),
    ],
)
def test_the_cause_of_death_in_words(exitcode: int | None, words: str) -> None:
    assert cause_of_death(exitcode) == words


def test_resident_memory_is_known_of_a_process_that_is_there() -> None:
    assert resident_bytes(os.getpid()) > 10_000_000
    assert resident_bytes(None) == 0
    assert resident_bytes(2**22 + 1) == 0

"""ProfileClock: wall and CPU seconds of the same phases, and every lap kept."""

import time

from keisei.profiling.profile_clock import ProfileClock, total


def test_sleeping_takes_wall_time_and_hardly_any_cpu_and_computing_takes_both() -> None:
    clock = ProfileClock()
    with clock("sleep"):
        time.sleep(0.3)
    with clock("compute"):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
    clock.lap()
    (lap,) = clock.laps
    assert lap.wall["sleep"] >= 0.3
    assert lap.cpu["sleep"] < 0.1
    assert lap.cpu["compute"] >= 0.1
    assert lap.wall["compute"] >= lap.cpu["compute"] * 0.9


def test_laps_follow_each_other_without_a_gap_and_each_has_its_own_seconds() -> None:
    clock = ProfileClock()
    with clock("a"):
        time.sleep(0.01)
    returned = clock.lap()
    with clock("b"):
        pass
    clock.lap()
    first, second = clock.laps
    assert returned == first.wall
    assert set(first.wall) == set(first.cpu) == {"a", "other"}
    assert set(second.wall) == {"b", "other"}
    assert first.began < first.ended == second.began <= second.ended


def test_a_phase_inside_another_counts_as_the_outer_one_in_both() -> None:
    clock = ProfileClock()
    with clock("outer"), clock("inner"):
        pass
    clock.lap()
    assert set(clock.laps[0].wall) == set(clock.laps[0].cpu) == {"outer", "other"}


def test_the_total_has_the_longest_phase_first_and_other_last() -> None:
    summed = total([{"a": 1.0, "other": 9.0}, {"b": 4.0, "a": 2.0}])
    assert list(summed.items()) == [("b", 4.0), ("a", 3.0), ("other", 9.0)]
    assert total([]) == {}

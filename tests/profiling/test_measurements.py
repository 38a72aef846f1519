"""The arithmetic of a profile, and reports that are read back or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from profile_samples import PROFILE, changed

from keisei.profiling.instruments import Record
from keisei.profiling.measurements import (
    ProfileError,
    read_profile,
    timeline,
    times_in,
    window,
    write_profile,
)
from keisei.profiling.profile_clock import Lap


def lap(began: float, ended: float, **wall: float) -> Lap:
    return Lap(began, ended, wall, {phase: seconds / 2 for phase, seconds in wall.items()})


LEARNER = Record(
    "learner", 1, [lap(0, 5), lap(5, 7, update=2.0), lap(7, 8, update=1.0), lap(8, 10, update=2.0)]
)


def test_start_up_and_the_first_update_are_left_out() -> None:
    part = window(LEARNER)
    assert (part.began, part.ended, part.skipped) == (7, 10, 1)


def test_a_single_update_is_measured_all_the_same() -> None:
    part = window(Record("learner", 1, LEARNER.laps[:2]))
    assert (part.began, part.ended, part.skipped) == (5, 7, 0)


def test_a_process_counts_the_laps_that_ended_in_the_measured_part() -> None:
    worker = Record(
        "worker 0", 2, [lap(5, 7, env=1.0), lap(7, 7.5, env=0.5), lap(7.5, 10, env=2.0), lap(10, 11, env=1.0)]
    )
    times = times_in(worker, window(LEARNER))
    assert times.wall == {"env": 2.5}
    assert times.cpu == {"env": 1.25}


def test_collecting_is_split_into_what_the_workers_did_and_the_rest_is_hand_over() -> None:
    learner = {"collect": 10.0, "update": 30.0}
    workers = [{"inference": 6.0, "env": 1.0, "wait": 33.0}, {"inference": 8.0, "env": 1.0, "wait": 31.0}]
    found = timeline(learner, workers)
    assert found == {"update": 30.0, "inference": 7.0, "collect": 2.0, "env": 1.0}
    assert list(found) == ["update", "inference", "collect", "env"]


def test_workers_that_play_during_the_update_cannot_take_more_than_the_learner_waited() -> None:
    found = timeline({"collect": 1.0, "update": 9.0}, [{"inference": 6.0, "env": 2.0}])
    assert found == pytest.approx({"update": 9.0, "inference": 0.75, "env": 0.25})
    assert sum(found.values()) == pytest.approx(10.0)


def test_without_workers_the_timeline_is_the_learners() -> None:
    assert timeline({"inference": 1.0, "update": 3.0}, []) == {"update": 3.0, "inference": 1.0}


def test_a_profile_is_read_back_from_its_folder_and_its_file(tmp_path: Path) -> None:
    file = write_profile(tmp_path, PROFILE)
    for path in (tmp_path, file):
        again = read_profile(path)
        assert again.timeline == PROFILE.timeline
        assert again.processes == PROFILE.processes
        assert again.functions == {"learner": [*PROFILE.functions["learner"]]}
        assert again.moves_per_second == 500
        assert again.cpu_seconds == 2.4
        assert again.microseconds("update") == 1200
        assert again.skipped == 1


def test_a_report_from_before_skipped_updates_were_kept_is_read(tmp_path: Path) -> None:
    file = write_profile(tmp_path, PROFILE)
    data = json.loads(file.read_text())
    del data["skipped"]
    file.write_text(json.dumps(data))
    assert read_profile(file).skipped == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no JSON", "cannot be read"),
        ("[]", "not a profile of format 1"),
        ('{"format": 2}', "not a profile of format 1"),
        ('{"format": 1}', "not a profile of format 1"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_by_name(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ProfileError, match=reason) as refused:
        read_profile(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    "nothing",
    [
        {"moves": 0},
        {"seconds": 0.0},
        {"seconds": float("inf")},
        {"timeline": {}},
        {"timeline": {"update": 0.0}},
        {"timeline": {"update": float("nan")}},
    ],
)
def test_a_profile_that_measured_nothing_is_refused(tmp_path: Path, nothing: dict[str, Any]) -> None:
    path = write_profile(tmp_path, changed(**nothing))
    with pytest.raises(ProfileError, match="measured no moves"):
        read_profile(path)
    assert read_profile(write_profile(tmp_path, changed(moves=1, seconds=0.5))).moves_per_second == 2


def test_a_damaged_profile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    data = json.loads(write_profile(tmp_path, PROFILE).read_text())
    faults: list[dict[str, Any]] = [{"processes": [{"nonsense": 1}]}, {"numerics": None}, {"provenance": []}]
    for damaged in faults:
        path.write_text(json.dumps({**data, **damaged}))
        with pytest.raises(ProfileError, match="is not a profile"):
            read_profile(path)
    with pytest.raises(ProfileError, match="cannot be read"):
        read_profile(tmp_path / "missing.json")

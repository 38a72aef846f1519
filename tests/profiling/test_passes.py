"""What the passes left behind, and what is said of workers that died."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from keisei.config.files import load_config
from keisei.core.numerics import Numerics
from keisei.profiling.instruments import Record
from keisei.profiling.passes import Recorded, notes_of, run_pass
from keisei.profiling.processes import process_tree
from keisei.profiling.profile import settings_for

NO_RECORD = "1 of 2 workers left no record: killed before they could write; what they did is not counted"
REPLACED = (
    "worker 0, process 1, is a replacement: what its worker did before is not counted, so the workers' part "
    "is too small"
)


def recorded(*workers: str, notices: tuple[str, ...] = ()) -> Recorded:
    records = [Record(name, 10 + pid, []) for pid, name in enumerate(("learner", *workers))]
    return Recorded(records, [], {}, [], Numerics(), list(notices))


BOTH = recorded("worker 0", "worker 1")


@pytest.mark.parametrize(
    ("phases", "functions", "expected"),
    [
        (BOTH, BOTH, []),
        (recorded("worker 1"), BOTH, [f"phases: {NO_RECORD}"]),
        (BOTH, recorded("worker 1"), [f"functions: {NO_RECORD}"]),
        (recorded("worker 0, process 1", "worker 1"), BOTH, [f"phases: {REPLACED}"]),
        (BOTH, recorded("worker 0, process 1"), [f"functions: {NO_RECORD}", f"functions: {REPLACED}"]),
    ],
)
def test_a_worker_that_died_is_reported_with_its_pass(
    phases: Recorded, functions: Recorded, expected: list[str]
) -> None:
    assert notes_of({"phases": phases, "functions": functions, "kernels": recorded()}, 2) == expected


def test_what_several_passes_notice_is_said_once_with_their_names() -> None:
    twice = recorded(notices=("slow", "slow"))
    found = notes_of({"phases": twice, "native_stacks": recorded(notices=("slow", "torn"))}, 0)
    assert found == ["phases, native stacks: slow", "native stacks: torn"]


@pytest.mark.parallel
def test_a_worker_killed_midway_leaves_a_note(tmp_path: Path) -> None:
    config = settings_for(load_config("tiny"), "parallel", 1, 200 * 512, evaluation=False)
    config.training.max_minutes = 4 / 60

    def kill() -> None:
        while not (workers := process_tree(os.getpid()).workers):
            time.sleep(0.05)
        os.kill(workers[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = run_pass(config, "phases", tmp_path / "phases")
    killer.join()
    notes = notes_of({"phases": found}, 1)
    assert f"phases: {REPLACED}" in notes
    assert any(note.startswith("phases: worker 0 died (SIGKILL") for note in notes)

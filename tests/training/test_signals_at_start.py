"""A signal at any moment of the start ends a run at once, without a traceback and without a process left."""

import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from sessions import PATIENCE, Learner, errors, learner, output

TRIES = 12
START_SECONDS = 4.0  # from the command to the first update, and more, with ten workers on two cores
SETTINGS = [
    "run.name=first",
    "training.parallel.enabled=true",
    "training.parallel.num_workers=10",
    "training.parallel.episodes_per_worker=4",
]


def handles_signals(process: Learner) -> bool:
    """Return whether Python has started and the command has begun to load."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parallel
@pytest.mark.parametrize("number", range(TRIES))
def test_a_signal_at_a_random_moment_of_the_start(tmp_path: Path, number: int) -> None:
    moments = random.Random(number)
    signum = (signal.SIGINT, signal.SIGTERM)[number % 2]
    with learner("train", *SETTINGS, cwd=tmp_path) as process:
        while not handles_signals(process):
            time.sleep(0.001)
        time.sleep(moments.uniform(0, START_SECONDS))
        process.send_signal(signum)
        sent = time.monotonic()
        assert process.wait(PATIENCE) == 128 + signum
        assert time.monotonic() - sent < 30
    assert errors(tmp_path) == ""
    run = tmp_path / "runs" / "first"
    if run.exists():
        assert list(run.glob("checkpoints/step_*")), "half a run is left"
        end = output(tmp_path).partition(f"\nstopped by {signal.Signals(signum).name}; resume with: ")[2]
        moves = re.search(
            r"^trained on ([\d,]+) moves of [\d,]+ games so far, stopped after \d+:\d\d$", end, re.M
        )
        assert moves, output(tmp_path)
        # Before an update there is nothing to play against, evaluate or plot.
        assert ("keisei plot" in end) == (moves[1] != "0")
    shutil.rmtree(run, ignore_errors=True)

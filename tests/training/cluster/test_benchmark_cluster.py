"""scripts/benchmark_cluster.py: what it makes of the times of both sides, and of wrong arguments."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_cluster import __file__ as script
from benchmark_cluster import config_of, cpu_seconds, report, slowed
from small_cluster import wait_until


def test_the_report_has_the_medians_of_the_ratios() -> None:
    pairs = [[[1.0, 2.0], [1.25, 2.2]], [[1.0, 2.0], [1.0, 2.0]], [[2.0, 4.0], [2.5, 4.8]]]
    assert report(pairs, moves=4096, turns=5, workers=2, steps=64) == (
        "2 workers, segments of 2,048 moves, 3 pairs: local 20,480 moves/s; cluster x0.800 "
        "(0.800 to 1.000), +50.0 ms a turn, CPU x1.100"
    )


def test_both_sides_have_the_same_places() -> None:
    here, far = (config_of(2, 64, "ppo", cluster) for cluster in (None, "127.0.0.1:6379"))
    assert (here.training.steps_per_epoch, here.training.algorithm) == (4096, "ppo")
    assert far.training.parallel.cluster == "127.0.0.1:6379"
    for config in (here, far):
        config.training.parallel.cluster = None
    assert here == far


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--slow", "1"], "--slow: given 1, expected a number between 0 and 1"),
        (["--slow", "nan"], "--slow: given nan, expected a number between 0 and 1"),
        (["--rounds", "0"], "--rounds: given 0, expected a number from 1 to 1000"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], expected: str) -> None:
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(expected)


def test_a_slowed_process_is_stopped_now_and_then_and_runs_afterwards() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            with slowed(busy.pid, 0.5):
                wait_until(lambda: _state(busy.pid) == "T")
                wait_until(lambda: _state(busy.pid) == "R")
            before = cpu_seconds([busy.pid])
            wait_until(lambda: cpu_seconds([busy.pid]) > before)
        finally:
            busy.send_signal(signal.SIGKILL)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

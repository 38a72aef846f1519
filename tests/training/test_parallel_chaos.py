"""Training continues while workers are killed, stopped, made to raise and hang: nothing is lost or left."""

import json
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import test_parallel_stability

from keisei.config.files import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.ledger import Account
from keisei.training.parallel.worker_status import WorkerStatus

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

TWO_WORKERS = [
    "training.parallel.enabled=true",
    "training.parallel.num_workers=2",
    "training.parallel.episodes_per_worker=4",
]
SOAK = str(Path(__file__).parents[2] / "scripts" / "test_parallel_stability.py")
BROKEN = str(Path(__file__).with_name("broken_soak.py"))
WORKERS_HIT = {"slow": 0, "kill all": 4}  # how many workers such a fault gets replaced; otherwise 1


def soak(
    *arguments: str, report: Path, patience: int = 4
) -> tuple["subprocess.CompletedProcess[str]", dict[str, Any]]:
    """Run the soak to its end; return the process and its report."""
    done = subprocess.run(
        # The patience is for a busy machine; `make soak` does without.
        [sys.executable, *arguments, "--patience", str(patience), "--json", str(report)],
        cwd=report.parent,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    return done, json.loads(report.read_text(encoding="utf-8"))


def assert_sound(done: "subprocess.CompletedProcess[str]", figures: dict[str, Any], faults: int) -> None:
    """The soak ended well, all faults happened, and the figures of the report add up."""
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "no breach"
    assert done.stdout.startswith(f"{faults} faults: ")
    assert (figures["breach"], sum(figures["faults"].values())) == ("", faults)
    hit = sum(count * WORKERS_HIT.get(kind, 1) for kind, count in figures["faults"].items())
    assert figures["restarts"] == hit == sum(row["count"] for row in figures["replaced"].values())
    steps = figures["steps"]
    assert steps["trained"] == figures["updates"] * 4 * 8 * 32 > 0
    assert steps["generated"] == steps["trained"] + sum(steps["discarded"].values())
    assert steps["in_flight"] == steps["discarded"]["damaged"] == 0


@pytest.mark.slow
def test_two_minutes_of_faults_lose_nothing(tmp_path: Path) -> None:
    arguments = ["--duration", "120", "--workers", "4", "--faults-per-minute", "20"]
    # With more patience all wait for the hung ones most of the time, and few faults hit a worker that plays.
    done, figures = soak(SOAK, *arguments, report=tmp_path / "report.json", patience=2)
    assert_sound(done, figures, faults=40)
    assert min(figures["faults"].values()) >= 5
    assert figures["steps"]["discarded"]["stale"] == 0
    assert figures["steps"]["discarded"]["died"] > 0
    assert figures["replaced"]["death"]["count"] > 20
    assert figures["replaced"]["hang"]["count"] > 5


def test_workers_that_play_on_during_the_update_lose_nothing_either(tmp_path: Path) -> None:
    arguments = ["--duration", "15", "--lag", "1", "--faults-per-minute", "28", "--seed", "2"]
    done, figures = soak(SOAK, *arguments, report=tmp_path / "report.json")
    assert_sound(done, figures, faults=7)  # one of each kind


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        ("lose a move", r"conservation: \d+ moves are waiting, expected -?\d+"),
        ("deliver twice", r"duplicate: worker 0's segment 0\.\d+ came after 0\.\d+"),
        ("tear", r"torn: worker 0's segment 0\.\d+ has an illegal move"),
        ("kill a worker", r"restart: worker 0's process 0 was replaced but not hit"),
        ("leak memory", r"memory: learner_bytes grew by [\d.]+ MB"),
        ("leak in workers", r"memory: worker_bytes grew by [\d.]+ MB"),
        ("leak a file", r"open files: \d+ at the start, \d+ at the end"),
        ("leave a process", r"orphan: processes \[\d+\] are left behind"),
    ],
)
def test_the_soak_finds_what_is_broken(tmp_path: Path, breakage: str, said: str) -> None:
    arguments = [breakage, "--duration", "4", "--workers", "2", "--faults-per-minute", "0"]
    done, figures = soak(BROKEN, *arguments, report=tmp_path / "report.json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.fullmatch(f"breach: {said}.*", done.stdout.splitlines()[-1])
    assert f"breach: {figures['breach']}" == done.stdout.splitlines()[-1]


def test_a_worker_that_is_dead_and_not_noticed_yet_is_no_sample() -> None:
    status = WorkerStatus(0, "playing", 0, 1, 1.0, 0, 0, 0, 0, 209_000_000, "")
    resources = test_parallel_stability.Resources(duration=0)
    resources.look([status, replace(status, memory_bytes=0)])
    assert resources.samples == []
    resources.look([status, status])
    assert [sample.worker_bytes for sample in resources.samples] == [209_000_000]


def test_the_account_can_be_asked_for_while_a_collection_is_under_way() -> None:
    config = load_config("tiny", TWO_WORKERS)
    seen: list[Account] = []
    with ParallelManager(config, PPOAgent(config, "cpu")) as manager:
        # Ten rounds of one short segment each: what is taken already is neither waiting nor trained on.
        manager.collect_experiences(512 * 10, before_wait=lambda: seen.append(manager.account()))
    assert max(account.in_flight for account in seen) > 512


def test_memory_does_not_grow_if_nobody_asks_for_metrics() -> None:
    config = load_config("tiny", TWO_WORKERS)
    sizes = []
    with ParallelManager(config, PPOAgent(config, "cpu")) as manager:
        tracemalloc.start()
        try:
            for _ in range(3):
                for _ in range(3000):
                    manager.supervise()
                sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    # Less than a byte per call, in one of two rounds: what happens once, such as a message, is not growth.
    assert min(after - before for before, after in pairwise(sizes)) < 3000

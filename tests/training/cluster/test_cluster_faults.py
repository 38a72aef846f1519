"""Faults of the cluster itself, and whole runs: `make cluster-faults`, some minutes."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_play import PLACES, Learner, cluster_config, look_until, nodes, right_while, with_token
from parallel_play import GAMES, contents, contents_of
from small_cluster import PATIENCE, SmallCluster, command_of, descendants, is_alive, kill, wait_until
from training_runs import KEISEI, SMALL, assert_same, last

from keisei.core.self_play import segment_shape
from keisei.runs.checkpoint import checkpoint_steps
from keisei.training.cluster.access import INLINE_BYTES

pytestmark = [pytest.mark.parallel, pytest.mark.slow, pytest.mark.timeout(1800)]

RUN = ["--config", "tiny", *SMALL, "training.parallel.num_workers=4", "training.learners=1"]
RUN += ["training.parallel.enabled=true", "training.parallel.episodes_per_worker=8", "run.console=plain"]


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with SmallCluster() as made, with_token(made):
        yield made


@pytest.fixture
def learner(cluster: SmallCluster) -> Iterator[Learner]:
    with Learner(cluster_config(cluster, timeout=6.0)) as made:
        look_until(made, lambda: nodes(made) == 2)
        yield made
    assert made.account().in_flight == 0


def test_the_head_of_the_cluster_is_killed(cluster: SmallCluster, learner: Learner) -> None:
    assert learner.epoch_is_right()
    sites = cluster.sites()
    assert right_while(learner, lambda: kill(cluster.gcs(), signal.SIGKILL))
    deadline = time.monotonic() + 120
    while nodes(learner) and time.monotonic() < deadline:
        assert learner.epoch_is_right()
    look_until(learner, lambda: learner.told("the connection to the cluster is lost"))
    assert all(learner.epoch_is_right() for _ in range(2))
    assert learner.told("the learner plays serially")
    wait_until(lambda: not any(is_alive(site) for site in sites))


def test_the_raylet_of_the_learners_machine_is_killed(cluster: SmallCluster, learner: Learner) -> None:
    assert learner.epoch_is_right()
    assert right_while(learner, lambda: kill(cluster.head_raylet(), signal.SIGKILL))
    look_until(learner, lambda: learner.told("the connection to the cluster is lost", "raylet of this"))
    assert learner.epoch_is_right()
    look_until(learner, lambda: nodes(learner) == 2)  # by another raylet of this machine
    assert learner.epoch_is_right()


def test_a_frozen_node_is_not_waited_for_and_plays_again_later(
    cluster: SmallCluster, learner: Learner
) -> None:
    assert learner.epoch_is_right()
    raylet = cluster.raylets()[0]
    frozen = [raylet, *descendants(raylet)]
    for pid in frozen:
        kill(pid, signal.SIGSTOP)
    try:
        assert all(learner.epoch_is_right() for _ in range(3))
        look_until(learner, lambda: learner.told("played elsewhere"))
    finally:
        for pid in frozen:
            kill(pid, signal.SIGCONT)
    assert learner.epoch_is_right()
    wait_until(lambda: not any("cluster.site" in command_of(pid) for pid in frozen))


def test_a_frozen_worker_is_replaced_on_its_node(cluster: SmallCluster, learner: Learner) -> None:
    victim = cluster.workers()[0]
    assert right_while(learner, lambda: kill(victim, signal.SIGSTOP))
    assert learner.epoch_is_right()
    look_until(learner, lambda: learner.told("gave no sign of life for 6 s"))
    assert learner.epoch_is_right()
    wait_until(lambda: not is_alive(victim))


def test_whatever_is_killed_at_random_the_result_is_the_same(cluster: SmallCluster, learner: Learner) -> None:
    chance, ended = random.Random(1), threading.Event()
    killed: list[str] = []

    def kill_now_and_then() -> None:
        while not ended.wait(chance.uniform(0.5, 3.0)):
            part = chance.choice(["workers", "sites", "foremen", "raylets"])
            known = cluster.raylets() if part == "raylets" else getattr(cluster, part)()
            victims = [pid for pid in known if is_alive(pid)]
            if victims:
                kill(chance.choice(victims), signal.SIGKILL)
                killed.append(part)
                if part == "raylets":
                    cluster.add()

    thread = threading.Thread(target=kill_now_and_then)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline or len(set(killed)) < 4:
            assert learner.epoch_is_right(), killed
    finally:
        ended.set()
        thread.join()
    account = learner.account()
    assert account.generated == account.trained + account.in_flight + sum(account.discarded.values())


FILL = """
import sys
import numpy
import ray
ray.init(address=sys.argv[1], log_to_driver=False)
kept = [ray.put(numpy.ones(2**24, numpy.uint8)) for _ in range(4)]
print("filled", flush=True)
sys.stdin.read()
"""


@contextmanager
def nearly_full_store(cluster: SmallCluster) -> Iterator[None]:
    """Let another program keep 64 of the 80 MiB of the object store that the bridge uses."""
    with subprocess.Popen(
        [sys.executable, "-c", FILL, cluster.address],
        env=cluster.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            assert "filled" in other.stdout.read(7)
            yield
        finally:
            other.stdin.close()
            other.wait(PATIENCE)


def test_large_weights_go_through_a_store_that_is_nearly_full(cluster: SmallCluster) -> None:
    moves = 2
    config = cluster_config(cluster)
    config.model.channels, config.model.blocks = 128, 4
    config.training.steps_per_epoch = config.training.minibatch_size = PLACES * GAMES * moves
    with nearly_full_store(cluster), Learner(config) as learner:
        look_until(learner, lambda: nodes(learner) == 2)
        weights = sum(one.nbytes for one in learner.agent.arrays().values())
        assert INLINE_BYTES // 2 < weights < 2**24 < 12 * weights  # so all versions would not fit
        assert all(learner.epoch_is_right(moves) for _ in range(12))
        assert not learner.told("lost")


def test_large_segments_go_through_a_store_that_is_nearly_full(cluster: SmallCluster) -> None:
    moves = 4400
    config = cluster_config(cluster)
    config.training.parallel.num_workers = 2
    config.training.steps_per_epoch = 2 * GAMES * moves
    assert segment_shape(config, moves, GAMES).nbytes > INLINE_BYTES
    with nearly_full_store(cluster), Learner(config) as learner:
        look_until(learner, lambda: nodes(learner) == 2)
        played = contents_of(learner.collect_experiences(2 * GAMES * moves))
        one_process = learner.reference
        for found, vector in zip(played, one_process.vectors, strict=True):
            assert found == contents(vector.rollout(one_process.agent, moves), vector.save())
        assert not learner.told("lost")


def train(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [KEISEI, "train", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900)


def test_a_killed_learner_leaves_nothing_and_its_run_goes_on_with_other_nodes(
    cluster: SmallCluster, tmp_path: Path
) -> None:
    here = train(*RUN, "run.name=here", cwd=tmp_path)
    assert here.returncode == 0, here.stderr
    far = [*RUN, "run.name=far", f"training.parallel.cluster={cluster.address}", "run.checkpoint_every=1000"]
    with subprocess.Popen(
        [KEISEI, "train", *far], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        checkpoints = tmp_path / "runs" / "far" / "checkpoints"
        wait_until(lambda: checkpoints.is_dir() and bool(checkpoint_steps(checkpoints)))
        bridges = [pid for pid in descendants(process.pid) if "cluster.bridge" in command_of(pid)]
        process.kill()
    wait_until(lambda: not cluster.sites() and not any(is_alive(pid) for pid in bridges))
    cluster.remove(cluster.raylets()[0])
    done = train("--resume", "runs/far", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ends = [last(tmp_path / "runs" / name) for name in ("here", "far")]
    assert_same(*(dataclasses.replace(end, state={**end.state, "config": None}) for end in ends))
    assert (tmp_path / "runs" / "far" / "ray.log").is_file()


@pytest.mark.parametrize("command", ["cluster status", "train"])
def test_a_wrong_token_is_one_line(cluster: SmallCluster, tmp_path: Path, command: str) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    wrong.chmod(0o600)
    runs = tmp_path / "runs"
    arguments = [*RUN, f"run.directory={runs}", f"training.parallel.cluster={cluster.address}"]
    done = subprocess.run(
        [KEISEI, *command.split(), *(["--address", cluster.address] if "status" in command else arguments)],
        env={**os.environ, "RAY_AUTH_TOKEN_PATH": str(wrong)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "with this token: it is a wrong one, or no Ray cluster is there" in done.stderr
    assert not runs.exists() or not os.listdir(runs)

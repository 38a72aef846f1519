"""Collection over a real cluster: to the bit what one process plays, whoever is killed, with nothing left."""

import os
import re
import signal
from collections.abc import Iterator

import pytest
from cluster_play import Learner, cluster_config, look_until, nodes, right_while, with_token
from small_cluster import SmallCluster, is_alive, kill, wait_until

from keisei.training.cluster.status import cluster_status

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SmallCluster]:
    with SmallCluster() as made, with_token(made):
        yield made


@pytest.fixture
def learner(cluster: SmallCluster) -> Iterator[Learner]:
    """A learner with two nodes that play, and a check that it leaves nothing behind."""
    with Learner(cluster_config(cluster, timeout=6.0)) as made:
        look_until(made, lambda: nodes(made) == 2)
        yield made
    assert made.account().in_flight == 0
    wait_until(lambda: not cluster.sites() and not cluster.processes("forkserver"))
    assert os.listdir(cluster.temporary) == []


def test_nodes_play_what_one_process_would_play(learner: Learner) -> None:
    assert all(learner.epoch_is_right() for _ in range(3))
    # What is played twice may arrive later.
    look_until(learner, lambda: [worker.state for worker in learner.workers] == ["waiting", "waiting"])
    account = learner.account()
    assert account.generated == account.trained + sum(account.discarded.values())
    assert learner.told("node 0", "plays with 1 workers: Python")
    assert learner.told("node 1")
    assert all(worker.steps for worker in learner.workers)
    assert learner.get_statistics()["steps"]["generated"] == account.generated


def test_the_status_shows_nodes_and_whom_they_play_for(cluster: SmallCluster, learner: Learner) -> None:
    assert learner.epoch_is_right()
    first, *others = cluster_status(cluster.address, insecure=False)
    assert first == f"cluster at {cluster.address}: 3 nodes, 2 cores; requires a token"
    assert sorted("no cores to play with" in line for line in others) == [False, False, True]
    plays = re.compile(r"1 core: 1 worker for \S+ since \d+ min; Python 3\.")
    assert sum(plays.search(line) is not None for line in others) == 2


def test_a_killed_worker_is_replaced_on_its_node(cluster: SmallCluster, learner: Learner) -> None:
    victim = cluster.workers()[0]
    assert right_while(learner, lambda: kill(victim, signal.SIGKILL))
    look_until(learner, lambda: learner.told("worker 0 died (SIGKILL"))
    assert learner.epoch_is_right()
    assert not learner.told("played elsewhere")


@pytest.mark.parametrize("part", ["foremen", "sites"])
def test_the_others_play_what_a_killed_foreman_or_site_had(
    cluster: SmallCluster, learner: Learner, part: str
) -> None:
    victim = getattr(cluster, part)()[0]
    before = cluster.workers()
    assert right_while(learner, lambda: kill(victim, signal.SIGKILL))
    look_until(learner, lambda: learner.told("died", "played elsewhere"))
    assert learner.epoch_is_right()
    look_until(learner, lambda: learner.told("is back"))
    assert learner.epoch_is_right()
    wait_until(lambda: sum(is_alive(pid) for pid in before) <= 1)


def test_a_frozen_foreman_is_not_waited_for(cluster: SmallCluster, learner: Learner) -> None:
    assert learner.epoch_is_right()
    victim = cluster.foremen()[0]
    os.kill(victim, signal.SIGSTOP)
    assert all(learner.epoch_is_right() for _ in range(2))
    look_until(learner, lambda: learner.told("hung (gave no sign of life for 6 s"))
    # Its site kills it, so that its cores are free for another one.
    wait_until(lambda: not is_alive(victim))
    look_until(learner, lambda: learner.told("is back"))
    assert learner.epoch_is_right()


def test_frozen_sites_are_not_waited_for(cluster: SmallCluster, learner: Learner) -> None:
    assert learner.epoch_is_right()
    victims = cluster.sites()
    for site in victims:
        os.kill(site, signal.SIGSTOP)
    assert learner.epoch_is_right()  # by nobody else, until their foremen have noticed
    assert learner.told("died", "the site gave no sign of life for 6 s")
    wait_until(lambda: not any(is_alive(site) for site in victims))
    look_until(learner, lambda: learner.told("is back"))
    assert learner.epoch_is_right()


def test_nodes_go_and_others_come(cluster: SmallCluster, learner: Learner) -> None:
    victim = cluster.raylets()[-1]
    assert right_while(learner, lambda: cluster.remove(victim))
    look_until(learner, lambda: learner.told("died", "played elsewhere"))
    assert learner.epoch_is_right()
    wait_until(lambda: cluster.alive() == 2)  # otherwise it would be another machine, for all that is known
    cluster.add()
    look_until(learner, lambda: learner.told("is back"))
    look_until(learner, lambda: nodes(learner) == 2)
    assert learner.epoch_is_right()
    assert len(learner.workers) == 2  # a machine that comes again has its number again


def test_the_learner_plays_itself_while_another_bridge_is_started(learner: Learner) -> None:
    assert learner.epoch_is_right()
    bridge = learner._hands._bridge.pid  # type: ignore[attr-defined]
    assert right_while(learner, lambda: kill(bridge, signal.SIGKILL))
    look_until(learner, lambda: learner.told("the connection to the cluster is lost"))
    assert learner.epoch_is_right()
    look_until(learner, lambda: nodes(learner) == 2)
    assert learner.epoch_is_right()

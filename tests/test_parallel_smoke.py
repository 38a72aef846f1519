"""A hundred moves by two worker processes: they come, none is lost or counted twice, nobody is left."""

import pytest
from learning import one_thread as one_thread
from parallel_play import is_alive, learn, wait_until

from keisei.config.files import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

KEYS = {
    "total_steps_collected",
    "total_episodes_collected",
    "active_workers",
    "worker_stats",
    "synchronization",
    "queue_size",
    "is_running",
}


def test_a_hundred_moves_by_two_workers() -> None:
    config = load_config("tiny", ["training.parallel.num_workers=2"])
    agent = PPOAgent(config, "cpu")
    manager = ParallelManager(config, agent)
    assert manager.start_workers()
    try:
        played = manager.collect_experiences(100)
        moves = sum(len(one.segment) for one in played)
        assert {one.worker for one in played} == {0, 1}
        assert 100 <= moves < 100 + 2 * config.training.parallel.episodes_per_worker
        learn(agent, [one.segment for one in played])
        assert manager.sync_model_if_needed()
        statistics = manager.get_statistics()
        assert statistics.keys() >= KEYS
        assert statistics["is_running"]
        assert statistics["active_workers"] == len(statistics["worker_stats"]) == 2
        assert statistics["total_steps_collected"] == moves
        assert statistics["synchronization"]["version"] == agent.version == 1
        account = manager.account()
        assert account.generated == account.trained == moves
        assert account.in_flight == sum(account.discarded.values()) == 0
        pids = [worker.pid for worker in manager.workers]
    finally:
        manager.stop_workers()
    assert not manager.is_running
    wait_until(lambda: not any(pid is not None and is_alive(pid) for pid in pids))

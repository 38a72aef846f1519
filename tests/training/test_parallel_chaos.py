"""Training goes on while workers are killed, stopped, made to raise and to hang: nothing is lost or left."""

from keisei.config_files import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.account import Account

TWO_WORKERS = [
    "training.parallel.enabled=true",
    "training.parallel.num_workers=2",
    "training.parallel.episodes_per_worker=4",
]


def test_the_account_can_be_asked_for_while_a_collection_is_under_way() -> None:
    config = load_config("tiny", TWO_WORKERS)
    seen: list[Account] = []
    with ParallelManager(config, PPOAgent(config, "cpu")) as manager:
        # Ten turns of one short segment each: what is taken already is neither waiting nor trained on.
        manager.collect_experiences(512 * 10, before_wait=lambda: seen.append(manager.account()))
    assert max(account.in_flight for account in seen) > 512

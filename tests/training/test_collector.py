"""Collectors: the config decides who plays, and no move is lost unnoticed."""

import pytest

from keisei.config.files import load_config
from keisei.core.device import cores
from keisei.core.ppo_agent import PPOAgent
from keisei.training.collector import Collector, SerialCollector, games_fit, make_collector, new_games
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.ledger import ConservationError

SERIAL = load_config("tiny", ["training.parallel.enabled=false"])
TWO_WORKERS = load_config(
    "tiny",
    [
        "training.parallel.enabled=true",
        "training.parallel.num_workers=2",
        "training.parallel.episodes_per_worker=4",
    ],
)


def test_one_process_plays_the_same_number_of_moves_in_every_game() -> None:
    agent = PPOAgent(SERIAL)
    collector = make_collector(SERIAL, agent, new_games(SERIAL, first_number=100))
    assert collector.start_workers()
    before = collector.save_games()
    waits: list[bool] = []
    (played,) = collector.collect_experiences(17, before_wait=lambda: waits.append(True))
    assert len(played.segment) == 32  # two moves in each of 16 games
    assert len(waits) == 2
    assert collector.save_games() != before
    assert games_fit(SERIAL, collector.save_games())
    assert collector.synchronize_models()
    assert (collector.workers, collector.checked_metrics(32), collector.get_statistics()) == ((), {}, {})
    assert collector.close(32) is None
    assert isinstance(collector, SerialCollector)


def test_the_config_decides_who_plays() -> None:
    collector: Collector = make_collector(TWO_WORKERS, PPOAgent(TWO_WORKERS))
    assert isinstance(collector, ParallelManager)
    assert len(collector.save_games()) == 2
    assert games_fit(TWO_WORKERS, collector.save_games())
    assert not games_fit(SERIAL, collector.save_games())
    auto = load_config("tiny", ["training.parallel.enabled=auto", "training.parallel.episodes_per_worker=4"])
    expected = ParallelManager if cores() > 1 else SerialCollector
    assert isinstance(make_collector(auto, PPOAgent(auto)), expected)


def test_moves_that_are_trained_on_and_were_not_collected_are_an_error() -> None:
    collector = make_collector(TWO_WORKERS, PPOAgent(TWO_WORKERS))
    assert collector.checked_metrics(0)["parallel/steps_trained"] == 0
    with pytest.raises(ConservationError, match=r"^5 moves were trained on, but: 0 moves generated"):
        collector.checked_metrics(5)
    assert collector.close(0) == "workers: 0 moves generated = 0 trained on + 0 in flight + 0 discarded"

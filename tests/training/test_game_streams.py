"""The games of real trainings, recovered from segments and saved games."""

from dataclasses import replace

import pytest
from short_games import GAMES_END_SOON, WORKERS

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.self_play import GameResult
from keisei.shogi.vector import FinishedGame
from keisei.training import Trainer, TrainingLoopManager
from keisei.training.collector import make_collector, new_games
from keisei.training.game_streams import GameStreams
from keisei.training.listener import SilentListener, Update
from keisei.training.parallel.worker_setup import resolved
from keisei.training.ranks import RankPlayed

pytestmark = pytest.mark.timeout(300)


class Collecting(SilentListener):
    """A listener that keeps every update."""

    def __init__(self) -> None:
        self.updates: list[Update] = []

    def update(self, update: Update) -> None:
        self.updates.append(update)


def trained(config: AppConfig) -> tuple[GameStreams, list[Update]]:
    """Train, and return the streams of games as they were before it, and its updates."""
    trainer, listener = Trainer(config), Collecting()
    config = resolved(config, trainer.agent.device)
    saved = new_games(config)
    TrainingLoopManager(trainer, make_collector(config, trainer.agent, saved), listeners=[listener]).run()
    return GameStreams(config.env, saved), listener.updates


def result(game: FinishedGame) -> GameResult:
    return GameResult(game.number, game.outcome, len(game.moves), game.late_start)


@pytest.mark.parametrize("workers", [[], WORKERS], ids=["serial", "two workers"])
def test_the_games_are_those_that_the_run_has_finished(workers: list[str]) -> None:
    streams, updates = trained(load_config("tiny", [*GAMES_END_SOON, *workers]))
    vectors = set(range(len(updates[0].saved_games)))
    assert len(vectors) == (2 if workers else 1)
    games: list[FinishedGame] = []
    for update in updates:
        ended = streams.advance(update, vectors)
        assert list(map(result, ended)) == list(update.finished)
        games += ended
    assert any(game.late_start for game in games)
    assert any(game.opening for game in games)
    assert len({game.start_sfen for game in games}) > 2  # scattered starts too
    first_update = {one.number for one in updates[0].finished}
    assert any(game.number < 16 and game.number not in first_update for game in games)  # of two updates


def test_games_after_a_gap_are_missing_until_the_next_update() -> None:
    streams, updates = trained(load_config("tiny", [*GAMES_END_SOON, *WORKERS]))
    first, second, third, *_ = updates
    assert [one.vector for one in second.played] == [0, 1]
    assert all(one.results for one in (*first.played, *second.played, *third.played))
    # As if the learner had dropped the first segment of worker 0 as too old.
    gap = RankPlayed(second.played[0].segment, second.played[0].results, 0)
    found = streams.advance(replace(first, played=(gap, first.played[1])), {0, 1})
    assert list(map(result, found)) == first.played[1].results
    found = streams.advance(replace(second, played=second.played[::-1]), {0, 1})
    assert list(map(result, found)) == list(second.finished)
    assert streams.advance(third, {0}) != streams.advance(third, set()) == []

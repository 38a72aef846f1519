"""What watchers of a real training get: games that were played, and a training that is the same."""

from pathlib import Path

import pytest
from short_games import GAMES_END_SOON, WORKERS

from keisei.config.files import load_config
from keisei.runs.live_games import FILE, LiveGame, keep_watching, read_live_games, stop_watching
from keisei.shogi import ShogiGame
from keisei.training import Trainer, TrainingLoopManager
from keisei.training.collector import make_collector, new_games
from keisei.training.game_streams import GameStreams
from keisei.training.listener import Listener, SilentListener, Update
from keisei.training.live_view import LiveView
from keisei.training.parallel.worker_setup import resolved

pytestmark = pytest.mark.timeout(300)


class Reading(SilentListener):
    """A listener that reads the file after every update."""

    def __init__(self, run: Path) -> None:
        self.run, self.updates = run, list[Update]()
        self.games: list[LiveGame] = []

    def update(self, update: Update) -> None:
        self.updates.append(update)
        live = read_live_games(self.run)
        if live is not None:
            assert live.step == update.step
            assert (self.run / FILE).stat().st_size < 7000
            self.games += live.games


def trained(settings: list[str], run: Path | None, *, reads: bool = True) -> tuple[bytes, Reading]:
    """Train with or without a view; return the weights, and what a watcher has read."""
    trainer = Trainer(load_config("tiny", [*GAMES_END_SOON, *settings]))
    config = resolved(trainer.config, trainer.agent.device)
    saved = new_games(config)
    reading = Reading(run or Path("nowhere"))
    listeners: list[Listener] = [reading] if reads else []
    if run is not None:
        listeners.insert(0, LiveView(run, GameStreams(config.env, saved), print))
    TrainingLoopManager(trainer, make_collector(config, trainer.agent, saved), listeners=listeners).run()
    return trainer.agent.flat_weights().tobytes(), reading


@pytest.mark.parametrize("workers", [[], WORKERS], ids=["serial", "two workers"])
def test_a_watcher_sees_games_that_were_played_and_the_training_is_the_same(
    workers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keisei.training.live_view._SECONDS", 0.0)  # a file for every update
    keep_watching(tmp_path)
    weights, seen = trained(workers, tmp_path)
    assert trained(workers, None)[0] == weights
    results = {one.number: one for update in seen.updates for one in update.finished}
    ended = {game.number: game for game in seen.games if game.outcome is not None}
    assert len(seen.games) == 4 * len(seen.updates)
    assert len(ended) > 3
    for number, game in ended.items():
        assert game.outcome == results[number].outcome
        assert game.before + len(game.moves) == results[number].length
    for game in seen.games:
        played = ShogiGame(game.sfen, max_moves=None, declaration="off")
        for move in game.moves:
            played.push(move)
        known = [percent for percent in game.black_percent if percent is not None]
        assert all(0 <= percent <= 100 for percent in known)
        assert game.black_percent[len(game.moves) - len(known) :] == tuple(known)
    assert any(game.outcome is None and None not in game.black_percent[-16:] for game in seen.games)


def test_nothing_is_written_while_nobody_watches(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("left by a process that was killed", encoding="utf-8")
    trained(["training.total_timesteps=512"], tmp_path)
    stop_watching(tmp_path)  # nobody did
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_ends_the_view_and_not_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_watching(tmp_path)
    (tmp_path / FILE).mkdir()
    trained(["training.total_timesteps=512"], tmp_path, reads=False)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("games can no longer be watched: ")

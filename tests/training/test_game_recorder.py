"""Kept games: which, what is in the records, resumed runs, and a directory that cannot be written."""

import dataclasses
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from short_games import GAMES_END_SOON, WORKERS
from training_runs import assert_same, last

from keisei.config.files import load_config
from keisei.runs.checkpoint import Checkpoint, checkpoint_path, checkpoint_steps
from keisei.runs.kept_games import kept_games
from keisei.runs.run_directory import RunDirectory
from keisei.shogi import read_record
from keisei.training import RunResult, Trainer, TrainingLoopManager, train
from keisei.training.collector import make_collector, new_games
from keisei.training.game_recorder import GameRecorder
from keisei.training.game_streams import GameStreams
from keisei.training.listener import SilentListener, Update

pytestmark = pytest.mark.timeout(300)


def run(parent: Path, *settings: str) -> RunResult:
    """Train in a run that has the same name wherever it is."""
    places = [f"run.directory={parent}", "run.name=first"]
    result = train(load_config("tiny", [*GAMES_END_SOON, *places, *settings]))
    assert result.exit_code == 0
    return result


def records(parent: Path) -> dict[str, str]:
    """Return the kept games by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in kept_games(parent / "first" / "games")}


def number(name: str) -> int:
    return int(re.fullmatch(r"\d{12}-(\d+)\.kif", name)[1])  # type: ignore[index]


def without_config(checkpoint: Checkpoint) -> Checkpoint:
    state = {name: value for name, value in checkpoint.state.items() if name != "config"}
    return dataclasses.replace(checkpoint, state=state)


@pytest.fixture(scope="module")
def every_game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps every game."""
    parent = tmp_path_factory.mktemp("every")
    result = run(parent, "run.keep_games=1")
    assert len(records(parent)) == result.games > 30
    return parent


def test_a_record_is_a_whole_game_with_its_result_and_where_it_comes_from(every_game: Path) -> None:
    seen = set()
    for path in kept_games(every_game / "first" / "games"):
        record = read_record(path)  # every move is checked
        outcome = record.outcome
        assert outcome is not None
        assert len(record.moves) <= 170
        step = int(path.name.partition("-")[0])
        assert record.black == record.white == f"first@{step}"
        assert record.headers["棋戦"] == f"Keisei training game {number(path.name)}"
        about = record.comments[0].split("\n")
        assert about[0] == f"game {number(path.name)} of the training first"
        assert about[-1] == f"update {step // 256}, at {step} moves of training, learned from its last moves"
        seen |= {re.sub(r"\d+", "N", line) for line in about[1:-1]}
        assert record.comments[len(record.moves)] == str(outcome)
    assert seen == {"begun near the end of an earlier game", "the first N moves are random"}


def test_keeping_games_changes_no_bit_and_takes_those_with_a_multiple_of_n(
    every_game: Path, tmp_path: Path
) -> None:
    run(tmp_path / "none")
    run(tmp_path / "some", "run.keep_games=3")
    assert not (tmp_path / "none" / "first" / "games").exists()
    for other in ("none", "some"):
        kept, not_kept = last(every_game / "first"), last(tmp_path / other / "first")
        assert_same(without_config(kept), without_config(not_kept))
    thirds = {name: text for name, text in records(every_game).items() if number(name) % 3 == 0}
    assert thirds
    assert records(tmp_path / "some") == thirds


def test_games_of_workers_are_kept_whoever_plays_them(tmp_path: Path) -> None:
    result = run(tmp_path, *WORKERS, "run.keep_games=1", "training.total_timesteps=1024")
    assert len(records(tmp_path)) == result.games > 10
    for path in kept_games(tmp_path / "first" / "games"):
        read_record(path)


def test_a_run_that_was_killed_keeps_what_an_undisturbed_one_does(every_game: Path, tmp_path: Path) -> None:
    run = shutil.copytree(every_game / "first", tmp_path / "first")
    for step in (1024, 1280, 1536):  # as after a kill before that checkpoint
        shutil.rmtree(checkpoint_path(run / "checkpoints", step))
    (run / "games" / "000000001024-999.kif").write_text("what others may have played", encoding="utf-8")
    (run / "games" / ".tmp-000000001024-8.kif-12345678").touch()
    assert train(resume=run).exit_code == 0
    assert records(tmp_path) == records(every_game)
    assert not list((run / "games").glob(".tmp-*"))
    assert_same(last(run), last(every_game / "first"))


def test_a_run_resumed_from_an_older_checkpoint_sets_later_games_aside(
    every_game: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(every_game / "first", tmp_path / "first")
    later = {name: text for name, text in records(every_game).items() if int(name[:12]) > 1280}
    assert later
    resumed = train(resume=f"{run}@1280", overrides=["run.keep_games=0"])
    assert resumed.exit_code == 0
    (aside,) = (run / "set_aside").iterdir()
    assert {path.name: path.read_text(encoding="utf-8") for path in kept_games(aside / "games")} == later
    assert records(tmp_path).keys() == records(every_game).keys() - later.keys()


class Losing(SilentListener):
    """A listener that removes a directory at the second update."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.updates = directory, 0

    def update(self, update: Update) -> None:  # noqa: ARG002
        self.updates += 1
        if self.updates == 2:
            shutil.rmtree(self.directory)


def test_a_record_that_cannot_be_written_ends_the_run_after_a_checkpoint(tmp_path: Path) -> None:
    config = load_config("tiny", [*GAMES_END_SOON, f"run.directory={tmp_path}", "run.checkpoint_every=0"])
    trainer, saved = Trainer(config), new_games(config)
    with RunDirectory.create(config, config_text="", command=[], now=datetime.now()) as directory:
        recorder = GameRecorder(directory.games, 1, GameStreams(config.env, saved), None, print)
        collector = make_collector(config, trainer.agent, saved)
        listeners = [Losing(directory.games), recorder]
        with pytest.raises(FileNotFoundError, match="/games/"):
            TrainingLoopManager(trainer, collector, directory, listeners=listeners).run()
        assert checkpoint_steps(directory.checkpoints) == [512]

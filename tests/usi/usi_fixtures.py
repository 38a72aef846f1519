"""A small network and a ready engine, for the test modules that name this as a plugin."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from training_runs import the_run, train
from usi_model import DEFAULTS
from usi_talk import Conversation, talk

from keisei.runs.find import find_checkpoint

QUICK = [
    "training.total_timesteps=512",
    "evaluation.every=0",
    "evaluation.final_games=0",
    "run.console=plain",
]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("usi")
    train(folder, QUICK)
    return find_checkpoint(str(the_run(folder)))


@pytest.fixture(scope="session")
def _engine(checkpoint: Path) -> Iterator[Conversation]:
    with talk(checkpoint) as conversation:
        conversation.ask("usi", "usiok")
        conversation.ready()
        yield conversation


@pytest.fixture
def engine(_engine: Conversation) -> Conversation:
    """A ready engine in the start position, with its defaults."""
    _engine.say(
        "gameover draw", *(f"setoption name {name} value {value}" for name, value in DEFAULTS.items())
    )
    _engine.say("usinewgame", "position startpos")
    assert _engine.ready() == []
    return _engine

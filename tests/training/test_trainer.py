"""What the trainer adds to the results of games before anything is learned: how much, and for whom."""

import math

import numpy as np
import pytest

from keisei.core.search_agent import SearchAgent
from keisei.core.segment import Segment
from keisei.core.self_play import segment_shape
from keisei.shogi.encoding import pack_sfens
from keisei.training.trainer import Trainer
from keisei.utils import load_config

GAMMA = 0.9
ROOK_UP = "4k4/9/9/9/9/9/9/9/4K3R {} - 10"  # for Black


def returns_of(first: str, last: str, *settings: str) -> list[float]:
    """Return what the last two moves of a drawn game of ten moves are worth to learn from."""
    plain = ["training.minibatch_size=2", f"training.gamma={GAMMA}", "training.gae_lambda=1"]
    trainer = Trainer(load_config("tiny", ["training.length_reward=0", *plain, *settings]))
    segment = Segment.empty(segment_shape(trainer.config, 2, 1))
    segment.packed[:, 0] = np.concatenate([pack_sfens([sfen], max_moves=10) for sfen in (first, last)])
    segment.after[:] = segment.packed[0]  # of the next game
    segment.tried[:] = -1
    segment.values[:] = 0.3  # which a lambda of 1 does not look at
    segment.ended[1] = True
    trainer.perform_update([segment])
    agent = trainer.agent
    assert isinstance(agent, SearchAgent)
    assert agent.window is not None
    found: list[float] = agent.window.arrays()["returns"].tolist()
    return found


def test_a_game_of_maximum_length_is_worth_something_to_the_side_ahead() -> None:
    lead, reward = math.tanh(1.0) / 2, "training.length_reward=0.5"
    white, black = ROOK_UP.format("w"), ROOK_UP.format("b")
    assert returns_of(white, black, reward) == pytest.approx([-GAMMA * lead, lead], abs=1e-6)
    assert returns_of(black, white, reward) == pytest.approx([GAMMA * lead, -lead], abs=1e-6)
    assert returns_of(white, black) == pytest.approx([0, 0], abs=1e-6)


def test_material_is_worth_something_to_who_wins_it() -> None:
    """Black's king takes a rook, which is then Black's: twenty pawns."""
    before, after = "4k4/9/9/9/9/9/9/4r4/4K3R b - 9", "4k4/9/9/9/9/9/9/4K4/8R w R 10"
    assert returns_of(before, after, "training.material_reward=0.01") == pytest.approx([0.2, 0], abs=1e-6)

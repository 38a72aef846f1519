"""Advantages for two players: by hand, by the definition, and at the end of real games."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keisei.core.advantages import advantages_and_returns
from keisei.shogi import START_SFEN, Color
from keisei.shogi.encoding import action_of
from keisei.shogi.vector import Batch, VectorGames

Numbers = npt.NDArray[np.float32]


def column(*numbers: float) -> Numbers:
    return np.array(numbers, np.float32)[:, None]


def flags(*numbers: int) -> npt.NDArray[np.bool_]:
    return np.array(numbers, np.bool_)[:, None]


# ------------------------------------------------------------------------ by hand


def test_a_game_and_the_beginning_of_the_next_worked_by_hand() -> None:
    # gamma 0.5, lambda 0.5, so the next advantage counts -0.25. Moves 0, 1, 2 are a game its last mover wins;
    # moves 3 and 4 start the next one, which continues from a position of value 0.25.
    #   move 4: delta = 0 - 0.5*0.25   - 0.5   = -0.625   A = -0.625
    #   move 3: delta = 0 - 0.5*0.5    - 0.125 = -0.375   A = -0.375 - 0.25*-0.625   = -0.21875
    #   move 2: delta = 1              - 0.75  =  0.25    A =  0.25, whatever the next game is like
    #   move 1: delta = 0 - 0.5*0.75   + 0.25  = -0.125   A = -0.125 - 0.25*0.25     = -0.1875
    #   move 0: delta = 0 - 0.5*-0.25  - 0.5   = -0.375   A = -0.375 - 0.25*-0.1875  = -0.328125
    advantages, returns = advantages_and_returns(
        column(0, 0, 1, 0, 0),
        column(0.5, -0.25, 0.75, 0.125, 0.5),
        flags(0, 0, 1, 0, 0),
        np.array([0.25], np.float32),
        gamma=0.5,
        gae_lambda=0.5,
    )
    assert advantages.dtype == returns.dtype == np.float32
    assert advantages[:, 0].tolist() == [-0.328125, -0.1875, 0.25, -0.21875, -0.625]
    assert returns[:, 0].tolist() == [0.171875, -0.4375, 1.0, -0.09375, -0.125]


def test_a_last_move_that_ends_the_game_does_not_look_at_the_bootstrap() -> None:
    #   move 1: delta = -1          - 0.5 = -1.5    A = -1.5
    #   move 0: delta =  0 - 0.5*0.5 - 0  = -0.25   A = -0.25 - 0.25*-1.5 = 0.125
    advantages, _ = advantages_and_returns(
        column(0, -1),
        column(0, 0.5),
        flags(0, 1),
        np.array([np.nan], np.float32),
        gamma=0.5,
        gae_lambda=0.5,
    )
    assert advantages[:, 0].tolist() == [0.125, -1.5]


def test_without_values_a_win_echoes_back_with_changing_sign() -> None:
    advantages, returns = advantages_and_returns(
        column(0, 0, 0, 1),
        column(0, 0, 0, 0),
        flags(0, 0, 0, 1),
        np.array([0.9], np.float32),
        gamma=0.5,
        gae_lambda=1.0,
    )
    assert advantages[:, 0].tolist() == returns[:, 0].tolist() == [-0.125, 0.25, -0.5, 1.0]


# ------------------------------------------------------------------------ by the definition


@st.composite
def streams(draw: st.DrawFn) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_], Numbers]:
    """Return rewards, values, ends and bootstraps; a bootstrap that must not be used is NaN."""
    shape = (draw(st.integers(1, 9)), draw(st.integers(1, 4)))
    floats = st.floats(-1, 1, width=32)
    rewards, values = (draw(arrays(np.float32, shape, elements=floats)) for _ in range(2))
    ended = draw(arrays(np.bool_, shape))
    bootstrap = draw(arrays(np.float32, shape[1], elements=floats))
    return rewards, values, ended, np.where(ended[-1], np.float32(np.nan), bootstrap)


def games_of(ended: npt.NDArray[np.bool_]) -> list[range]:
    """Return the moves of each game in a stream; the last game may be incomplete."""
    starts = [0, *(np.flatnonzero(ended) + 1).tolist(), len(ended)]
    return [range(first, last) for first, last in pairwise(starts) if first < last]


def deltas(rewards: Numbers, values: Numbers, *, over: bool, bootstrap: float, gamma: float) -> list[float]:
    """Return r_k - gamma V(s_{k+1}) - V(s_k) of a game, or of the part that was played."""
    follow = [*values[1:].tolist(), 0.0 if over else bootstrap]
    return [
        float(reward) - gamma * after - float(value)
        for reward, value, after in zip(rewards, values, follow, strict=True)
    ]


@settings(max_examples=100)
@given(streams(), st.floats(0.01, 1), st.floats(0, 1))
def test_they_are_the_sums_of_the_definition(
    data: tuple[Numbers, Numbers, npt.NDArray[np.bool_], Numbers], gamma: float, gae_lambda: float
) -> None:
    rewards, values, ended, bootstrap = data
    expected = np.zeros(values.shape)
    for n in range(values.shape[1]):
        for game in games_of(ended[:, n]):
            moves = slice(game.start, game.stop)
            errors = deltas(
                rewards[moves, n],
                values[moves, n],
                over=bool(ended[game[-1], n]),
                bootstrap=float(bootstrap[n]),
                gamma=gamma,
            )
            for t in range(len(errors)):
                expected[game.start + t, n] = sum(
                    (-gamma * gae_lambda) ** k * error for k, error in enumerate(errors[t:])
                )
    advantages, returns = advantages_and_returns(
        rewards, values, ended, bootstrap, gamma=gamma, gae_lambda=gae_lambda
    )
    np.testing.assert_allclose(advantages, expected, atol=2e-5)
    np.testing.assert_allclose(returns, expected + values, atol=2e-5)


@settings(max_examples=100)
@given(streams(), st.floats(0.01, 1))
def test_with_lambda_one_they_are_what_came_of_the_game_less_what_was_expected(
    data: tuple[Numbers, Numbers, npt.NDArray[np.bool_], Numbers], gamma: float
) -> None:
    rewards, values, ended, bootstrap = data
    outcome = np.zeros(values.shape)
    for n in range(values.shape[1]):
        for game in games_of(ended[:, n]):
            follows = 0.0 if ended[game[-1], n] else float(bootstrap[n])
            for t in reversed(game):
                follows = float(rewards[t, n]) - gamma * follows
                outcome[t, n] = follows
    advantages, returns = advantages_and_returns(
        rewards, values, ended, bootstrap, gamma=gamma, gae_lambda=1.0
    )
    np.testing.assert_allclose(advantages, outcome - values, atol=2e-5)
    np.testing.assert_allclose(returns, outcome, atol=2e-5)


@settings(max_examples=100)
@given(streams(), st.floats(0.01, 1))
def test_with_lambda_zero_they_look_one_move_ahead(
    data: tuple[Numbers, Numbers, npt.NDArray[np.bool_], Numbers], gamma: float
) -> None:
    rewards, values, ended, bootstrap = data
    after = np.where(ended, 0, np.concatenate([values[1:], bootstrap[None]]))
    advantages, _ = advantages_and_returns(rewards, values, ended, bootstrap, gamma=gamma, gae_lambda=0.0)
    np.testing.assert_allclose(advantages, rewards - gamma * after - values, atol=1e-6)


@settings(max_examples=100)
@given(streams())
def test_no_stream_and_no_game_knows_of_another(
    data: tuple[Numbers, Numbers, npt.NDArray[np.bool_], Numbers],
) -> None:
    rewards, values, ended, bootstrap = data
    together, _ = advantages_and_returns(rewards, values, ended, bootstrap, gamma=0.9, gae_lambda=0.8)
    for n in range(values.shape[1]):
        for game in games_of(ended[:, n]):
            moves = slice(game.start, game.stop)
            alone, _ = advantages_and_returns(
                rewards[moves, n : n + 1],
                values[moves, n : n + 1],
                ended[moves, n : n + 1],
                bootstrap[n : n + 1],
                gamma=0.9,
                gae_lambda=0.8,
            )
            assert np.array_equal(together[moves, n], alone[:, 0])


# ------------------------------------------------------------------------ real games


def play(start: str, line: str) -> tuple[Numbers, npt.NDArray[np.bool_], list[Color], Color | None]:
    """Return rewards [T, 1], ends [T, 1], the mover of each move and the winner of a finished game."""
    games, batch = VectorGames(1, starts=[start]), Batch.empty(1)
    rewards, ended, movers, winner = [], [], [], None
    for usi in line.split():
        mover = games.game(0).turn
        finished = games.step(np.array([action_of(usi, mover)], np.int32), batch)
        rewards.append(float(batch.rewards[0]))
        ended.append(bool(batch.ended[0]))
        movers.append(mover)
        for game in finished:
            winner = game.outcome.winner
    assert ended == [False] * (len(movers) - 1) + [True]
    return column(*rewards), flags(*ended), movers, winner


BLACK_MATES = "2h5h 4a4b 7g7f 6a6b 8h3c 5a6a 3c4b+ 6b7b G*5b"
WHITE_MATES = "1g1f 8b5b 6i6h 3c3d 4i4h 2b7g 5i4i 7g6h+ 4h3h G*5h"


@pytest.mark.parametrize(
    ("start", "line", "winner"),
    [
        (START_SFEN, BLACK_MATES, Color.BLACK),
        (START_SFEN, WHITE_MATES, Color.WHITE),
        # The mover lets the other one declare a win by points.
        ("+P+P+PK1+P+P+P+P/+P+P+P6/9/9/9/9/9/9/3k5 w RB8Prb 10", "6i7i", Color.BLACK),
        ("5K3/9/9/9/9/9/9/6+p+p+p/+p+p+p+p1k+p+p+p b RBrb8p 10", "4a3a", Color.WHITE),
    ],
)
def test_the_losers_last_move_was_bad_and_the_winners_was_good(start: str, line: str, winner: Color) -> None:
    rewards, ended, movers, really = play(start, line)
    assert really == winner
    values = np.random.default_rng(1).uniform(-0.01, 0.01, rewards.shape).astype(np.float32)
    advantages, returns = advantages_and_returns(
        rewards, values, ended, np.ones(1, np.float32), gamma=0.995, gae_lambda=0.95
    )
    assert rewards[:-1].any() == np.False_
    for color in Color:
        last = max((t for t, mover in enumerate(movers) if mover == color), default=None)
        if last is not None:
            assert np.sign(advantages[last, 0]) == np.sign(returns[last, 0]) == (1 if color == winner else -1)
            assert abs(advantages[last, 0]) > 0.9

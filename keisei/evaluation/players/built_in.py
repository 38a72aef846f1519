"""Players that run in this process, from the weakest to a network.

All answer many games at once; keisei.evaluation.players.player defines what a player is. SearchPlayer and
UsiPlayer have their own modules.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.core.keyed_random import uniforms
from keisei.core.material import PIECE_VALUES
from keisei.core.policy import Choice
from keisei.core.policy_labels import ACTION_LABELS
from keisei.evaluation.players.player import Player, Turn
from keisei.search.alpha_beta import alpha_beta, material_moves
from keisei.shogi import Move, ShogiGame, encoding
from keisei.shogi.positions import Positions

Actions = npt.NDArray[np.int32]

_WIN = 1000  # more than any piece

# int [2, 81]: the packed board's square for each square as Black and as White see it.
_BLACK_VIEW = np.array([(8 - square % 9) * 9 + square // 9 for square in range(81)])
_BOARD_SQUARES = np.stack([_BLACK_VIEW, 80 - _BLACK_VIEW])


class RandomPlayer(Player):
    """A player that picks a legal move uniformly at random."""

    name = identity = "random"

    def __init__(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        """Return a random legal move for each game."""
        offsets, actions = encoding.legal_actions(_packed(turns))
        return _moves(turns, _drawn(offsets, actions, _uniforms(self._seed, turns)))


class GreedyPlayer(Player):
    """A player that wins at once if it can, else takes the most valuable piece, else plays any move.

    A win is any end of the game in its favour: mate, but also stalemate, a king's try, or a repetition that
    the opponent forced by perpetual check. Ties are broken at random.
    """

    name = identity = "greedy"

    def __init__(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        """Return one of the greediest moves for each game."""
        packed = _packed(turns)
        offsets, actions = encoding.legal_actions(packed)
        values = _capture_values(packed, offsets, actions)
        for row, turn in enumerate(turns):
            if winning := _winning_actions(turn.game):
                own = slice(offsets[row], offsets[row + 1])
                values[own][np.isin(actions[own], winning)] = _WIN
        best = values == np.repeat(np.maximum.reduceat(values, offsets[:-1]), np.diff(offsets))
        best_offsets = np.concatenate([[0], np.cumsum(best, dtype=np.int32)])[offsets]
        return _moves(turns, _drawn(best_offsets, actions[best], _uniforms(self._seed, turns)))


class MaterialPlayer(Player):
    """A player that looks one move ahead: it wins at once if it can, else keeps the most material.

    Unlike the greedy player it counts promotions; it ignores replies. Ties are broken at random.
    """

    name = identity = "material"

    def __init__(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        """Return a move with the best balance of material for each game."""
        return material_moves([turn.game for turn in turns], _seeds(self._seed, turns))


class AlphaBetaPlayer(Player):
    """A player that searches `depth` plies by alpha-beta, then captures until quiet, and counts material."""

    def __init__(self, depth: int, seed: int, threads: int = 1) -> None:
        if not 1 <= depth <= 6:
            raise ValueError(f"depth is {depth}, expected 1 to 6")
        self.name = self.identity = f"alphabeta-{depth}"
        self._depth = depth
        self._seed = _checked_seed(seed)
        self._threads = threads

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        """Return one of the best moves for each game; the seed breaks ties."""
        games = [turn.game for turn in turns]
        found = alpha_beta(games, self._depth, _seeds(self._seed, turns), self._threads)
        return [move for move, _ in found]


class Policy(Protocol):
    """Anything that selects actions for a batch of positions, such as a network."""

    def select_action(
        self, positions: Positions, uniforms: npt.NDArray[np.float64], /, *, temperature: float
    ) -> "Choice":
        """Return one legal action for each position.

        uniforms: float64 [N], the random numbers to draw with. temperature: 0 picks the most probable action.
        """
        ...


class NetworkPlayer(Player):
    """A player that plays what a policy selects, all games in one call; temperature 0: the likeliest move.

    A network's rounding may depend on the size of the batch, and so, rarely, may a move.
    facts: what a report says about it, such as the hash of its weights.
    """

    def __init__(
        self,
        policy: Policy,
        name: str,
        seed: int,
        temperature: float = 0.0,
        *,
        identity: str | None = None,
        facts: dict[str, str] | None = None,
    ) -> None:
        if not temperature >= 0:
            raise ValueError(f"temperature is {temperature}, expected 0 or more")
        self.name = name
        self.identity = identity or name
        self._policy = policy
        self._seed = _checked_seed(seed)
        self._temperature = temperature
        self._facts = facts or {}

    def choose(self, turns: Sequence[Turn]) -> list[Move]:
        """Return the policy's move for each game."""
        positions, draws = Positions.of_games([turn.game for turn in turns]), _uniforms(self._seed, turns)
        choice = self._policy.select_action(positions, draws, temperature=self._temperature)
        return _moves(turns, choice.actions)

    def describe(self) -> dict[str, str]:
        """Return the given facts and the temperature."""
        return {**self._facts, "temperature": f"{self._temperature:g}"}


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed}, expected 0 to {2**64 - 1}")
    return seed


def _packed(turns: Sequence[Turn]) -> npt.NDArray[np.uint8]:
    return encoding.pack([turn.game for turn in turns])


def _uniforms(seed: int, turns: Sequence[Turn]) -> npt.NDArray[np.float64]:
    numbers = np.array([turn.number for turn in turns], np.uint64)
    return uniforms(seed, numbers, np.array([turn.game.ply for turn in turns], np.int64))


def _seeds(seed: int, turns: Sequence[Turn]) -> list[int]:
    """Return a seed for each game and ply, for native players that draw more than one number."""
    return [int(draw * 2.0**53) for draw in _uniforms(seed, turns)]


def _moves(turns: Sequence[Turn], actions: Actions) -> list[Move]:
    pairs = zip(turns, actions.tolist(), strict=True)
    return [encoding.move_of(action, turn.game.turn) for turn, action in pairs]


def _drawn(offsets: npt.NDArray[np.int32], actions: Actions, draws: npt.NDArray[np.float64]) -> Actions:
    """Return the action at that fraction of each list, int32 [K]."""
    return actions[offsets[:-1] + (draws * np.diff(offsets)).astype(np.int32)]


def _capture_values(
    packed: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], actions: Actions
) -> npt.NDArray[np.int64]:
    """Return the value of the piece that each action captures, 0 for none: int64 [M]."""
    rows = np.repeat(np.arange(len(packed)), np.diff(offsets))
    squares = _BOARD_SQUARES[encoding.turns(packed)[rows], ACTION_LABELS[actions] % 81]
    # A legal action ends on an empty square or an enemy piece, a drop always on an empty square.
    pieces = packed.view(encoding.PACKED)["board"][rows, 0, squares]
    values: npt.NDArray[np.int64] = PIECE_VALUES[pieces & 15]
    return values


def _winning_actions(game: ShogiGame) -> list[int]:
    """Return the actions that win the game at once."""
    # Every move is tried, not only checks: that takes 1 µs per move, and one win in ten is a stalemate.
    turn = game.turn
    winning = []
    for move in game.legal_moves():
        game.push(move)
        end = game.outcome()
        if end is not None and end.winner == turn:
            winning.append(encoding.action_of(move, turn))
        game.pop()
    return winning

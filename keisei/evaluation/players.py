"""Players: they choose the moves of many games at a time.

In: the games, the batch that VectorGames wrote of all their slots, and the slots where the player is to move.
Out: one legal action for each of these slots. A choice depends on the game, its number and its ply alone, not
on its slot or on the other games, so a match is the same however it is divided. Two random players with the
same seed draw the same numbers for the same game and ply; players that are to differ need different seeds.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.core.keyed_random import uniforms
from keisei.core.material import PIECE_VALUES
from keisei.core.policy_labels import ACTION_LABELS
from keisei.shogi import ShogiGame, encoding
from keisei.shogi.vector import Batch, VectorGames

Actions = npt.NDArray[np.int32]
Slots = npt.NDArray[np.intp]

_WIN = 1000  # more than any piece

# int [2, 81]: the square of a packed board for a square as Black and as White see it.
_BLACK_VIEW = np.array([(8 - square % 9) * 9 + square // 9 for square in range(81)])
_BOARD_SQUARES = np.stack([_BLACK_VIEW, 80 - _BLACK_VIEW])


class Player(Protocol):
    """Whoever can take part in a match."""

    @property
    def name(self) -> str:
        """What results call this player."""
        ...

    def choose(self, games: VectorGames, batch: Batch, slots: Slots) -> Actions:
        """Return the actions for these slots, int32 [len(slots)]; batch describes all slots of games."""
        ...


class RandomPlayer:
    """Plays any legal move, each as probable as the others."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def choose(self, games: VectorGames, batch: Batch, slots: Slots) -> Actions:
        """Return a random legal action for each of these slots, int32 [len(slots)]."""
        offsets, actions = _legal_lists(batch, slots)
        return _drawn(offsets, actions, _uniforms(self._seed, games, batch, slots))


class GreedyPlayer:
    """Plays a move that wins at once, otherwise takes the most valuable piece, otherwise plays any move.

    A win is whatever ends the game for this player: mate, but also a stalemate, a king's try, or a repetition
    that the opponent forced by perpetual check. Among equals it draws at random.
    """

    name = "greedy"

    def __init__(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def choose(self, games: VectorGames, batch: Batch, slots: Slots) -> Actions:
        """Return the greediest action for each of these slots, int32 [len(slots)]."""
        offsets, actions = _legal_lists(batch, slots)
        values = _capture_values(batch.packed[slots], offsets, actions)
        for row, slot in enumerate(slots.tolist()):
            if winning := _winning_actions(games.game(slot)):
                own = slice(offsets[row], offsets[row + 1])
                values[own][np.isin(actions[own], winning)] = _WIN
        best = values == np.repeat(np.maximum.reduceat(values, offsets[:-1]), np.diff(offsets))
        best_offsets = np.concatenate([[0], np.cumsum(best, dtype=np.int32)])[offsets]
        return _drawn(best_offsets, actions[best], _uniforms(self._seed, games, batch, slots))


class Choice(Protocol):
    """What a policy has chosen."""

    @property
    def actions(self) -> Actions:
        """One action for each position, int32 [N]."""
        ...


class Policy(Protocol):
    """Whatever selects actions for a batch of positions, such as a network."""

    def select_action(
        self,
        planes: npt.NDArray[np.float32],
        offsets: npt.NDArray[np.int32],
        actions: npt.NDArray[np.int32],
        uniforms: npt.NDArray[np.float64],
        /,
        *,
        temperature: float,
    ) -> Choice:
        """Return one legal action for each position.

        planes: float32 [N, 46, 9, 9]. offsets: int32 [N + 1] and actions: int32 [M], the legal actions.
        uniforms: float64 [N], the random numbers to draw with. temperature: 0 is the most probable action.
        """
        ...


class NetworkPlayer:
    """Plays what a policy selects, all its games in one call; at temperature 0 the most probable move.

    The rounding of a network may depend on how many positions it sees at once, and with it, rarely, a move.
    """

    def __init__(self, policy: Policy, name: str, seed: int, temperature: float = 0.0) -> None:
        if not temperature >= 0:
            raise ValueError(f"temperature is {temperature}, expected 0 or more")
        self.name = name
        self._policy = policy
        self._seed = _checked_seed(seed)
        self._temperature = temperature

    def choose(self, games: VectorGames, batch: Batch, slots: Slots) -> Actions:
        """Return the policy's action for each of these slots, int32 [len(slots)]."""
        if batch.planes is None:
            raise ValueError("the batch has no planes, expected float32 [N, 46, 9, 9] for a network")
        offsets, actions = _legal_lists(batch, slots)
        draws = _uniforms(self._seed, games, batch, slots)
        choice = self._policy.select_action(
            batch.planes[slots], offsets, actions, draws, temperature=self._temperature
        )
        return choice.actions


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed}, expected 0 to {2**64 - 1}")
    return seed


def _legal_lists(batch: Batch, slots: Slots) -> tuple[npt.NDArray[np.int32], Actions]:
    """Return int32 (offsets [K + 1], actions [offsets[K]]), the legal actions of these slots alone."""
    first = batch.offsets[slots]
    counts = batch.offsets[slots + 1] - first
    offsets = np.zeros(len(slots) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets, batch.actions[np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)]


def _uniforms(seed: int, games: VectorGames, batch: Batch, slots: Slots) -> npt.NDArray[np.float64]:
    numbers = np.array(games.numbers, np.uint64)[slots]
    return uniforms(seed, numbers, encoding.plies(batch.packed[slots]))


def _drawn(offsets: npt.NDArray[np.int32], actions: Actions, draws: npt.NDArray[np.float64]) -> Actions:
    """Return of each list the action at that share of its length, int32 [K]."""
    return actions[offsets[:-1] + (draws * np.diff(offsets)).astype(np.int32)]


def _capture_values(
    packed: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], actions: Actions
) -> npt.NDArray[np.int64]:
    """Return the value of the piece that each action takes, 0 where it takes none: int64 [M]."""
    rows = np.repeat(np.arange(len(packed)), np.diff(offsets))
    squares = _BOARD_SQUARES[encoding.turns(packed)[rows], ACTION_LABELS[actions] % 81]
    # A legal action leads to an empty square or to an enemy piece, a drop always to an empty one.
    pieces = packed.view(encoding.PACKED)["board"][rows, 0, squares]
    values: npt.NDArray[np.int64] = PIECE_VALUES[pieces & 15]
    return values


def _winning_actions(game: ShogiGame) -> list[int]:
    """Return the actions after which the game is over and won by who played them."""
    # Every move is tried, not only checks: it takes 1 µs a move, and every tenth win is a stalemate.
    turn = game.turn
    winning = []
    for move in game.legal_moves():
        game.push(move)
        end = game.outcome()
        if end is not None and end.winner == turn:
            winning.append(encoding.action_of(move, turn))
        game.pop()
    return winning

"""VectorGames: many games at once, stepped by native threads into arrays that the caller owns.

    games = VectorGames(64, seed=1)
    batch = Batch.empty(64)                    # or a Batch of your own arrays
    games.observe(batch)
    while training:
        actions = ...                          # int32 [64], from batch.positions
        for game in games.step(actions, batch):
            ...                                # a FinishedGame: outcome, moves, last position

Observations belong to the side to move, rewards to the player who has just moved: batch.rewards[i] is 1, 0 or
-1 for the player who made actions[i], while batch.planes[i] is what the next player in slot i sees. Where
batch.ended[i] is True, that is already the start of the next game. A side that may declare a win by points
after its opponent's move does so automatically.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt

from keisei import _native
from keisei._native import Move
from keisei.shogi.encoding import ACTIONS, MAX_LEGAL_ACTIONS, PACKED_BYTES, PLANES
from keisei.shogi.outcome import Outcome
from keisei.shogi.positions import Positions
from keisei.shogi.records import GameRecord
from keisei.shogi.shogi_game import ShogiGame

_INT = range(-(2**31), 2**31)
_WORD = range(2**64)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Arrays for N games, owned by the caller and filled by `observe` and `step`; None is skipped.

    rewards: float32 [N], 1, 0 or -1 for the player who has just moved.
    ended: bool [N], whether the game ended and the next one has begun in its slot.
    packed: uint8 [N, 104], the positions, see keisei.shogi.encoding.
    offsets: int32 [N + 1] and actions: int32 [N * 600], the legal actions: slot i has
        actions[offsets[i]:offsets[i + 1]]; from actions[offsets[N]] on nothing is written.
    planes: float32 [N, 46, 9, 9].
    mask: bool [N, 13527], the same legal actions, dense.
    """

    rewards: npt.NDArray[np.float32]
    ended: npt.NDArray[np.bool_]
    packed: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int32]
    planes: npt.NDArray[np.float32] | None = None
    mask: npt.NDArray[np.bool_] | None = None

    @classmethod
    def empty(cls, count: int, *, planes: bool = True, mask: bool = False) -> Self:
        """Return new arrays for `count` games, with planes and a dense mask on request."""
        return cls(
            rewards=np.zeros(count, np.float32),
            ended=np.zeros(count, np.bool_),
            packed=np.zeros((count, PACKED_BYTES), np.uint8),
            offsets=np.zeros(count + 1, np.int32),
            actions=np.zeros(count * MAX_LEGAL_ACTIONS, np.int32),
            planes=np.zeros((count, PLANES, 9, 9), np.float32) if planes else None,
            mask=np.zeros((count, ACTIONS), np.bool_) if mask else None,
        )

    @property
    def positions(self) -> Positions:
        """What the players to move see: views that the next `observe` or `step` overwrites."""
        if self.planes is None:
            raise ValueError("the batch has no planes, expected one created with planes=True")
        return Positions(self.planes, self.offsets, self.actions[: self.offsets[-1]])

    def legal(self, slot: int) -> npt.NDArray[np.int32]:
        """Return a view of the legal actions of one slot."""
        if not 0 <= slot < len(self.ended):
            raise IndexError(f"slot is {slot}, expected 0 to {len(self.ended) - 1}")
        return self.actions[self.offsets[slot] : self.offsets[slot + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class FinishedGame:
    """A finished game: its slot, number, outcome, and every move from its starting position.

    opening: the number of random moves before the players took over.
    late_start: whether it began from one of the late starts.
    final_position: uint8 [104], packed.
    """

    slot: int
    number: int
    outcome: Outcome
    opening: int
    late_start: bool
    start_sfen: str
    moves: tuple[Move, ...]
    final_position: npt.NDArray[np.uint8]

    def record(self, *, black: str = "", white: str = "") -> GameRecord:
        """Return the game as a record, for writing as CSA, KIF or a USI line."""
        return GameRecord(self.moves, self.start_sfen, black, white, self.outcome)


class VectorGames(_native.VectorGames):
    """`count` games of self-play side by side; when one ends, the next begins in its slot.

    threads: native threads; the results are the same for any number.
    seed: with a game's number it determines how that game starts; nothing else is random here.
    first_number, stride: the j-th game of slot i has the number first_number + i + j * stride (`count` if
        None), so that several vectors can share one sequence of games.
    max_moves, declaration: the rules, as for ShogiGame.
    starts: starting positions as SFENs, one drawn for each game; None is the start position of shogi.
    random_plies: random moves before the players take over. A move that would end the game is not played; the
        opening is then shorter.
    scattered_share: of the games that start from a position of their own with all pieces scattered at random,
        kings anywhere, without random moves.
    """

    def __init__(
        self,
        count: int,
        *,
        threads: int = 1,
        seed: int = 0,
        max_moves: int | None = 512,
        declaration: str = "27",
        starts: Sequence[str] | None = None,
        random_plies: int = 0,
        scattered_share: float = 0.0,
        first_number: int = 0,
        stride: int | None = None,
    ) -> None:
        if isinstance(starts, str):
            raise ValueError(f"starts is the string {starts!r}, expected a list of SFENs")
        super().__init__(
            _integer("count", count),
            threads=_integer("threads", threads),
            seed=_integer("seed", seed, _WORD),
            max_moves=None if max_moves is None else _integer("max_moves", max_moves),
            declaration=str(declaration),
            starts=None if starts is None else list(starts),
            random_plies=_integer("random_plies", random_plies),
            scattered_share=float(scattered_share),
            first_number=_integer("first_number", first_number, _WORD),
            stride=None if stride is None else _integer("stride", stride, range(1, 2**64)),
        )

    @classmethod
    def restore(cls, saved: bytes, *, threads: int = 1) -> Self:
        """Return the games that `save()` wrote, with full histories; play continues exactly there."""
        games = cls.__new__(cls)
        _native.VectorGames.__init__(games, bytes(memoryview(saved)), threads=_integer("threads", threads))
        return games

    def restart(self, *, seed: int, first_number: int = 0) -> None:
        """Start a new game in every slot, with this seed and numbering."""
        self._restart(_integer("seed", seed, _WORD), _integer("first_number", first_number, _WORD))

    def set_late_starts(self, sfens: Sequence[str], share: float) -> None:
        """Start this share of all further games from one of these positions.

        For training on endings. Such a game begins without random moves; `save()` keeps the positions.
        """
        if isinstance(sfens, str):
            raise ValueError(f"late starts is the string {sfens!r}, expected a list of SFENs")
        self._set_late_starts(list(sfens), float(share))

    def observe(self, out: Batch) -> None:
        """Write what the players to move see; rewards and ended are left unchanged."""
        self._observe(out.packed, out.planes, out.offsets, out.actions, out.mask)

    def step(self, actions: npt.NDArray[np.int32], out: Batch) -> list[FinishedGame]:
        """Play one action in every slot and write the results; return the games that ended, by slot.

        An illegal action raises a RulesError that names slot, game, action and position; nothing is played.
        """
        finished = self._step(
            actions, out.rewards, out.ended, out.packed, out.planes, out.offsets, out.actions, out.mask
        )
        return [_finished_game(*facts) for facts in finished]

    def game(self, slot: int) -> ShogiGame:
        """Return a copy of the game in a slot, for inspection or drawing."""
        game = ShogiGame.__new__(ShogiGame)
        _native.Game.__init__(game, self._copy_game(slot))
        return game

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy via `save()`."""
        return partial(type(self).restore, threads=self.threads), (self.save(),), self.__dict__ or None


def _integer(name: str, value: int, allowed: range = _INT) -> int:
    """Return any integer type as int; a value too large for native code is a ValueError with its name."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}, expected an integer") from None
    if number not in allowed:
        raise ValueError(f"{name} is {number}, expected {allowed.start} to {allowed.stop - 1}")
    return number


def _finished_game(
    slot: int,
    number: int,
    outcome: tuple[int | None, str],
    opening: int,
    late_start: bool,
    start_sfen: str,
    moves: list[Move],
    final_position: bytes,
) -> FinishedGame:
    return FinishedGame(
        slot,
        number,
        Outcome.from_native(*outcome),
        opening,
        late_start,
        start_sfen,
        tuple(moves),
        np.frombuffer(final_position, np.uint8),
    )

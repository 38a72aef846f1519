"""SelfPlay: games in progress, and the rollout that advances them and collects the moves.

Serial training has one, and so does each worker process. What it collects depends on the weights, the seed
and the games' numbers, not on which process plays them.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keisei.config.schema import EnvConfig
from keisei.core.keyed_random import uniforms
from keisei.core.policy import Policy
from keisei.core.segment import HasSegment, Segment, SegmentShape
from keisei.shogi import Outcome, ShogiGame
from keisei.shogi.encoding import plies
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

# A late start is at most this many plies before the end of one of this many recent decisive games. These
# values worked, with one seed each; not studied.
LATE_START_PLIES, LATE_START_POOL = 12, 512


@dataclass(frozen=True, slots=True)
class GameResult:
    """A finished game: its number, outcome and length in plies, and whether it had a late start."""

    number: int
    outcome: Outcome
    length: int
    late_start: bool


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """The result of a rollout: the moves, and the games that ended during it."""

    segment: Segment
    finished: list[FinishedGame]

    @property
    def results(self) -> list[GameResult]:
        """The results of those games."""
        return [
            GameResult(game.number, game.outcome, len(game.moves), game.late_start) for game in self.finished
        ]


class Played(HasSegment, Protocol):
    """The part of a rollout that learning uses, wherever it was played."""

    @property
    def results(self) -> list[GameResult]:
        """The results of the games that ended during the rollout."""


@dataclass(frozen=True, slots=True)
class SavedGames:
    """A snapshot of a SelfPlay's games: the vector as bytes, the rest as JSON."""

    games: bytes
    state: dict[str, Any]


class SelfPlay:
    """N games side by side, played by a policy against itself."""

    def __init__(
        self, games: VectorGames, config: EnvConfig, *, late_starts: list[str] | None = None
    ) -> None:
        self.games = games
        self._config = config
        self._late_starts = deque(late_starts or [], LATE_START_POOL)
        self._batch = Batch.empty(len(games))
        games.observe(self._batch)

    @classmethod
    def begin(
        cls,
        config: EnvConfig,
        *,
        games: int,
        seed: int,
        first_number: int = 0,
        stride: int | None = None,
        threads: int = 1,
    ) -> "SelfPlay":
        """Start new games, numbered as in VectorGames."""
        return cls(
            VectorGames(
                games,
                threads=threads,
                seed=seed,
                max_moves=config.max_moves,
                declaration=config.declaration,
                random_plies=config.random_plies,
                first_number=first_number,
                stride=stride,
            ),
            config,
        )

    def rollout(
        self,
        policy: Policy,
        steps: int,
        *,
        before_step: Callable[[], None] = lambda: None,
        memory: bytearray | memoryview | None = None,
    ) -> Collected:
        """Play `steps` moves in every game with the policy's weights, and return them.

        before_step: called before each move; an exception from it ends the rollout midway. memory: where to
        put the segment, see Segment.over; newly allocated if not given.
        """
        batch, seed, clock = self._batch, self.games.seed, policy.clock
        shape = SegmentShape(steps, len(self.games))
        segment = Segment.empty(shape) if memory is None else Segment.over(memory, shape)
        finished: list[FinishedGame] = []
        for t in range(steps):
            before_step()
            with clock("sampling"):
                numbers = np.array(self.games.numbers, np.uint64)
                chances = uniforms(seed, numbers, plies(batch.packed))
            choice = policy.select_action(batch.positions, chances)
            with clock("env"):
                segment.packed[t] = batch.packed
                segment.actions[t] = choice.actions
                segment.log_probs[t] = choice.log_probs
                segment.values[t] = choice.values
                finished += self.games.step(choice.actions, batch)
                segment.rewards[t] = batch.rewards
                segment.ended[t] = batch.ended
        segment.after[:] = batch.packed
        segment.bootstrap[:] = policy.get_value(batch.positions.planes)
        with clock("env"):
            self._renew_late_starts(finished)
        return Collected(segment, finished)

    def _renew_late_starts(self, finished: list[FinishedGame]) -> None:
        """Add a position near the end of each decisive game as a start for later games."""
        if not self._config.late_start_share:
            return
        for game in finished:
            if game.outcome.winner is None:
                continue
            # Keyed by the game's number, so that a resumed run draws the same.
            chance = uniforms(self.games.seed, np.array([game.number], np.uint64), np.array([-1]))[0]
            back = 1 + int(chance * LATE_START_PLIES)
            if back <= len(game.moves) - game.opening:
                self._late_starts.append(position_before_end(game, back))
        self.games.set_late_starts(list(self._late_starts), self._config.late_start_share)

    def __len__(self) -> int:
        """Return the number of games played side by side."""
        return len(self.games)

    def save(self) -> SavedGames:
        """Return everything needed to continue exactly from here."""
        return SavedGames(self.games.save(), {"late_starts": list(self._late_starts)})

    @classmethod
    def restore(cls, saved: SavedGames, config: EnvConfig, *, threads: int = 1) -> "SelfPlay":
        """Continue saved games; the config's share of late starts applies from now on."""
        games = VectorGames.restore(saved.games, threads=threads)
        restored = cls(games, config, late_starts=saved.state["late_starts"])
        restored.games.set_late_starts(list(restored._late_starts), config.late_start_share)
        return restored


def next_number(saved: Iterable[SavedGames]) -> int:
    """Return the first number not used by these games or any before them."""
    return 1 + max(max(VectorGames.restore(one.games).numbers) for one in saved)


def position_before_end(game: FinishedGame, back: int) -> str:
    """Return the SFEN of the position `back` moves before the end of a finished game."""
    replayed = ShogiGame(game.start_sfen, max_moves=None, declaration="off")
    for move in game.moves[: len(game.moves) - back]:
        replayed.push(move)
    return replayed.sfen()

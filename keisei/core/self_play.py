"""SelfPlay: games under way, and the rollout that plays them on and collects what happens.

Serial training has one, each worker process has one. What it collects depends on the weights, the seed and
the games' numbers, not on who plays them.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keisei.config.schema import EnvConfig
from keisei.core.keyed_random import uniforms
from keisei.core.policy import NetworkPolicy
from keisei.core.segment import Segment, SegmentShape
from keisei.shogi import Outcome, ShogiGame
from keisei.shogi.encoding import plies
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

# A late start is 1 to so many plies before the end, in one of so many recent decisive games. They worked with
# one seed each; not studied.
LATE_START_PLIES, LATE_START_POOL = 12, 512


@dataclass(frozen=True, slots=True)
class GameResult:
    """How a game ended: its number, its outcome, its length in plies, whether it had begun late."""

    number: int
    outcome: Outcome
    length: int
    late_start: bool


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """What a rollout brings: the moves, and the games that ended meanwhile."""

    segment: Segment
    finished: list[FinishedGame]

    @property
    def results(self) -> list[GameResult]:
        """How those games ended."""
        return [
            GameResult(game.number, game.outcome, len(game.moves), game.late_start) for game in self.finished
        ]


class Played(Protocol):
    """What learning takes from a rollout, wherever it was played."""

    @property
    def segment(self) -> Segment:
        """The moves."""

    @property
    def results(self) -> list[GameResult]:
        """How the games ended that ended meanwhile."""


@dataclass(frozen=True, slots=True)
class SavedGames:
    """The games of a SelfPlay at a moment: the vector as bytes, the rest as JSON."""

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
        """Begin new games, with the numbers that VectorGames gives them."""
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
        policy: NetworkPolicy,
        steps: int,
        *,
        before_step: Callable[[], None] = lambda: None,
        memory: bytearray | memoryview | None = None,
    ) -> Collected:
        """Play `steps` moves in every game with the policy's weights, and return them.

        before_step is called before each move; what it raises ends the rollout in the middle. memory: where
        the segment is to lie, see Segment.over; its own if there is none.
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
        """Take a position from the end of each decisive game as a beginning of later ones."""
        if not self._config.late_start_share:
            return
        for game in finished:
            if game.outcome.winner is None:
                continue
            # A fixed number by the game's own number, so that a resumed run draws the same.
            chance = uniforms(self.games.seed, np.array([game.number], np.uint64), np.array([-1]))[0]
            back = 1 + int(chance * LATE_START_PLIES)
            if back <= len(game.moves) - game.opening:
                self._late_starts.append(position_before_end(game, back))
        self.games.set_late_starts(list(self._late_starts), self._config.late_start_share)

    def __len__(self) -> int:
        """Return how many games are played side by side."""
        return len(self.games)

    def save(self) -> SavedGames:
        """Return all that it takes to go on from here exactly."""
        return SavedGames(self.games.save(), {"late_starts": list(self._late_starts)})

    @classmethod
    def restore(cls, saved: SavedGames, config: EnvConfig, *, threads: int = 1) -> "SelfPlay":
        """Go on with saved games; the config says what becomes of the late starts from now on."""
        games = VectorGames.restore(saved.games, threads=threads)
        restored = cls(games, config, late_starts=saved.state["late_starts"])
        restored.games.set_late_starts(list(restored._late_starts), config.late_start_share)
        return restored


def next_number(saved: Iterable[SavedGames]) -> int:
    """Return the first number that none of these games has, nor one before them."""
    return 1 + max(max(VectorGames.restore(one.games).numbers) for one in saved)


def position_before_end(game: FinishedGame, back: int) -> str:
    """Return the SFEN of a finished game `back` moves before its end."""
    replayed = ShogiGame(game.start_sfen, max_moves=None, declaration="off")
    for move in game.moves[: len(game.moves) - back]:
        replayed.push(move)
    return replayed.sfen()

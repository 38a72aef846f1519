"""SelfPlay: games in progress, and the rollout that advances them and collects the moves.

Serial training has one, and so does each worker process. What it collects depends on the weights, the seed
and the games' numbers, not on which process plays them.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from keisei.config.schema import AppConfig, EnvConfig
from keisei.core.keyed_random import uniforms
from keisei.core.policy import Floats, Policy
from keisei.core.segment import HasSegment, Segment, SegmentShape
from keisei.search.self_play_search import Decided, SelfPlaySearch, SelfPlaySettings
from keisei.shogi import Outcome, ShogiGame
from keisei.shogi.encoding import plies
from keisei.shogi.positions import Positions
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
    vector: int = 0

    @property
    def results(self) -> list[GameResult]:
        """The results of those games."""
        return [
            GameResult(game.number, game.outcome, len(game.moves), game.late_start) for game in self.finished
        ]


class Played(HasSegment, Protocol):
    """The part of a rollout that the learner gets, wherever it was played."""

    @property
    def results(self) -> list[GameResult]:
        """The results of the games that ended during the rollout."""

    @property
    def vector(self) -> int:
        """The games that were played: their index in the collector's saved games."""
        ...


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
                scattered_share=config.scattered_start_share,
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
        before_batch: Callable[[], None] = lambda: None,
        memory: bytearray | memoryview | None = None,
    ) -> Collected:
        """Play `steps` moves in every game with the policy's weights, and return them.

        The policy's config says whether moves are searched. before_step: called before each move; an
        exception from it ends the rollout midway. before_batch: called before each evaluation of a search.
        memory: where to put the segment, see Segment.over; newly allocated if not given.
        """
        batch, clock = self._batch, policy.clock
        shape = segment_shape(policy.config, steps, len(self.games))
        segment = Segment.empty(shape) if memory is None else Segment.over(memory, shape)
        searched = None
        if shape.candidates:
            searched = SelfPlaySearch(
                len(self.games), search_settings(policy.config), threads=self.games.threads
            )
        finished: list[FinishedGame] = []
        for t in range(steps):
            before_step()
            segment.packed[t] = batch.packed
            if searched is None:
                self._choose(policy, segment, t)
            else:
                self._search(searched, policy, segment, t, before_batch)
            with clock("env"):
                finished += self.games.step(segment.actions[t], batch)
                segment.rewards[t] = batch.rewards
                segment.ended[t] = batch.ended
        segment.after[:] = batch.packed
        segment.bootstrap[:] = policy.get_value(batch.positions.planes)
        with clock("env"):
            self._renew_late_starts(finished)
        return Collected(segment, finished)

    def _choose(self, policy: Policy, segment: Segment, t: int) -> None:
        """Choose the next moves by the policy alone."""
        batch = self._batch
        with policy.clock("sampling"):
            numbers = np.array(self.games.numbers, np.uint64)
            chances = uniforms(self.games.seed, numbers, plies(batch.packed))
        choice = policy.select_action(batch.positions, chances)
        segment.actions[t] = choice.actions
        segment.log_probs[t] = choice.log_probs
        segment.values[t] = choice.values

    def _search(
        self,
        search: SelfPlaySearch,
        policy: Policy,
        segment: Segment,
        t: int,
        before_batch: Callable[[], None],
    ) -> None:
        """Choose the next moves, some of them by a search."""
        clock = policy.clock
        with clock("sampling"):
            search.begin(self.games)
            positions = search.select()
        while positions is not None:
            before_batch()
            with clock("inference"):
                priors, values = policy.evaluate(positions)
                if not (np.isfinite(values).all() and np.isfinite(priors).all()):
                    priors, values = _no_idea(positions)  # the learner sees it by its loss
            with clock("sampling"):
                search.expand(priors, values)
                positions = search.select()
        with clock("sampling"):
            names = [field.name for field in fields(Decided)]
            search.decide(self.games, Decided(**{name: getattr(segment, name)[t] for name in names}))

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

    def replay(self, segment: Segment) -> list[FinishedGame] | None:
        """Make the moves of an earlier rollout again, without a policy, and return the games that ended.

        None, and no move is made, if that rollout did not begin with these games.
        """
        if not np.array_equal(segment.packed[0], self._batch.packed):
            return None
        finished: list[FinishedGame] = []
        for actions in segment.actions:
            finished += self.games.step(actions, self._batch)
        self._renew_late_starts(finished)
        return finished

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


def _no_idea(positions: Positions) -> tuple[Floats, Floats]:
    """Return equal priors for all moves, and values of 0."""
    counts = np.diff(positions.offsets)
    return np.repeat(1 / counts, counts).astype(np.float32), np.zeros(len(positions), np.float32)


def segment_shape(config: AppConfig, steps: int, streams: int) -> SegmentShape:
    """Return the shape of the segments that a config's rollouts have."""
    training = config.training
    candidates = training.search.candidates if training.algorithm == "search" else 0
    return SegmentShape(steps, streams, candidates=candidates)


def search_settings(config: AppConfig) -> SelfPlaySettings:
    """Return the settings of a config's searches."""
    search = config.training.search
    return SelfPlaySettings(
        share=search.share,
        temperature=search.temperature,
        simulations=search.simulations,
        candidates=search.candidates,
        c_visit=search.c_visit,
        c_scale=search.c_scale,
        length_reward=config.training.length_reward,
    )


def next_number(saved: Iterable[SavedGames]) -> int:
    """Return the first number not used by these games or any before them."""
    return 1 + max(max(VectorGames.restore(one.games).numbers) for one in saved)


def position_before_end(game: FinishedGame, back: int) -> str:
    """Return the SFEN of the position `back` moves before the end of a finished game."""
    replayed = ShogiGame(game.start_sfen, max_moves=None, declaration="off")
    for move in game.moves[: len(game.moves) - back]:
        replayed.push(move)
    return replayed.sfen()

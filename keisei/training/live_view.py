"""LiveView: shows some games of a training to whoever watches, through RUN/live_games.json.

While nobody watches, it only notes what the network thinks of a few streams, and looks for a watcher once a
second. A failure to write ends the view, not the training.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keisei.core.segment import Segment
from keisei.runs.live_games import (
    MOST_MOVES,
    LiveGame,
    LiveGames,
    is_watched,
    remove_live_games,
    write_live_games,
)
from keisei.shogi import Outcome, ShogiGame
from keisei.shogi.encoding import turns
from keisei.shogi.vector import FinishedGame, VectorGames
from keisei.training.game_streams import GameStreams
from keisei.training.listener import RunFacts, SilentListener, Update

STREAMS = 4  # the first of the first vector of games
_SECONDS = 1.0  # between two files, and between two looks for a watcher


class LiveView(SilentListener):
    """A listener that writes games while somebody watches; run: its directory. notice: gets a failure."""

    def __init__(self, run: Path, streams: GameStreams, notice: Callable[[str], None]) -> None:
        self._run, self._streams, self._notice = run, streams, notice
        self._watched = self._failed = False
        self._looked_at = self._wrote_at = -_SECONDS
        self._estimates = StreamEstimates()
        self._ended: dict[int, LiveGame] = {}  # by stream, since the last file

    def start(self, facts: RunFacts) -> None:  # noqa: ARG002
        """Remove what an earlier process has left."""
        self._without_failing(lambda: remove_live_games(self._run))

    def update(self, update: Update) -> None:
        """Follow the games, and write them if somebody watches."""
        if not self._failed:
            self._without_failing(lambda: self._follow(update))

    def _without_failing(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            self._failed = True
            self._notice(f"games can no longer be watched: {error}")

    def _follow(self, update: Update) -> None:
        estimates = self._estimates.advance([one.segment for one in update.played if one.vector == 0])
        ended = self._streams.advance(update, {0} if self._is_watched() else set())
        for game in ended:
            if game.slot < STREAMS:
                percents = estimates[game.slot].pop(0)
                # The first since the last file: it is the one that the file had in progress.
                self._ended.setdefault(game.slot, _ended_game(game, percents))
        if self._watched and time.monotonic() - self._wrote_at >= _SECONDS:
            self._wrote_at = time.monotonic()
            games = self._in_progress(update) | self._ended
            self._ended = {}
            shown = tuple(games[slot] for slot in sorted(games))
            workers = tuple(worker.state for worker in update.workers)
            write_live_games(self._run, LiveGames(update.step, shown, workers))

    def _is_watched(self) -> bool:
        now = time.monotonic()
        if now - self._looked_at >= _SECONDS:
            self._looked_at, self._watched = now, is_watched(self._run)
            if not self._watched:
                self._ended = {}
        return self._watched

    def _in_progress(self, update: Update) -> dict[int, LiveGame]:
        vector = VectorGames.restore(update.saved_games[0].games)
        found = {}
        for slot in range(min(STREAMS, len(vector))):
            game = vector.game(slot)
            moves = list(map(str, game.history))
            percents = self._estimates.of_games_in_progress[slot]
            found[slot] = _live_game(vector.numbers[slot], game.start_sfen, moves, percents, None)
        return found


class StreamEstimates:
    """What the network thinks of the positions of the followed streams: Black's score in percent.

    of_games_in_progress: for each stream, of the positions in which the network has moved, as far as known.
    """

    def __init__(self) -> None:
        self.of_games_in_progress: list[list[int]] = [[] for _ in range(STREAMS)]
        self._after: bytes | None = None  # the positions after the last segment

    def advance(self, segments: Sequence[Segment]) -> list[list[list[int]]]:
        """Go on by the segments of an update; return those of the games that ended, for each stream."""
        ended: list[list[list[int]]] = [[] for _ in range(STREAMS)]
        for segment in segments:
            if segment.packed[0, :STREAMS].tobytes() != self._after:  # at first, or moves are missing
                self.of_games_in_progress = [[] for _ in range(STREAMS)]
            self._after = segment.after[:STREAMS].tobytes()
            for stream in range(min(STREAMS, segment.packed.shape[1])):
                ends = np.flatnonzero(segment.ended[:, stream]) + 1
                first, *later = np.split(_black_percent(segment, stream), ends)
                self.of_games_in_progress[stream] += first.tolist()
                for part in later:
                    ended[stream].append(self.of_games_in_progress[stream])
                    self.of_games_in_progress[stream] = part.tolist()
        return ended


def _black_percent(segment: Segment, stream: int) -> npt.NDArray[np.int64]:
    """Return Black's score in percent in the positions of a stream: int64 [T]."""
    values = np.clip(np.nan_to_num(segment.values[:, stream]), -1, 1)
    blacks = np.where(turns(segment.packed[:, stream]) == 0, values, -values)
    percents: npt.NDArray[np.int64] = np.rint(50 + 50 * blacks).astype(np.int64)
    return percents


def _ended_game(game: FinishedGame, percents: list[int]) -> LiveGame:
    moves = list(map(str, game.moves))
    return _live_game(game.number, game.start_sfen, moves, percents, game.outcome)


def _live_game(
    number: int, start_sfen: str, moves: list[str], percents: list[int], outcome: Outcome | None
) -> LiveGame:
    """Return the last moves of a game; percents: of the last ones, as far as they are known."""
    before = max(0, len(moves) - MOST_MOVES)
    game = ShogiGame(start_sfen, max_moves=None, declaration="off")
    for move in moves[:before]:
        game.push(move)
    unknown: list[int | None] = [None] * (len(moves) - len(percents))
    shown = (unknown + percents)[before:]
    return LiveGame(number, before, game.sfen(), tuple(moves[before:]), tuple(shown), outcome)

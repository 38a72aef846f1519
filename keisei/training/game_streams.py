"""GameStreams: the games of a run with all their moves, recovered from what the learner holds anyway.

The saved games have every move up to the last update, and the segments of the next one have the moves since.
Both together are played again without a network, which takes a microsecond or two per move and checks every
move. So nothing more travels from workers and other ranks, nothing is remembered here, and a game that began
before a resume is complete like any other.
"""

from collections.abc import Collection, Iterator, Sequence

from keisei.config.schema import EnvConfig
from keisei.core.self_play import SavedGames, SelfPlay
from keisei.shogi.vector import FinishedGame
from keisei.training.listener import Update


class GameStreams:
    """The streams of games of a run, from update to update; saved: as they are before the next update."""

    def __init__(self, config: EnvConfig, saved: Sequence[SavedGames]) -> None:
        self._config = config
        self._saved = saved

    def advance(self, update: Update, vectors: Collection[int]) -> list[FinishedGame]:
        """Go on to the next update; return the games that ended in it in these vectors, in their order.

        Call this for every update, with no vectors if no games are wanted. Where moves are missing, because
        the learner has dropped a segment that was played with old weights, what ended since then in this
        update is missing too.
        """
        before, self._saved = self._saved, update.saved_games
        return [game for vector in sorted(vectors) for game in self._ended(before[vector], update, vector)]

    def _ended(self, before: SavedGames, update: Update, vector: int) -> Iterator[FinishedGame]:
        self_play = SelfPlay.restore(before, self._config)
        for one in update.played:
            if one.vector == vector:
                ended = self_play.replay(one.segment)
                if ended is None:
                    return
                yield from ended

"""A checkpoint's network as an opponent in the terminal."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from keisei.shogi import Move, ShogiGame
from keisei.usi.clock import Control
from keisei.usi.decision import Decision
from keisei.usi.opponent import Advice, Resignation
from keisei.usi.options import Options
from keisei.usi.protocol import Info, Limits
from keisei.usi.thinking import Thinker

ADVICE_VISITS = 400  # at least, also where it plays from its policy alone, which has no line


class NetworkOpponent:
    """A network that searches, or plays from its policy alone if options.policy is set."""

    def __init__(self, thinker: Thinker, options: Options) -> None:
        self.name = thinker.name
        self._thinker = thinker
        self._options = options
        self._advice = replace(options, policy=False, visits=max(options.visits, ADVICE_VISITS))

    @classmethod
    def load(cls, checkpoint: Path, visits: int) -> "NetworkOpponent":
        """Load a checkpoint; visits: how much it searches, 0 for its policy alone."""
        options = Options(visits=visits, policy=visits == 0)
        return cls(Thinker.load(checkpoint, options), options)

    def decide(self, game: ShogiGame) -> Move | Resignation:
        """Return what it plays."""
        decision, _ = self._think(game, self._options)
        return decision.move if isinstance(decision.move, Move) else Resignation()

    def advise(self, game: ShogiGame) -> Advice:
        """Return its best line and what it thinks of it."""
        _, info = self._think(game, self._advice)
        line = tuple(move for move in info.pv if isinstance(move, Move))
        return Advice((info.value + 1) / 2, info.mate, line)

    def end(self, game: ShogiGame) -> None:
        """Nothing is held."""

    def _think(self, game: ShogiGame, options: Options) -> tuple[Decision, Info]:
        told: list[Info] = []

        def tell(infos: Sequence[Info]) -> None:
            told[:] = infos[:1]

        control = Control(time.monotonic(), None, waits=False)
        decision = self._thinker.think(game, Limits(), options, control, tell)
        return decision, told[0]

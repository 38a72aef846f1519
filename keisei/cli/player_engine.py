"""A player of matches as a USI engine: it takes the time that it takes, whatever the clock says."""

import random
from collections.abc import Mapping

from keisei.cli.player_opponent import ready_player
from keisei.evaluation.players.player import Lost, Player, Turn
from keisei.shogi import ShogiGame
from keisei.usi.clock import Control
from keisei.usi.decision import Decision, Tell
from keisei.usi.engine import Mind
from keisei.usi.main import talk
from keisei.usi.options import Options
from keisei.usi.protocol import Limits

OPTIONS = ("MaxMoves", "EnteringKingRule")  # the rules of the game; a player has no others


def run(text: str, options: Mapping[str, str]) -> int:
    """Be the engine that a player's text names, see make_player, and return the exit code."""
    player = ready_player(text, random.getrandbits(63))  # a different game each time
    try:
        return talk(Mind(player.name, lambda _: PlayerThinker(player), OPTIONS), options)
    finally:
        player.close()


class PlayerThinker:
    """A player that is asked about one position at a time."""

    max_moves = 512

    def __init__(self, player: Player) -> None:
        self._player = player

    def think(
        self, game: ShogiGame, limits: Limits, options: Options, control: Control, tell: Tell
    ) -> Decision:
        """Return its move, or that it resigns, as one does whose engine is gone."""
        del limits, options, tell  # its effort is its own, and it has no values
        turn = Turn(game, 0)
        (answer,) = self._player.choose([turn])
        control.wait()
        return Decision("resign" if isinstance(answer, Lost) else answer)

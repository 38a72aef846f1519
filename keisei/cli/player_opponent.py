"""A player of matches as an opponent in the terminal: it has moves, but no values to give hints with."""

import random

from keisei.evaluation.players.player import Lost, Player, Turn
from keisei.evaluation.players.player_specs import make_player
from keisei.evaluation.players.usi_player import UsiPlayer
from keisei.shogi import Move, ShogiGame
from keisei.usi.opponent import Resignation


def load_player(text: str) -> "PlayerOpponent":
    """Return the player that a text names, see make_player; an engine is started."""
    return PlayerOpponent(ready_player(text, random.getrandbits(63)))  # a different game each time


def ready_player(text: str, seed: int) -> Player:
    """Return the player that a text names, and start it if it is an engine."""
    player = make_player(text, seed)
    if isinstance(player, UsiPlayer):
        try:
            player.start()
        except BaseException:
            player.close()
            raise
    return player


class PlayerOpponent:
    """A player at one game."""

    def __init__(self, player: Player) -> None:
        self.name = player.name
        self._player = player

    def decide(self, game: ShogiGame) -> Move | Resignation:
        """Return its move; a fault, such as an engine's crash, is a resignation that says so."""
        (answer,) = self._player.choose([Turn(game, 0)])
        return Resignation(answer.detail) if isinstance(answer, Lost) else answer

    def advise(self, game: ShogiGame) -> None:
        """A player tells its move only, which is no advice."""

    def end(self, game: ShogiGame) -> None:
        """End the game and what runs for it."""
        self._player.end_game(Turn(game, 0))
        self._player.close()

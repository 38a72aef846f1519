"""Playing strength: players, matches between them, ratings. Never imports the training loop."""

from keisei.evaluation.conditions import Conditions, read_openings
from keisei.evaluation.match import PlayedGame, play_match
from keisei.evaluation.match_result import MatchResult, Tally
from keisei.evaluation.player import Answer, Lost, Player, Turn
from keisei.evaluation.players import (
    AlphaBetaPlayer,
    GreedyPlayer,
    MaterialPlayer,
    NetworkPlayer,
    Policy,
    RandomPlayer,
)

__all__ = [
    "AlphaBetaPlayer",
    "Answer",
    "Conditions",
    "GreedyPlayer",
    "Lost",
    "MatchResult",
    "MaterialPlayer",
    "NetworkPlayer",
    "PlayedGame",
    "Player",
    "Policy",
    "RandomPlayer",
    "Tally",
    "Turn",
    "play_match",
    "read_openings",
]

"""Playing strength: players, matches between them, ratings. Never imports the training loop."""

from keisei.evaluation.matches.match import PlayedGame, play_match
from keisei.evaluation.matches.match_conditions import MatchConditions, read_openings
from keisei.evaluation.matches.match_result import MatchResult, Tally
from keisei.evaluation.players.built_in import (
    AlphaBetaPlayer,
    GreedyPlayer,
    MaterialPlayer,
    NetworkPlayer,
    Policy,
    RandomPlayer,
)
from keisei.evaluation.players.player import Answer, Lost, Player, Turn

__all__ = [
    "AlphaBetaPlayer",
    "Answer",
    "GreedyPlayer",
    "Lost",
    "MatchConditions",
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

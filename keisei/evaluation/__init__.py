"""Playing strength: players, and matches between them. Never imports the training loop."""

from keisei.evaluation.match import MatchResult, Tally, make_opponent, play_match
from keisei.evaluation.players import GreedyPlayer, NetworkPlayer, Player, Policy, RandomPlayer

__all__ = [
    "GreedyPlayer",
    "MatchResult",
    "NetworkPlayer",
    "Player",
    "Policy",
    "RandomPlayer",
    "Tally",
    "make_opponent",
    "play_match",
]

"""A ladder: many players, rated by playing where the ratings are least certain.

First each player meets its neighbour in the list. Then, again and again, whoever's rating is the least
certain plays some games against the opponent of whom most is learned: the nearest one in strength.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from keisei.evaluation.rating import Ratings

_BEYOND = 200.0  # Elo beyond the known end of an interval that has only one
ENDLESS_GAMES = 400  # after which somebody who has won all games, or none, is not asked for more


def next_pairing(
    players: Sequence[str], ratings: Ratings | None, games: Mapping[frozenset[str], int], precision: float
) -> tuple[str, str] | None:
    """Return who plays next, by identity; None when every interval is at most ± precision Elo wide.

    A player who has scored in all games or in none has an interval without an end, and more games may never
    give it one; after ENDLESS_GAMES it is left at that. games: how many have been played by each two.
    """
    for one, other in pairwise(players):
        if not games.get(frozenset((one, other))):
            return other, one
    if ratings is None or len(players) < 2:
        return None
    known = {name: ratings[name] for name in players}
    widths = {name: (rating.high - rating.low) / 2 for name, rating in known.items()}

    def uncertainty(name: str) -> tuple[float, int]:
        return widths[name], -known[name].games

    open_ones = [name for name in players if math.isfinite(widths[name]) or known[name].games < ENDLESS_GAMES]
    least_certain = max(open_ones, key=uncertainty)
    if widths[least_certain] <= precision:
        return None
    guess = {name: _guess(rating.elo, rating.low, rating.high) for name, rating in known.items()}

    def information(name: str) -> float:
        """What a game against this opponent tells: the most if both are as strong, or nobody knows."""
        expected = 1 / (1 + 10 ** ((guess[name] - guess[least_certain]) / 400))
        # An opponent who is not certain either tells less.
        return expected * (1 - expected) / (1 + (min(widths[name], 1000) / 400) ** 2)

    opponent = max((name for name in players if name != least_certain), key=information)
    return least_certain, opponent


def _guess(elo: float, low: float, high: float) -> float:
    """Return a rating to reckon with: the estimate, or a little beyond the end that is known."""
    if math.isfinite(elo):
        return elo
    if math.isfinite(low):
        return low + _BEYOND
    return high - _BEYOND if math.isfinite(high) else 0.0


def climb(
    players: Sequence[str],
    play: Callable[[str, str], None],
    ratings: Callable[[], Ratings | None],
    games: Callable[[], Mapping[frozenset[str], int]],
    *,
    precision: float,
    should_stop: Callable[[], bool],
) -> bool:
    """Let players play until all ratings are certain enough; return whether they are.

    play: plays some more games between two, by identity. games: how many each two have played.
    """
    while not should_stop():
        played = games()
        pairing = next_pairing(players, ratings(), played, precision)
        if pairing is None:
            return True
        play(*pairing)
    return False

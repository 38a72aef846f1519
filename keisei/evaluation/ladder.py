"""A ladder: many players, rated by playing where most is learned.

First each player meets its neighbour in the list. Then, again and again, those two play some games who tell
the most about the rating that is the least certain. Its owner need not be one of them: where a chain of
players leads to the anchor, the weakest link counts, and more games at its far end make nothing more certain.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise

from keisei.evaluation.rating import ELO_PER_NAT, Ratings

ENDLESS_GAMES = 400  # after which somebody who has won all games, lost all or drawn all is not asked for more
_ALL_DRAWN = 200.0  # nu, where 99 % of the games of equals are drawn
_BEYOND = 200.0  # Elo beyond the known end of an interval that has only one
_AHEAD = 20  # games over which two are compared with two others


def next_pairing(
    players: Sequence[str], ratings: Ratings | None, games: Mapping[frozenset[str], int], precision: float
) -> tuple[str, str] | None:
    """Return who plays next, by identity; None when every interval is at most ± precision Elo wide.

    More games may never tell more about a player who has won all of them or lost all, whose interval has one
    end only, nor about anybody where all games are drawn; after ENDLESS_GAMES it is left at that.
    games: how many have been played by each two.
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

    def may_be_settled(name: str) -> bool:
        endless = math.isinf(widths[name]) or ratings.nu > _ALL_DRAWN
        return not endless or known[name].games < ENDLESS_GAMES

    least_certain = max(filter(may_be_settled, players), key=uncertainty, default=None)
    if least_certain is None or widths[least_certain] <= precision:
        return None
    if math.isfinite(known[least_certain].elo):
        return max(combinations(players, 2), key=lambda two: _learned(ratings, least_certain, *two))

    def nearness(name: str) -> float:
        # An opponent who is not certain either tells less.
        return _chance(ratings, least_certain, name) / (1 + (widths[name] / 400) ** 2)

    # Whose Elo is infinite too would not help: it takes a game with somebody who is tied to the anchor.
    finite = [name for name in players if math.isfinite(known[name].elo)]
    return least_certain, max(finite, key=nearness)


def _learned(ratings: Ratings, about: str, one: str, other: str) -> float:
    """Return by how much the variance of a rating, in Elo², falls if two play some games.

    With the covariance C of all ratings, d = +1 for the one and -1 for the other, and the games' information
    about their difference I, C becomes C - C d dᵀ C · I / (1 + I dᵀ C d).
    """
    rows = {rating.player: row for row, rating in enumerate(ratings.table)}
    covariance, first, second = ratings.covariance, rows[one], rows[other]
    with_difference = covariance[first] - covariance[second]
    information = _AHEAD * _chance(ratings, one, other) / ELO_PER_NAT**2
    variance = with_difference[first] - with_difference[second]
    fall = float(information * with_difference[rows[about]] ** 2 / (1 + information * variance))
    return 0.0 if math.isnan(fall) else fall  # somebody's Elo is infinite: what is learned is not known


def _chance(ratings: Ratings, one: str, other: str) -> float:
    """Return how much chance there is in a game: the variance of its points, ¼ for equals who never draw."""
    difference = _reckoned(ratings, one) - _reckoned(ratings, other)
    strength = 10 ** (max(-4000.0, min(difference, 4000.0)) / 400)
    drawn = ratings.nu * math.sqrt(strength)
    win, draw = strength / (strength + 1 + drawn), drawn / (strength + 1 + drawn)
    return win + draw / 4 - (win + draw / 2) ** 2


def _reckoned(ratings: Ratings, name: str) -> float:
    """Return a rating to reckon with: the estimate, or a little beyond the end that is known."""
    rating = ratings[name]
    if math.isfinite(rating.elo):
        return rating.elo
    if math.isfinite(rating.low):
        return rating.low + _BEYOND
    return rating.high - _BEYOND if math.isfinite(rating.high) else 0.0


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
        pairing = next_pairing(players, ratings(), games(), precision)
        if pairing is None:
            return True
        play(*pairing)
    return False

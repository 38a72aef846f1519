"""A ladder: many players, rated by playing where the ratings are least certain.

First each player meets its neighbour in the list. Then, again and again, the least certain rating is found,
and the two players whose games would narrow it most play some: often two others, since every rating depends
on those between it and the anchor.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from keisei.evaluation.ratings.rating import ELO_PER_NAT, PairResult, rate

ENDLESS_GAMES = 400  # after which a player that has won, lost or drawn them all plays no more
_ALL_DRAWN = 200.0  # nu at which equals draw 99 % of their games


def next_pairing(
    players: Sequence[str], results: Sequence[PairResult], anchor: str, precision: float
) -> tuple[str, str] | None:
    """Return who plays next, by identity; None when every interval is at most ± precision Elo.

    More games may never tell more about a player that has won or lost them all, whose interval has only one
    end, or about anyone if all games are drawn; after ENDLESS_GAMES no more are played for it. If that is so
    for everybody, since the anchor has lost or won all its games, the ladder goes on without the anchor.
    results: of these players, possibly with others. anchor: the player whose rating is 0.
    """
    met = {frozenset(row[:2]) for row in results}
    for one, other in pairwise(players):
        if frozenset((one, other)) not in met:
            return other, one
    uncertain = _uncertain(players, results, anchor, precision) if len(players) > 1 else []
    if not uncertain:
        return _among_the_others(players, results, anchor, precision)
    # Half a win and half a loss are added for each pair that has met, so that every strength is finite.
    finite = [
        PairResult(row.player, row.opponent, 2 * row.wins + 1, 2 * row.draws, 2 * row.losses + 1)
        for row in results
    ]
    ratings = rate(finite, anchor)
    place = {rating.player: index for index, rating in enumerate(ratings.table)}
    covariance = ratings.covariance / ELO_PER_NAT**2
    target = max((place[name] for name in uncertain), key=lambda index: float(covariance[index, index]))

    def gain(pair: tuple[str, str]) -> float:
        """Return by how much a game of these two lowers the variance of the least certain rating."""
        a, b = (place[name] for name in pair)
        expected = 1 / (1 + math.exp((ratings.table[b].elo - ratings.table[a].elo) / ELO_PER_NAT))
        information = expected * (1 - expected)
        variance = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
        shared = covariance[target, a] - covariance[target, b]
        return float(information * shared**2 / (1 + information * variance))

    return max(combinations(players, 2), key=gain)


def _among_the_others(
    players: Sequence[str], results: Sequence[PairResult], anchor: str, precision: float
) -> tuple[str, str] | None:
    """Return who plays next where nobody's distance from the anchor can be told: the others' distances count.

    None if somebody's can be told: then every rating that can be certain is.
    """
    others = [name for name in players if name != anchor]
    if len(others) < 2 or any(
        math.isfinite(one.high - one.low) for one in rate(results, anchor).table if one.player in others
    ):
        return None
    own = [row for row in results if anchor not in row[:2]]
    return next_pairing(others, own, others[0], precision)


def _uncertain(
    players: Sequence[str], results: Sequence[PairResult], anchor: str, precision: float
) -> list[str]:
    """Return the players whose intervals should become narrower."""
    ratings = rate(results, anchor)
    wide = [one for one in ratings.table if one.player in players and (one.high - one.low) / 2 > precision]
    all_drawn = ratings.nu > _ALL_DRAWN
    return [
        one.player
        for one in wide
        if one.games < ENDLESS_GAMES or (math.isfinite(one.high - one.low) and not all_drawn)
    ]


def climb(
    players: Sequence[str],
    play: Callable[[str, str], None],
    results: Callable[[], Sequence[PairResult]],
    anchor: str,
    *,
    precision: float,
    should_stop: Callable[[], bool],
) -> bool:
    """Play until all ratings are certain enough; return whether they are.

    play: plays more games between two identities. results: returns those of all games so far.
    """
    while not should_stop():
        pairing = next_pairing(players, results(), anchor, precision)
        if pairing is None:
            return True
        play(*pairing)
    return False

"""The ladder: who plays whom, when it ends, and that its intervals contain known strengths."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from keisei.evaluation.ladder import ENDLESS_GAMES, climb, next_pairing
from keisei.evaluation.rating import PairResult, Ratings, rate

NAMES = ("random", "a", "b", "c")


def rated(*rows: tuple[str, str, int, int, int]) -> tuple[Ratings, dict[frozenset[str], int]]:
    """Ratings, and how many games each two have played."""
    results = [PairResult(*row) for row in rows]
    return rate(results), {frozenset(row[:2]): sum(row[2:]) for row in results}


def test_neighbours_play_first() -> None:
    played: dict[frozenset[str], int] = {}
    for expected in (("a", "random"), ("b", "a"), ("c", "b")):
        assert next_pairing(NAMES, None, played, 50) == expected
        played[frozenset(expected)] = 2


def test_neighbours_that_have_played_before_are_passed_over() -> None:
    assert next_pairing(NAMES, None, {frozenset(("a", "b")): 2}, 50) == ("a", "random")
    assert next_pairing(NAMES, None, {frozenset(("random", "a")): 2}, 50) == ("b", "a")


def who_plays(
    precision: float, *rows: tuple[str, str, int, int, int], names: Sequence[str] = NAMES
) -> set[str]:
    pairing = next_pairing(names, *rated(*rows), precision)
    return set() if pairing is None else {*pairing}


def test_the_least_certain_plays_who_is_nearest() -> None:
    others = ("a", "random", 60, 20, 20), ("b", "a", 80, 20, 20), ("b", "random", 90, 10, 5)
    assert who_plays(30, *others, ("c", "b", 3, 1, 2)) == {"c", "b"}
    assert who_plays(30, *others, ("c", "b", 1, 1, 12)) == {"c", "random"}


def test_of_two_opponents_as_near_the_more_certain_one_is_chosen() -> None:
    rows = ("known", "random", 2900, 60, 40), ("unknown", "known", 10, 4, 10), ("new", "unknown", 2, 1, 2)
    ratings, _ = rated(*rows)
    assert abs(ratings["known"].elo - ratings["unknown"].elo) < 10
    assert who_plays(30, *rows, names=("random", "known", "unknown", "new")) == {"new", "known"}


def test_where_a_chain_is_weak_it_is_made_stronger_and_not_at_its_end() -> None:
    # c is the least certain, but not because of its games with b, who is as strong.
    rows = ("a", "random", 6, 2, 2), ("b", "a", 5, 1, 4), ("c", "b", 400, 100, 400)
    ratings, games = rated(*rows)
    assert max(ratings.table, key=lambda one: one.high - one.low).player in ("b", "c")
    pairing = next_pairing(NAMES, ratings, games, 30)
    assert pairing is not None
    assert {*pairing} != {"b", "c"}
    assert "random" in pairing


def test_who_has_won_everything_plays_the_strongest_and_who_has_lost_everything_the_weakest() -> None:
    ratings, games = rated(
        ("a", "random", 30, 5, 10), ("b", "a", 60, 10, 20), ("c", "b", 8, 0, 0), ("c", "random", 8, 0, 0)
    )
    assert math.isinf(ratings["c"].high)
    assert next_pairing(NAMES, ratings, games, 30) == ("c", "b")
    ratings, games = rated(
        ("a", "random", 30, 5, 10), ("b", "a", 60, 10, 20), ("c", "b", 0, 0, 8), ("c", "a", 0, 0, 8)
    )
    assert next_pairing(NAMES, ratings, games, 30) == ("c", "random")


def test_two_who_have_beaten_all_others_play_these_and_not_each_other() -> None:
    rows = ("a", "random", 60, 20, 20), ("b", "a", 20, 0, 0), ("c", "b", 10, 2, 8)
    ratings, _ = rated(*rows)
    assert math.isinf(ratings["b"].high)
    assert math.isinf(ratings["c"].high)
    assert who_plays(60, *rows) in ({"b", "a"}, {"c", "a"})


def test_it_ends_when_every_interval_is_narrow_enough() -> None:
    ratings, games = rated(
        ("a", "random", 600, 200, 200), ("b", "a", 800, 200, 200), ("c", "b", 300, 100, 200)
    )
    widths = [(one.high - one.low) / 2 for one in ratings.table]
    assert next_pairing(NAMES, ratings, games, max(widths) + 0.01) is None
    assert next_pairing(NAMES, ratings, games, max(widths) - 0.01) is not None
    assert next_pairing(["random"], None, {}, 1) is None


def test_somebody_who_always_wins_does_not_keep_it_going_for_ever() -> None:
    enough = ENDLESS_GAMES
    rows = ("a", "random", 600, 200, 200), ("b", "a", 800, 200, 200)
    ratings, games = rated(*rows, ("c", "b", enough - 2, 0, 0))
    assert next_pairing(NAMES, ratings, games, 100) == ("c", "b")
    ratings, games = rated(*rows, ("c", "b", enough, 0, 0))
    assert next_pairing(NAMES, ratings, games, 100) is None
    # The others go on.
    pairing = next_pairing(NAMES, ratings, games, 1)
    assert pairing is not None
    assert "c" not in pairing


def test_where_all_games_are_drawn_it_ends_too() -> None:
    few, many = (
        rated(("a", "random", 0, games, 0), ("b", "a", 0, games, 0), ("c", "b", 0, games, 0))
        for games in (ENDLESS_GAMES // 4, ENDLESS_GAMES)
    )
    assert next_pairing(NAMES, *few, 60) is not None
    assert next_pairing(NAMES, *many, 60) is None


class World:
    """Players who are numbers: a game is drawn at random, from Elo alone, by the model's own formula."""

    def __init__(self, elo: dict[str, float], seed: int, nu: float = 0.4) -> None:
        self.elo = elo
        self.results: Counter[tuple[str, str, int]] = Counter()
        self.matches: list[tuple[str, str]] = []
        self._random = random.Random(seed)
        self._nu = nu

    def play(self, one: str, other: str) -> None:
        self.matches.append((one, other))
        strength = 10 ** ((self.elo[one] - self.elo[other]) / 400)
        weights = [strength, self._nu * math.sqrt(strength), 1.0]
        for half_points in self._random.choices([2, 1, 0], weights, k=20):
            self.results[one, other, half_points] += 1

    def ratings(self) -> Ratings | None:
        rows = [
            PairResult(one, other, *(count * (points == wanted) for wanted in (2, 1, 0)))
            for (one, other, points), count in self.results.items()
        ]
        return rate(rows) if any("random" in row[:2] for row in rows) else None

    def games(self) -> dict[frozenset[str], int]:
        sums: Counter[frozenset[str]] = Counter()
        for (one, other, _), count in self.results.items():
            sums[frozenset((one, other))] += count
        return sums


@pytest.mark.parametrize("seed", [1, 3])
def test_known_strengths_lie_in_the_intervals(seed: int) -> None:
    elo = {"random": 0.0, "weak": 120.0, "net": 300.0, "twin": 310.0, "strong": 700.0, "engine": 820.0}
    world = World(elo, seed)
    assert climb([*elo], world.play, world.ratings, world.games, precision=70, should_stop=lambda: False)
    ratings = world.ratings()
    assert ratings is not None
    assert all((one.high - one.low) / 2 <= 70 for one in ratings.table)
    # Of 40 seeds, 93 % of the intervals contain the truth; of these seeds all.
    assert [one.player for one in ratings.table if not one.low <= elo[one.player] <= one.high] == []
    assert world.matches[:5] == [
        ("weak", "random"), ("net", "weak"), ("twin", "net"), ("strong", "twin"), ("engine", "strong"),
    ]  # fmt: skip
    # Games are spent where something is learned: few between the first and the last.
    assert world.games().get(frozenset(("random", "engine")), 0) < 0.1 * sum(world.games().values())
    assert sum(world.games().values()) < 2500


def test_it_stops_when_it_is_told() -> None:
    world = World({"random": 0.0, "a": 100.0, "b": 200.0}, seed=1)
    left = iter(range(4))
    done = climb(
        [*world.elo], world.play, world.ratings, world.games, precision=1,
        should_stop=lambda: next(left, None) is None,
    )  # fmt: skip
    assert not done
    assert len(world.matches) == 4


def test_one_who_wins_every_game_gets_a_bound_and_the_ladder_ends() -> None:
    world = World({"random": 0.0, "a": 100.0, "god": 20_000.0}, seed=1)
    assert climb(
        [*world.elo], world.play, world.ratings, world.games, precision=60, should_stop=lambda: False
    )
    ratings = world.ratings()
    assert ratings is not None
    assert math.isinf(ratings["god"].elo)
    assert ratings["god"].low > 500
    assert ratings["god"].games == ENDLESS_GAMES

"""The ladder: who plays whom, when it ends, and that its intervals contain known strengths."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from keisei.evaluation.ratings.ladder import ENDLESS_GAMES, climb, next_pairing
from keisei.evaluation.ratings.rating import PairResult, rate

NAMES = ("random", "a", "b", "c")


Row = tuple[str, str, int, int, int]


def pairing(precision: float, *rows: Row, names: Sequence[str] = NAMES) -> set[str]:
    """Return who plays next after these results, None when the ladder is done."""
    two = next_pairing(names, [PairResult(*row) for row in rows], "random", precision)
    return set() if two is None else {*two}


def widths(*rows: Row) -> list[float]:
    return [(one.high - one.low) / 2 for one in rate([PairResult(*row) for row in rows]).table]


def test_neighbours_play_first() -> None:
    results: list[PairResult] = []
    for expected in (("a", "random"), ("b", "a"), ("c", "b")):
        assert next_pairing(NAMES, results, "random", 50) == expected
        results.append(PairResult(*expected, 1, 0, 1))


def test_neighbours_that_have_played_before_are_passed_over() -> None:
    assert pairing(50, ("b", "a", 1, 0, 1)) == {"a", "random"}
    assert pairing(50, ("random", "a", 1, 0, 1)) == {"b", "a"}


def test_the_least_certain_plays_who_is_nearest() -> None:
    others = ("a", "random", 60, 20, 20), ("b", "a", 80, 20, 20), ("b", "random", 90, 10, 5)
    assert pairing(30, *others, ("c", "b", 3, 1, 2)) == {"c", "b"}
    assert pairing(30, *others, ("c", "b", 1, 1, 12)) == {"c", "random"}


def test_of_two_opponents_as_near_the_more_certain_one_is_chosen() -> None:
    rows = ("known", "random", 2900, 60, 40), ("unknown", "known", 10, 4, 10), ("new", "unknown", 2, 1, 2)
    assert pairing(30, *rows, names=("random", "known", "unknown", "new")) == {"new", "known"}


def test_where_a_chain_is_weak_it_is_made_stronger_and_not_at_its_end() -> None:
    # c is the least certain, but not because of its games with b, which is as strong.
    two = pairing(30, ("a", "random", 6, 2, 2), ("b", "a", 5, 1, 4), ("c", "b", 400, 100, 400))
    assert two != {"b", "c"}
    assert "random" in two


def test_a_link_that_only_one_side_has_scored_in_is_tried_again() -> None:
    # It is unknown how far below random is: more games between the others would not tell.
    assert pairing(30, ("a", "random", 40, 0, 0), ("b", "a", 30, 0, 20), ("c", "b", 30, 0, 20)) == {
        "a",
        "random",
    }


def test_who_has_won_everything_plays_the_strongest_and_who_has_lost_everything_the_weakest() -> None:
    known = ("a", "random", 30, 5, 10), ("b", "a", 60, 10, 20)
    assert pairing(30, *known, ("c", "b", 8, 0, 0), ("c", "random", 8, 0, 0)) == {"c", "b"}
    assert pairing(30, *known, ("c", "b", 0, 0, 8), ("c", "a", 0, 0, 8)) == {"c", "random"}


def test_two_who_have_beaten_all_others_play_these_and_not_each_other() -> None:
    rows = ("a", "random", 60, 20, 20), ("b", "a", 20, 0, 0), ("c", "b", 10, 2, 8)
    assert pairing(60, *rows) in ({"b", "a"}, {"c", "a"})


def test_it_ends_when_every_interval_is_narrow_enough() -> None:
    rows = ("a", "random", 600, 200, 200), ("b", "a", 800, 200, 200), ("c", "b", 300, 100, 200)
    widest = max(widths(*rows))
    assert pairing(widest + 0.01, *rows) == set()
    assert pairing(widest - 0.01, *rows) != set()
    assert next_pairing(["random"], [], "random", 1) is None


def test_somebody_who_always_wins_does_not_keep_it_going_for_ever() -> None:
    rows = ("a", "random", 600, 200, 200), ("b", "a", 800, 200, 200)
    assert pairing(100, *rows, ("c", "b", ENDLESS_GAMES - 2, 0, 0)) == {"c", "b"}
    assert pairing(100, *rows, ("c", "b", ENDLESS_GAMES, 0, 0)) == set()
    # The others go on.
    assert "c" not in pairing(1, *rows, ("c", "b", ENDLESS_GAMES, 0, 0)) != set()


def test_if_nobody_has_lost_to_the_anchor_the_others_go_on_without_it() -> None:
    beaten = ("a", "random", ENDLESS_GAMES, 0, 0)
    rows = beaten, ("b", "a", 250, 0, 250), ("c", "b", 300, 0, 200)
    assert pairing(10, *rows) in ({"a", "b"}, {"a", "c"}, {"b", "c"})
    assert pairing(100, *rows) == set()
    assert pairing(10, beaten, names=("random", "a")) == set()


def test_where_all_games_are_drawn_it_ends_too() -> None:
    few, many = (
        [("a", "random", 0, games, 0), ("b", "a", 0, games, 0), ("c", "b", 0, games, 0)]
        for games in (ENDLESS_GAMES // 4, ENDLESS_GAMES)
    )
    assert pairing(60, *few) != set()
    assert pairing(60, *many) == set()


class World:
    """Simulated players: results are drawn at random, from Elo alone, by the model's own formula."""

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

    def rows(self) -> list[PairResult]:
        return [
            PairResult(one, other, *(count * (points == wanted) for wanted in (2, 1, 0)))
            for (one, other, points), count in self.results.items()
        ]

    def games(self) -> dict[frozenset[str], int]:
        sums: Counter[frozenset[str]] = Counter()
        for (one, other, _), count in self.results.items():
            sums[frozenset((one, other))] += count
        return sums


@pytest.mark.parametrize("seed", [1, 3])
def test_known_strengths_lie_in_the_intervals(seed: int) -> None:
    elo = {"random": 0.0, "weak": 120.0, "net": 300.0, "twin": 310.0, "strong": 700.0, "engine": 820.0}
    world = World(elo, seed)
    assert climb([*elo], world.play, world.rows, "random", precision=70, should_stop=lambda: False)
    ratings = rate(world.rows())
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
        [*world.elo], world.play, world.rows, "random", precision=1,
        should_stop=lambda: next(left, None) is None,
    )  # fmt: skip
    assert not done
    assert len(world.matches) == 4


def test_one_who_wins_every_game_gets_a_bound_and_the_ladder_ends() -> None:
    world = World({"random": 0.0, "a": 100.0, "god": 20_000.0}, seed=1)
    assert climb([*world.elo], world.play, world.rows, "random", precision=60, should_stop=lambda: False)
    ratings = rate(world.rows())
    assert math.isinf(ratings["god"].elo)
    assert ratings["god"].low > 500
    assert ratings["god"].games == ENDLESS_GAMES

"""Ratings against a search without Newton's method, tables with known answers, and simulated play."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.evaluation.ratings.rating import PairResult, Rating, rate

HALF_QUANTILE = 1.959963984540054**2 / 2

Table = list[PairResult]

TABLES: dict[str, Table] = {
    "two": [PairResult("a", "random", 12, 0, 5)],
    "two with draws": [PairResult("a", "random", 12, 6, 5)],
    "wins and draws, no loss": [PairResult("a", "random", 8, 4, 0)],
    "draws only": [PairResult("a", "random", 0, 10, 0)],
    "two draws in a hundred": [PairResult("a", "random", 90, 2, 8)],
    "three in a chain": [PairResult("b", "a", 30, 10, 12), PairResult("a", "random", 40, 3, 2)],
    "three in a circle": [
        PairResult("a", "b", 5, 0, 0),
        PairResult("b", "random", 7, 0, 0),
        PairResult("random", "a", 4, 0, 0),
    ],
    "four": [
        PairResult("a", "random", 14, 3, 3),
        PairResult("b", "a", 9, 6, 5),
        PairResult("c", "b", 3, 2, 11),
        PairResult("c", "random", 8, 1, 7),
        PairResult("b", "random", 10, 0, 0),
    ],
}


def log_likelihood(table: Table, elo: dict[str, float], nu: float) -> float:
    """Return the value by definition; with draws, ν also sees one decisive game between equals."""
    total = -math.log(2 + nu) if any(row.draws for row in table) else 0.0
    for row in table:
        mine, other = (10 ** (elo[name] / 400) for name in (row.player, row.opponent))
        draw = nu * math.sqrt(mine * other)
        for count, weight in ((row.wins, mine), (row.draws, draw), (row.losses, other)):
            if count:
                total += count * math.log(weight / (mine + draw + other))
    return total


def golden(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one hill is highest."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-5:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return (low + high) / 2


def searched(table: Table, fixed: dict[str, float]) -> tuple[dict[str, float], float, float]:
    """Return Elo, ν and log-likelihood by climbing along one axis after the other; fixed players stay."""
    elo = {name: 0.0 for row in table for name in row[:2]} | fixed
    draws = any(row.draws for row in table)
    log_nu = 0.0 if draws else -math.inf
    while True:
        before = log_likelihood(table, elo, math.exp(log_nu))
        reach = 1500.0
        for name in elo.keys() - fixed.keys():

            def along(value: float, name: str = name, log_nu: float = log_nu) -> float:
                return log_likelihood(table, elo | {name: value}, math.exp(log_nu))

            elo[name] = golden(along, elo[name] - reach, elo[name] + reach)
        if draws:
            log_nu = golden(lambda value: log_likelihood(table, elo, math.exp(value)), -8, 8)
        value = log_likelihood(table, elo, math.exp(log_nu))
        if value - before < 1e-12:
            return elo, math.exp(log_nu), value


def by_name(table: Iterable[Rating]) -> dict[str, Rating]:
    return {rating.player: rating for rating in table}


@pytest.mark.parametrize("name", TABLES)
def test_the_ratings_are_those_that_a_search_finds(name: str) -> None:
    table = TABLES[name]
    elo, nu, highest = searched(table, {"random": 0.0})
    ratings = rate(table)
    assert ratings.nu == pytest.approx(nu, rel=1e-4)
    for rating in ratings.table:
        assert rating.elo == pytest.approx(elo[rating.player], abs=0.01)
        if rating.player != "random":
            for bound in (rating.low, rating.high):
                _, _, value = searched(table, {"random": 0.0, rating.player: bound})
                # At the least slope of these tables, 0.002 for one Elo, 0.01 Elo are worth 2e-5.
                assert highest - value == pytest.approx(HALF_QUANTILE, abs=2e-5)


def test_two_players_without_draws_have_the_elo_of_their_score() -> None:
    best, last = rate([PairResult("a", "random", 75, 0, 25)]).table
    assert best.elo == pytest.approx(400 * math.log10(3), abs=1e-9)
    assert (best.games, best.score, last.games, last.score) == (100, 0.75, 100, 0.25)
    assert last == Rating("random", 0.0, 0.0, 0.0, 100, 0.25)


def test_bounds_of_wins_alone_are_those_of_the_binomial() -> None:
    """n wins: the likelihood is p^n, and p at the bound exp(-quantile / n)."""
    for wins in (1, 10, 1000, 100_000):
        best, last = rate([PairResult("a", "random", wins, 0, 0)]).table
        p = math.exp(-HALF_QUANTILE / wins)
        assert best.low == pytest.approx(400 * math.log10(p / (1 - p)), abs=1e-3)
        assert (best.player, best.elo, best.high) == ("a", math.inf, math.inf)
        last = rate([PairResult("random", "a", wins, 0, 0)]).table[-1]
        assert (last.player, last.elo, last.low) == ("a", -math.inf, -math.inf)
        assert last.high == pytest.approx(-best.low, abs=1e-6)


def test_nobody_ever_drew() -> None:
    ratings = rate(TABLES["three in a circle"])
    assert ratings.nu == 0
    assert all(math.isfinite(rating.elo) for rating in ratings.table)


def test_an_anchor_that_lost_everything_leaves_the_others_comparable() -> None:
    table = [
        PairResult("a", "random", 50, 0, 0),
        PairResult("b", "random", 5, 0, 0),
        PairResult("b", "a", 30, 4, 10),
        PairResult("random", "worst", 8, 0, 0),
    ]
    ratings = rate(table)
    assert [rating.player for rating in ratings.table] == ["b", "a", "random", "worst"]
    found = by_name(ratings.table)
    assert found["a"].elo == found["b"].elo == found["a"].high == math.inf
    # b shares in what a has shown: its own five games would leave it at 100.
    assert 500 < found["a"].low < found["b"].low
    highest = searched(table[2:3], {"a": 0.0})[2]  # the other games are certain
    for name in "ab":
        _, _, value = searched(table[:3], {"random": 0.0, name: found[name].low})
        assert highest - value == pytest.approx(HALF_QUANTILE, abs=2e-5)
    assert (found["worst"].elo, found["worst"].low) == (-math.inf, -math.inf)
    assert ratings.superiority("b", "a") > 0.99
    assert ratings.superiority("a", "random") > 0.999
    relative = by_name(rate(table, anchor="a").table)
    assert 100 < relative["b"].elo < 250
    assert math.isfinite(relative["b"].low)
    assert relative["random"].elo == -math.inf


def test_players_who_won_everything_follow_each_other_by_their_bounds() -> None:
    table = [PairResult(name, "random", wins, 0, 0) for name, wins in (("a", 5), ("b", 50), ("c", 20))]
    table += [PairResult("random", name, wins, 0, 0) for name, wins in (("x", 50), ("y", 5))]
    assert [rating.player for rating in rate(table).table] == ["b", "c", "a", "random", "y", "x"]


def test_players_whom_no_results_compare_with_the_anchor_say_so() -> None:
    """c has beaten a player that the anchor has beaten; d and e have met only each other; f has no games."""
    table = [
        PairResult("random", "b", 5, 0, 0),
        PairResult("c", "b", 5, 0, 0),
        PairResult("d", "e", 5, 2, 3),
        PairResult("f", "random", 0, 0, 0),
    ]
    ratings = rate(table)
    found = by_name(ratings.table)
    for name in "cdef":
        assert math.isnan(found[name].elo)
        assert (found[name].low, found[name].high) == (-math.inf, math.inf)
    assert found["b"].elo == -math.inf
    assert [rating.player for rating in ratings.table[:2]] == ["random", "b"]
    assert math.isnan(found["f"].score)
    assert found["f"].games == 0
    assert ratings.superiority("c", "random") == 0.5
    assert ratings.superiority("d", "f") == 0.5
    assert 0.5 < ratings.superiority("d", "e") < 0.9


def test_a_chain_of_one_sided_matches_with_single_losses_is_rated() -> None:
    """Forty players, each a class above the last: 1999 wins and one loss."""
    names = ["random", *(f"p{k:02}" for k in range(1, 40))]
    table = [PairResult(names[k + 1], names[k], 1999, 0, 1) for k in range(39)]
    ratings = rate(table)
    step = 400 * math.log10(1999)
    assert [rating.player for rating in ratings.table] == names[::-1]
    for k, rating in enumerate(reversed(ratings.table)):
        assert rating.elo == pytest.approx(k * step, abs=1e-5)
        assert rating.low < rating.elo < rating.high or k == 0


def test_tables_at_the_edge_of_the_arithmetic_are_rated() -> None:
    """Draws alone, with unbounded variance; a million games against a few, where rounding matters."""
    flat = rate([PairResult("b", "random", 0, 3, 0), PairResult("b", "a", 0, 100_000, 0)])
    for rating in flat.table:
        assert rating.elo == pytest.approx(0, abs=1e-6)
        assert -math.inf < rating.low <= 0 <= rating.high < math.inf
    million = 1_000_000
    table = [PairResult("b", "random", 0, million, 0), PairResult("c", "random", million, 0, 1)]
    table += [PairResult("a", "c", million, 0, 0), PairResult("c", "b", million, 0, 0)]
    found = by_name(rate(table).table)
    assert found["c"].elo == pytest.approx(found["c"].low, rel=0.5)
    assert found["c"].elo == pytest.approx(found["c"].high, rel=0.5)
    assert (found["a"].elo, math.isfinite(found["a"].low)) == (math.inf, True)


def test_covariance_is_in_the_table_s_order_and_foretells_the_bounds_of_many_games() -> None:
    rng = np.random.default_rng(5)
    ratings = rate(tournament(rng, [0, 100, 250, 330], 2000))
    assert [rating.player for rating in ratings.table] == ["p3", "p2", "p1", "random"]
    deviations = np.sqrt(np.diag(ratings.covariance))
    for rating, deviation in zip(ratings.table, deviations, strict=True):
        assert rating.high - rating.elo == pytest.approx(1.96 * deviation, rel=0.02)
        assert rating.elo - rating.low == pytest.approx(1.96 * deviation, rel=0.02)
    assert (np.linalg.eigvalsh(ratings.covariance[:3, :3]) > 0).all()
    assert not ratings.covariance[3].any()
    unlinked = rate([PairResult("a", "random", 3, 1, 1), PairResult("b", "random", 3, 0, 0)])
    order = [rating.player for rating in unlinked.table]
    assert np.isfinite(unlinked.covariance[order.index("a")][[order.index("a"), order.index("random")]]).all()
    assert np.isnan(unlinked.covariance[order.index("b")]).all()


def test_superiority_is_the_normal_s_for_many_games() -> None:
    rng = np.random.default_rng(8)
    ratings = rate(tournament(rng, [0, 10, 15], 1000))
    names = [rating.player for rating in ratings.table]
    elos = [rating.elo for rating in ratings.table]
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            cov = ratings.covariance
            variance = cov[i, i] + cov[j, j] - 2 * cov[i, j]
            expected = NormalDist().cdf((elos[i] - elos[j]) / math.sqrt(variance)) if i != j else 0.5
            assert ratings.superiority(a, b) == pytest.approx(expected, abs=0.01)


def test_superiority_counts_small_samples() -> None:
    """Two wins: the root of twice 2 log 2 deviations."""
    ratings = rate([PairResult("a", "random", 2, 0, 0)])
    assert ratings.superiority("a", "random") == pytest.approx(NormalDist().cdf(math.sqrt(4 * math.log(2))))
    assert ratings.superiority("random", "a") == pytest.approx(1 - ratings.superiority("a", "random"))
    with pytest.raises(ValueError, match=r"^no player 'b' in the table: expected one of a, random$"):
        ratings.superiority("a", "b")
    assert ratings["a"] == ratings.table[0]


def tournament(rng: np.random.Generator, elo: Sequence[float], games: int, nu: float = 0.6) -> Table:
    """Simulate everyone against everyone; the first is the anchor."""
    names = ["random", *(f"p{k}" for k in range(1, len(elo)))]
    table = []
    for i in range(len(elo)):
        for j in range(i):
            mine, other = 10 ** (elo[i] / 400), 10 ** (elo[j] / 400)
            weights = np.array([mine, nu * math.sqrt(mine * other), other])
            wins, draws, losses = map(int, rng.multinomial(games, weights / weights.sum()))
            table.append(PairResult(names[i], names[j], wins, draws, losses))
    return table


@pytest.mark.parametrize(
    ("elo", "nu", "tournaments"),
    [
        pytest.param([0, 120, 300, 320], 0.6, 300, id="four players"),
        pytest.param([0, 700, 900], 0.6, 100, id="one-sided, some infinite"),
        pytest.param([0, 100, 200], 0.0, 100, id="no draws"),
        pytest.param([0, 100, 200], 8.0, 100, id="mostly draws"),
    ],
)
def test_the_intervals_cover_as_often_as_they_say(elo: list[float], nu: float, tournaments: int) -> None:
    rng = np.random.default_rng(1)
    covered: list[bool] = []
    for _ in range(tournaments):
        found = by_name(rate(tournament(rng, elo, 20, nu)).table)
        covered += [found[f"p{k}"].low <= elo[k] <= found[f"p{k}"].high for k in range(1, len(elo))]
    # Two deviations of as many intervals, which are not quite independent.
    assert abs(np.mean(covered) - 0.95) < (0.02 if tournaments == 300 else 0.04)


def test_a_player_against_itself_under_two_names_has_0_in_its_interval() -> None:
    rng = np.random.default_rng(9)
    inside = 0
    for _ in range(100):
        (rating,) = (r for r in rate(tournament(rng, [0, 0], 50)).table if r.player == "p1")
        inside += rating.low <= 0 <= rating.high
    assert 90 <= inside <= 99


counts = st.one_of(st.just(0), st.integers(0, 9))
rows = st.builds(
    PairResult, st.sampled_from("abcd"), st.sampled_from(["e", "random"]), counts, counts, counts
)
inner = st.builds(PairResult, st.sampled_from("ab"), st.sampled_from("cd"), counts, counts, counts)
tables = st.lists(st.one_of(rows, inner), min_size=1, max_size=7).map(
    lambda table: [*table, PairResult("a", "random", 0, 0, 0)]
)


def reached(table: Table, start: str) -> set[str]:
    """Return the players a player has scored against, directly or through others."""
    found, new = {start}, [start]
    while new:
        name = new.pop()
        for row in table:
            for who, whom, points in (
                (row.player, row.opponent, row.wins + row.draws),
                (row.opponent, row.player, row.losses + row.draws),
            ):
                if who == name and points and whom not in found:
                    found.add(whom)
                    new.append(whom)
    return found


@settings(max_examples=60)
@given(tables)
def test_an_elo_is_finite_exactly_where_points_link_it_both_ways(table: Table) -> None:
    from_anchor = reached(table, "random")
    for rating in rate(table).table:
        above, below = "random" in reached(table, rating.player), rating.player in from_anchor
        expected = {(True, False): math.inf, (False, True): -math.inf, (False, False): math.nan}
        if above and below:
            assert math.isfinite(rating.elo)
        else:
            assert repr(rating.elo) == repr(expected[above, below])
        assert math.isfinite(rating.low) == above
        assert math.isfinite(rating.high) == below
        assert not rating.low > rating.elo
        assert not rating.high < rating.elo


@settings(max_examples=60)
@given(tables)
def test_expected_points_are_the_points(table: Table) -> None:
    """At the optimum every player comparable with the anchor has as many points as expected."""
    ratings = rate(table)
    finite = {rating.player: rating.elo for rating in ratings.table if math.isfinite(rating.elo)}
    surplus = dict.fromkeys(finite, 0.0)
    for row in table:
        if row.player in finite and row.opponent in finite:
            mine, other = 10 ** (finite[row.player] / 400), 10 ** (finite[row.opponent] / 400)
            draw = ratings.nu * math.sqrt(mine * other)
            games = row.wins + row.draws + row.losses
            points = row.wins + row.draws / 2 - games * (mine + draw / 2) / (mine + draw + other)
            surplus[row.player] += points
            surplus[row.opponent] -= points
    assert all(abs(points) < 1e-5 for points in surplus.values())


@settings(max_examples=40)
@given(tables, st.randoms(use_true_random=False))
def test_order_names_and_division_of_the_rows_do_not_matter(table: Table, random: object) -> None:
    renamed = {"random": "b", "a": "random", "b": "zz", "c": "a", "d": "c", "e": "d"}
    other = []
    for row in table:
        wins, draws, losses = row.wins // 2, row.draws // 3, row.losses // 2
        me, you = renamed[row.player], renamed[row.opponent]
        other.append(PairResult(me, you, wins, draws, losses))
        other.append(PairResult(you, me, row.losses - losses, row.draws - draws, row.wins - wins))
    random.shuffle(other)  # type: ignore[attr-defined]
    first, second = rate(table), rate(other, anchor="b")
    assert second.nu == pytest.approx(first.nu, rel=1e-6, abs=1e-12)
    found = by_name(second.table)
    for rating in first.table:
        same = found[renamed[rating.player]]
        assert (same.elo, same.low, same.high) == pytest.approx(
            (rating.elo, rating.low, rating.high), abs=1e-3, nan_ok=True
        )
        assert (same.games, same.score) == pytest.approx((rating.games, rating.score), nan_ok=True)
        assert second.superiority(same.player, "b") == pytest.approx(
            first.superiority(rating.player, "random"), abs=1e-6
        )


@settings(max_examples=40)
@given(tables)
def test_superiority_and_bounds_say_the_same(table: Table) -> None:
    ratings = rate(table, confidence=0.9)
    for rating in ratings.table[:3]:
        superiority = ratings.superiority(rating.player, "random")
        assert ratings.superiority("random", rating.player) == pytest.approx(1 - superiority, abs=1e-6)
        if abs(rating.low) > 1e-3:
            assert (rating.low > 0) == (superiority > 0.95)


@pytest.mark.parametrize(
    ("results", "says"),
    [
        ([PairResult("a", "b", 1, 0, 0)], "^anchor 'random' has no results: expected one of a, b$"),
        ([], "^anchor 'random' has no results: expected one of no players$"),
        ([PairResult("random", "random", 1, 0, 0)], "^games of 'random' against itself say nothing"),
        ([PairResult("random", "a", 1, -1, 0)], "^expected game counts of 0 or more, given"),
    ],
)
def test_results_that_cannot_be_rated_are_refused(results: Table, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        rate(results)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, math.nan])
def test_a_confidence_that_cannot_be_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match=f"confidence is {confidence}, expected a number between 0 and 1"):
        rate(TABLES["two"], confidence=confidence)

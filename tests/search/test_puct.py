"""The search against a plain one in Python, and what it must never get wrong."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from search_reference import (
    Floats,
    Reference,
    after,
    ends,
    flipped,
    greedy_play,
    hashed,
    mirrored,
    uniform,
)

from keisei.search.puct import Evaluate, Search, SearchResult, SearchSettings
from keisei.search.trees import SearchTrees
from keisei.shogi import Move, RulesError, ShogiGame, encoding
from keisei.shogi.positions import Positions

ONE_LEAF = SearchSettings(leaves=1)
ALL = 600  # more lines than there are moves

MATES_IN_THREE = [
    "6R2/8k/6P1n/8p/9/9/9/9/K8 b GS 1",
    "8k/9/6s1N/7Bg/9/9/9/9/K8 b GN 1",
    "5s2k/6P2/5R3/7G1/9/9/9/9/K8 b - 1",
    "9/9/5+PBk1/5P2n/9/9/9/9/K8 b R 1",
]
MATE_IN_FIVE = "7k1/7n1/6R2/6+R1s/9/9/9/9/K8 b - 1"
FIRST_MOVES = ["3a3b+", "2d3c+", "4c4a+", "R*2d", "3c3b+"]  # of the mates above
STALEMATE = "8k/5+Rg2/9/6LB1/9/9/9/9/K8 b SLP 1"  # 4b3b takes the gold and leaves White no move
THREATENED = "3nkn3/9/4P4/9/9/9/9/9/K8 w Gp 1"  # White must prevent G*5b
DECLARABLE = "+R+R+B+B1GGGG/SSSS1K3/9/9/9/9/9/9/k8 w 18P4N4L 1"  # after any move of White's, Black declares
CHASE = "k8/9/4p4/9/9/9/9/8R/8K b - 1"  # the rook can check for ever


def searched(
    game: ShogiGame, visits: int, settings: SearchSettings = ONE_LEAF, evaluate: Evaluate = hashed
) -> SearchResult:
    search = Search([game], evaluate, settings=settings)
    search.run(visits=visits)
    return search.result(multipv=ALL)


def middle_games(seeds: range, distances: tuple[int, ...]) -> Iterator[ShogiGame]:
    """Yield positions this many plies before the end of games."""
    for seed in seeds:
        games = [game.copy() for game in greedy_play(seed)]
        for back in distances:
            if len(games) > back and games[-back].outcome() is None:
                yield games[-back]


def quiet_game() -> ShogiGame:
    """Return a position without a nearby proof."""
    return next(middle_games(range(1), (60,)))


def played(moves: str, sfen: str) -> ShogiGame:
    game = ShogiGame(sfen)
    for move in moves.split():
        game.push(move)
    return game


def assert_same(game: ShogiGame, visits: int, c_puct: float = 0.8, fpu: float = 0.25) -> str | None:
    """Compare a search with the reference and return what is proven."""
    reference = Reference(game, hashed, c_puct, fpu)
    reference.run(visits)
    result = searched(game, visits, SearchSettings(c_puct=c_puct, fpu=fpu, leaves=1))
    assert result.visits == reference.root.visits
    assert result.nodes == reference.nodes
    for line in result.lines if reference.root.visits else []:
        child = reference.root.children.get(line.move)
        sign = {"loss": 1, "win": -1}.get(child.result or "", 0) if child else 0
        assert line.visits == (child.visits if child else 0), (game.sfen(), str(line.move))
        assert line.prior == reference.root.priors[line.move]
        assert line.mate == (sign * (child.plies + 1) if child and sign else None)
        if child:
            assert line.value == (sign or -child.value_sum / child.visits)
    return reference.root.result


def test_visits_values_and_proofs_are_those_of_a_plain_search() -> None:
    proven = [assert_same(game, 80) for game in middle_games(range(4), (1, 2, 3, 4, 5, 60))]
    assert {"win", "loss", None} == set(proven)
    assert len(proven) > 20


def test_other_settings_are_those_of_the_plain_search_too() -> None:
    game = quiet_game()
    for c_puct, fpu in [(0.5, 0.0), (3.0, 1.0)]:
        assert_same(game, 150, c_puct, fpu)


@pytest.mark.parametrize(
    "game",
    [
        ShogiGame(DECLARABLE),
        ShogiGame("k8/9/4K4/9/9/9/9/9/9 b - 1", declaration="try"),
        ShogiGame(THREATENED),
        ShogiGame("4k4/9/9/9/9/9/9/9/R3K4 b - 509"),  # three plies before the maximum length
        played("5i5h 5a5b 5h5i 5b5a " * 2 + "5i5h 5a5b 5h5i", "4k4/9/9/9/9/9/9/9/4K4 b - 1"),
        played("5i5h 5a5b 5h5i", "4k4/9/9/9/9/9/9/9/4K4 b - 1"),
        played("1h9h 9a8a 9h8h 8a9a " + "8h9h 9a8a 9h8h 8a9a " * 2, CHASE),
        played("1h9h 9a8a 9h8h 8a9a", CHASE),
    ],
    ids=[
        "declaration",
        "try",
        "mate threat",
        "maximum length",
        "repetition",
        "second occurrence",
        "perpetual check",
        "the second of checks",
    ],
)
def test_ends_of_the_game_are_those_of_the_plain_search(game: ShogiGame) -> None:
    assert_same(game, 200)


def test_a_move_that_wins_at_once_is_found_with_one_visit_whatever_the_priors_say() -> None:
    def hostile(*_: object) -> tuple[Floats, Floats]:
        raise AssertionError("a won position needs no evaluation")

    found = 0
    for game in middle_games(range(30), tuple(range(1, 60))):
        wins = {move for move in game.legal_moves() if ends(after(game, move)) == "loss"}
        if wins:
            result = searched(game, 1, evaluate=hostile)
            assert {line.move for line in result.lines if line.mate == 1} == wins
            assert {line.move for line in result.lines[: len(wins)]} == wins
            assert all(line.pv == (line.move,) and line.value == 1 for line in result.lines[: len(wins)])
            found += 1
    assert found > 100


def test_a_stalemate_and_a_kings_try_win_at_once() -> None:
    for game, win in [
        (ShogiGame(STALEMATE), "4b3b"),
        (ShogiGame("k8/4K4/9/9/9/9/9/9/9 b - 1", declaration="try"), "5b5a"),
    ]:
        best = searched(game, 1).lines[0]
        assert (str(best.move), best.mate) == (win, 1)


def test_a_move_that_allows_mate_is_refused_whatever_the_priors_say() -> None:
    game = ShogiGame(THREATENED)
    blunder = encoding.action_of("P*9b", game.turn)

    def hostile(positions: Positions) -> tuple[Floats, Floats]:
        """Put all the weight on one move and tell every side to move that it stands well."""
        priors = (positions.actions == blunder).astype(np.float32)
        return priors + np.float32(1e-9), np.ones(len(positions), np.float32)

    result = searched(game, 30, evaluate=hostile)
    assert next(str(line.move) for line in result.lines if line.mate == -2) == "P*9b"
    best = after(game, result.lines[0].move)
    assert result.lines[0].mate is None
    assert all(ends(after(best, reply)) is None for reply in best.legal_moves())


@pytest.mark.parametrize("sfen", MATES_IN_THREE)
def test_a_mate_in_three_is_proven_without_any_knowledge(sfen: str) -> None:
    for game in (ShogiGame(sfen), flipped(ShogiGame(sfen))):
        result = searched(game, 2000, SearchSettings(), uniform)
        best = result.lines[0]
        assert (best.mate, best.value, len(best.pv)) == (3, 1.0, 3)
        assert result.visits < 2000  # a proven root ends the search
        last = played(" ".join(map(str, best.pv)), game.sfen()).outcome()
        assert last is not None
        assert last.winner is game.turn


@pytest.mark.parametrize("leaves", [1, 8, 64])
def test_a_proven_line_ends_the_game_after_as_many_plies_as_it_says(leaves: int) -> None:
    seen = set()
    games = [ShogiGame(sfen) for sfen in [*MATES_IN_THREE, MATE_IN_FIVE]]
    games += [after(game, Move.from_usi(move)) for game, move in zip(games, FIRST_MOVES, strict=True)]
    for game in games:
        lines = searched(game, 3000, SearchSettings(leaves=leaves), uniform).lines
        losses = [line.mate for line in lines if line.mate is not None and line.mate < 0]
        assert losses == sorted(losses)  # the longest first
        for line in lines:
            if line.mate is not None:
                seen.add(line.mate)
                assert len(line.pv) == abs(line.mate), (game.sfen(), line)
                assert ends(played(" ".join(map(str, line.pv)), game.sfen())) == "loss"
    assert seen >= {3, 5, -2, -4}


def test_a_side_that_can_declare_after_the_move_has_won() -> None:
    result = searched(ShogiGame(DECLARABLE), 1000)
    assert [line.mate for line in result.lines] == [-2] * len(result.lines)
    off = searched(ShogiGame(DECLARABLE, declaration="off"), 50)
    assert off.lines[0].mate is None


def test_repetition_is_a_draw_and_perpetual_check_a_loss() -> None:
    quiet = played("5i5h 5a5b 5h5i 5b5a " * 2 + "5i5h 5a5b 5h5i", "4k4/9/9/9/9/9/9/9/4K4 b - 1")
    draw = {str(line.move): line for line in searched(quiet, 100).lines}["5b5a"]
    assert (draw.value, draw.mate) == (0.0, None)
    assert draw.visits > 1
    chase = played("1h9h 9a8a 9h8h 8a9a " + "8h9h 9a8a 9h8h 8a9a " * 2, CHASE)
    lines = searched(chase, 300, evaluate=uniform).lines
    assert (str(lines[-1].move), lines[-1].mate, lines[-1].value) == ("8h9h", -1, -1.0)
    assert lines[0].mate is None


def test_a_second_occurrence_is_a_draw_in_the_tree_unless_switched_off_or_by_checks_alone() -> None:
    quiet = played("5i5h 5a5b 5h5i", "4k4/9/9/9/9/9/9/9/4K4 b - 1")
    on, off = (
        {str(line.move): line for line in searched(quiet, 100, settings).lines}
        for settings in (ONE_LEAF, replace(ONE_LEAF, repetition_draws=False))
    )
    assert (on["5b5a"].value, on["5b5a"].mate, on["5b5a"].pv) == (0.0, None, (Move.from_usi("5b5a"),))
    assert off["5b5a"].value != 0
    chase = played("1h9h 9a8a 9h8h 8a9a", CHASE)
    assert {str(line.move): line for line in searched(chase, 100).lines}["8h9h"].value != 0


def test_a_won_position_has_a_positive_value_for_either_colour() -> None:
    def material(positions: Positions) -> tuple[Floats, Floats]:
        own, other = (positions.planes[:, piece].sum((1, 2)) for piece in (6, 20))  # rooks on the board
        return uniform(positions)[0], (0.5 * np.sign(own - other)).astype(np.float32)

    ahead = ShogiGame("4k4/9/9/9/9/9/9/9/R3K4 b - 1")
    behind = ShogiGame("4k4/9/9/9/9/9/9/9/R3K4 w - 1")
    for leaves in (1, 8):
        settings = SearchSettings(leaves=leaves)
        for game in (ahead, flipped(ahead)):
            assert searched(game, 60, settings, material).lines[0].value > 0.3
        for game in (behind, flipped(behind)):
            assert searched(game, 60, settings, material).lines[0].value < -0.3


def test_exchanged_colours_give_the_mirrored_result() -> None:
    def turned(usi: str) -> str:
        digits, letters = "123456789", "abcdefghi"
        return usi.translate(str.maketrans(digits + letters, digits[::-1] + letters[::-1]))

    def facts(game: ShogiGame) -> list[tuple[str, int, float, float, int | None]]:
        lines = searched(game, 120, evaluate=mirrored(hashed)).lines
        return [(str(line.move), line.visits, line.value, line.prior, line.mate) for line in lines]

    for game in middle_games(range(3), (3, 30)):
        fresh = ShogiGame(game.sfen(), max_moves=None, declaration="off")
        expected = [(turned(move), *numbers) for move, *numbers in facts(fresh)]
        assert sorted(facts(flipped(fresh))) == sorted(expected)


@pytest.mark.parametrize("leaves", [1, 2, 8, 32])
def test_visits_add_up(leaves: int) -> None:
    for game in middle_games(range(3), (4, 40)):
        result = searched(game, 123, SearchSettings(leaves=leaves))
        assert result.visits == 123 or result.lines[0].mate
        if result.visits:
            assert sum(line.visits for line in result.lines) == result.visits - 1
            assert len(result.lines) == len(game.legal_moves())
            assert result.nodes <= result.visits


def test_lines_come_best_first_and_their_variations_are_legal() -> None:
    game = quiet_game()
    search = Search([game], hashed)
    search.run(visits=300)
    lines = search.result(multipv=5).lines
    assert len(lines) == 5
    assert [line.visits for line in lines] == sorted((line.visits for line in lines), reverse=True)
    assert search.result() == SearchResult(lines[:1], 300, search.result().nodes)
    assert len(lines[0].pv) > 2
    for line in lines:
        assert line.pv[0] == line.move
        played(" ".join(map(str, line.pv)), game.sfen())


def test_one_visit_gives_the_move_of_the_highest_prior() -> None:
    lines = searched(ShogiGame(), 1).lines
    assert lines[0].prior == max(line.prior for line in lines)
    assert {line.visits for line in lines} == {0}
    assert len({line.value for line in lines}) == 1  # the position's own


def test_several_runs_are_one() -> None:
    game = quiet_game()
    search = Search([game], hashed, settings=ONE_LEAF)
    for visits in (1, 2, 50, 50, 120):
        search.run(visits=visits)
        assert search.result().visits == visits
    assert search.result(multipv=ALL) == searched(game, 120)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("leaves", [1, 8])
def test_games_together_are_searched_as_each_alone(threads: int, leaves: int) -> None:
    games = list(middle_games(range(4), (2, 3, 20, 50)))
    before = [game.sfen() for game in games]
    search = Search(games, hashed, settings=SearchSettings(leaves=leaves, threads=threads))
    search.run(visits=60)
    assert len(search) == len(games)
    for index, game in enumerate(games):
        alone = searched(game, 60, SearchSettings(leaves=leaves))
        assert search.result(index, ALL) == alone
    assert [game.sfen() for game in games] == before


def test_batches_hold_all_games_and_no_more_leaves_than_asked_for() -> None:
    sizes: list[int] = []

    def counting(positions: Positions) -> tuple[Floats, Floats]:
        sizes.append(len(positions))
        assert positions.offsets[0] == 0
        assert len(positions.offsets) == len(positions.planes) + 1
        assert positions.offsets[-1] == len(positions.actions)
        return hashed(positions)

    Search([ShogiGame() for _ in range(5)], counting, settings=SearchSettings(leaves=4)).run(visits=50)
    assert sizes[0] == 5  # the roots
    assert max(sizes) == 20
    assert sum(sizes) == 250


def test_no_leaf_is_evaluated_twice() -> None:
    seen: list[bytes] = []

    def noting(positions: Positions) -> tuple[Floats, Floats]:
        seen.extend(row.tobytes() for row in positions.planes)
        return hashed(positions)

    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b - 1")
    search = Search([game], noting, settings=SearchSettings(leaves=16))
    search.run(visits=200)
    assert len(seen) <= search.result().nodes


def test_the_search_stops_when_told_but_not_without_an_answer() -> None:
    search = Search([ShogiGame(), ShogiGame()], hashed)
    search.run(visits=100, should_stop=lambda: True)
    assert [search.result(index).visits for index in (0, 1)] == [1, 1]
    asked: list[int] = []

    def third_time() -> bool:
        asked.append(search.result().visits)
        return len(asked) == 3

    search.run(should_stop=third_time)
    assert asked[0] == 1
    assert asked == sorted(set(asked))
    assert search.result().visits == asked[-1]


def test_the_search_stops_when_its_time_is_up_but_not_without_an_answer() -> None:
    search = Search([ShogiGame()], hashed)
    search.run(seconds=0)
    assert search.result().visits == 1
    search.run(seconds=0.05)
    assert search.result().visits > 1


def test_a_full_tree_ends_the_search() -> None:
    search = Search([ShogiGame()], hashed, settings=SearchSettings(max_nodes=40))
    search.run(visits=1000)
    assert search.result().nodes == 40
    assert search.result().visits >= 40
    visits = search.result().visits
    search.run(visits=1000)
    assert search.result().visits == visits


def test_a_failed_evaluation_can_be_repeated() -> None:
    calls = 0

    def failing(positions: Positions) -> tuple[Floats, Floats]:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise OSError("out of reach")
        return hashed(positions)

    search = Search([ShogiGame()], failing)
    for _ in range(100):
        try:
            search.run(visits=90)
        except OSError:
            continue
        break
    assert calls > 3
    assert search.result(multipv=ALL) == searched(ShogiGame(), 90, SearchSettings())


def spoiled(values: Floats, index: int, value: float) -> Floats:
    values = values.copy()
    values[index] = value
    return values


WRONG: list[tuple[Callable[[Floats, Floats], tuple[object, object]], str]] = [
    (lambda p, v: (p[:-1], v), r"priors: expected .* shape \(30,\), got float32 of shape \(29,\)"),
    (lambda p, v: (p, v[:0]), r"values: expected .* shape \(1,\), got float32 of shape \(0,\)"),
    (lambda p, v: (p.astype(np.float64), v), "priors: expected .* float32 .* got float64"),
    (lambda p, v: (spoiled(p, 7, np.nan), v), r"priors\[7\] is -?nan"),
    (lambda p, v: (spoiled(p, 3, -1), v), r"priors\[3\] is -1"),
    (lambda p, v: (spoiled(p, 0, np.inf), v), r"priors\[0\] is inf"),
    (lambda p, v: (p, spoiled(v, 0, np.nan)), r"values\[0\] is -?nan.*expected -1 to 1"),
    (lambda p, v: (p, spoiled(v, 0, 1.5)), r"values\[0\] is 1.5.*expected -1 to 1"),
    (lambda p, v: (p, None), "incompatible function arguments"),  # noqa: ARG005
]


@pytest.mark.parametrize(("spoil", "message"), WRONG)
def test_a_wrong_evaluation_is_refused_and_changes_nothing(
    spoil: Callable[[Floats, Floats], tuple[Floats, Floats]], message: str
) -> None:
    wrong = True

    def evaluate(positions: Positions) -> tuple[Floats, Floats]:
        priors, values = hashed(positions)
        return spoil(priors, values) if wrong else (priors, values)

    search = Search([ShogiGame()], evaluate)
    with pytest.raises((ValueError, TypeError), match=message):
        search.run(visits=20)
    assert search.result().visits == 0
    wrong = False
    search.run(visits=20)
    assert search.result(multipv=ALL) == searched(ShogiGame(), 20, SearchSettings())


def test_games_that_are_over_and_what_is_no_game_are_refused() -> None:
    mated = played("G*5b", "4k4/9/4P4/9/9/9/9/9/4K4 b 2G 1")
    with pytest.raises(RulesError, match=r"games\[1\]: the game is over, checkmate"):
        Search([ShogiGame(), mated], hashed)
    with pytest.raises(ValueError, match="number of games is 0, expected 1 to"):
        Search([], hashed)
    with pytest.raises(TypeError, match=r"games\[0\]: expected a ShogiGame"):
        Search(["startpos"], hashed)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SearchSettings(c_puct=-1), "c_puct is -1"),
        (SearchSettings(c_puct=float("nan")), "c_puct is -?nan"),
        (SearchSettings(c_puct=1e308), "c_puct is 1[0-9.]+, expected 0 to 1000000"),
        (SearchSettings(fpu=float("inf")), "fpu is inf"),
        (SearchSettings(fpu=1.1e6), "fpu is 1100000.0+, expected 0 to 1000000"),
        (SearchSettings(leaves=0), "leaves is 0, expected 1 to 1024"),
        (SearchSettings(max_nodes=0), "max_nodes is 0, expected 1 to 4000000"),
        (SearchSettings(threads=0), "threads is 0, expected at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: SearchSettings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Search([ShogiGame()], hashed, settings=settings)


def test_the_largest_settings_and_priors_are_searched() -> None:
    def huge(positions: Positions) -> tuple[Floats, Floats]:
        priors = np.where(positions.actions % 2 == 0, np.finfo(np.float32).max, 0).astype(np.float32)
        return priors, np.zeros(len(positions), np.float32)

    settings = SearchSettings(c_puct=1e6, fpu=1e6)
    assert searched(ShogiGame(), 200, settings, evaluate=huge).visits >= 200


def test_limits_out_of_range_are_refused() -> None:
    search = Search([ShogiGame()], hashed)
    with pytest.raises(ValueError, match="no limit: expected visits, seconds or should_stop"):
        search.run()
    with pytest.raises(ValueError, match="visits is 0, expected 1 to"):
        search.run(visits=0)
    with pytest.raises(ValueError, match="seconds is nan, expected 0 or more"):
        search.run(seconds=float("nan"))
    with pytest.raises(IndexError, match="index is 1, expected 0 to 0"):
        search.result(1)
    with pytest.raises(ValueError, match="multipv is 0, expected at least 1"):
        search.result(multipv=0)


def test_leaves_are_the_same_until_they_are_expanded() -> None:
    trees = SearchTrees([ShogiGame()] * 2, c_puct=1.5, fpu=0.25, leaves=4, max_nodes=1000)
    for _ in range(3):
        first = copy.deepcopy(trees.select(visits=100))
        again = trees.select(visits=100)
        for name in Positions.__slots__:
            assert np.array_equal(getattr(first, name), getattr(again, name)), name
        trees.expand(*hashed(again))
    assert trees.result(0, 1)[1] == trees.result(1, 1)[1] > 4


def test_after_moves_a_search_goes_on_with_what_it_knows() -> None:
    """Visit for visit what the plain search does below that node."""
    went_on = 0
    for game in middle_games(range(8), (60, 30, 9, 5)):
        reference = Reference(game, hashed, 0.8, 0.25)
        reference.run(300)
        search = Search([game], hashed, settings=ONE_LEAF)
        search.run(visits=300)
        first = search.result().lines[0]
        if reference.root.result is not None or len(first.pv) < 3:
            continue
        moves = first.pv[:2]
        node = reference.root.children[moves[0]].children[moves[1]]
        if node.result is not None or not node.priors:
            continue
        assert search.advance(moves)
        assert search.result().visits == node.visits
        kept = search.result().nodes
        assert kept < 300
        reference.root, reference.nodes = node, kept
        reference.run(node.visits + 100)
        search.run(visits=search.result().visits + 100)
        result = search.result(multipv=ALL)
        assert result.visits == reference.root.visits
        assert result.nodes == reference.nodes
        for line in result.lines:
            child = reference.root.children.get(line.move)
            assert line.visits == (child.visits if child else 0)
        went_on += 1
    assert went_on >= 5


def test_nothing_is_known_after_moves_that_were_not_tried() -> None:
    game = quiet_game()
    search = Search([game], hashed, settings=ONE_LEAF)
    assert not search.advance([])  # not even the root
    search.run(visits=20)
    before = search.result(multipv=ALL)
    untried = next(line.move for line in before.lines if not line.visits)
    assert not search.advance([untried])
    once = next(line for line in before.lines if line.visits == 1)
    reply = after(game, once.move).legal_moves()[0]
    assert not search.advance([once.move, reply])
    assert search.result(multipv=ALL) == before
    assert search.advance([])
    assert search.result(multipv=ALL) == before
    with pytest.raises(IndexError, match="index is 1"):
        search.advance([], 1)
    with pytest.raises(TypeError, match="Moves"):
        search.advance(["7g7f"])  # type: ignore[list-item]


def test_a_win_that_was_proven_stays_one() -> None:
    game = ShogiGame(MATE_IN_FIVE)
    search = Search([game], uniform, settings=ONE_LEAF)
    search.run(visits=20_000)
    best = search.result().lines[0]
    assert best.mate == 5
    assert search.advance(best.pv[:2])
    result = search.result()
    assert (result.lines[0].move, result.lines[0].mate) == (best.pv[2], 3)
    search.run(visits=30_000)  # there is nothing left to search
    assert search.result() == result

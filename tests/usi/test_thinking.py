"""When a search of one position is halved at its root, and when it goes on with the last tree."""

import time
from collections.abc import Sequence

import pytest

from keisei.evaluation.players.player import Turn
from keisei.evaluation.players.player_specs import make_player
from keisei.runs.find import SHIPPED_PATH
from keisei.search.puct import CANDIDATES
from keisei.shogi import Move, ShogiGame
from keisei.usi.clock import Control
from keisei.usi.options import Options
from keisei.usi.protocol import Info, Limits
from keisei.usi.thinking import MOST_PLANNED_VISITS, Thinker, planned_visits

ALL_LINES = 593


@pytest.fixture(scope="module")
def thinker() -> Thinker:
    return Thinker.load(SHIPPED_PATH, Options())


def visited(thinker: Thinker, game: ShogiGame, options: Options, control: Control) -> tuple[Move, list[int]]:
    """Return the move that is chosen, and the visits of all moves that were tried."""
    told: list[Info] = []

    def tell(infos: Sequence[Info]) -> None:
        told[:] = infos

    decision = thinker.think(game, Limits(), options, control, tell)
    assert isinstance(decision.move, Move)
    return decision.move, sorted((info.line_visits for info in told if info.line_visits), reverse=True)


def at_leisure() -> Control:
    return Control(time.monotonic(), None, waits=False)


def test_planned_visits_are_halved_among_the_candidates(thinker: Thinker) -> None:
    options = Options(visits=400, multipv=ALL_LINES)
    _, visits = visited(thinker, ShogiGame(), options, at_leisure())
    assert len(visits) == CANDIDATES
    assert sum(visits) == 399  # and the root's own
    assert visits[0] - visits[1] <= 1  # the last two have had the same
    assert visits[CANDIDATES // 2] == visits[-1]  # half of them had only the first round


def test_it_plays_as_the_players_of_matches_do(thinker: Thinker) -> None:
    """With as many leaves at a time, both search to the bit alike."""
    game, options = ShogiGame(), Options(visits=100, batch=2)
    player = make_player("shipped;visits=100", 1)
    for _ in range(16):
        move, _ = visited(thinker, game, options, at_leisure())
        assert player.choose([Turn(game, 0)]) == [move]
        game.push(move)


def test_a_search_that_something_else_may_end_is_not_planned() -> None:
    at_once = at_leisure()
    planned = planned_visits(Limits(nodes=100), Options(), at_once)
    assert planned == 100
    assert planned_visits(Limits(), Options(visits=50), at_once) == 50
    assert planned_visits(Limits(), Options(), at_once) == 800
    assert planned_visits(Limits(nodes=100), Options(temperature=0.5), at_once) is None
    assert planned_visits(Limits(nodes=100, depth=3), Options(), at_once) is None
    assert planned_visits(Limits(nodes=MOST_PLANNED_VISITS + 1), Options(), at_once) is None
    assert planned_visits(Limits(infinite=True), Options(visits=50), at_once) is None
    by_the_clock = Control(time.monotonic(), 10.0, waits=False)
    assert planned_visits(Limits(nodes=100), Options(), by_the_clock) is None
    pondering = Control(time.monotonic(), None, waits=True)
    assert planned_visits(Limits(nodes=100), Options(), pondering) is None


def test_the_last_tree_is_used_where_it_has_the_planned_visits(thinker: Thinker) -> None:
    game = ShogiGame()
    options = Options(visits=MOST_PLANNED_VISITS + 1, multipv=ALL_LINES)
    move, visits = visited(thinker, game, options, at_leisure())
    assert visits[0] - visits[1] > 1  # by PUCT
    game.push(move)
    reply, after = visited(thinker, game, Options(visits=8, multipv=ALL_LINES), at_leisure())
    assert sum(after) > 8
    game.push(reply)
    options = Options(visits=MOST_PLANNED_VISITS, multipv=ALL_LINES)
    _, anew = visited(thinker, game, options, at_leisure())
    assert (len(anew), sum(anew)) == (CANDIDATES, MOST_PLANNED_VISITS - 1)

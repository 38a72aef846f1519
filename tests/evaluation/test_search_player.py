import pytest
from search_reference import hashed, uniform

from keisei.evaluation.players.player import Player, Turn
from keisei.evaluation.players.search_player import SearchPlayer
from keisei.search.puct import Search, SearchSettings
from keisei.shogi import Move, ShogiGame

WON = "6R2/8k/6P1n/8p/9/9/9/9/K8 b GS 1"  # mate in three


TWO_LEAVES = SearchSettings(leaves=2)


def player(visits: int = 30, settings: SearchSettings = TWO_LEAVES) -> SearchPlayer:
    return SearchPlayer(hashed, "net", "abc", visits=visits, settings=settings)


def games() -> list[ShogiGame]:
    opened = ShogiGame()
    opened.push("7g7f")
    return [ShogiGame(), ShogiGame(WON), opened]


def test_it_plays_the_best_move_of_each_game_and_leaves_the_games_alone() -> None:
    turns = [Turn(game, number) for number, game in enumerate(games())]
    before = [turn.game.sfen() for turn in turns]
    answers = player().choose(turns)
    for turn, answer in zip(turns, answers, strict=True):
        search = Search([turn.game], hashed, settings=SearchSettings(leaves=2))
        search.run(visits=30)
        assert answer == search.result().lines[0].move
    assert [turn.game.sfen() for turn in turns] == before


def test_an_answer_depends_on_its_own_game_alone() -> None:
    turns = [Turn(game, number) for number, game in enumerate(games())]
    assert [player().choose([turn])[0] for turn in turns] == list(player().choose(turns))
    assert list(player().choose(turns[::-1])) == list(player().choose(turns))[::-1]
    assert player().choose([]) == []


def test_it_prefers_a_proven_win() -> None:
    searching = SearchPlayer(uniform, "net", "abc", visits=300)
    game = ShogiGame(WON)
    game.push(searching.choose([Turn(game, 0)])[0])  # type: ignore[arg-type]
    game.push(game.legal_moves()[0])
    last = searching.choose([Turn(game, 0)])[0]
    assert isinstance(last, Move)
    game.push(last)
    assert game.outcome() is not None


def test_time_alone_is_a_limit_too() -> None:
    hurried = SearchPlayer(hashed, "net", "abc", seconds=0.01)
    assert hurried.choose([Turn(ShogiGame(), 0)])[0] in ShogiGame().legal_moves()


def test_what_changes_the_play_changes_the_identity() -> None:
    players: list[Player] = [
        player(),
        player(31),
        player(settings=SearchSettings(leaves=3)),
        player(settings=SearchSettings(leaves=2, c_puct=2)),
        player(settings=SearchSettings(leaves=2, fpu=0)),
        player(settings=SearchSettings(leaves=2, max_nodes=1000)),
        SearchPlayer(hashed, "net", "abd", visits=30),
        SearchPlayer(hashed, "net", "abc", visits=30, seconds=1),
    ]
    assert len({each.identity for each in players}) == len(players)
    assert player(settings=SearchSettings(leaves=2, threads=2)).identity == player().identity
    assert all(each.name == "net" and each.capacity is None for each in players)


def test_it_says_how_it_searches() -> None:
    assert player().describe() == {
        "search": "30 visits, c_puct 0.8, fpu 0.25, leaves 2, at most 500000 nodes"
    }


def test_a_player_without_a_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="no limit: expected visits or seconds"):
        SearchPlayer(hashed, "net", "abc")

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest
from evaluation_play import FirstMovePlayer

from keisei.evaluation import (
    Answer,
    GreedyPlayer,
    Lost,
    MatchConditions,
    MatchResult,
    MaterialPlayer,
    PlayedGame,
    Player,
    RandomPlayer,
    Tally,
    Turn,
    play_match,
)
from keisei.evaluation.matches.match_result import GameSummary, PairSummary, score_interval
from keisei.evaluation.ratings.sprt import Sprt
from keisei.shogi import Color, Outcome, Reason, ShogiGame, encoding

Played = tuple[MatchResult, list[PlayedGame]]


def match(
    player: Player,
    opponent: Player,
    games: int = 20,
    *,
    random_plies: int = 4,
    max_moves: int = 120,
    declaration: str = "24",
    seed: int = 0,
    side_by_side: int = 100,
    should_stop: Callable[[], bool] | None = None,
) -> Played:
    """Play a match; return it with its games, pair k at 2 * k (the player is Black) and 2 * k + 1."""
    pairs: list[tuple[PlayedGame, PlayedGame]] = []
    result = play_match(
        player,
        opponent,
        games=games,
        conditions=MatchConditions(random_plies, max_moves, declaration),
        seed=seed,
        side_by_side=side_by_side,
        on_pair=lambda *pair: pairs.append(pair),
        should_stop=should_stop,
    )
    return result, [game for pair in sorted(pairs, key=lambda pair: pair[0].pair) for game in pair]


def facts(game: PlayedGame) -> tuple[object, ...]:
    return game.pair, game.outcome, game.opening, game.game.history, encoding.pack([game.game]).tobytes()


def everything(played: Played) -> list[object]:
    result, games = played
    counts = [result.as_black, result.as_white, result.pairs, result.reasons, result.mean_length]
    return counts + [facts(game) for game in games]


def replayed(game: PlayedGame) -> ShogiGame:
    """Replay the game by the rules of `match`."""
    again = ShogiGame(game.game.start_sfen, max_moves=120, declaration="24")
    for move in game.game.history:
        again.push(move)
    if again.can_declare():
        again.declare()
    return again


def test_random_against_random_is_about_even() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2))
    assert (result.wins, result.draws, result.losses) == (54, 83, 63)
    assert (result.as_black, result.as_white) == (Tally(27, 41, 32), Tally(27, 42, 31))
    low, high = result.interval()
    assert low < 0.5 < high


@pytest.mark.parametrize("random_plies", [4, 5])
def test_greedy_beats_random_clearly_with_both_colours(random_plies: int) -> None:
    won = play_match(
        GreedyPlayer(1), RandomPlayer(2), games=60, seed=3, conditions=MatchConditions(random_plies)
    )
    assert min(won.as_black.wins, won.as_white.wins) > 27
    assert won.interval()[0] > 0.85
    lost = play_match(
        RandomPlayer(2), GreedyPlayer(1), games=60, seed=4, conditions=MatchConditions(random_plies)
    )
    assert min(lost.as_black.losses, lost.as_white.losses) > 27
    assert lost.interval()[1] < 0.15


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_exchanged_players_give_the_mirrored_result(random_plies: int) -> None:
    greedy, random = GreedyPlayer(1), RandomPlayer(2)
    result, games = match(greedy, random, random_plies=random_plies)
    mirrored, mirrored_games = match(random, greedy, random_plies=random_plies)
    assert (mirrored.player, mirrored.opponent) == ("random", "greedy")
    assert mirrored.as_black == Tally(*reversed(result.as_white))
    assert mirrored.as_white == Tally(*reversed(result.as_black))
    assert mirrored.pairs == result.pairs[::-1]
    assert mirrored.reasons == result.reasons
    for k in range(10):
        assert facts(mirrored_games[2 * k]) == facts(games[2 * k + 1])
        assert facts(mirrored_games[2 * k + 1]) == facts(games[2 * k])


def test_a_player_against_itself_plays_each_game_twice() -> None:
    result, games = match(RandomPlayer(1), RandomPlayer(1))
    assert [facts(game) for game in games[::2]] == [facts(game) for game in games[1::2]]
    assert result.pairs == (0, 0, 10, 0, 0)


@pytest.mark.parametrize("side_by_side", [1, 2, 3, 10])
def test_the_result_does_not_depend_on_how_the_games_are_divided(side_by_side: int) -> None:
    players = GreedyPlayer(1), RandomPlayer(2)
    expected = match(*players, 26, side_by_side=100)
    assert everything(match(*players, 26, side_by_side=side_by_side)) == everything(expected)


def test_another_seed_gives_other_openings() -> None:
    one, other = (match(RandomPlayer(1), RandomPlayer(2), seed=seed) for seed in (1, 2))
    assert (one[0].seed, other[0].seed) == (1, 2)
    assert [game.game.history[:4] for game in one[1]] != [game.game.history[:4] for game in other[1]]


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_a_record_replays_to_the_same_end(random_plies: int) -> None:
    _, games = match(GreedyPlayer(1), RandomPlayer(2), random_plies=random_plies)
    assert len(games) == 20
    for game in games:
        again = replayed(game)
        assert again.outcome() == game.outcome == game.record().outcome
        assert encoding.pack([again]).tobytes() == encoding.pack([game.game]).tobytes()
        assert game.opening == random_plies


def test_both_games_of_a_pair_have_the_same_opening() -> None:
    _, games = match(RandomPlayer(1), GreedyPlayer(2), random_plies=5, seed=8)
    openings = [[str(move) for move in game.game.history[:5]] for game in games]
    assert openings[::2] == openings[1::2]
    assert len({tuple(opening) for opening in openings}) == 10
    assert [game.pair for game in games] == [number for number in range(10) for _ in range(2)]
    assert [game.color for game in games] == [Color.BLACK, Color.WHITE] * 10
    assert [(game.black, game.white) for game in games] == [("random", "greedy"), ("greedy", "random")] * 10


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_each_player_has_the_colour_that_its_game_is_counted_for(random_plies: int) -> None:
    _, games = match(FirstMovePlayer(), RandomPlayer(2), random_plies=random_plies)
    for index, game in enumerate(games):
        own = Color.BLACK if index % 2 == 0 else Color.WHITE
        again = ShogiGame(max_moves=120, declaration="24")
        first = {Color.BLACK: 0, Color.WHITE: 0}
        moves = {Color.BLACK: 0, Color.WHITE: 0}
        for ply, move in enumerate(game.game.history):
            if ply >= game.opening:
                moves[again.turn] += 1
                first[again.turn] += move == again.legal_moves()[0]
            again.push(move)
        assert first[own] == moves[own]
        assert first[own.opponent] < moves[own.opponent] / 2


def test_every_move_of_every_game_is_asked_for_once_and_no_other() -> None:
    player, opponent = FirstMovePlayer("one"), FirstMovePlayer("other")
    result, games = match(player, opponent, 26, side_by_side=10, random_plies=3)
    expected = [
        (2 * game.pair + (game.color == Color.WHITE), ply)
        for game in games
        for ply in range(game.opening, len(game.game.history))
    ]
    assert sorted(player.asked + opponent.asked) == sorted(expected)
    assert result.games == len(games) == 26
    assert max(player.most_at_once, opponent.most_at_once) == 10
    assert sorted(player.ended) == sorted(opponent.ended) == [*range(26)]


def test_no_more_games_are_played_at_once_than_a_player_can() -> None:
    player, opponent = FirstMovePlayer("one", capacity=3), FirstMovePlayer("other")
    match(player, opponent, 12)
    assert player.most_at_once <= 3
    assert opponent.most_at_once <= 3


def test_results_are_counted_as_the_player_sees_them() -> None:
    result, games = match(RandomPlayer(1), GreedyPlayer(2), 40, seed=5)
    seen: dict[Color, list[int]] = {Color.BLACK: [0, 0, 0], Color.WHITE: [0, 0, 0]}
    reasons: dict[str, int] = {}
    for index, game in enumerate(games):
        own = Color.BLACK if index % 2 == 0 else Color.WHITE
        column = 1 if game.outcome.winner is None else 0 if game.outcome.winner is own else 2
        seen[own][column] += 1
        reasons[game.outcome.reason] = reasons.get(game.outcome.reason, 0) + 1
    assert (result.as_black, result.as_white) == (Tally(*seen[Color.BLACK]), Tally(*seen[Color.WHITE]))
    assert result.reasons == reasons
    assert (result.wins, result.draws, result.losses) == result.total
    assert result.score == (result.wins + result.draws / 2) / 40
    assert sum(result.pairs) == 20
    assert sum(count * half_points for half_points, count in enumerate(result.pairs)) == result.score * 80
    assert result.mean_length == sum(len(game.game.history) for game in games) / 40
    assert min(result.losses, result.draws) > 0  # with 120 moves, greedy does not win all


def test_progress_counts_up_to_all_games() -> None:
    told: list[tuple[int, int]] = []
    play_match(GreedyPlayer(1), RandomPlayer(2), games=8, progress=lambda *counts: told.append(counts))
    assert {of for _, of in told} == {8}
    done = [done for done, _ in told]
    assert done[0] == 0
    assert done == sorted(set(done))
    assert len(done) > 3
    assert done[-1] == 8


def test_a_match_that_is_stopped_counts_the_complete_pairs() -> None:
    rounds = iter(range(1000))
    players = FirstMovePlayer("one"), RandomPlayer(2)
    result, games = match(*players, 40, side_by_side=10, should_stop=lambda: next(rounds) > 150)
    assert result.stopped
    assert 2 <= result.games < 40
    assert result.games == 2 * sum(result.pairs) == len(games)
    whole, all_games = match(*players, 40)
    for index, game in enumerate(games):
        assert facts(game) == facts(all_games[2 * game.pair + index % 2])
    assert not whole.stopped
    assert str(result).endswith(", stopped early")
    started = {pair for pair, _ in players[0].asked}
    assert set(players[0].ended) == started  # including those that were abandoned


def test_a_match_that_is_stopped_at_once_has_no_result() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2), should_stop=lambda: True)
    assert (result.stopped, result.games) == (True, 0)
    assert math.isnan(result.score)
    assert math.isnan(result.mean_length)
    assert result.interval() == (0, 1)
    assert str(result) == "random vs random: no games"


def test_pairs_that_were_played_before_are_counted_and_not_played_again() -> None:
    players = GreedyPlayer(1), RandomPlayer(2)
    whole, games = match(*players, 12)
    earlier = {
        pair: PairSummary(*(game.summary for game in of_pair))
        for pair, of_pair in groupby(games, key=lambda game: game.pair)
        if pair in (1, 4, 5)
    }
    again: list[int] = []
    result = play_match(
        *players,
        games=12,
        conditions=MatchConditions(4, 120, "24"),
        earlier={**earlier, 6: PairSummary(GameSummary(0, "", 1), GameSummary(0, "", 1))},
        on_pair=lambda first, _: again.append(first.pair),
    )
    assert result == whole
    assert sorted(again) == [0, 2, 3]


class Unreliable(Player):
    """A player that gives up each game at its third move, in a way that depends on the game's number."""

    name = identity = "unreliable"
    WAYS = (Reason.RESIGNATION, Reason.TIME, Reason.ILLEGAL_MOVE, Reason.FORFEIT)

    def choose(self, turns: Sequence[Turn]) -> list[Answer]:
        return [
            Lost(self.WAYS[turn.number // 2 % 4], f"fault {turn.number // 2}")
            if turn.game.ply >= 6
            else turn.game.legal_moves()[0]
            for turn in turns
        ]


def test_a_player_that_gives_up_or_breaks_down_loses_that_game_and_the_match_goes_on() -> None:
    result, games = match(Unreliable(), RandomPlayer(1), 8, random_plies=0)
    assert (result.wins, result.draws, result.losses) == (0, 0, 8)
    assert result.reasons == {str(way): 2 for way in Unreliable.WAYS}
    for game in games:
        assert game.outcome == Outcome(game.color.opponent, Unreliable.WAYS[game.pair % 4])
        assert game.detail == f"fault {game.pair}"
        record = game.record()
        assert record.comments[len(record.moves)] == game.detail
        assert len(record.moves) == (6 if game.color == Color.BLACK else 7)


def test_a_sequential_test_ends_the_match_and_counts_the_pairs_without_a_gap() -> None:
    test = Sprt(0, 100)
    players = MaterialPlayer(1), RandomPlayer(2)
    result = play_match(*players, games=400, conditions=MatchConditions(4, 120, "24"), sprt=test)
    assert result.test == "SPRT 0 to 100 Elo: H1"
    assert 4 <= result.games < 200
    assert not result.stopped
    # The same as if they had been played one after the other.
    slow = play_match(
        *players, games=400, conditions=MatchConditions(4, 120, "24"), sprt=test, side_by_side=2
    )
    assert slow == result
    whole = play_match(*players, games=result.games, conditions=MatchConditions(4, 120, "24"))
    assert whole.pairs == result.pairs
    assert test.decision(result.pairs) == "H1"
    undecided = play_match(RandomPlayer(1), RandomPlayer(2), games=4, sprt=Sprt(0, 5))
    assert undecided.test == "SPRT 0 to 5 Elo: undecided"


def test_strength_does_not_depend_on_the_colour() -> None:
    """The material player sees the board from its own side, with either colour."""
    result = play_match(MaterialPlayer(1), GreedyPlayer(2), games=100, seed=7)
    black, white = result.as_black.score, result.as_white.score
    assert min(black, white) > 0.2
    assert abs(black - white) < 4 * math.sqrt(2 * 0.25 / 50)


def test_a_result_is_told_in_one_line() -> None:
    result = MatchResult(
        "default",
        "greedy",
        Tally(78, 6, 16),
        Tally(74, 4, 22),
        (8, 2, 22, 4, 64),
        {"checkmate": 200},
        74.2,
        1,
    )
    assert str(result) == (
        "default vs greedy: 152 wins, 10 draws, 38 losses of 200 (78.5 %, 95 % interval 71–84),"
        " 81 % as Black, 76 % as White, 74 plies"
    )


@pytest.mark.parametrize("games", [0, 7, -2])
def test_an_odd_number_of_games_is_refused(games: int) -> None:
    with pytest.raises(ValueError, match=f"games is {games}, expected an even number"):
        play_match(RandomPlayer(1), RandomPlayer(2), games=games)


def test_no_game_at_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="side_by_side is 0, expected at least 1"):
        play_match(RandomPlayer(1), RandomPlayer(2), side_by_side=0)


def test_more_confidence_is_a_wider_interval() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2), games=20, conditions=MatchConditions(max_moves=60))
    (low, high), (lower, higher) = result.interval(0.8), result.interval(0.99)
    assert lower < low < high < higher
    assert result.interval() == result.interval(0.95) == score_interval(result.pairs, 0.95)


def test_a_draw_by_length_and_a_declared_win_are_counted() -> None:
    players = RandomPlayer(1), RandomPlayer(2)
    assert match(*players, 4, max_moves=8)[0].reasons == {"maximum length": 4}
    result, games = match(*players, 200, max_moves=512, declaration="27")
    declared = [game for game in games if game.outcome.reason is Reason.DECLARATION]
    assert len(declared) == result.reasons["declaration"] == 2
    for game in declared:
        assert game.outcome == Outcome(Color(game.game.ply % 2), Reason.DECLARATION)  # by the side to move

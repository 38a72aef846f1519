import math

import pytest
from evaluation_play import FirstMovePlayer

from keisei.evaluation import (
    GreedyPlayer,
    MatchResult,
    Player,
    RandomPlayer,
    Tally,
    make_opponent,
    play_match,
)
from keisei.evaluation.match import score_interval
from keisei.shogi import Color, Outcome, Reason, ShogiGame, encoding
from keisei.shogi.vector import FinishedGame


def match(
    player: Player,
    opponent: Player,
    games: int = 20,
    *,
    random_plies: int = 4,
    seed: int = 0,
    threads: int = 1,
    side_by_side: int = 100,
) -> MatchResult:
    """A match of short games, all of them kept."""
    return play_match(
        player,
        opponent,
        games=games,
        random_plies=random_plies,
        max_moves=120,
        declaration="24",
        seed=seed,
        threads=threads,
        side_by_side=side_by_side,
        keep_games=True,
    )


def facts(game: FinishedGame) -> tuple[object, ...]:
    return game.number, game.outcome, game.opening, game.moves, game.final_position.tobytes()


def everything(result: MatchResult) -> list[object]:
    counts = [result.as_black, result.as_white, result.pairs, result.reasons, result.mean_length]
    return counts + [facts(game) for game in result.records]


def replayed(game: FinishedGame) -> ShogiGame:
    """The game played again, by the rules of `match`."""
    again = ShogiGame(game.start_sfen, max_moves=120, declaration="24")
    for move in game.moves:
        again.push(move)
    if again.can_declare():
        again.declare()
    return again


def test_random_against_random_is_about_even() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2))
    assert (result.wins, result.draws, result.losses) == (61, 81, 58)
    assert (result.as_black, result.as_white) == (Tally(34, 37, 29), Tally(27, 44, 29))
    low, high = result.interval()
    assert low < 0.5 < high


@pytest.mark.parametrize("random_plies", [4, 5])
def test_greedy_beats_random_clearly_with_both_colours(random_plies: int) -> None:
    won = play_match(GreedyPlayer(1), RandomPlayer(2), games=60, seed=3, random_plies=random_plies)
    assert min(won.as_black.wins, won.as_white.wins) > 27
    assert won.interval()[0] > 0.85
    lost = play_match(RandomPlayer(2), GreedyPlayer(1), games=60, seed=4, random_plies=random_plies)
    assert min(lost.as_black.losses, lost.as_white.losses) > 27
    assert lost.interval()[1] < 0.15


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_exchanged_players_give_the_mirrored_result(random_plies: int) -> None:
    greedy, random = GreedyPlayer(1), RandomPlayer(2)
    result = match(greedy, random, random_plies=random_plies)
    mirrored = match(random, greedy, random_plies=random_plies)
    assert (mirrored.player, mirrored.opponent) == ("random", "greedy")
    assert mirrored.as_black == Tally(*reversed(result.as_white))
    assert mirrored.as_white == Tally(*reversed(result.as_black))
    assert mirrored.pairs == result.pairs[::-1]
    assert mirrored.reasons == result.reasons
    for k in range(10):
        assert facts(mirrored.records[2 * k]) == facts(result.records[2 * k + 1])
        assert facts(mirrored.records[2 * k + 1]) == facts(result.records[2 * k])


def test_a_player_against_itself_plays_each_game_twice() -> None:
    result = match(RandomPlayer(1), RandomPlayer(1))
    assert [facts(game) for game in result.records[::2]] == [facts(game) for game in result.records[1::2]]
    assert result.pairs == (0, 0, 10, 0, 0)


@pytest.mark.parametrize(("side_by_side", "threads"), [(2, 1), (3, 1), (10, 2), (10, 1), (100, 2)])
def test_the_result_does_not_depend_on_how_the_games_are_divided(side_by_side: int, threads: int) -> None:
    players = GreedyPlayer(1), RandomPlayer(2)
    expected = match(*players, 26, side_by_side=100, threads=1)
    assert everything(match(*players, 26, side_by_side=side_by_side, threads=threads)) == everything(expected)


def test_another_seed_gives_other_openings() -> None:
    one, other = (match(RandomPlayer(1), RandomPlayer(2), seed=seed) for seed in (1, 2))
    assert (one.seed, other.seed) == (1, 2)
    assert [game.moves[:4] for game in one.records] != [game.moves[:4] for game in other.records]


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_a_record_replays_to_the_same_end(random_plies: int) -> None:
    result = match(GreedyPlayer(1), RandomPlayer(2), random_plies=random_plies)
    assert len(result.records) == 20
    for game in result.records:
        again = replayed(game)
        assert again.outcome() == game.outcome
        assert encoding.pack([again]).tobytes() == game.final_position.tobytes()
        assert game.opening == random_plies


def test_both_games_of_a_pair_have_the_same_opening() -> None:
    result = match(RandomPlayer(1), GreedyPlayer(2), random_plies=5, seed=8)
    openings = [[str(move) for move in game.moves[:5]] for game in result.records]
    assert openings[::2] == openings[1::2]
    assert len({tuple(opening) for opening in openings}) == 10
    assert [game.number for game in result.records] == [number for number in range(10) for _ in range(2)]


@pytest.mark.parametrize("random_plies", [0, 3, 4])
def test_each_player_has_the_colour_that_its_game_is_counted_for(random_plies: int) -> None:
    result = match(FirstMovePlayer(), RandomPlayer(2), random_plies=random_plies)
    for index, game in enumerate(result.records):
        own = Color.BLACK if index % 2 == 0 else Color.WHITE
        again = ShogiGame(max_moves=120, declaration="24")
        first = {Color.BLACK: 0, Color.WHITE: 0}
        moves = {Color.BLACK: 0, Color.WHITE: 0}
        for ply, move in enumerate(game.moves):
            if ply >= game.opening:
                moves[again.turn] += 1
                first[again.turn] += move == again.legal_moves()[0]
            again.push(move)
        assert first[own] == moves[own]
        assert first[own.opponent] < moves[own.opponent] / 2


def test_every_move_of_every_game_is_asked_for_once_and_no_other() -> None:
    player, opponent = FirstMovePlayer("one"), FirstMovePlayer("other")
    result = match(player, opponent, 26, side_by_side=10, random_plies=3)
    expected = [(game.number, ply) for game in result.records for ply in range(game.opening, len(game.moves))]
    assert sorted(player.asked + opponent.asked) == sorted(expected)
    assert result.games == len(result.records) == 26


def test_results_are_counted_as_the_player_sees_them() -> None:
    result = match(RandomPlayer(1), GreedyPlayer(2), 40, seed=5)
    seen: dict[Color, list[int]] = {Color.BLACK: [0, 0, 0], Color.WHITE: [0, 0, 0]}
    reasons: dict[str, int] = {}
    for index, game in enumerate(result.records):
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
    assert result.mean_length == sum(len(game.moves) for game in result.records) / 40
    assert min(result.losses, result.draws) > 0  # with 120 moves, greedy does not win all


def test_games_are_kept_only_if_asked_for() -> None:
    assert play_match(GreedyPlayer(1), RandomPlayer(2), games=2).records == ()


def test_progress_counts_up_to_all_games() -> None:
    told: list[tuple[int, int]] = []
    play_match(GreedyPlayer(1), RandomPlayer(2), games=8, progress=lambda *counts: told.append(counts))
    assert {of for _, of in told} == {8}
    done = [0, *(done for done, _ in told)]
    assert done == sorted(set(done))
    assert len(done) > 3
    assert done[-1] == 8


def test_a_match_that_is_stopped_counts_the_complete_pairs() -> None:
    done: list[int] = []
    players = GreedyPlayer(1), RandomPlayer(2)
    result = play_match(
        *players,
        games=40,
        side_by_side=10,
        keep_games=True,
        progress=lambda now, _: done.append(now),
        should_stop=lambda: bool(done) and done[-1] >= 9,
    )
    assert result.stopped
    assert 2 <= result.games <= done[-1] < 40
    assert result.games == 2 * sum(result.pairs) == len(result.records)
    whole = play_match(*players, games=40, keep_games=True)
    by_number = {game.number: index for index, game in enumerate(whole.records[::2])}
    for index, game in enumerate(result.records):
        assert facts(game) == facts(whole.records[2 * by_number[game.number] + index % 2])
    assert not whole.stopped
    assert str(result).endswith(", stopped early")


def test_a_match_that_is_stopped_at_once_has_no_result() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2), should_stop=lambda: True)
    assert (result.stopped, result.games, result.records) == (True, 0, ())
    assert math.isnan(result.score)
    assert math.isnan(result.mean_length)
    assert result.interval() == (0, 1)
    assert str(result) == "random vs random: no games"


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


@pytest.mark.parametrize("name", ["random", "greedy"])
def test_an_opponent_is_made_by_name(name: str) -> None:
    assert make_opponent(name, 1).name == name
    with pytest.raises(ValueError, match="opponent is 'minimax', expected 'random' or 'greedy'"):
        make_opponent("minimax", 1)


@pytest.mark.parametrize("games", [0, 7, -2])
def test_an_odd_number_of_games_is_refused(games: int) -> None:
    with pytest.raises(ValueError, match=f"games is {games}, expected an even number"):
        play_match(RandomPlayer(1), RandomPlayer(2), games=games)


def test_one_game_at_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="side_by_side is 1, expected at least 2"):
        play_match(RandomPlayer(1), RandomPlayer(2), side_by_side=1)


def test_more_confidence_is_a_wider_interval() -> None:
    result = play_match(RandomPlayer(1), RandomPlayer(2), games=20, max_moves=60)
    (low, high), (lower, higher) = result.interval(0.8), result.interval(0.99)
    assert lower < low < high < higher
    assert result.interval() == result.interval(0.95) == score_interval(result.pairs, 0.95)


def test_a_draw_by_length_and_a_declared_win_are_counted() -> None:
    assert play_match(RandomPlayer(1), RandomPlayer(2), games=4, max_moves=8).reasons == {"maximum length": 4}
    result = play_match(RandomPlayer(1), RandomPlayer(2), games=200, keep_games=True)
    declared = [game for game in result.records if game.outcome.reason is Reason.DECLARATION]
    assert len(declared) == result.reasons["declaration"] == 3
    for game in declared:
        assert game.outcome == Outcome(Color(len(game.moves) % 2), Reason.DECLARATION)  # by the side to move

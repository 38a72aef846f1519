"""Games that start near the end of another: how many, from where, and that they are saved."""

import pytest
from vector_play import RandomPlayers

from keisei.shogi import START_SFEN, RulesError
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

# Two quiet positions, late in their games.
LATE = ["4k4/9/9/9/9/9/9/9/4K2R1 b P 91", "4k2r1/9/9/9/9/9/9/9/4K4 w p 92"]


def play(games: VectorGames, steps: int, seed: int = 1) -> list[FinishedGame]:
    batch, players = Batch.empty(len(games)), RandomPlayers(seed)
    games.observe(batch)
    return [game for _ in range(steps) for game in games.step(players(batch), batch)]


def test_a_share_of_the_games_begins_late_and_without_random_moves() -> None:
    games = VectorGames(32, seed=3, max_moves=100, random_plies=3)
    games.set_late_starts(LATE, 0.75)
    finished = [game for game in play(games, 3000) if game.number >= 32]
    late = [game for game in finished if game.late_start]
    assert 0.72 < len(late) / len(finished) < 0.78
    assert {game.start_sfen for game in late} == set(LATE)
    assert {game.opening for game in late} == {0}
    usual = [game for game in finished if not game.late_start]
    assert {game.start_sfen for game in usual} == {START_SFEN}
    assert {game.opening for game in usual} == {3}


def test_the_games_under_way_are_left_alone() -> None:
    games = VectorGames(4, seed=3)
    before = [games.game(slot).sfen() for slot in range(4)]
    games.set_late_starts(LATE, 1.0)
    assert [games.game(slot).sfen() for slot in range(4)] == before


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_none_and_all(share: float) -> None:
    games = VectorGames(8, seed=3, max_moves=100)
    games.set_late_starts(LATE, share)
    finished = [game for game in play(games, 400) if game.number >= 8]
    assert {game.late_start for game in finished} == {share == 1.0}


def test_without_late_starts_the_games_are_what_they_were() -> None:
    plain, emptied = (VectorGames(8, seed=3, max_moves=100, random_plies=3) for _ in range(2))
    emptied.set_late_starts(LATE, 1.0)
    emptied.set_late_starts([], 1.0)
    assert [g.moves for g in play(plain, 200)] == [g.moves for g in play(emptied, 200)]


def test_they_are_saved() -> None:
    games = VectorGames(64, seed=3, max_moves=100, random_plies=2)
    games.set_late_starts(LATE, 0.5)
    play(games, 104)
    again = VectorGames.restore(games.save(), threads=2)
    assert again.save() == games.save()
    # Slots continue games whose starts have since been replaced.
    for vector in (games, again):
        vector.set_late_starts(LATE[:1], 0.9)
    assert VectorGames.restore(again.save()).save() == again.save()
    first, second = play(games, 300, 5), play(again, 300, 5)
    assert [(g.start_sfen, g.late_start, g.moves) for g in first] == [
        (g.start_sfen, g.late_start, g.moves) for g in second
    ]
    assert {g.start_sfen for g in first} >= set(LATE)


@pytest.mark.parametrize(
    ("sfens", "share", "error"),
    [
        (LATE, 1.5, "share is 1.5"),
        (LATE, float("nan"), "share is"),
        (LATE[0], 0.5, "expected a list of SFENs"),
        (["nonsense"], 0.5, "nonsense"),
    ],
)
def test_what_cannot_be_is_refused(sfens: list[str], share: float, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        VectorGames(2).set_late_starts(sfens, share)


def test_a_position_whose_game_is_over_is_refused() -> None:
    with pytest.raises(RulesError, match="a game cannot start from"):
        VectorGames(2, max_moves=90).set_late_starts(LATE, 0.5)

"""Games that start with all pieces scattered: how many, how varied, and that they are saved."""

import re
from collections import Counter

import pytest
from vector_play import RandomPlayers

from keisei.shogi import START_SFEN, Color, ShogiGame
from keisei.shogi.vector import Batch, FinishedGame, VectorGames

SET = Counter("PPPPPPPPPPPPPPPPPPLLLLNNNNSSSSGGGGBBRRKK")


def starts(count: int, seed: int = 1, share: float = 1.0) -> list[str]:
    games = VectorGames(count, seed=seed, scattered_share=share)
    return [games.game(slot).sfen() for slot in range(count)]


def pieces(sfen: str) -> Counter[str]:
    """Count all pieces by kind, promoted or not, on the board and in hand."""
    board, _, hands, _ = sfen.split()
    counted = Counter(re.findall("[A-Z]", board.upper()))
    for number, kind in re.findall(r"(\d*)([A-Za-z])", hands):
        counted[kind.upper()] += int(number or 1)
    return counted


def king_rank(sfen: str, king: str) -> int:
    """Return the row of a king, 0 at White's edge."""
    return next(row for row, text in enumerate(sfen.split()[0].split("/")) if king in text)


def test_all_forty_pieces_are_there_and_a_game_can_go_on() -> None:
    scattered = [sfen for sfen in starts(300) if sfen != START_SFEN]
    assert len(scattered) > 290  # the others were decided at once
    for sfen in scattered:
        assert pieces(sfen) == SET
        game = ShogiGame(sfen)  # which refuses what breaks a rule: two pawns on a file, a check left standing
        assert game.legal_moves()
        assert not game.is_check()
        assert game.outcome() is None


def test_they_vary_in_side_kings_and_hands() -> None:
    scattered = [sfen for sfen in starts(900) if sfen != START_SFEN]
    assert len(set(scattered)) == len(scattered)
    sides = Counter(sfen.split()[1] for sfen in scattered)
    assert 0.42 < sides["b"] / len(scattered) < 0.58
    for king in "Kk":
        rows = Counter(king_rank(sfen, king) for sfen in scattered)
        assert set(rows) == set(range(9))
        inside = sum(rows[row] for row in ((0, 1, 2) if king == "K" else (6, 7, 8)))
        assert inside / len(scattered) > 0.2, "kings should be in the enemy's camp too"
    in_hand = [sum(pieces(f"9 b {sfen.split()[2]} 1").values()) for sfen in scattered]
    assert min(in_hand) <= 3
    assert max(in_hand) >= 20


def test_neither_colour_is_favoured() -> None:
    """The mean worth of a colour's pieces is half of the whole, to within four standard errors."""
    worth = {"P": 1, "L": 3, "N": 4, "S": 5, "G": 6, "B": 8, "R": 10}
    leads = []
    for sfen in starts(600):
        game = ShogiGame(sfen)
        board, _, hands, _ = game.sfen().split()
        lead = sum((1 if c.isupper() else -1) * worth.get(c.upper(), 0) for c in board if c.isalpha())
        for number, kind in re.findall(r"(\d*)([A-Za-z])", hands):
            lead += (1 if kind.isupper() else -1) * worth[kind.upper()] * int(number or 1)
        leads.append(lead)
    mean = sum(leads) / len(leads)
    deviation = (sum((lead - mean) ** 2 for lead in leads) / len(leads)) ** 0.5
    assert 5 < deviation < 40
    assert abs(mean) < 4 * deviation / len(leads) ** 0.5


def play(games: VectorGames, steps: int, seed: int = 1) -> list[FinishedGame]:
    batch, players = Batch.empty(len(games)), RandomPlayers(seed)
    games.observe(batch)
    return [game for _ in range(steps) for game in games.step(players(batch), batch)]


def test_a_share_of_the_games_begins_so_without_random_moves() -> None:
    games = VectorGames(64, seed=3, max_moves=40, random_plies=3, scattered_share=0.25)
    finished = play(games, 800)
    scattered = [game for game in finished if game.start_sfen != START_SFEN]
    assert 0.2 < len(scattered) / len(finished) < 0.3
    assert {game.opening for game in scattered} == {0}
    assert {game.opening for game in finished if game.start_sfen == START_SFEN} == {3}
    assert {game.late_start for game in finished} == {False}
    assert {ShogiGame(game.start_sfen).turn for game in scattered} == {Color.BLACK, Color.WHITE}


def test_they_depend_on_seed_and_number_alone() -> None:
    assert starts(20, seed=5) == starts(40, seed=5)[:20] != starts(20, seed=6)
    shifted = VectorGames(10, seed=5, first_number=10, stride=7, threads=2, scattered_share=1.0)
    assert [shifted.game(slot).sfen() for slot in range(10)] == starts(20, seed=5)[10:]


def test_games_without_them_are_what_they_were() -> None:
    plain = VectorGames(8, seed=3, max_moves=100, random_plies=3)
    none = VectorGames(8, seed=3, max_moves=100, random_plies=3, scattered_share=0.0)
    assert [g.moves for g in play(plain, 200)] == [g.moves for g in play(none, 200)]


def test_the_share_is_saved() -> None:
    games = VectorGames(16, seed=3, max_moves=60, scattered_share=0.5)
    play(games, 100)
    again = VectorGames.restore(games.save(), threads=2)
    assert again.save() == games.save()
    first, second = play(games, 200, 5), play(again, 200, 5)
    assert [(g.start_sfen, g.moves) for g in first] == [(g.start_sfen, g.moves) for g in second]
    assert any(g.start_sfen != START_SFEN for g in first)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="scattered_share is"):
        VectorGames(2, scattered_share=share)

"""Properties that hold in every position, checked on positions drawn by hypothesis."""

import random

from hypothesis import given
from hypothesis import strategies as st
from reference import flip_sfen, flip_usi

from keisei.shogi import Move, ShogiGame

STARTS = [
    None,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "+P+P+P+P1+P+P+P+P/4K4/9/9/9/9/9/4k4/+p+p+p+p1+p+p+p+p w 2R2B 1",
]


@st.composite
def games(draw: st.DrawFn) -> ShogiGame:
    """Return a game after up to 150 random moves from one of the starts."""
    game = ShogiGame(draw(st.sampled_from(STARTS)), max_moves=None, declaration="off")
    choose = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 150))):
        if not (moves := game.legal_moves()):
            break
        game.push(choose.choice(moves))
    return game


def facts(game: ShogiGame) -> tuple[object, ...]:
    return (
        game.sfen(),
        game.key,
        game.is_check(),
        game.earlier_occurrences,
        game.legal_moves(),
        game.outcome(),
    )


@given(games())
def test_taking_back_any_move_restores_everything(game: ShogiGame) -> None:
    before = facts(game)
    for move in game.legal_moves():
        game.push(move)
        assert game.pop() == move
        assert facts(game) == before
        assert game.key == game.computed_key()


@given(games())
def test_taking_back_the_whole_game_passes_through_the_same_positions(game: ShogiGame) -> None:
    again = ShogiGame(game.start_sfen, max_moves=None, declaration="off")
    seen = []
    for move in game.history:
        seen.append(facts(again))
        again.push(move)
    assert facts(again) == facts(game)
    for before in reversed(seen):
        game.pop()
        assert facts(game) == before


@given(games())
def test_the_incremental_hash_is_the_computed_one(game: ShogiGame) -> None:
    assert game.key == game.computed_key()
    assert game.key == ShogiGame(game.sfen(), max_moves=None).key
    for move in game.legal_moves():
        game.push(move)
        assert game.key == game.computed_key()
        game.pop()


@given(games())
def test_two_moves_never_lead_to_the_same_hash(game: ShogiGame) -> None:
    keys = set()
    for move in game.legal_moves():
        game.push(move)
        keys.add(game.key)
        game.pop()
    assert len(keys) == len(game.legal_moves())


@given(games())
def test_sfen_is_read_back_the_same(game: ShogiGame) -> None:
    again = ShogiGame(game.sfen(), max_moves=None, declaration="off")
    assert again.sfen() == game.sfen()
    if game.outcome() is None:
        assert again.legal_moves() == game.legal_moves()


@given(games())
def test_usi_is_read_back_the_same(game: ShogiGame) -> None:
    for move in game.legal_moves():
        assert Move.from_usi(str(move)) == move


@given(games())
def test_the_colour_flipped_position_has_the_flipped_moves(game: ShogiGame) -> None:
    if game.outcome() is not None:
        return
    flipped = ShogiGame(flip_sfen(game.sfen()), max_moves=None, declaration="off")
    assert flipped.is_check() == game.is_check()
    assert {str(move) for move in flipped.legal_moves()} == {
        flip_usi(str(move)) for move in game.legal_moves()
    }


@given(st.text())
def test_any_text_as_a_move_is_refused_or_read_back(text: str) -> None:
    try:
        move = Move.from_usi(text)
    except ValueError:
        return
    assert str(move) == text

"""Moves as people type them, in every notation."""

import random
import re

import pytest
from conftest import random_play
from hypothesis import given, settings
from hypothesis import strategies as st
from ki2_writer import ki2_move, piece_on
from reference import flip_sfen, flip_usi

from keisei.shogi import Move, NotationError, RulesError, ShogiGame
from keisei.shogi.records.csa import csa_move
from keisei.shogi.records.kif import kif_move
from keisei.shogi.typed_moves import read_typed_move

START = ShogiGame().sfen()
BISHOPS = "lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 3"
GOLDS = "4k4/9/9/9/9/9/9/9/3GKG3 b - 1"
HAND = "4k4/9/9/9/9/9/4S4/9/4K4 b PS 1"
TOKINS = "8k/9/9/4+P4/3+P1+P3/3+P+P+P3/9/9/4K4 b - 1"
SILVER = "k8/4S4/9/9/9/9/9/9/4K4 b - 1"
DRAGON = "k8/9/9/9/4+R4/9/9/9/4K4 b - 1"

TYPED = [
    (START, "7g7f", "7g7f ７ｇ７ｆ 7G7F 76歩 ７六歩 ７６歩 7六歩 ▲７六歩 ☗76歩 ７六歩(77) ７六歩（７７）"),
    (START, "7g7f", "P-7f P-76 p-7f P7g-7f P77-76 7776FU ７７７６ＦＵ +7776FU 7776fu 76歩上 76歩直"),
    (BISHOPS, "8h2b+", "8h2b+ 22角成 ２二角成 ２二角成(88) Bx2b+ B-2b+ B8hx2b+ B-22+ 8822UM"),
    (BISHOPS, "8h2b", "8h2b 22角不成 ２二角不成(88) Bx2b= B8hx2b= 8822KA"),
    (GOLDS, "4i5h", "4i5h 58金右 ５八金右 ５八金右上 G4i-5h G49-58 4958KI ５八金(49)"),
    (GOLDS, "6i5h", "6i5h 58金左 G6i-5h 6958KI"),
    (GOLDS, "5i5h", "58玉 ５八王 K-5h 5958OU"),
    (HAND, "P*5e", "P*5e p*5e Ｐ＊５ｅ 55歩打 ５五歩打 55歩 P'5e P*55 0055FU"),
    (HAND, "S*5f", "S*5f ５六銀打 0056GI"),
    (HAND, "5g5f", "56銀 S-5f 5756GI"),
    (TOKINS, "6f5e", "55と左上 +P6f-5e 6655TO"),
    (TOKINS, "5d5e", "55と引"),
    (SILVER, "5b6a+", "61銀成 S-6a+ 5261NG"),
    (DRAGON, "5e6d", "64龍 ６四竜 +R-6d 5564RY"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sfen", "expected", "text"),
    [(sfen, expected, text) for sfen, expected, texts in TYPED for text in texts.split()],
)
def test_a_text_means_one_move(sfen: str, expected: str, text: str) -> None:
    assert str(read_typed_move(ShogiGame(sfen), text)) == expected
    assert str(read_typed_move(ShogiGame(sfen), f" {text} ")) == expected


@pytest.mark.parametrize("text", ["同銀", "同　銀", "△同 銀", "S-2b", "Sx2b", "22銀", "3122GI", "-3122GI"])
def test_white_takes_on_the_same_square(text: str) -> None:
    game = ShogiGame(BISHOPS)
    game.push("8h2b+")
    assert str(read_typed_move(game, text)) == "3a2b"


@pytest.mark.parametrize(
    ("sfen", "text", "named"),
    [
        (GOLDS, "58金", "4i5h 6i5h"),
        (GOLDS, "G-5h", "4i5h 6i5h"),
        (BISHOPS, "22角", "8h2b 8h2b+"),
        (BISHOPS, "Bx2b", "8h2b 8h2b+"),
        (TOKINS, "55と上", "4f5e 5f5e 6f5e"),
        (TOKINS, "55と左", "6e5e 6f5e"),
    ],
)
def test_a_text_that_fits_several_moves_names_them(sfen: str, text: str, named: str) -> None:
    with pytest.raises(NotationError, match=rf"^{text} may be any of {re.escape(named)}: expected one"):
        read_typed_move(ShogiGame(sfen), text)


@pytest.mark.parametrize(
    ("sfen", "text", "why"),
    [
        (START, "7g7e", "7g7e is illegal: a P on 7g cannot go to 7e; legal with the piece on 7g: 7g7f"),
        (START, "75歩(77)", "a P on 7g cannot go to 7e; legal with the piece on 7g: 7g7f"),
        (START, "55角", "55角 is illegal: a B on 8h cannot go to 5e"),
        (START, "75歩", "75歩 is illegal: no P can move like that; legal with the P: 1g1f 2g2f 3g3f"),
        (START, "B-5e", "a B on 8h cannot go to 5e"),
        (START, "8855KA", "a B on 8h cannot go to 5e"),
        (START, "P*5e", "P*5e is illegal: you have no P in hand"),
        (START, "55歩打", "you have no P in hand"),
        (START, "55龍", "you have no +R on the board"),
        (START, "７六歩成", "no P can move like that; legal with the P"),
        (START, "7g7f+", "promotes only when it enters"),
        (HAND, "P*5g", "there is a piece on 5g; legal with the P: P*1b"),
        (GOLDS, "58金引", "no G can move like that; legal with the G: 4i3h"),
        (GOLDS, "G9i-5h", "there is no piece on 9i"),
    ],
)
def test_an_illegal_move_is_explained(sfen: str, text: str, why: str) -> None:
    with pytest.raises(RulesError, match=re.escape(why)):
        read_typed_move(ShogiGame(sfen), text)


@pytest.mark.parametrize(
    "text", ["", "hello", "7g", "76", "歩", "９９", "P5e", "76歩76歩", "P**5e", "000000FU", "同"]
)
def test_a_text_that_is_no_move_is_refused(text: str) -> None:
    with pytest.raises(NotationError, match=r"expected a move such as (7g7f, 76歩, P-7f or 7776FU|７六歩)"):
        read_typed_move(ShogiGame(), text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-3334FU", "it is black's move"),
        ("△３四歩", "it is black's move"),
        ("同歩", "同 without a previous move"),
        ("7776XX", "such as .7776FU"),
        ("7776GI", "the piece on 7g is FU"),
        ("0055TO", "only an unpromoted piece can be dropped"),
        ("55と打", "only an unpromoted piece can be dropped"),
        ("+P*5e", r"expected a drop such as P\*5e"),
        ("P7g*5e", r"expected a drop such as P\*5e"),
    ],
)
def test_what_is_wrong_with_a_text_is_told(text: str, why: str) -> None:
    with pytest.raises(NotationError, match=why):
        read_typed_move(ShogiGame(), text)


def test_nothing_is_a_move_once_the_game_is_over() -> None:
    game = ShogiGame()
    game.resign()
    with pytest.raises(RulesError, match=r"^the game is over: white wins by resignation"):
        read_typed_move(game, "7g7f")


def western(game: ShogiGame, move: Move, rng: random.Random) -> str:
    """Return a move as Hosking writes it, with its square of origin where that is needed."""
    if move.from_square is None:
        return f"{move.dropped}*{move.to_square}"
    kind = piece_on(game, move.from_square)
    rivals = {
        other.from_square
        for other in game.legal_moves()
        if other.to_square == move.to_square and other.from_square
        and piece_on(game, other.from_square) == kind
    }  # fmt: skip
    choice = len({m.promotes for m in game.legal_moves() if str(m)[:4] == str(move)[:4]}) > 1
    origin = move.from_square if len(rivals) > 1 or rng.random() < 0.2 else ""
    sign = "x" if game.piece_at(move.to_square) else "-"
    return f"{kind}{origin}{sign}{move.to_square}{'+' if move.promotes else '=' if choice else ''}"


@pytest.mark.parametrize("seed", range(8))
def test_every_legal_move_is_found_again_from_every_notation(seed: int) -> None:
    rng = random.Random(seed)
    rich = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"
    for game in random_play(seed, 60, rich if seed % 4 == 3 else None):
        last = game.history[-1].to_square if game.history else ""
        for move in game.legal_moves():
            kif = kif_move(game, move, last)
            # KIF leaves 不成 out.
            if move.from_square and not move.promotes and Move.from_usi(f"{move}+") in game.legal_moves():
                kif = kif.replace("(", "不成(")
            texts = [str(move), csa_move(game, move), csa_move(game, move)[1:], kif]
            texts += [ki2_move(game, move, last), western(game, move, rng)]
            for text in texts:
                assert read_typed_move(game, text) == move, (game.sfen(), text)


@pytest.mark.parametrize("seed", range(3))
def test_white_types_what_black_would_on_the_turned_board(seed: int) -> None:
    for game in random_play(seed, 40):
        turned = ShogiGame(flip_sfen(game.sfen()), max_moves=None)
        for move in game.legal_moves():
            other = Move.from_usi(flip_usi(str(move)))
            assert read_typed_move(turned, ki2_move(turned, other, "")) == other


LETTERS = (
    "123456789abci+*-='xPLNSGBRK+０７①²一二五九同歩香桂銀金角飛玉王と成馬龍竜不打右左直上引寄行入 \u3000"
    "()▲△☗☖"
    "FUKYKEGIKAHITONGUMRY"
)


@settings(max_examples=2000)
@given(text=st.text(LETTERS, max_size=8), played=st.integers(0, 3))
def test_whatever_is_typed_is_a_legal_move_or_refused(text: str, played: int) -> None:
    game = ShogiGame()
    for earlier in ["7g7f", "3c3d", "8h2b+"][:played]:
        game.push(earlier)
    try:
        move = read_typed_move(game, text)
    except (NotationError, RulesError):
        return
    assert move in game.legal_moves()

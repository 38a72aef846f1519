"""The board as text (BOD) and as SVG."""

import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from conftest import random_play

from keisei.shogi import START_SFEN, Move, ShogiGame
from keisei.shogi.diagram import Diagram

EVERY_PIECE = "lnsgkgsnl/9/ppppppppp/9/+P+L+N+S4+p/1+B5+r1/9/9/4K4 w R2Pb2gsnl5p 58"
SVG = "{http://www.w3.org/2000/svg}"
CELL, LEFT, TOP = 40, 70, 40  # of the drawing


def drawn(game: ShogiGame) -> ET.Element:
    return ET.fromstring(game.svg())


def texts(root: ET.Element) -> Counter[str]:
    return Counter(element.text or "" for element in root.iter(f"{SVG}text"))


def marked_squares(root: ET.Element) -> list[str]:
    return [path.get("d", "").split("h")[0] for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]


def corner(square: str) -> str:
    """Return where the path of a square starts: file 9 is on the left, rank a at the top."""
    return f"M{LEFT + (9 - int(square[0])) * CELL} {TOP + 'abcdefghi'.index(square[1]) * CELL}"


def piece_on(root: ET.Element, square: str) -> ET.Element:
    x = LEFT + (9 - int(square[0])) * CELL + CELL / 2
    y = TOP + "abcdefghi".index(square[1]) * CELL + CELL / 2
    (piece,) = [e for e in root.iter(f"{SVG}text") if (e.get("x"), e.get("y")) == (f"{x:g}", f"{y:g}")]
    return piece


def test_start_position_is_printed_as_shogi_programs_do() -> None:
    assert (
        str(ShogiGame())
        == """\
後手の持駒：なし
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
|v香v桂v銀v金v玉v金v銀v桂v香|一
| ・v飛 ・ ・ ・ ・ ・v角 ・|二
|v歩v歩v歩v歩v歩v歩v歩v歩v歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| 歩 歩 歩 歩 歩 歩 歩 歩 歩|七
| ・ 角 ・ ・ ・ ・ ・ 飛 ・|八
| 香 桂 銀 金 玉 金 銀 桂 香|九
+---------------------------+
先手の持駒：なし
先手番
手数＝0"""
    )


def test_promoted_pieces_hands_side_and_number_are_printed() -> None:
    assert (
        str(ShogiGame(EVERY_PIECE))
        == """\
後手の持駒：角　金二　銀　桂　香　歩五
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
|v香v桂v銀v金v玉v金v銀v桂v香|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
|v歩v歩v歩v歩v歩v歩v歩v歩v歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| と 杏 圭 全 ・ ・ ・ ・vと|五
| ・ 馬 ・ ・ ・ ・ ・v龍 ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ 玉 ・ ・ ・ ・|九
+---------------------------+
先手の持駒：飛　歩二
後手番
手数＝57"""
    )


@pytest.mark.parametrize(
    ("number", "count"), [(1, ""), (2, "二"), (9, "九"), (10, "十"), (11, "十一"), (17, "十七"), (18, "十八")]
)
def test_hand_is_counted_in_kanji(number: int, count: str) -> None:
    sfen = f"4k4/9/9/9/9/9/9/9/4K4 b {'' if number == 1 else number}P 1"
    assert f"\n先手の持駒：歩{count}\n" in str(ShogiGame(sfen))


def test_diagram_takes_any_position_apart_and_puts_it_together() -> None:
    for seed in range(20):
        for game in random_play(seed, 150):
            assert Diagram.from_sfen(game.sfen()).to_sfen() == game.sfen()


def test_svg_shows_81_squares_and_all_pieces() -> None:
    root = drawn(ShogiGame())
    squares = [path.get("d", "").split("h")[0] for path in root.iter(f"{SVG}path")]
    assert sorted(squares) == sorted(corner(f"{file}{rank}") for file in range(1, 10) for rank in "abcdefghi")
    shown = texts(root)
    assert {kanji: shown[kanji] for kanji in "歩香桂銀金角飛玉"} == {
        "歩": 18, "香": 4, "桂": 4, "銀": 4, "金": 4, "角": 2, "飛": 2, "玉": 2,
    }  # fmt: skip
    assert all(shown[name] == 1 for name in "１２３４５６７８９一二三四五六七八九")


def test_svg_is_as_wide_as_asked_and_keeps_its_shape() -> None:
    for size in (100, 480, 1000):
        root = ET.fromstring(ShogiGame().svg(size))
        _, _, width, height = map(int, root.get("viewBox", "").split())
        assert (root.get("width"), root.get("height")) == (str(size), str(size * height // width))
    assert ShogiGame()._repr_svg_() == ShogiGame().svg(480)


def test_svg_turns_white_s_pieces_and_reddens_promoted_ones() -> None:
    root = drawn(ShogiGame(EVERY_PIECE))
    expected = {
        "5i": ("玉", False, False),
        "5a": ("玉", True, False),
        "9e": ("と", False, True),
        "2f": ("龍", True, True),
    }
    for square, (kanji, turned, promoted) in expected.items():
        piece = piece_on(root, square)
        assert piece.text == kanji
        assert (piece.get("transform") is not None) == turned
        assert (piece.get("fill") != "#000") == promoted


def test_svg_puts_pieces_on_their_squares() -> None:
    root = drawn(ShogiGame(START_SFEN))
    for square, kanji in {"8b": "飛", "2b": "角", "8h": "角", "2h": "飛", "9i": "香", "7g": "歩"}.items():
        assert piece_on(root, square).text == kanji


def test_svg_marks_the_squares_of_the_last_move() -> None:
    game = ShogiGame()
    assert marked_squares(drawn(game)) == []
    game.push("7g7f")
    assert sorted(marked_squares(drawn(game))) == sorted([corner("7g"), corner("7f")])
    game.push("3c3d")
    assert sorted(marked_squares(drawn(game))) == sorted([corner("3c"), corner("3d")])
    game.pop()
    game.pop()
    assert marked_squares(drawn(game)) == []


def test_svg_of_a_drop_marks_its_square() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b G 1")
    game.push(Move.from_usi("G*5e"))
    assert marked_squares(drawn(game)) == [corner("5e")]


def test_svg_shows_hands_and_the_side_to_move() -> None:
    shown = texts(drawn(ShogiGame(EVERY_PIECE)))
    assert shown["☗"] == shown["☖●"] == 1
    assert [shown[item] for item in ("歩2", "歩5", "金2")] == [1, 1, 1]
    shown = texts(drawn(ShogiGame(EVERY_PIECE.replace(" w ", " b "))))
    assert shown["☗●"] == shown["☖"] == 1


def places(root: ET.Element, *items: str) -> list[tuple[float, float]]:
    """Return the positions of texts that are drawn once: x to the right, y down."""
    found = {element.text: element for element in root.iter(f"{SVG}text")}
    return [(float(found[item].get("x", "")), float(found[item].get("y", ""))) for item in items]


def test_svg_puts_black_s_hand_at_the_right_from_below_and_white_s_at_the_left_from_above() -> None:
    black = places(drawn(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b R2P 1")), "☗●", "飛", "歩2")
    white = places(drawn(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 w r2p 1")), "☖●", "飛", "歩2")
    width, height = 9 * CELL + 2 * LEFT, 9 * CELL + 2 * TOP - 20
    assert all(LEFT + 9 * CELL < x < width and 0 < y < height for x, y in black)
    assert all(0 < x < LEFT and 0 < y < height for x, y in white)
    assert [y for _, y in black] == sorted((y for _, y in black), reverse=True)
    assert [y for _, y in white] == sorted(y for _, y in white)


def test_svg_numbers_the_files_from_the_right_and_the_ranks_from_above() -> None:
    root = drawn(ShogiGame())
    middles = [(i + 0.5) * CELL for i in range(9)]
    assert [x - LEFT for x, _ in places(root, *"９８７６５４３２１")] == middles
    assert [y - TOP for _, y in places(root, *"一二三四五六七八九")] == middles

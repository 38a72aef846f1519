import io

import pytest

from keisei.shogi import ShogiGame
from keisei.usi.board_text import board_text, wants_colors


def game(moves: str) -> ShogiGame:
    played = ShogiGame()
    for move in moves.split():
        played.push(move)
    return played


SHOWN = """\
後手の持駒：角  (B)
  ９  ８  ７  ６  ５  ４  ３  ２  １
+------------------------------------+
|v香 v桂 v銀 v金 v玉 v金  ・ v桂 v香 |一 a
| ・ v飛  ・  ・  ・  ・  ・ v銀* ・ |二 b
|v歩 v歩 v歩 v歩 v歩 v歩  ・ v歩 v歩 |三 c
| ・  ・  ・  ・  ・  ・ v歩  ・  ・ |四 d
| ・  ・  ・  ・  ・  ・  ・  ・  ・ |五 e
| ・  ・  歩  ・  ・  ・  ・  ・  ・ |六 f
| 歩  歩  ・  歩  歩  歩  歩  歩  歩 |七 g
| ・  ・  ・  ・  ・  ・  ・  飛  ・ |八 h
| 香  桂  銀  金  玉  金  銀  桂  香 |九 i
+------------------------------------+
先手の持駒：角  (B)
先手番
手数＝4
last move: 3a2b  ２二銀(31)"""


def test_the_board_has_letters_and_marks_the_last_move() -> None:
    played = game("7g7f 3c3d 8h2b+ 3a2b")
    assert board_text(played, colors=False) == SHOWN
    assert len(played.history) == 4
    assert "*" not in board_text(ShogiGame(), colors=False)
    assert "last move" not in board_text(ShogiGame(), colors=False)


def test_colors_mark_the_last_move_promoted_pieces_and_check() -> None:
    played = game("7g7f 3c3d 8h3c+")
    drawn = board_text(played, colors=True)
    assert "\x1b[7m 馬*\x1b[0m" in drawn  # where it went
    assert " \x1b[4m・\x1b[0m" in drawn  # where it came from
    assert drawn.endswith("\x1b[1;31mcheck!\x1b[0m")
    played.push("2a3c")
    assert "\x1b[31m" not in board_text(played, colors=True)
    assert "\x1b[31m馬\x1b[0m" in board_text(ShogiGame("4k4/9/9/9/9/+B8/9/9/4K4 b - 1"), colors=True)
    plain = board_text(game("7g7f 3c3d 8h3c+"), colors=False)
    assert "\x1b" not in plain
    assert plain.endswith("check!")


def test_a_hand_is_counted_in_letters() -> None:
    assert "(R 2P)" in board_text(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b R2P 1"), colors=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "expected"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),  # as no-color.org says
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    stream: io.StringIO, environ: dict[str, str], expected: bool
) -> None:
    assert wants_colors(stream, environ) is expected

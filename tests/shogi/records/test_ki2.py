"""Reading KI2 records: against hand-written texts, and against a writer of its own kind."""

from pathlib import Path

import pytest
from conftest import random_play
from hypothesis import given
from hypothesis import strategies as st
from ki2_writer import write_ki2
from record_cases import BLACK, RICH, WHITE, moves, usi

from keisei.shogi import (
    GameRecord,
    NotationError,
    Outcome,
    Reason,
    RulesError,
    read_ki2,
    read_record,
    write_kif,
    write_record,
)
from keisei.shogi.records.kif import read_kif

KI2 = """\
開始日時：2024/01/01 10:00:00
手合割：平手
先手：甲
後手：乙
*before the first move
▲７六歩    △３四歩    ▲２二角成
*takes, and promotes
△同　銀    ▲４五角

まで5手で先手の勝ち

変化：3手
▲２六歩
"""
RECORD = GameRecord(
    moves("7g7f 3c3d 8h2b+ 3a2b B*4e"),
    black="甲",
    white="乙",
    outcome=Outcome(BLACK, Reason.RESIGNATION),
    comments={0: "before the first move", 3: "takes, and promotes"},
    headers={"開始日時": "2024/01/01 10:00:00"},
)
# Six tokins around 5e, which can all go there, and how each is told.
TOKINS = "4k4/9/9/4+P4/3+P1+P3/3+P+P+P3/9/9/4K4 b - 1"


@pytest.mark.parametrize("data", [KI2, KI2.encode(), KI2.replace("\n", "\r\n").encode("cp932")])
def test_a_record_written_by_hand_is_read_in_full(data: str | bytes) -> None:
    assert read_ki2(data) == RECORD


def test_files_are_found_by_their_ending_and_not_written(tmp_path: Path) -> None:
    for name in ("game.ki2", "game.KI2U"):
        (tmp_path / name).write_text(KI2, encoding="utf-8")
        assert read_record(tmp_path / name) == RECORD
        with pytest.raises(NotationError, match=r"^cannot write 'game\..*': expected .csa, .kif, .kifu or"):
            write_record(tmp_path / name, RECORD)


def board(sfen: str) -> str:
    """Return a position as the first lines of a KI2 record."""
    return write_kif(GameRecord((), sfen)).split("\n手数----")[0] + "\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [("引", "5d5e"), ("左寄", "6e5e"), ("右寄", "4e5e"), ("左上", "6f5e"), ("直", "5f5e"), ("右上", "4f5e")],
)
def test_words_choose_between_six_pieces(words: str, expected: str) -> None:
    assert usi(read_ki2(f"{board(TOKINS)}▲５五と{words}\n")) == expected


@pytest.mark.parametrize(
    ("sfen", "text", "expected"),
    [
        ("4k4/9/9/9/9/9/9/9/3GKG3 b - 1", "▲５八金右", "4i5h"),
        ("4k4/9/9/9/9/9/9/9/3GKG3 b - 1", "▲５八金左", "6i5h"),
        ("3gkg3/9/9/9/9/9/9/9/4K4 w - 1", "△５二金右", "6a5b"),  # White sees it the other way round
        ("3gkg3/9/9/9/9/9/9/9/4K4 w - 1", "△５二金左上", "4a5b"),
        ("4k4/9/9/9/9/9/9/4+B+B3/K8 b - 1", "▲５七馬左", "5h5g"),  # straight below, yet the left one
        ("k8/9/9/9/9/9/4+R4/9/K2+R5 b - 1", "▲６七龍行", "6i6g"),
        ("k8/9/9/9/9/9/4+R4/9/K2+R5 b - 1", "▲６七竜寄", "5g6g"),
        ("k8/4S4/9/9/9/9/9/9/4K4 b - 1", "▲６一銀成", "5b6a+"),
        ("k8/4S4/9/9/9/9/9/9/4K4 b - 1", "▲６一銀不成", "5b6a"),
        ("k8/4S4/9/9/9/9/9/9/4K4 b - 1", "▲６一銀", "5b6a"),
        ("4k4/9/9/9/9/9/4S4/9/4K4 b S 1", "▲５六銀", "5g5f"),
        ("4k4/9/9/9/9/9/4S4/9/4K4 b S 1", "▲５六銀打", "S*5f"),
        ("4k4/9/9/9/9/9/4S4/9/4K4 b S 1", "▲４四銀", "S*4d"),
        ("4k4/9/9/9/9/9/9/9/r2GKG3 b - 1", "▲５八金右", "4i5h"),  # the other one is pinned
    ],
)
def test_a_text_means_one_legal_move(sfen: str, text: str, expected: str) -> None:
    assert usi(read_ki2(f"{board(sfen)}{text}\n")) == expected


def test_the_giver_of_a_handicap_moves_first() -> None:
    record = read_ki2("手合割：角落ち\n下手：a\n上手：b\n△５四歩 ▲７六歩\nまで2手で下手の勝ち\n")
    assert (usi(record), record.black, record.white) == ("5c5d 7g7f", "a", "b")
    assert record.outcome == Outcome(BLACK, Reason.RESIGNATION)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("先手：a\n▲７六歩 △hello\n", 2, "move 2 'hello': expected a move such as"),
        ("▲７六歩 ▲２六歩\n", 1, "move 2: it is white's move"),
        ("▲同歩\n", 1, "move 1 '同歩': 同 without a previous move"),
        ("▲７六歩 △３四歩\n▲５八金\n", 2, "move 3 ５八金: expected words that tell which of 4i5h 6i5h it is"),
        ("▲７六歩\n先手：a\n", 2, "header after the first move"),
        ("７六歩\n", 1, "neither a header, a move nor a comment"),
        ("▲５五と打\n", 1, "only an unpromoted piece can be dropped"),
    ],
)
def test_ki2_that_cannot_be_read_is_refused_with_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(NotationError, match=rf"^bad ki2 line {line} '.*': .*{why}"):
        read_ki2(text)


def test_a_move_that_is_not_legal_is_refused_with_line_and_number() -> None:
    with pytest.raises(RulesError, match=r"^line 3: move 3: no legal move is ７四歩 in position lnsg"):
        read_ki2("先手：a\n▲７六歩 △３四歩\n▲７四歩\n")
    with pytest.raises(RulesError, match="no legal move is ５八金引"):
        read_ki2("▲５八金引\n")
    with pytest.raises(NotationError, match=r"^bad ki2 record: neither a header nor a move"):
        read_ki2("*comment\n")


@given(st.integers(0, 9999), st.integers(1, 12), st.sampled_from([None, RICH]))
def test_every_game_is_read_back_from_another_writer(seed: int, per_line: int, sfen: str | None) -> None:
    *_, game = random_play(seed, 60, sfen)
    record = GameRecord.from_game(game)
    first = board(record.sfen)
    assert read_ki2(first + write_ki2(record, per_line=per_line)).moves == record.moves
    assert read_kif(write_kif(record)).moves == record.moves


def test_a_win_of_white_is_read_from_the_summary() -> None:
    assert read_ki2("▲７六歩 △３四歩\nまで2手で後手の勝ち\n").outcome == Outcome(WHITE, Reason.RESIGNATION)

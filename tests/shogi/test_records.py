"""Game records: CSA, KIF and USI, read and written, against texts by hand and against rsshogi."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from conftest import DATA, random_play
from hypothesis import given, settings
from hypothesis import strategies as st
from rsshogi.record import GameResult, Record

from keisei.shogi import (
    START_SFEN,
    Color,
    GameRecord,
    Move,
    NotationError,
    Outcome,
    Reason,
    RulesError,
    ShogiGame,
    read_csa,
    read_csa_games,
    read_kif,
    read_record,
    read_usi,
    write_csa,
    write_kif,
    write_record,
    write_usi,
)

T = TypeVar("T")
BLACK, WHITE = Color.BLACK, Color.WHITE
SHUFFLE = ["2h3h", "8b7b", "3h2h", "7b8b"] * 3  # the first position stands for the fourth time
DRAGON_CHECKS = "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"
PERPETUAL = ["5a4a", "5d4d", "4a5a", "4d5d"] * 3
GOLD_MATES = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"  # with G*5b
STALEMATED = "k8/9/1+R7/9/9/9/9/9/4K4 w - 1"  # White has no move and is not in check
EVERY_PIECE = "lnsgkgsnl/9/ppppppppp/9/+P+L+N+S4+p/1+B5+r1/9/9/4K4 b R2Pb2gsnl5p 1"


def moves(text: str) -> tuple[Move, ...]:
    return tuple(Move.from_usi(word) for word in text.split())


def usi(record: GameRecord) -> str:
    return " ".join(map(str, record.moves))


def without_pieces(squares: str) -> str:
    """The SFEN of a handicap: the start without White's pieces on these squares, White to move."""
    rows = [list("lnsgkgsnl"), list(".r.....b.")]
    for square in squares.split():
        rows["ab".index(square[1])][9 - int(square[0])] = "."
    text = "/".join("".join(row) for row in rows)
    for gap in range(9, 0, -1):
        text = text.replace("." * gap, str(gap))
    return f"{text}/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"


# What tests/data/exchange.csa and exchange.kif say.
EXCHANGE = GameRecord(
    moves=moves("7g7f 3c3d 8h2b+ 3a2b B*4e"),
    black="Habu, Yoshiharu",
    white="羽生　善治",
    outcome=Outcome(BLACK, Reason.RESIGNATION),
    comments={0: "before the first move", 3: "takes, and promotes\n\n two lines below an empty one"},
    seconds=(12, 6, 0, 3, 125),
)
CSA_HEADERS = {"EVENT": "Test match: round 1", "TIME_LIMIT": "00:25+00"}
KIF_HEADERS = {"棋戦": "練習対局", "開始日時": "2024/01/01 10:00:00"}


# ------------------------------------------------------------------------ CSA


def test_csa_file_written_by_hand_is_read_in_full() -> None:
    assert read_record(DATA / "exchange.csa") == replace(EXCHANGE, headers=CSA_HEADERS)


def test_csa_is_written_as_by_hand() -> None:
    written = write_csa(replace(EXCHANGE, headers=CSA_HEADERS))
    assert written == (DATA / "exchange.csa").read_text(encoding="utf-8")


def test_csa_times_and_names_may_be_missing() -> None:
    record = read_csa("PI\n+\n+7776FU\n-3334FU\n%CHUDAN\n")
    assert record == GameRecord(moves("7g7f 3c3d"))
    assert write_csa(record) == "'CSA encoding=UTF-8\nV2.2\nPI\n+\n+7776FU\n-3334FU\n%CHUDAN\n"


def test_csa_move_without_a_time_among_times_took_none() -> None:
    assert read_csa("PI\n+\n+7776FU\n-3334FU\nT7\n").seconds == (0, 7)


def test_csa_time_of_the_ending_is_not_a_move_s_time() -> None:
    assert read_csa("PI\n+\n+7776FU\nT3\n%TORYO\nT9\n").seconds == (3,)


def test_csa_statements_may_share_a_line() -> None:
    record = read_csa("V2.2\nPI,+\n+7776FU,T12,-3334FU,T6\n%TORYO,T1\n")
    assert record == GameRecord(
        moves("7g7f 3c3d"), outcome=Outcome(WHITE, Reason.RESIGNATION), seconds=(12, 6)
    )


def test_csa_names_and_headers_keep_their_commas() -> None:
    record = read_csa("N+a, b\nN-c,d\n$EVENT: e,f \nPI\n+\n")
    assert (record.black, record.white, record.headers) == ("a, b", "c,d", {"EVENT": "e,f"})


def test_csa_headers_of_one_player_survive() -> None:
    text = write_csa(read_csa("$TIME+:600+0+10\n$TIME-:60+0+10\nPI\n+\n"))
    assert read_csa(text).headers == {"TIME+": "600+0+10", "TIME-": "60+0+10"}


def test_csa_comments_for_people_are_passed_over() -> None:
    record = read_csa("' before\nPI\n'* kept\n+\n+7776FU\n' 30 -3334FU\n'** 30 -3334FU\n%TORYO\n'*end\n")
    assert record.comments == {0: " kept", 1: "* 30 -3334FU\nend"}


def test_csa_handicap_takes_pieces_from_the_start() -> None:
    record = read_csa("PI82HI22KA\n-\n-7162GI\n+7776FU\n")
    assert record.sfen == without_pieces("8b 2b")
    assert usi(record) == "7a6b 7g7f"


ROWS = """\
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 *  *  *  *  *  *  *  *  *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5+TO+NY+NK+NG *  *  *  * -TO
P6 * +UM *  *  *  *  * -RY *
P7 *  *  *  *  *  *  *  *  *
P8 *  *  *  *  *  *  *  *  *
P9 *  *  *  * +OU *  *  *  *
"""


def test_csa_rows_name_every_piece_and_al_gives_the_rest() -> None:
    assert read_csa(f"{ROWS}P+00HI00FU00FU\nP-00AL\n+\n").sfen == EVERY_PIECE
    assert read_csa(f"{ROWS}P-00AL\nP+00HI00FU00FU\n+\n").sfen == EVERY_PIECE


def test_csa_rows_are_written_three_letters_a_square() -> None:
    rows = [f"{row:29}" for row in ROWS.splitlines()]
    hands = ["P+00HI00FU00FU", "P-00KA00KI00KI00GI00KE00KY00FU00FU00FU00FU00FU", "+", "%CHUDAN"]
    assert write_csa(GameRecord((), EVERY_PIECE)).splitlines()[2:] == [*rows, *hands]


def test_csa_pieces_may_be_placed_one_by_one() -> None:
    record = read_csa("P-51OU\nP+59OU53FU00KI\nP-00AL\n+\n+0052KI\n%TSUMI\n")
    assert record.sfen == "4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1"
    assert usi(record) == "G*5b"
    assert record.outcome == Outcome(BLACK, Reason.CHECKMATE)


def test_csa_move_names_the_piece_after_the_move() -> None:
    stays = read_csa("PI\n+\n+7776FU\n-3334FU\n+8822KA\n")
    turns = read_csa("PI\n+\n+7776FU\n-3334FU\n+8822UM\n")
    assert (usi(stays), usi(turns)) == ("7g7f 3c3d 8h2b", "7g7f 3c3d 8h2b+")
    assert (write_csa(stays).split()[-2], write_csa(turns).split()[-2]) == ("+8822KA", "+8822UM")


def test_csa_games_are_parted_by_slashes() -> None:
    text = "V2.2\nN+a\nPI\n+\n+7776FU\n%TORYO\n/\nN+b\nPI82HI\n-\n-3334FU\n%CHUDAN\n/\n"
    first, second = read_csa_games(text)
    assert (first.black, usi(first), first.sfen) == ("a", "7g7f", START_SFEN)
    assert (second.black, usi(second), second.sfen) == ("b", "3c3d", without_pieces("8b"))
    with pytest.raises(NotationError, match="expected one csa game, got 2"):
        read_csa(text)
    with pytest.raises(NotationError, match="expected one csa game, got 0"):
        read_csa("")


CSA_ENDINGS = [  # White is to move
    ("TORYO", Outcome(BLACK, Reason.RESIGNATION)),
    ("KACHI", Outcome(WHITE, Reason.DECLARATION)),
    ("JISHOGI", Outcome(None, Reason.AGREED_IMPASSE)),
    ("HIKIWAKE", Outcome(None, Reason.ADJUDICATION)),
    ("MAX_MOVES", Outcome(None, Reason.MAXIMUM_LENGTH)),
    ("TIME_UP", Outcome(BLACK, Reason.TIME)),
    ("ILLEGAL_MOVE", Outcome(BLACK, Reason.ILLEGAL_MOVE)),
    ("+ILLEGAL_ACTION", Outcome(WHITE, Reason.ILLEGAL_MOVE)),
    ("CHUDAN", None),
]


@pytest.mark.parametrize(("word", "outcome"), CSA_ENDINGS)
def test_csa_ending_names_winner_and_reason(word: str, outcome: Outcome | None) -> None:
    record = read_csa(f"PI\n+\n+7776FU\n%{word}\n")
    assert record.outcome == outcome
    assert write_csa(record).splitlines()[-1] == f"%{word}"


def test_csa_illegal_action_of_the_side_to_move_is_its_loss() -> None:
    assert read_csa("PI\n+\n+7776FU\n%-ILLEGAL_ACTION\n").outcome == Outcome(BLACK, Reason.ILLEGAL_MOVE)


@pytest.mark.parametrize("word", ["ERROR", "FUZUMI", "MATTA"])
def test_csa_game_broken_off_is_unfinished(word: str) -> None:
    assert read_csa(f"PI\n+\n%{word}\n").outcome is None


SHOWN = [  # start, moves, what the position shows, its words in CSA and KIF
    (GOLD_MATES, "G*5b", Outcome(BLACK, Reason.CHECKMATE), "TSUMI", "詰み"),
    (STALEMATED, "", Outcome(BLACK, Reason.NO_LEGAL_MOVE), "TSUMI", "詰み"),
    (START_SFEN, " ".join(SHUFFLE), Outcome(None, Reason.REPETITION), "SENNICHITE", "千日手"),
    (
        DRAGON_CHECKS,
        " ".join(PERPETUAL),
        Outcome(WHITE, Reason.PERPETUAL_CHECK),
        "+ILLEGAL_ACTION",
        "反則勝ち",
    ),
]


@pytest.mark.parametrize(("sfen", "line", "outcome", "csa", "kif"), SHOWN)
def test_end_shown_by_the_position_is_written_and_read(
    sfen: str, line: str, outcome: Outcome, csa: str, kif: str
) -> None:
    record = GameRecord(moves(line), sfen, outcome=outcome)
    assert write_csa(record).splitlines()[-1] == f"%{csa}"
    assert write_kif(record).split()[-1] == kif
    assert read_csa(write_csa(record)) == record
    assert read_kif(write_kif(record)) == record
    assert read_usi(write_usi(record)) == record


def test_position_decides_where_the_record_is_silent_or_says_resigned() -> None:
    mated = Outcome(BLACK, Reason.CHECKMATE)
    mate = "P-51OU\nP+59OU53FU00KI\n+\n+0052KI\n"
    assert [read_csa(f"{mate}{end}").outcome for end in ("", "%CHUDAN\n", "%TORYO\n")] == [mated] * 3


@pytest.mark.parametrize(
    ("outcome", "csa", "kif"),
    [  # White to move
        (Outcome(BLACK, Reason.DECLARATION), "TORYO", "投了"),  # by the try rule
        (Outcome(BLACK, Reason.FORFEIT), "TORYO", "不戦敗"),
        (Outcome(WHITE, Reason.FORFEIT), "+ILLEGAL_ACTION", "不戦勝"),
        (Outcome(WHITE, Reason.TIME), "+ILLEGAL_ACTION", "反則勝ち"),
        (Outcome(WHITE, Reason.RESIGNATION), "+ILLEGAL_ACTION", "反則勝ち"),
        (Outcome(None, Reason.FORFEIT), "HIKIWAKE", "裁定引分"),
    ],
)
def test_outcome_without_a_word_keeps_its_winner(outcome: Outcome, csa: str, kif: str) -> None:
    record = GameRecord(moves("7g7f"), outcome=outcome)
    assert write_csa(record).splitlines()[-1] == f"%{csa}"
    assert write_kif(record).split()[-1] == kif
    for read in (read_csa(write_csa(record)), read_kif(write_kif(record))):
        assert read.outcome is not None
        assert read.outcome.winner == outcome.winner


# ------------------------------------------------------------------------ KIF


def test_kif_file_written_by_hand_is_read_in_full() -> None:
    assert read_record(DATA / "exchange.kif") == replace(EXCHANGE, headers=KIF_HEADERS)


def test_kif_is_written_as_by_hand() -> None:
    written = write_kif(replace(EXCHANGE, headers=KIF_HEADERS))
    assert written == (DATA / "exchange.kif").read_text(encoding="utf-8")


KIF = """\
# ----  Kifu for Windows V7 V7.70 棋譜ファイル  ----
手合割：平手
先手：羽生善治　竜王
後手：谷川浩司 九段
手数----指手---------消費時間--
*対局開始
# passed over
&しおり
   1 ７六歩(77)   ( 0:16/00:00:16)
   2 ３四歩(33)   ( 0:00/00:00:00)+
   3 ２二角不成(88) ( 1:03/00:01:19)
*変化：コメント
*二行目

   4 同　銀(31)   (1:2:03/1:02:03)
   5 ４五角打     ( 0:01/00:01:20)
   6 投了         ( 0:05/01:02:08)
まで5手で先手の勝ち

変化：3手
   3 ２六歩(27)   ( 0:00/00:00:00)
*passed over
変化：2手
   2 ８四歩(83)
"""
KIF_RECORD = GameRecord(
    moves=moves("7g7f 3c3d 8h2b 3a2b B*4e"),
    black="羽生善治　竜王",
    white="谷川浩司 九段",
    outcome=Outcome(BLACK, Reason.RESIGNATION),
    comments={0: "対局開始", 3: "変化：コメント\n二行目"},
    seconds=(16, 0, 63, 3723, 1),
)


@pytest.mark.parametrize(
    "data",
    [
        KIF,
        "\ufeff" + KIF,
        KIF.encode(),
        KIF.encode("utf-8-sig"),
        KIF.encode("cp932"),
        KIF.replace("\n", "\r\n").encode("cp932"),
        KIF.replace("\n", "\r\n").encode("utf-8-sig"),
        KIF.replace("\n", "\r"),
    ],
    ids=[
        "text",
        "marked text",
        "utf-8",
        "utf-8 with mark",
        "shift-jis",
        "windows",
        "windows utf-8",
        "old mac",
    ],
)
def test_kif_is_read_in_every_encoding(data: str | bytes) -> None:
    assert read_kif(data) == KIF_RECORD


def test_records_of_windows_files_are_found_by_their_ending(tmp_path: Path) -> None:
    for name in ("game.kif", "game.KIFU"):
        (tmp_path / name).write_bytes(KIF.replace("\n", "\r\n").encode("cp932"))
        assert read_record(tmp_path / name) == KIF_RECORD


BOD = """\
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
"""


@pytest.mark.parametrize("diagram", [BOD, BOD.replace("玉", "王").replace("龍", "竜").replace("　", " ")])
def test_kif_diagram_is_the_first_position(diagram: str) -> None:
    assert read_kif(f"手合割：その他　　\n{diagram}先手：\n後手：\n").sfen == EVERY_PIECE


def test_kif_diagram_tells_the_side_and_the_number_of_moves_before() -> None:
    after = "手数＝57  ▲８六馬  まで\n先手：a\n\n後手番\n"
    assert read_kif(f"手合割：その他\n{BOD}{after}").sfen == EVERY_PIECE.replace(" b ", " w ")[:-1] + "58"


def test_kif_diagram_of_a_handicap_names_the_sides_so() -> None:
    diagram = BOD.replace("先手", "下手").replace("後手", "上手")
    record = read_kif(f"手合割：角落ち\n{diagram}上手番\n下手：a\n上手：b\n   1 １六と(15)\n")
    assert record.sfen == EVERY_PIECE.replace(" b ", " w ")
    assert (record.black, record.white, usi(record)) == ("a", "b", "1e1f")


@pytest.mark.parametrize(
    ("count", "number"),
    [("", 1), ("二", 2), ("九", 9), ("十", 10), ("十一", 11), ("十八", 18), ("2", 2), ("10", 10), ("18", 18)],
)
def test_kif_hand_is_counted_in_kanji_or_digits(count: str, number: int) -> None:
    empty = "| ・ ・ ・ ・ ・ ・ ・ ・ ・|\n"
    board = empty.replace(" ・ ・|", "v玉 ・|") + empty * 7 + empty.replace(" ・ ・|", " 玉 ・|")
    game = ShogiGame(read_kif(f"{board}先手の持駒：金　歩{count}\n後手の持駒：なし\n").sfen)
    assert (game.hand(BLACK), game.hand(WHITE)) == ({"G": 1, "P": number}, {})


def test_kif_moves_name_every_promoted_piece() -> None:
    table = """\
   1 ９四と(95)
   2 １六と(15)
   3 ８四成香(85)
   4 ２七龍(26)
   5 ７四成桂(75)
   6 ２八龍(27)
   7 ６四成銀(65)
   8 同　歩(63)
   9 ７五馬(86)
  10 中断
"""
    record = GameRecord(moves("9e9d 1e1f 8e8d 2f2g 7e7d 2g2h 6e6d 6c6d 8f7e"), EVERY_PIECE)
    assert read_kif(BOD + table) == record
    assert write_kif(record).endswith(table)
    other_names = str.maketrans({"龍": "竜"})
    short = table.replace("成香", "杏").replace("成桂", "圭").replace("成銀", "全").translate(other_names)
    assert read_kif(BOD + short) == record


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("７六歩(77)", "7g7f"),
        ("7六歩(77)", "7g7f"),
        ("５八王(59)", "5i5h"),
        ("５八玉(59)", "5i5h"),
        ("　７六歩(77)　", "7g7f"),
        ("７六歩(77)+", "7g7f"),  # a variation branches off here
    ],
)
def test_kif_writes_a_move_in_several_ways(text: str, expected: str) -> None:
    assert usi(read_kif(f"1 {text}\n")) == expected


@pytest.mark.parametrize("same", ["同　銀", "同銀", "同 銀", "２二銀"])
def test_kif_same_square_needs_no_name(same: str) -> None:
    assert usi(read_kif(f"1 ７六歩(77)\n2 ３四歩(33)\n3 ２二角成(88)\n4 {same}(31)\n")).endswith(" 3a2b")


HANDICAPS = {
    "香落ち": "1a",
    "右香落ち": "9a",
    "角落ち": "2b",
    "飛車落ち": "8b",
    "飛香落ち": "8b 1a",
    "二枚落ち": "8b 2b",
    "三枚落ち": "8b 2b 1a",
    "四枚落ち": "8b 2b 1a 9a",
    "五枚落ち": "8b 2b 1a 9a 8a",
    "左五枚落ち": "8b 2b 1a 9a 2a",
    "六枚落ち": "8b 2b 1a 9a 8a 2a",
    "左七枚落ち": "8b 2b 1a 9a 8a 2a 3a",
    "右七枚落ち": "8b 2b 1a 9a 8a 2a 7a",
    "八枚落ち": "8b 2b 1a 9a 8a 2a 3a 7a",
    "十枚落ち": "8b 2b 1a 9a 8a 2a 3a 7a 4a 6a",
}


@pytest.mark.parametrize(("name", "squares"), HANDICAPS.items())
def test_kif_handicap_giver_lacks_pieces_and_moves_first(name: str, squares: str) -> None:
    text = f"手合割：{name}　　\n下手：弟子\n上手：師匠\n   1 ５四歩(53)\n   2 ７六歩(77)\n   3 投了\n"
    record = read_kif(text)
    assert record.sfen == without_pieces(squares)
    assert (record.black, record.white, usi(record)) == ("弟子", "師匠", "5c5d 7g7f")
    assert record.outcome == Outcome(BLACK, Reason.RESIGNATION)
    assert write_kif(record).split("\n")[1:4] == [f"手合割：{name}", "下手：弟子", "上手：師匠"]


KIF_ENDINGS = [  # White is to move
    ("投了", Outcome(BLACK, Reason.RESIGNATION)),
    ("入玉勝ち", Outcome(WHITE, Reason.DECLARATION)),
    ("最大手数", Outcome(None, Reason.MAXIMUM_LENGTH)),
    ("切れ負け", Outcome(BLACK, Reason.TIME)),
    ("反則負け", Outcome(BLACK, Reason.ILLEGAL_MOVE)),
    ("反則勝ち", Outcome(WHITE, Reason.ILLEGAL_MOVE)),
    ("不戦敗", Outcome(BLACK, Reason.FORFEIT)),
    ("不戦勝", Outcome(WHITE, Reason.FORFEIT)),
    ("持将棋", Outcome(None, Reason.AGREED_IMPASSE)),
    ("裁定引分", Outcome(None, Reason.ADJUDICATION)),
    ("中断", None),
]


@pytest.mark.parametrize(("word", "outcome"), KIF_ENDINGS)
def test_kif_ending_names_winner_and_reason(word: str, outcome: Outcome | None) -> None:
    record = read_kif(f"   1 ７六歩(77)   ( 0:01/00:00:01)\n   2 {word}   ( 0:05/00:00:05)\n")
    assert record.outcome == outcome
    assert record.seconds == (1,)
    assert write_kif(record).splitlines()[-1] == f"   2 {word}"


@pytest.mark.parametrize("word", ["封じ手", "不詰"])
def test_kif_game_broken_off_is_unfinished(word: str) -> None:
    assert read_kif(f"1 ７六歩(77)\n2 {word}\n").outcome is None


def test_kif_without_an_ending_is_unfinished() -> None:
    assert read_kif("手合割：平手\n1 ７六歩(77)\n") == GameRecord(moves("7g7f"))


# ------------------------------------------------------------------------ USI


@pytest.mark.parametrize("word", ["position ", "", "  position   "])
def test_usi_line_begins_at_startpos_or_sfen(word: str) -> None:
    assert read_usi(f"{word}startpos moves 7g7f 3c3d\n") == GameRecord(moves("7g7f 3c3d"))
    assert read_usi(f"{word}startpos") == read_usi(f"{word}startpos moves") == GameRecord(())
    assert read_usi(f"{word}sfen {GOLD_MATES}") == GameRecord((), GOLD_MATES)
    mate = GameRecord(moves("G*5b"), GOLD_MATES, outcome=Outcome(BLACK, Reason.CHECKMATE))
    assert read_usi(f"{word}sfen {GOLD_MATES} moves G*5b") == mate


def test_usi_sfen_may_lack_the_move_number() -> None:
    assert read_usi(f"sfen {GOLD_MATES[:-2]} moves 5c5b+") == GameRecord(moves("5c5b+"), GOLD_MATES)


def test_usi_line_is_written() -> None:
    assert write_usi(EXCHANGE) == "position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*4e"
    assert write_usi(GameRecord(())) == "position startpos"
    assert write_usi(GameRecord(moves("G*5b"), GOLD_MATES)) == f"position sfen {GOLD_MATES} moves G*5b"


# ------------------------------------------------------------------------ files and games


@pytest.mark.parametrize("ending", ["csa", "kif", "kifu"])
def test_file_written_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"game.{ending}"
    write_record(path, EXCHANGE)
    assert read_record(path) == EXCHANGE
    assert "羽生　善治".encode() in path.read_bytes()


def test_usi_file_is_one_line_of_moves(tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    write_record(path, EXCHANGE)
    assert path.read_bytes() == b"position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*4e\n"
    assert read_record(path) == GameRecord(EXCHANGE.moves)


def test_file_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.pgn"
    with pytest.raises(NotationError, match=r"unknown kind of record 'game\.pgn'"):
        write_record(path, EXCHANGE)
    assert not path.exists()
    with pytest.raises(NotationError, match=r"unknown kind of record 'game\.pgn'"):
        read_record(path)


def test_game_of_a_record_is_played_again_and_resigned() -> None:
    game = EXCHANGE.game()
    assert game.history == list(EXCHANGE.moves)
    assert game.outcome() == Outcome(BLACK, Reason.RESIGNATION)
    assert GameRecord.from_game(game) == GameRecord(EXCHANGE.moves, outcome=EXCHANGE.outcome)
    assert replace(EXCHANGE, outcome=None).game().outcome() is None


def test_sfen_without_move_number_is_written_as_number_one() -> None:
    record = GameRecord(moves("5c5b+"), GOLD_MATES[:-2])
    assert read_csa(write_csa(record)).sfen == GOLD_MATES
    assert read_kif(write_kif(record)).sfen == GOLD_MATES


def test_line_ends_in_a_name_become_spaces() -> None:
    record = GameRecord((), black="a\nb", white=" c\r\nd ", headers={"EVENT": "e\nf", "棋戦": "g\rh"})
    csa, kif = read_csa(write_csa(record)), read_kif(write_kif(record))
    assert (csa.black, csa.white, csa.headers) == ("a b", "c d", {"EVENT": "e f"})
    assert (kif.black, kif.white, kif.headers) == ("a b", "c d", {"棋戦": "g h"})


# ------------------------------------------------------------------------ round trips

LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
COMMENT = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
NAME = LINE.map(str.strip)


RICH = "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1"  # random play soon ends in mate here
ENDINGS = ["unfinished", "resignation", "maximum length", "repetition", "mate"]


def is_quiet(game: ShogiGame, move: Move) -> bool:
    return move.from_square is not None and not move.promotes and game.piece_at(move.to_square) is None


def shuffle(game: ShogiGame) -> None:
    """Let both sides move a piece forth and back until the position repeats, if they can."""
    for first in filter(lambda move: is_quiet(game, move), game.legal_moves()):
        trial = game.copy()
        trial.push(first)
        for second in filter(lambda move: is_quiet(trial, move), trial.legal_moves()):
            back = [f"{move.to_square}{move.from_square}" for move in (first, second)]
            try:
                for move in [str(first), str(second), *back] * 3:
                    game.push(move)
            except RulesError:
                while len(game.history) >= len(trial.history):
                    game.pop()
            else:
                return


def random_game(seed: int, earlier_plies: int, plies: int, ending: str) -> ShogiGame:
    """A random game from a random position, which ends in this way unless the rules end it before."""
    *_, before = random_play(seed, earlier_plies, RICH if ending == "mate" else None)
    *_, played = random_play(seed + 1, 400 if ending == "mate" else plies, before.sfen())
    max_moves = max(1, played.ply) if ending == "maximum length" else None
    game = ShogiGame(played.start_sfen, max_moves=max_moves, declaration="off")
    for move in played.history:
        game.push(move)
    if ending == "repetition" and game.outcome() is None:
        shuffle(game)
    if ending == "resignation" and game.outcome() is None:
        game.resign()
    return game


@st.composite
def records(draw: st.DrawFn) -> GameRecord:
    seed, earlier_plies, plies = (
        draw(st.integers(0, 9999)),
        draw(st.integers(0, 60)),
        draw(st.integers(0, 60)),
    )
    game = random_game(seed, earlier_plies, plies, draw(st.sampled_from(ENDINGS)))
    length = len(game.history)
    comments = draw(st.dictionaries(st.integers(0, length), COMMENT, max_size=4))
    record = GameRecord.from_game(game, black=draw(NAME), white=draw(NAME), comments=comments)
    times = draw(st.sampled_from([(), (0, 1, 59, 60, 3599, 3600, 99999)]))
    return replace(record, seconds=tuple(times[(seed + i) % 7] for i in range(length)) if times else ())


@given(records())
def test_csa_round_trip_keeps_all_but_the_number_of_the_first_move(record: GameRecord) -> None:
    record = replace(record, sfen=record.sfen.rsplit(" ", 1)[0] + " 1")
    assert read_csa(write_csa(record)) == record
    assert read_csa(write_csa(record).replace("\n", "\r\n").encode()) == record


@given(records())
def test_kif_round_trip_keeps_all(record: GameRecord) -> None:
    assert read_kif(write_kif(record)) == record
    assert read_kif(write_kif(record).replace("\n", "\r\n").encode()) == record


@given(records())
def test_usi_round_trip_keeps_the_moves_and_what_the_position_shows(record: GameRecord) -> None:
    shown = replace(record, outcome=None).game().outcome()
    assert read_usi(write_usi(record)) == GameRecord(record.moves, record.sfen, outcome=shown)


@pytest.mark.parametrize("ending", ENDINGS)
def test_random_games_end_in_every_way(ending: str) -> None:
    """What the round trips rest on: the endings they ask for do come."""
    outcomes = [random_game(seed, seed, 30, ending).outcome() for seed in range(20)]
    reasons = [outcome.reason if outcome else "unfinished" for outcome in outcomes]
    assert reasons.count("checkmate" if ending == "mate" else ending) >= 10


# ------------------------------------------------------------------------ another program

GAMES = [(seed, ending) for seed in range(8) for ending in ENDINGS]


def sample_records() -> Iterator[GameRecord]:
    """Random games with all endings that records can tell of, at move number one: rsshogi knows no other."""
    comments = {0: "a\nb"}
    for sfen, line, outcome, _, _ in SHOWN:
        yield GameRecord(moves(line), sfen, "Black", "White", outcome, comments)
    for seed, ending in GAMES:
        game = random_game(seed, 0 if seed < 3 else 10 * seed, 40, ending)
        record = GameRecord.from_game(game, black="Black", white="White", comments=comments)
        record = replace(record, sfen=record.sfen.rsplit(" ", 1)[0] + " 1")
        yield record
        if record.outcome is None:
            yield replace(record, outcome=Outcome(game.turn, Reason.DECLARATION))
            yield replace(record, outcome=Outcome(game.turn.opponent, Reason.TIME))
            yield replace(record, outcome=Outcome(game.turn.opponent, Reason.ILLEGAL_MOVE))
            yield replace(record, outcome=Outcome(game.turn, Reason.ILLEGAL_MOVE))
            yield replace(record, outcome=Outcome(None, Reason.AGREED_IMPASSE))
            yield replace(record, outcome=Outcome(None, Reason.ADJUDICATION))


def rsshogi_result(outcome: Outcome | None) -> GameResult:
    """The result that rsshogi should name."""
    if outcome is None:
        return GameResult.PAUSED
    if outcome.winner is None:
        draws = {
            Reason.REPETITION: GameResult.DRAW_BY_REPETITION,
            Reason.MAXIMUM_LENGTH: GameResult.DRAW_BY_MAX_PLIES,
            Reason.AGREED_IMPASSE: GameResult.DRAW_BY_IMPASSE,
            Reason.ADJUDICATION: GameResult.DRAW_BY_ADJUDICATION,
        }
        return draws[outcome.reason]
    ways = {
        Reason.DECLARATION: "_BY_DECLARATION",
        Reason.TIME: "_BY_TIMEOUT",
        Reason.ILLEGAL_MOVE: "_BY_ILLEGAL_MOVE",
        Reason.PERPETUAL_CHECK: "_BY_ILLEGAL_MOVE",
    }
    return GameResult.from_str(f"{outcome.winner.name}_WIN{ways.get(outcome.reason, '')}")


def rsshogi_moves(record: Record) -> str:
    return " ".join(entry.move.to_usi() for entry in record.moves)


@pytest.mark.parametrize(
    ("write", "read"),
    [(write_csa, Record.from_csa_str), (write_kif, Record.from_kif_str)],
    ids=["csa", "kif"],
)
def test_rsshogi_reads_what_we_write(
    write: Callable[[GameRecord], str], read: Callable[[str], Record]
) -> None:
    for record in sample_records():
        theirs = read(write(record))
        result = rsshogi_result(record.outcome)
        if write is write_csa and result == GameResult.DRAW_BY_ADJUDICATION:
            result = GameResult.DRAW_BY_IMPASSE  # as rsshogi takes %HIKIWAKE
        assert (rsshogi_moves(theirs), theirs.result) == (usi(record), result)
        assert ShogiGame(theirs.init_position_sfen).sfen() == record.sfen
        assert (theirs.metadata.black_player, theirs.metadata.white_player) == ("Black", "White")
        assert theirs.initial_comment == "a\nb"


def test_rsshogi_reads_our_usi_lines() -> None:
    for record in sample_records():
        theirs = Record.from_usi_position(write_usi(record))
        assert rsshogi_moves(theirs) == usi(record)
        assert ShogiGame(theirs.init_position_sfen).sfen() == record.sfen


def test_we_read_what_rsshogi_writes() -> None:
    for record in sample_records():
        line = [str(move) for move in record.moves]
        theirs = Record.from_usi_main_line(record.sfen, line, rsshogi_result(record.outcome))
        expected = GameRecord(record.moves, record.sfen, outcome=record.outcome)
        kif = read_kif(theirs.to_kif())
        assert replace(kif, seconds=(), headers={}) == expected
        csa = read_csa(theirs.to_csa())
        assert replace(csa, seconds=(), headers={}) == expected
        assert read_usi(theirs.to_usi_position()).moves == record.moves


# ------------------------------------------------------------------------ refusals

FIRST_MOVES = "PI\n+\n+7776FU\n-3334FU\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("V2.2\nhello\n", 2, "unknown or misplaced statement"),
        ("Vx\nPI\n+\n", 1, "expected a version"),
        ("PI\n+\n+7776\n", 3, r"expected a move such as \+7776FU"),
        ("PI\n+\n+7776XX\n", 3, r"expected a move such as \+7776FU"),
        ("PI\n+\n+7777FU\n", 3, r"expected a move such as \+7776FU"),
        ("PI\n+\n+7706FU\n", 3, r"expected a move such as \+7776FU"),
        ("PI\n+\n\n-3334FU\n", 4, "it is black's move"),
        ("PI\n+\n+7776GI\n", 3, "the piece on 7g is FU"),
        ("PI\n+\n+5554FU\n", 3, "the piece on 5e is none"),
        ("PI\n+\n+0055TO\n", 3, "only an unpromoted piece can be dropped"),
        ("+7776FU\n", 1, "move before the side to move"),
        ("+\n", 1, "side to move before any position"),
        (f"{FIRST_MOVES}PI\n", 5, "unknown or misplaced statement"),
        (f"{FIRST_MOVES}%TORYO\n+2726FU\n", 6, "move after the end of the game"),
        (f"{FIRST_MOVES}%TORYO\n%TORYO\n", 6, "unknown or misplaced statement"),
        (f"{FIRST_MOVES}%HELLO\n", 5, "unknown ending"),
        (f"{FIRST_MOVES}Tx\n", 5, "expected a time such as T12"),
        ("PI\n+\nT5\n", 3, "expected a time such as T12 after a move"),
        ("PI55FU\n+\n", 1, "no FU on 5e to take away"),
        ("PI7776\n+\n", 1, "expected pieces such as"),
        ("P0\n", 1, "expected PI, P1 to P9"),
        ("P1-KY-KE-GI-KI-OU-KI-GI-KE-KY-KY\n", 1, "more than nine squares"),
        ("P1-KY-KE-GI-KI-XX\n", 1, "unknown square '-XX'"),
        ("P+00OU\n", 1, "unknown piece 'OU'"),
        ("/\nPI\n+\n/\n\nPI\n-\n*\n", 8, "unknown or misplaced statement"),
    ],
)
def test_csa_that_cannot_be_read_is_refused_with_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(NotationError, match=rf"^bad csa line {line} '.*': .*{why}"):
        read_csa_games(text)


def test_csa_without_a_side_to_move_is_refused() -> None:
    with pytest.raises(NotationError, match=r"^bad csa record: no line with the side to move"):
        read_csa("V2.2\nPI\n")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("先手：a\nhello\n", 2, "neither a header, a move nor a comment"),
        ("手合割：九枚落ち\n", 1, "unknown handicap '九枚落ち'"),
        ("手合割：その他\n\n1 ７六歩(77)\n", 3, "handicap その他 without a board diagram"),
        ("1 ７六歩\n", 1, "expected a move such as"),
        ("1 ７六歩(77)\n2 hello\n", 2, "expected a move such as"),
        ("1 ７六歩(77)\n3 ３四歩(33)\n", 2, "expected move 2"),
        ("1 同　歩(77)\n", 1, "同 without a move before"),
        ("1 ７六銀(77)\n", 1, "no 銀 on 7g to move to 7f"),
        ("1 ７六歩(76)\n", 1, "no 歩 on 7f to move to 7f"),
        ("1 ５五と打\n", 1, "only an unpromoted piece can be dropped"),
        ("1 ５五玉打\n", 1, "only an unpromoted piece can be dropped"),
        ("1 投了\n2 ７六歩(77)\n", 2, "move after the end of the game"),
        ("1 ７六歩(77)\n後手：b\n", 2, "header after the first move"),
        (BOD.replace("・vと|五", "・|五"), 8, "expected nine squares, got 8"),
        (BOD.replace("馬", "鰤"), 9, "unknown piece '鰤'"),
        (BOD.replace("先手の", "| ・ ・ ・ ・ ・ ・ ・ ・ ・|十\n先手の"), 14, "more than nine ranks"),
        (BOD.replace("飛　歩二", "飛　歩二　歩"), 14, "unknown or repeated piece in hand '歩'"),
        (BOD.replace("飛　歩二", "飛　と二"), 14, "unknown or repeated piece in hand 'と'"),
        (BOD.replace("飛　歩二", "飛　歩0"), 14, "unknown or repeated piece in hand '0'"),
        ("|v香v桂v銀v金v玉v金v銀v桂v香|一\n1 ７六歩(77)\n", 2, "expected nine ranks, got 1"),
    ],
)
def test_kif_that_cannot_be_read_is_refused_with_the_line(text: str, line: int, why: str) -> None:
    with pytest.raises(NotationError, match=rf"^bad kif line {line} '.*': .*{why}"):
        read_kif(text)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "expected startpos or sfen"),
        ("moves 7g7f", "expected startpos or sfen"),
        ("position 7g7f", "expected startpos or sfen"),
        ("position startpos 7g7f", "expected startpos or sfen"),
        ("position sfen moves 7g7f", "bad sfen"),
        ("position startpos moves 7g7f resign", "bad usi move 'resign'"),
        ("position sfen あ b - 1", "expected ascii"),
        ("position startpos moves ７六歩", "expected ascii"),
        ("position startpos moves \ud800", "expected ascii"),
    ],
)
def test_usi_that_cannot_be_read_is_refused(line: str, why: str) -> None:
    with pytest.raises(NotationError, match=why):
        read_usi(line)


def test_bytes_that_are_no_text_are_refused() -> None:
    for read in (read_csa, read_kif):
        with pytest.raises(NotationError, match=r"^the record is neither UTF-8 nor Shift-JIS text"):
            read(b"PI\n+\n\x81\n")


def test_record_that_breaks_a_rule_is_refused_with_the_move_number() -> None:
    expected = "^move 3: illegal move 7f7d in position lnsgkgsnl/"
    with pytest.raises(RulesError, match=expected):
        read_csa(f"{FIRST_MOVES}+7674FU\n-8384FU\n%TORYO\n")
    with pytest.raises(RulesError, match=expected):
        read_kif("1 ７六歩(77)\n2 ３四歩(33)\n3 ７四歩(76)\n4 ８四歩(83)\n")
    with pytest.raises(RulesError, match=expected):
        read_usi("position startpos moves 7g7f 3c3d 7f7d 8c8d")


def test_record_that_breaks_a_rule_is_not_written() -> None:
    record = GameRecord(moves("7g7f 3c3d 7f7d"))
    for write in (write_csa, write_kif):
        with pytest.raises(RulesError, match=r"^move 3: illegal move 7f7d in position"):
            write(record)
        with pytest.raises(RulesError, match=r"^move 1: illegal move 5e5d in position"):
            write(GameRecord(moves("5e5d")))
        with pytest.raises(NotationError, match=r"^bad sfen 'nonsense'"):
            write(GameRecord((), "nonsense"))


def test_move_of_the_other_side_s_piece_is_refused() -> None:
    with pytest.raises(RulesError, match=r"^move 1: illegal move 3c3d"):
        read_csa("PI\n+\n+3334FU\n")
    with pytest.raises(RulesError, match=r"^move 1: illegal move 3c3d"):
        read_kif("1 ３四歩(33)\n")


def test_move_after_mate_is_refused() -> None:
    with pytest.raises(RulesError, match=r"^move 2: illegal move 5a4b .*: the game is over, checkmate"):
        read_usi(f"sfen {GOLD_MATES} moves G*5b 5a4b")


def test_position_that_breaks_a_rule_is_refused() -> None:
    with pytest.raises(RulesError, match="two pawns of one side on file 7"):
        read_csa("P-51OU\nP+59OU75FU77FU\n+\n")
    with pytest.raises(RulesError, match="more than 18 of piece P"):
        read_csa("PI\nP+00FU\n+\n")
    with pytest.raises(RulesError, match="white has 0 kings"):
        read_kif(BOD.replace("v玉", " ・"))


FALSE_CLAIMS = [
    (START_SFEN, "7g7f", "TSUMI", "詰み", "black wins by checkmate, but the position does not show it"),
    (START_SFEN, "7g7f", "SENNICHITE", "千日手", "draw by repetition, but the position does not show it"),
    (GOLD_MATES, "G*5b", "KACHI", "入玉勝ち", "white wins by declaration, but it is black wins by checkmate"),
    (GOLD_MATES, "G*5b", "JISHOGI", "持将棋", "draw by agreed impasse, but it is black wins by checkmate"),
    (
        START_SFEN,
        " ".join(SHUFFLE),
        "TORYO",
        "投了",
        "white wins by resignation, but it is draw by repetition",
    ),
    (
        DRAGON_CHECKS,
        " ".join(PERPETUAL),
        "SENNICHITE",
        "千日手",
        "draw by repetition, but it is white wins by perpetual check",
    ),
]


@pytest.mark.parametrize(("sfen", "line", "csa", "kif", "why"), FALSE_CLAIMS)
def test_claim_that_the_position_denies_is_refused(
    sfen: str, line: str, csa: str, kif: str, why: str
) -> None:
    record = GameRecord(moves(line), sfen)
    expected = f"^after move {len(record.moves)}: the record says {why}, in position "
    with pytest.raises(RulesError, match=expected):
        read_csa(write_csa(record).replace("%CHUDAN", f"%{csa}"))
    with pytest.raises(RulesError, match=expected):
        read_kif(write_kif(record).replace("中断", kif))


def refusal(read: Callable[[T], GameRecord], data: T) -> str:
    """How a reader refuses the data, or "read" if it takes them; any other error fails the test."""
    try:
        read(data)
    except (NotationError, RulesError) as error:
        return str(error)
    return "read"


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_csa, read_kif, read_usi):
        assert refusal(read, text)[0].islower()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_csa, read_kif):
        assert refusal(read, data)[0].islower()


@settings(max_examples=300)
@given(st.sampled_from([0, 1, 2, 3, 4]), st.integers(0, 2**32))
def test_damaged_records_are_read_or_refused(kind: int, seed: int) -> None:
    csa, kif = (DATA / "exchange.csa").read_text("utf-8"), (DATA / "exchange.kif").read_text("utf-8")
    usi_line = f"position sfen {EVERY_PIECE} moves 9e9d 1e1f"
    text = [csa, f"{ROWS}P+00HI\nP-00AL\n+\n%TORYO\n", kif, f"{BOD}先手番\n1 ９四と(95)\n", usi_line][kind]
    read = [read_csa, read_csa, read_kif, read_kif, read_usi][kind]
    choose = random.Random(seed)
    for _ in range(choose.randint(1, 4)):
        start = choose.randrange(len(text))
        piece = text[choose.randrange(len(text)) :][: choose.randrange(4)]
        text = text[:start] + piece + text[start + choose.randrange(3) :]
    assert refusal(read, text)[0].islower()

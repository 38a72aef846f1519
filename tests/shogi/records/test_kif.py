"""Reading and writing KIF records, against hand-written texts."""

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import DATA
from record_cases import BLACK, BOD, EVERY_PIECE, EXCHANGE, GOLD_MATES, WHITE, moves, usi, without_pieces

from keisei.shogi import (
    GameRecord,
    NotationError,
    Outcome,
    Reason,
    RulesError,
    ShogiGame,
    read_kif,
    read_record,
    write_kif,
)

KIF_HEADERS = {"棋戦": "練習対局", "開始日時": "2024/01/01 10:00:00"}


def test_kif_file_written_by_hand_is_read_in_full() -> None:
    assert read_record(DATA / "exchange.kif") == replace(EXCHANGE, headers=KIF_HEADERS)


def test_kif_is_written_as_by_hand() -> None:
    written = write_kif(replace(EXCHANGE, headers=KIF_HEADERS))
    assert written == (DATA / "exchange.kif").read_text(encoding="utf-8")


KIF = """\
# ----  Kifu for Windows V7 V7.70 棋譜ファイル  ----
手合割：平手
先手：エンジン甲　改
後手：エンジン乙 改
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
    black="エンジン甲　改",
    white="エンジン乙 改",
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


@pytest.mark.parametrize("diagram", [BOD, BOD.replace("玉", "王").replace("龍", "竜").replace("　", " ")])
def test_kif_diagram_is_the_first_position(diagram: str) -> None:
    assert read_kif(f"手合割：その他　　\n{diagram}先手：\n後手：\n").sfen == EVERY_PIECE


def test_kif_diagram_tells_the_side_and_the_number_of_moves_before() -> None:
    after = "手数＝57  ▲８六馬  まで\n先手：a\n\n後手番\n"
    assert read_kif(f"手合割：その他\n{BOD}{after}").sfen == EVERY_PIECE.replace(" b ", " w ")[:-1] + "58"


def test_kif_diagram_with_an_impossible_number_of_moves_is_not_read_in_part() -> None:
    assert read_kif(f"手合割：その他\n{BOD}手数＝1234567\n").sfen == EVERY_PIECE


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


RESIGNED = Outcome(WHITE, Reason.RESIGNATION)
TWO_MOVES = "1 ７六歩(77)\n2 ３四歩(33)\n"
HANDICAP_MOVE = "手合割：角落ち\n1 ５四歩(53)\n"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"{TWO_MOVES}まで2手で後手の勝ち\n", Outcome(WHITE, Reason.RESIGNATION)),
        (f"{TWO_MOVES}まで2手で先手の勝ち\n", Outcome(BLACK, Reason.ADJUDICATION)),
        ("1 ７六歩(77)\nまで1手で先手の勝ち\n", Outcome(BLACK, Reason.RESIGNATION)),
        ("1 ７六歩(77)\nまで1手で後手の勝ち\n", Outcome(WHITE, Reason.ADJUDICATION)),
        (f"{HANDICAP_MOVE}まで1手で上手の勝ち\n", Outcome(WHITE, Reason.RESIGNATION)),
        (f"{HANDICAP_MOVE}まで1手で下手の勝ち\n", Outcome(BLACK, Reason.ADJUDICATION)),
        (f"{TWO_MOVES}まで2手で中断\n", None),
        (f"{TWO_MOVES}変化：2手\n2 ８四歩(83)\nまで2手で後手の勝ち\n", None),
    ],
)
def test_kif_summary_names_the_winner_where_no_word_ends_the_moves(
    text: str, outcome: Outcome | None
) -> None:
    assert read_kif(text).outcome == outcome


@pytest.mark.parametrize(
    ("word", "outcome"), [("切れ負け", Outcome(WHITE, Reason.TIME)), ("中断", None), ("投了", RESIGNED)]
)
def test_kif_word_counts_for_more_than_the_summary(word: str, outcome: Outcome | None) -> None:
    assert read_kif(f"{TWO_MOVES}3 {word}\nまで2手で後手の勝ち\n").outcome == outcome


@pytest.mark.parametrize("word", ["投了", "切れ負け", "持将棋"])
def test_kif_word_and_summary_must_not_contradict(word: str) -> None:
    with pytest.raises(
        NotationError, match=r"bad kif record: its moves end with .*, its summary says black wins"
    ):
        read_kif(f"{TWO_MOVES}3 {word}\nまで2手で先手の勝ち\n")


@pytest.mark.parametrize(
    ("summary", "outcome"),
    [
        ("時間切れにより後手の勝ち", Outcome(WHITE, Reason.TIME)),
        ("先手の反則負け", Outcome(WHITE, Reason.ILLEGAL_MOVE)),
        ("後手の反則勝ち", Outcome(WHITE, Reason.ILLEGAL_MOVE)),
        ("持将棋", Outcome(None, Reason.AGREED_IMPASSE)),
        ("中断", None),
    ],
)
def test_kif_summary_alone_tells_the_reason(summary: str, outcome: Outcome | None) -> None:
    assert read_kif(f"{TWO_MOVES}まで2手で{summary}\n").outcome == outcome


def test_kif_win_of_the_side_to_move_by_other_means_is_kept_by_the_summary() -> None:
    record = GameRecord(moves("7g7f"), outcome=Outcome(WHITE, Reason.ADJUDICATION))
    assert write_kif(record).splitlines()[-1] == "まで1手で後手の勝ち"
    assert read_kif(write_kif(record)) == record


def test_kif_summary_must_agree_with_the_position() -> None:
    mate = write_kif(GameRecord(moves("G*5b"), GOLD_MATES)).replace("   2 中断\n", "")
    assert read_kif(f"{mate}まで1手で先手の勝ち\n").outcome == Outcome(BLACK, Reason.CHECKMATE)
    expected = "^after move 1: the record says white wins by adjudication, but it is black wins by checkmate"
    with pytest.raises(RulesError, match=expected):
        read_kif(f"{mate}まで1手で後手の勝ち\n")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("先手：a\nhello\n", 2, "neither a header, a move nor a comment"),
        ("手合割：九枚落ち\n", 1, "unknown handicap '九枚落ち'"),
        ("手合割：その他\n\n1 ７六歩(77)\n", 3, "handicap その他 without a board diagram"),
        ("1 ７六歩\n", 1, "expected a move such as"),
        ("1 ７六歩(77)\n2 hello\n", 2, "expected a move such as"),
        ("1 ７六歩(77)\n3 ３四歩(33)\n", 2, "expected move 2"),
        ("1 同　歩(77)\n", 1, "同 without a previous move"),
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
    "data",
    [
        "",
        b"",
        "\ufeff",
        " \r\n　\n",
        "# KIF version=2.0 encoding=UTF-8\n",
        "&しおり\n",
        "*対局開始\n*二行目\n",
    ],
    ids=["nothing", "no bytes", "byte order mark", "spaces", "remark", "bookmark", "comment"],
)
def test_kif_without_a_header_or_a_move_is_refused(data: str | bytes) -> None:
    with pytest.raises(NotationError, match=r"^bad kif record: neither a header nor a move$"):
        read_kif(data)


@pytest.mark.parametrize(
    "key",
    ["変化", "先手の持駒", "手合割", "先手", "まで", "*棋戦", "棋 戦：", "手数----指手", "1 ７六歩(77)"],
)
def test_kif_header_that_would_be_read_as_something_else_is_not_written(key: str) -> None:
    record = replace(EXCHANGE, headers={key: "x", "棋戦": "y"})
    assert read_kif(write_kif(record)) == replace(EXCHANGE, headers={"棋戦": "y"})


def test_kif_times_of_days_are_read_back() -> None:
    record = replace(EXCHANGE, seconds=(999_999_999,) * len(EXCHANGE.moves))
    assert read_kif(write_kif(record)).seconds == record.seconds
    with pytest.raises(NotationError, match="expected a time of less than 1000000000 seconds"):
        read_kif("   1 ７六歩(77) (999999999:00)\n")


def test_kif_line_of_endless_spaces_is_refused_at_once() -> None:
    """A careless regex would try to match the time at every one of them."""
    for tail in (" (0:00)" + " " * 50_000 + "x", "(0:00/" * 10_000):
        with pytest.raises(NotationError, match="expected a move such as"):
            read_kif("   1 ７六歩(77)" + tail)

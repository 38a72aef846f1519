"""Reading and writing CSA records, against hand-written texts."""

from dataclasses import replace

import pytest
from conftest import DATA
from record_cases import BLACK, EVERY_PIECE, EXCHANGE, FIRST_MOVES, ROWS, WHITE, moves, usi, without_pieces

from keisei.shogi import (
    START_SFEN,
    GameRecord,
    NotationError,
    Outcome,
    Reason,
    read_csa,
    read_csa_games,
    read_record,
    write_csa,
)

CSA_HEADERS = {"EVENT": "Test match: round 1", "TIME_LIMIT": "00:25+00"}


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
        ("PI\n+\n+5554FU\n", 3, "there is no piece on 5e"),
        ("PI\n+\n+0055TO\n", 3, "only an unpromoted piece can be dropped"),
        ("+7776FU\n", 1, "move before the side to move"),
        ("+\n", 1, "side to move before any position"),
        (f"{FIRST_MOVES}PI\n", 5, "unknown or misplaced statement"),
        (f"{FIRST_MOVES}%TORYO\n+2726FU\n", 6, "move after the end of the game"),
        (f"{FIRST_MOVES}%TORYO\n%TORYO\n", 6, "unknown or misplaced statement"),
        (f"{FIRST_MOVES}%HELLO\n", 5, "unknown ending"),
        (f"{FIRST_MOVES}Tx\n", 5, "expected a time such as T12"),
        ("PI\n+\nT5\n", 3, "expected a time such as T12 after a move"),
        ("PI55FU\n+\n", 1, "no FU on 5e to remove"),
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


def test_csa_piece_on_an_occupied_square_is_refused() -> None:
    with pytest.raises(NotationError, match="bad csa line 3 'P-59KI': two pieces on 5i"):
        read_csa("P-51OU\nP+59OU\nP-59KI\n+\n")
    with pytest.raises(NotationError, match="bad csa line 2 'PI': a second position"):
        read_csa("PI\nPI\n+\n")

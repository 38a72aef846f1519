"""What all formats share: endings shown by the position, files and games, round trips, bad records."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from conftest import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from record_cases import (
    BLACK,
    BOD,
    DECLARABLE,
    DRAGON_CHECKS,
    ENDINGS,
    EVERY_PIECE,
    EXCHANGE,
    FIRST_MOVES,
    GOLD_MATES,
    PERPETUAL,
    ROWS,
    SHOWN,
    SHUFFLE,
    WHITE,
    moves,
    random_game,
)

from keisei.shogi import (
    START_SFEN,
    GameRecord,
    NotationError,
    Outcome,
    Reason,
    RulesError,
    ShogiGame,
    read_csa,
    read_csa_games,
    read_kif,
    read_record,
    read_records,
    read_usi,
    write_csa,
    write_csa_games,
    write_kif,
    write_record,
    write_usi,
)

T = TypeVar("T")


# --------------------------------------------------------------------- endings shown by the position


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


# ------------------------------------------------------------------------ files and games


@pytest.mark.parametrize("ending", ["csa", "kif", "kifu"])
def test_file_written_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"game.{ending}"
    write_record(path, EXCHANGE)
    assert read_record(path) == EXCHANGE
    assert "エンジン　二号".encode() in path.read_bytes()


def test_usi_file_is_one_line_of_moves(tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    write_record(path, EXCHANGE)
    assert path.read_bytes() == b"position startpos moves 7g7f 3c3d 8h2b+ 3a2b B*4e\n"
    assert read_record(path) == GameRecord(EXCHANGE.moves)


def test_one_game_is_not_read_from_a_file_of_several_or_of_none(tmp_path: Path) -> None:
    path = tmp_path / "games.usi"
    path.write_text("startpos\n\nstartpos moves 7g7f\n", encoding="utf-8")
    assert [len(record.moves) for record in read_records(path)] == [0, 1]
    with pytest.raises(NotationError, match=r"games\.usi has 2 games, expected one"):
        read_record(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(NotationError, match=r"games\.usi has 0 games, expected one"):
        read_record(path)


@pytest.mark.parametrize(("line", "kind"), [("nonsense", NotationError), ("startpos moves 7g7e", RulesError)])
def test_a_wrong_line_of_a_usi_file_is_named(tmp_path: Path, line: str, kind: type[Exception]) -> None:
    path = tmp_path / "games.usi"
    path.write_text(f"startpos\n\n{line}\n", encoding="utf-8")
    with pytest.raises(kind, match=r"^line 3: "):
        read_records(path)


def test_file_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.pgn"
    with pytest.raises(NotationError, match=r"unknown record format 'game\.pgn'"):
        write_record(path, EXCHANGE)
    assert not path.exists()
    with pytest.raises(NotationError, match=r"unknown record format 'game\.pgn'"):
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
    """The round trips rely on this: the endings they request do occur."""
    outcomes = [random_game(seed, seed, 30, ending).outcome() for seed in range(20)]
    reasons = [outcome.reason if outcome else "unfinished" for outcome in outcomes]
    assert reasons.count("checkmate" if ending == "mate" else ending) >= 10


# ------------------------------------------------------------------------ bad records


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
        START_SFEN,
        "7g7f",
        "KACHI",
        "入玉勝ち",
        "white wins by declaration, but the side to move may not declare",
    ),
]


def test_position_tells_which_repetition_it_was() -> None:
    lost = Outcome(WHITE, Reason.PERPETUAL_CHECK)
    record = GameRecord(moves(" ".join(PERPETUAL)), DRAGON_CHECKS, outcome=lost)
    csa, kif = write_csa(record), write_kif(record)
    for word in ("SENNICHITE", "OUTE_SENNICHITE"):
        assert read_csa(csa.replace("%+ILLEGAL_ACTION", f"%{word}")) == record
    assert read_kif(kif.replace("反則勝ち", "千日手")) == record


def test_win_of_the_side_to_move_is_never_written_as_a_foul() -> None:
    for reason in (Reason.FORFEIT, Reason.ADJUDICATION, Reason.TIME):
        record = GameRecord(moves("7g7f"), outcome=Outcome(WHITE, reason))
        assert read_csa(write_csa(record)).outcome is None
        assert "反則" not in write_kif(record)


def test_declaration_is_written_read_and_played_again() -> None:
    game = ShogiGame(DECLARABLE)
    game.declare()
    record = GameRecord.from_game(game)
    assert write_csa(record).splitlines()[-1] == "%KACHI"
    assert write_kif(record).splitlines()[-1] == "   1 入玉勝ち"
    for read in (read_csa(write_csa(record)), read_kif(write_kif(record))):
        assert read == record
        assert read.game().outcome() == Outcome(BLACK, Reason.DECLARATION)


def test_times_and_comments_must_belong_to_a_move() -> None:
    two = moves("7g7f 3c3d")
    with pytest.raises(ValueError, match="1 times for 2 moves, expected one for each or none"):
        GameRecord(two, seconds=(1,))
    with pytest.raises(ValueError, match="a time is -5 seconds, expected 0 or more"):
        GameRecord(two, seconds=(1, -5))
    with pytest.raises(ValueError, match="a comment on move 3, expected 0 to 2"):
        GameRecord(two, comments={3: "x"})


def test_several_games_are_written_to_one_csa_file() -> None:
    games = [GameRecord(moves(line), black=line) for line in ("7g7f", "2g2f 8c8d", "")]
    assert read_csa_games(write_csa_games(games)) == games


def test_usi_line_that_breaks_a_rule_is_not_written() -> None:
    with pytest.raises(RulesError, match="move 2: illegal move 7g7f"):
        write_usi(GameRecord(moves("7g7f 7g7f")))
    assert (
        write_usi(GameRecord((), "4k4/9/9/9/9/9/9/9/4K4 b -")) == "position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 1"
    )


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
    """Return a reader's error, or "read" if it accepts the data; any other error fails the test."""
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

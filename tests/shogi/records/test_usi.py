"""Reading and writing USI position lines."""

from pathlib import Path

import pytest
from record_cases import BLACK, EXCHANGE, GOLD_MATES, moves

from keisei.shogi import GameRecord, NotationError, Outcome, Reason, read_records, read_usi, write_usi


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


def test_positions_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "positions.sfen"
    path.write_text(f"{GOLD_MATES}\n\nsfen {GOLD_MATES} moves 5c5b+\nstartpos\n", encoding="utf-8")
    assert read_records(path) == [
        GameRecord((), GOLD_MATES),
        GameRecord(moves("5c5b+"), GOLD_MATES),
        GameRecord(()),
    ]
    path.write_text("startpos\nnonsense\n", encoding="utf-8")
    with pytest.raises(NotationError, match=r"^line 2: bad sfen 'nonsense'"):
        read_records(path)

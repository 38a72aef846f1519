"""Game records against rsshogi: each program reads what the other writes."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

pytest.importorskip("rsshogi.record", reason="rsshogi has no build for this Python")

from record_cases import BLACK, DECLARABLE, ENDINGS, SHOWN, moves, random_game, usi
from rsshogi.record import GameResult, Record

from keisei.shogi import (
    GameRecord,
    Outcome,
    Reason,
    ShogiGame,
    read_csa,
    read_kif,
    read_usi,
    write_csa,
    write_kif,
    write_usi,
)

GAMES = [(seed, ending) for seed in range(8) for ending in ENDINGS]


def sample_records() -> Iterator[GameRecord]:
    """Yield random games with every ending that records know, from move number 1: rsshogi knows no other."""
    comments = {0: "a\nb"}
    declared = Outcome(BLACK, Reason.DECLARATION)
    yield GameRecord((), DECLARABLE, "Black", "White", declared, comments)
    for sfen, line, outcome, _, _ in SHOWN:
        yield GameRecord(moves(line), sfen, "Black", "White", outcome, comments)
    for seed, ending in GAMES:
        game = random_game(seed, 0 if seed < 3 else 10 * seed, 40, ending)
        record = GameRecord.from_game(game, black="Black", white="White", comments=comments)
        record = replace(record, sfen=record.sfen.rsplit(" ", 1)[0] + " 1")
        yield record
        if record.outcome is None:
            yield replace(record, outcome=Outcome(game.turn.opponent, Reason.TIME))
            yield replace(record, outcome=Outcome(game.turn.opponent, Reason.ILLEGAL_MOVE))
            yield replace(record, outcome=Outcome(game.turn, Reason.ILLEGAL_MOVE))
            yield replace(record, outcome=Outcome(None, Reason.AGREED_IMPASSE))
            yield replace(record, outcome=Outcome(None, Reason.ADJUDICATION))


def rsshogi_result(outcome: Outcome | None) -> GameResult:
    """Return the result that rsshogi should report."""
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
            result = GameResult.DRAW_BY_IMPASSE  # rsshogi's reading of %HIKIWAKE
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

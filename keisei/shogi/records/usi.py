"""USI position lines: `position startpos moves 7g7f …` or `position sfen … moves …`; and bare SFENs.

A line holds only the moves: no players, comments or resignation.
"""

from collections.abc import Callable

from keisei._native import START_SFEN, NotationError, RulesError
from keisei.shogi.records.record import Draft, GameRecord, decode, lines_of, replay


def write_usi(record: GameRecord) -> str:
    """Return the record as one position line; illegal moves are a RulesError."""
    sfen = replay(record.sfen, record.moves).start_sfen
    start = "startpos" if sfen == START_SFEN else f"sfen {sfen}"
    return " ".join(["position", start, *(["moves", *map(str, record.moves)] if record.moves else [])])


def read_usi_games(data: str | bytes) -> list[GameRecord]:
    """Read one game per position line; empty lines are skipped, an error names its line."""
    return _each_line(data, read_usi)


def read_sfen_games(data: str | bytes) -> list[GameRecord]:
    """Read one position per line, a bare SFEN or a position line, as `read_usi_games` does."""
    return _each_line(data, _read_position)


def _each_line(data: str | bytes, read: Callable[[str], GameRecord]) -> list[GameRecord]:
    games = []
    for number, line in enumerate(lines_of(decode(data)), 1):
        if line.strip():
            try:
                games.append(read(line))
            except (NotationError, RulesError) as error:
                raise type(error)(f"line {number}: {error}") from error
    return games


def _read_position(line: str) -> GameRecord:
    named = line.split()[0] in ("position", "startpos", "sfen")
    return read_usi(line if named else f"sfen {line}")


def read_usi(line: str) -> GameRecord:
    """Read a position line (with or without `position`) and check every move against the rules."""
    if not line.isascii():
        raise NotationError(f"bad usi position {line[:200]!r}: expected ascii characters only")
    words = line.split()
    if words[:1] == ["position"]:
        words = words[1:]
    cut = words.index("moves") if "moves" in words else len(words)
    start, moves = words[:cut], words[cut + 1 :]
    if start == ["startpos"]:
        sfen = START_SFEN
    elif start[:1] == ["sfen"]:
        sfen = " ".join(start[1:])
    else:
        raise NotationError(f"bad usi position {line[:200]!r}: expected startpos or sfen")
    return Draft().finish(replay(sfen, moves), None)

"""USI position lines: `position startpos moves 7g7f …` or `position sfen … moves …`.

A line holds only the moves: no players, comments or resignation.
"""

from keisei._native import START_SFEN, NotationError, RulesError
from keisei.shogi.records.record import Draft, GameRecord, decode, lines_of, replay


def write_usi(record: GameRecord) -> str:
    """Return the record as one position line; illegal moves are a RulesError."""
    sfen = replay(record.sfen, record.moves).start_sfen
    start = "startpos" if sfen == START_SFEN else f"sfen {sfen}"
    return " ".join(["position", start, *(["moves", *map(str, record.moves)] if record.moves else [])])


def read_usi_games(data: str | bytes) -> list[GameRecord]:
    """Read one game per position line; empty lines are skipped, an error names its line."""
    games = []
    for number, line in enumerate(lines_of(decode(data)), 1):
        if line.strip():
            try:
                games.append(read_usi(line))
            except (NotationError, RulesError) as error:
                raise type(error)(f"line {number}: {error}") from error
    return games


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

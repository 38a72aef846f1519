"""Game records: reading (with every move checked) and writing CSA, KIF and USI position lines.

KI2 records and lists of positions (SFEN) are only read.
"""

from collections.abc import Callable
from pathlib import Path

from keisei._native import NotationError
from keisei.errors import refuse_special, writing
from keisei.shogi.records.csa import read_csa, read_csa_games, write_csa, write_csa_games
from keisei.shogi.records.ki2 import read_ki2
from keisei.shogi.records.kif import read_kif, write_kif
from keisei.shogi.records.record import GameRecord
from keisei.shogi.records.usi import read_sfen_games, read_usi, read_usi_games, write_usi

_Read = Callable[[bytes], list[GameRecord]]
_READERS: dict[str, _Read] = {
    ".csa": read_csa_games,
    ".kif": lambda data: [read_kif(data)],
    ".kifu": lambda data: [read_kif(data)],
    ".ki2": lambda data: [read_ki2(data)],
    ".ki2u": lambda data: [read_ki2(data)],
    ".usi": read_usi_games,
    ".sfen": read_sfen_games,
}
_WRITERS: dict[str, Callable[[GameRecord], str]] = {
    ".csa": write_csa,
    ".kif": write_kif,
    ".kifu": write_kif,
    ".usi": lambda record: write_usi(record) + "\n",
}
READ_KINDS, WRITTEN_KINDS = tuple(_READERS), tuple(_WRITERS)


def read_record(path: str | Path) -> GameRecord:
    """Read the only game in a .csa, .kif, .kifu, .ki2, .ki2u, .usi or .sfen file."""
    games = read_records(path)
    if len(games) != 1:
        raise NotationError(f"{path} has {len(games)} games, expected one")
    return games[0]


def read_records(path: str | Path) -> list[GameRecord]:
    """Read all games in a file: a .csa has a slash between them, .usi and .sfen have one per line."""
    path = Path(path)
    if path.suffix.lower() not in _READERS:
        raise NotationError(f"unknown record format '{path.name}': expected {_listed(READ_KINDS)}")
    refuse_special(path)
    return _READERS[path.suffix.lower()](path.read_bytes())


def write_record(path: str | Path, record: GameRecord) -> None:
    """Write one game as UTF-8, in the format given by the file's extension."""
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        unknown = "unknown record format" if path.suffix.lower() not in _READERS else "cannot write"
        raise NotationError(f"{unknown} '{path.name}': expected {_listed(WRITTEN_KINDS)}")
    refuse_special(path)
    text = _WRITERS[path.suffix.lower()](record)
    with writing(path):
        path.write_text(text, encoding="utf-8")


def _listed(kinds: tuple[str, ...]) -> str:
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}"


__all__ = [
    "READ_KINDS",
    "WRITTEN_KINDS",
    "GameRecord",
    "read_csa",
    "read_csa_games",
    "read_ki2",
    "read_kif",
    "read_record",
    "read_records",
    "read_sfen_games",
    "read_usi",
    "read_usi_games",
    "write_csa",
    "write_csa_games",
    "write_kif",
    "write_record",
    "write_usi",
]

"""Game records: CSA, KIF and USI position lines, read (every move checked) and written."""

from pathlib import Path

from keisei._native import NotationError
from keisei.shogi.records.csa import read_csa, read_csa_games, write_csa, write_csa_games
from keisei.shogi.records.kif import read_kif, write_kif
from keisei.shogi.records.record import GameRecord, decode
from keisei.shogi.records.usi import read_usi, write_usi


def read_record(path: str | Path) -> GameRecord:
    """Read the one game of a .csa, .kif, .kifu or .usi file."""
    path = Path(path)
    match path.suffix.lower():
        case ".csa":
            return read_csa(path.read_bytes())
        case ".kif" | ".kifu":
            return read_kif(path.read_bytes())
        case ".usi":
            return read_usi(decode(path.read_bytes()))
    raise NotationError(f"unknown kind of record '{path.name}': expected .csa, .kif, .kifu or .usi")


def write_record(path: str | Path, record: GameRecord) -> None:
    """Write one game in the format that the file's ending names, as UTF-8."""
    path = Path(path)
    match path.suffix.lower():
        case ".csa":
            text = write_csa(record)
        case ".kif" | ".kifu":
            text = write_kif(record)
        case ".usi":
            text = write_usi(record) + "\n"
        case _:
            raise NotationError(f"unknown kind of record '{path.name}': expected .csa, .kif, .kifu or .usi")
    path.write_text(text, encoding="utf-8")


__all__ = [
    "GameRecord",
    "read_csa",
    "read_csa_games",
    "read_kif",
    "read_record",
    "read_usi",
    "write_csa",
    "write_csa_games",
    "write_kif",
    "write_record",
    "write_usi",
]

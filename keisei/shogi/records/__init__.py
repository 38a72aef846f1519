"""Game records: reading (with every move checked) and writing CSA, KIF and USI position lines."""

from collections.abc import Callable
from pathlib import Path

from keisei._native import NotationError
from keisei.shogi.records.csa import read_csa, read_csa_games, write_csa, write_csa_games
from keisei.shogi.records.kif import read_kif, write_kif
from keisei.shogi.records.record import GameRecord
from keisei.shogi.records.usi import read_usi, read_usi_games, write_usi

_Format = tuple[Callable[[bytes], list[GameRecord]], Callable[[GameRecord], str]]
_KIF: _Format = (lambda data: [read_kif(data)], write_kif)
_FORMATS: dict[str, _Format] = {
    ".csa": (read_csa_games, write_csa),
    ".kif": _KIF,
    ".kifu": _KIF,
    ".usi": (read_usi_games, lambda record: write_usi(record) + "\n"),
}


def read_record(path: str | Path) -> GameRecord:
    """Read the only game in a .csa, .kif, .kifu or .usi file."""
    games = read_records(path)
    if len(games) != 1:
        raise NotationError(f"{path} has {len(games)} games, expected one")
    return games[0]


def read_records(path: str | Path) -> list[GameRecord]:
    """Read all games in a file; a .csa separates them by lines with a slash, a .usi has one per line."""
    read, _ = _format_of(Path(path))
    return read(Path(path).read_bytes())


def write_record(path: str | Path, record: GameRecord) -> None:
    """Write one game as UTF-8, in the format given by the file's extension."""
    _, write = _format_of(Path(path))
    Path(path).write_text(write(record), encoding="utf-8")


def _format_of(path: Path) -> _Format:
    if path.suffix.lower() not in _FORMATS:
        raise NotationError(f"unknown record format '{path.name}': expected .csa, .kif, .kifu or .usi")
    return _FORMATS[path.suffix.lower()]


__all__ = [
    "GameRecord",
    "read_csa",
    "read_csa_games",
    "read_kif",
    "read_record",
    "read_records",
    "read_usi",
    "read_usi_games",
    "write_csa",
    "write_csa_games",
    "write_kif",
    "write_record",
    "write_usi",
]

"""The games of a match on disk: a CSA file and a file of USI lines, to which each finished pair is added."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from keisei.errors import writing
from keisei.evaluation.matches.match import PlayedGame
from keisei.shogi import write_csa_games, write_usi

_NAME_BYTES = 100  # per player; a file name may have 255


class GameFiles:
    """NAME.csa, games separated by slash lines, and NAME.usi, one game per line, in the same order.

    names: the two players'. key: what distinguishes the match from all others, including those of players
    with the same names. A resumed match is appended to its files.
    """

    def __init__(self, directory: Path, names: Sequence[str], key: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        stem = f"{'_vs_'.join(map(_for_file, names))}-{digest}"
        self.csa = directory / f"{stem}.csa"
        self.usi = directory / f"{stem}.usi"
        self._sizes: tuple[int, int] | None = None  # as this process left them

    def add(self, games: Sequence[PlayedGame], earlier: Callable[[], int]) -> None:
        """Append finished games.

        earlier: returns how many games the files should hold. Anything beyond was written by a process that
        died before the games counted, perhaps in mid-line. It is removed: those games were, or will be,
        played again.
        """
        if self._sizes != self._measured():
            _cut(self.csa, b"\n/\n", earlier())
            _cut(self.usi, b"\n", earlier())
        records = [game.record() for game in games]
        divide = "/\n" if _size(self.csa) else ""
        _append(self.csa, divide + write_csa_games(records))
        _append(self.usi, "".join(write_usi(record) + "\n" for record in records))
        self._sizes = self._measured()

    def _measured(self) -> tuple[int, int]:
        return _size(self.csa), _size(self.usi)


def _for_file(name: str) -> str:
    return re.sub(r"[^\w.@+-]+", "_", name).encode()[:_NAME_BYTES].decode(errors="ignore")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _cut(path: Path, separator: bytes, games: int) -> None:
    """Truncate a file to whole lines and to this many games, with the separator between them."""
    if not path.exists():
        return
    data = path.read_bytes()
    lines = data[: data.rfind(b"\n") + 1]
    parts, size = lines.split(separator), len(lines)
    if len(parts) > games:
        size = len(separator.join(parts[:games])) + 1 if games else 0  # with the last newline
    if size < len(data):
        with path.open("r+b") as file:
            file.truncate(size)


def _append(path: Path, text: str) -> None:
    with writing(path), path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)

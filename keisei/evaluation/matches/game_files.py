"""The games of a match as files: all in one CSA file, and as USI lines; a pair is there once it is over."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from keisei.evaluation.matches.match import PlayedGame
from keisei.shogi import write_csa_games, write_usi

_NAME_BYTES = 100  # of each player; a file's name may have 255


class GameFiles:
    """NAME.csa, games separated by a line with a slash, and NAME.usi, a game on each line, in the same order.

    names: of the two players. key: what tells the match from all others, of these or of other players with
    the same names. A match that goes on later is appended to its files.
    """

    def __init__(self, directory: Path, names: Sequence[str], key: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        stem = f"{'_vs_'.join(map(_for_file, names))}-{digest}"
        self.csa = directory / f"{stem}.csa"
        self.usi = directory / f"{stem}.usi"
        self._sizes: tuple[int, int] | None = None  # as this process has left them

    def add(self, games: Sequence[PlayedGame], earlier: Callable[[], int]) -> None:
        """Append games that are over.

        earlier: how many games the files should have. What they have beyond was written by a process that
        died before the games counted, perhaps in the middle of a line. It is removed: the games were, or will
        be, played again.
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
    """Shorten a file to whole lines and to so many games, which have the separator between them."""
    if not path.exists():
        return
    data = path.read_bytes()
    lines = data[: data.rfind(b"\n") + 1]
    parts, size = lines.split(separator), len(lines)
    if len(parts) > games:
        size = len(separator.join(parts[:games])) + 1 if games else 0  # with the end of its last line
    if size < len(data):
        with path.open("r+b") as file:
            file.truncate(size)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)

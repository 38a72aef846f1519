"""The games of a match as files: all in one CSA file, and as USI lines; a pair is there once it is over."""

import re
from pathlib import Path

from keisei.evaluation.match import PlayedGame
from keisei.shogi import write_csa_games, write_usi


class GameFiles:
    """NAME.csa, games separated by a line with a slash, and NAME.usi, a game on each line, in the same order.

    A match that goes on later is appended to its files.
    """

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^\w.@+-]+", "_", name)
        self.csa = directory / f"{stem}.csa"
        self.usi = directory / f"{stem}.usi"

    def add(self, *games: PlayedGame) -> None:
        """Append games that are over."""
        records = [game.record() for game in games]
        divide = "/\n" if self.csa.exists() else ""
        _append(self.csa, divide + write_csa_games(records))
        _append(self.usi, "".join(write_usi(record) + "\n" for record in records))


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)

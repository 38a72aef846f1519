"""RUN/games: training games kept as KIF records, `STEP-NUMBER.kif` each.

STEP is the number of moves trained on with the update in which the game ended; NUMBER is the game's.
"""

import re
from pathlib import Path

_NAME = re.compile(r"(\d+)-\d+\.kif")


def kept_game_path(games: Path, step: int, number: int) -> Path:
    """Return the file of a game; names sort by step."""
    return games / f"{step:012}-{number}.kif"


def kept_games(games: Path, *, after: int = -1) -> list[Path]:
    """Return the kept games that ended after a step, oldest first; none if there is no such directory."""
    found = [(int(match[1]), path) for path in games.glob("*.kif") if (match := _NAME.fullmatch(path.name))]
    return [path for step, path in sorted(found) if step > after]

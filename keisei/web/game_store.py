"""The games of runs and tables: training games that a run has kept, and those of its evaluations.

    RUN/games/*.kif              one game each, as run.keep_games says
    RUN/evaluation/games/*.csa   those of a match, to which each finished pair is added

A file is read once, and again when its size or time has changed. Games are kept as texts, half a kilobyte
each.
"""

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from stat import S_ISREG

from keisei.runs.kept_games import kept_games
from keisei.shogi import GameRecord, Move, NotationError, Outcome, RulesError, read_csa_games, read_kif
from keisei.web.answers import Refusal
from keisei.web.run_shelf import Run, id_of

OPENING = 4  # moves of a listing's opening
MOST_FILE_BYTES = 256 * 1024 * 1024
_NETWORK = re.compile(r".*@(\d+)")


@dataclass(frozen=True)
class StoredGame:
    """A game: who played, how it ended, and its moves in USI, separated by spaces.

    kind: evaluation, training or table. run: its id, None for a table's. step: of the run's
    network, if known.
    """

    id: str
    run: str | None
    kind: str
    black: str
    white: str
    outcome: Outcome | None
    step: int | None
    sfen: str
    line: str

    @cached_property
    def moves(self) -> tuple[str, ...]:
        """The moves in USI."""
        return tuple(self.line.split())

    @property
    def plies(self) -> int:
        """The number of moves."""
        return self.line.count(" ") + 1 if self.line else 0

    @property
    def opening(self) -> tuple[str, ...]:
        """The first moves."""
        return tuple(self.line.split(" ", OPENING)[:OPENING]) if self.line else ()

    def record(self) -> GameRecord:
        """Return it as a record."""
        moves = tuple(Move.from_usi(move) for move in self.moves)
        return GameRecord(moves, self.sfen, self.black, self.white, self.outcome)


def stored_game(
    record: GameRecord, *, id: str, run: str | None, kind: str, step: int | None = None
) -> StoredGame:
    """Return a record as a stored game."""
    line = " ".join(map(str, record.moves))
    return StoredGame(id, run, kind, record.black, record.white, record.outcome, step, record.sfen, line)


Entry = tuple[tuple[int, int], list[StoredGame]]  # of a file: time and size, games
Files = dict[Path, Entry]


class GameStore:
    """All games; its methods are for threads beside the event loop, one at a time."""

    def __init__(self) -> None:
        self._runs: dict[Path, Files] = {}
        self._tables: dict[str, StoredGame] = {}
        self._lock = threading.Lock()

    def games(self, runs: Sequence[Run]) -> list[StoredGame]:
        """Return the games of these runs and of the tables, the latest first."""
        with self._lock:
            found = [game for run in runs for game in self._of_run(run)]
            return [*[*self._tables.values()][::-1], *found]

    def game(self, wanted: str, runs: Sequence[Run]) -> StoredGame:
        """Return the game with an id."""
        for game in self.games(runs):
            if game.id == wanted:
                return game
        raise Refusal(404, "no such game")

    def add(self, game: StoredGame) -> None:
        """Add a table's game, or a newer state of it; they are forgotten with the server. Never waits."""
        self._tables[game.id] = game

    def _of_run(self, run: Run) -> list[StoredGame]:
        before, self._runs[run.path] = self._runs.get(run.path, {}), {}
        kept = kept_games(run.path / "games")[::-1]
        matches = sorted((run.path / "evaluation" / "games").glob("*.csa"), key=_changed, reverse=True)
        found = []
        for path, kind in [
            *((path, "evaluation") for path in matches),
            *((path, "training") for path in kept),
        ]:
            with suppress(OSError):  # set aside by a resume, or not to be read
                self._runs[run.path][path] = entry = _entry(run, path, kind, before.get(path))
                found += entry[1]
        return found


def _entry(run: Run, path: Path, kind: str, known: Entry | None) -> Entry:
    """Return a file's stamp and games, which are known if the stamp has not changed."""
    stat = path.lstat()
    stamp = (stat.st_mtime_ns, stat.st_size)
    if known is not None and known[0] == stamp:
        return known
    regular = S_ISREG(stat.st_mode) and stat.st_size <= MOST_FILE_BYTES  # a link may lead anywhere
    return stamp, list(_read(run, path, kind)) if regular else []


def _read(run: Run, path: Path, kind: str) -> Iterable[StoredGame]:
    """Yield the games of a file; what cannot be read, such as a record torn at its end, is left out."""
    data = path.read_bytes()
    try:
        records = [read_kif(data)] if kind == "training" else read_csa_games(data)
    except (NotationError, RulesError):
        records = _readable(data) if kind == "evaluation" else []
    for number, record in enumerate(records):
        step = int(path.name.partition("-")[0]) if kind == "training" else _step(record, run)
        yield stored_game(record, id=id_of("game", path, number), run=run.id, kind=kind, step=step)


def _readable(data: bytes) -> list[GameRecord]:
    """Return those games of a CSA file that can be read."""
    found = []
    for part in data.split(b"\n/\n"):
        try:
            found += read_csa_games(part)
        except (NotationError, RulesError):
            continue
    return found


def _step(record: GameRecord, run: Run) -> int | None:
    """Return the step of the run's own network, the later one if both are."""
    steps = [
        int(match[1])
        for name in (record.black, record.white)
        if name.startswith(f"{run.path.name}@") and (match := _NETWORK.match(name.split(" ")[0]))
    ]
    return max(steps, default=None)


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return 0.0

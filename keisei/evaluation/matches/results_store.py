"""The store of game results: one SQLite file for a run or a ladder, in which no game counts twice.

    with ResultsStore.open(path) as results:
        results.add(games)
        ratings = rate(results.totals())

A game is identified by its players' identities, its conditions, its seed and its pair's number. Adding the
same game again changes nothing; adding it with another result raises ResultsConflict and stores nothing of
that call: the players are not what their identities say, and no rating would mean anything.

Several processes may write at once. A game is on disk when add() returns, and a process that dies leaves the
file as it was before or after a call. The journal is a rollback journal, not a write-ahead log: a single file
remains, which also works on a network drive, and writers are few.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from keisei.errors import UserError
from keisei.evaluation.ratings.rating import PairResult

VERSION = 1

_APPLICATION = 0x6B736569  # "ksei": marks the kind of database
_BUSY_SECONDS = 60
_SCHEMA = (
    """CREATE TABLE players (
        identity TEXT PRIMARY KEY, name TEXT NOT NULL, step INTEGER, facts TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE games (
        black TEXT NOT NULL, white TEXT NOT NULL, conditions TEXT NOT NULL, seed INTEGER NOT NULL,
        pair INTEGER NOT NULL, winner INTEGER CHECK (winner IN (0, 1)), reason TEXT NOT NULL,
        plies INTEGER NOT NULL, CHECK (black <> white), PRIMARY KEY (black, white, conditions, seed, pair)
    ) WITHOUT ROWID""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


class ResultsError(UserError):
    """An unusable results store, or a game that cannot be stored; the message is one line."""


class ResultsConflict(ResultsError):  # noqa: N818 - named for what it is
    """A game that is already stored with another result."""


class StoredGame(NamedTuple):
    """A game's result: black and white are identities; winner 0 is black, 1 white, None a draw.

    conditions: what else determines the game, such as the rules and the openings. seed: 0 to 2**64 - 1.
    """

    black: str
    white: str
    conditions: str
    seed: int
    pair: int
    winner: int | None
    reason: str
    plies: int


@dataclass(frozen=True, slots=True)
class StoredPlayer:
    """The player behind an identity; step: a checkpoint's, else None."""

    identity: str
    name: str
    step: int | None
    facts: Mapping[str, str]


class ResultsStore:
    """An open store; for one thread of one process."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> "ResultsStore":
        """Open a store, creating it if it does not exist."""
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                _prepare(path, connection)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> "ResultsStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, games: Iterable[StoredGame], beside: Callable[[], None] | None = None) -> int:
        """Store games, all or none, and return how many were new.

        beside: called before new games are committed, while no other process can store any; if it raises,
        none is stored.
        """
        rows, new = [(game, _row(game)) for game in games], 0
        with _told(self.path), _transaction(self._connection):
            for game, row in rows:
                cursor = self._connection.execute(
                    "INSERT INTO games VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row
                )
                new += cursor.rowcount
                if not cursor.rowcount:
                    self._compare(game)
            if new and beside is not None:
                beside()
        return new

    def add_player(
        self, identity: str, name: str, step: int | None = None, facts: Mapping[str, str] | None = None
    ) -> None:
        """Store the player behind an identity, replacing what was stored before."""
        text = json.dumps(dict(facts or {}), ensure_ascii=False, sort_keys=True)
        with _told(self.path), _transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO players VALUES (?, ?, ?, ?)", (identity, name, step, text)
            )

    def players(self) -> dict[str, StoredPlayer]:
        """Return the stored players by identity; games may have others."""
        rows = self._rows("SELECT identity, name, step, facts FROM players ORDER BY identity")
        return {row[0]: StoredPlayer(row[0], row[1], row[2], json.loads(row[3])) for row in rows}

    def known(self, black: str, white: str, conditions: str, seed: int) -> set[int]:
        """Return the pairs whose game with these colours is stored."""
        rows = self._rows(
            "SELECT pair FROM games WHERE black = ? AND white = ? AND conditions = ? AND seed = ?",
            (black, white, conditions, _signed(seed)),
        )
        return {pair for (pair,) in rows}

    def games(self, conditions: str | None = None) -> list[StoredGame]:
        """Return all games, or those under given conditions, in key order."""
        rows = self._rows("SELECT * FROM games WHERE ?1 IS NULL OR conditions = ?1", (conditions,))
        return [StoredGame._make(row)._replace(seed=row[3] % 2**64) for row in rows]

    def between(self, black: str, white: str, conditions: str, seed: int) -> list[StoredGame]:
        """Return the games of two players, by pair number, under these conditions and with this seed."""
        rows = self._rows(
            "SELECT * FROM games WHERE black = ? AND white = ? AND conditions = ? AND seed = ? ORDER BY pair",
            (black, white, conditions, _signed(seed)),
        )
        return [StoredGame._make(row)._replace(seed=seed) for row in rows]

    def settings(self) -> list[tuple[str, int]]:
        """Return the conditions and seeds that games were played with, those of the most games first."""
        rows = self._rows("SELECT conditions, seed, COUNT(*) FROM games GROUP BY conditions, seed")
        ordered = sorted(rows, key=lambda row: (-row[2], row[0], row[1]))
        return [(conditions, seed % 2**64) for conditions, seed, _ in ordered]

    def totals(self, conditions: str | None = None, seed: int | None = None) -> list[PairResult]:
        """Return the results of each pair of identities, for all games or for given conditions or a seed."""
        rows = self._rows(
            "SELECT black, white, winner, COUNT(*) FROM games"
            " WHERE (?1 IS NULL OR conditions = ?1) AND (?2 IS NULL OR seed = ?2)"
            " GROUP BY black, white, winner",
            (conditions, None if seed is None else _signed(seed)),
        )
        sums: dict[tuple[str, str], Counter[str | None]] = {}
        for black, white, winner, count in rows:
            first, second = sorted((black, white))
            who = None if winner is None else (black, white)[winner]
            sums.setdefault((first, second), Counter())[who] += count
        return [
            PairResult(first, second, wins[first], wins[None], wins[second])
            for (first, second), wins in sorted(sums.items())
        ]

    def _rows(self, query: str, values: tuple[str | int | None, ...] = ()) -> list[Any]:
        with _told(self.path), closing(self._connection.execute(query, values)) as cursor:
            return cursor.fetchall()

    def _compare(self, game: StoredGame) -> None:
        """Raise ResultsConflict if the game was stored with another result."""
        row = _row(game)
        stored = self._connection.execute(
            "SELECT winner, reason, plies FROM games"
            " WHERE black = ? AND white = ? AND conditions = ? AND seed = ? AND pair = ?",
            row[:5],
        ).fetchone()
        if stored != row[5:]:
            black, white, conditions, seed, pair = game[:5]
            raise ResultsConflict(
                f"{self.path} has another result for {black} against {white}, conditions {conditions},"
                f" seed {seed}, pair {pair}: winner, reason and plies are {stored}, given {row[5:]}"
            )


def _row(game: StoredGame) -> tuple[str | int | None, ...]:
    """Return a game as a row of the table."""
    if game.black == game.white:
        raise ResultsError(f"expected two identities, given {game.black!r} against itself")
    if game.winner not in (None, 0, 1):
        raise ResultsError(f"winner is {game.winner}, expected 0 (black), 1 (white) or None in {game}")
    if not 0 <= game.pair < 2**63:
        raise ResultsError(f"pair is {game.pair}, expected 0 or more in {game}")
    winner = None if game.winner is None else int(game.winner)
    return (*game[:3], _signed(game.seed), game.pair, winner, str(game.reason), game.plies)


def _signed(seed: int) -> int:
    """Return a seed as a signed integer, as SQLite needs it; `% 2**64` converts it back."""
    if not 0 <= seed < 2**64:
        raise ResultsError(f"seed is {seed}, expected 0 to 2**64 - 1")
    return seed - 2**64 if seed >= 2**63 else seed


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Create the tables of a new store, or check that an existing one is ours."""

    def number(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    connection.execute("PRAGMA synchronous = EXTRA")  # the journal's removal is synced too
    if not number("SELECT COUNT(*) FROM sqlite_master"):
        with _transaction(connection):
            if not number("SELECT COUNT(*) FROM sqlite_master"):  # nobody was faster
                for statement in _SCHEMA:
                    connection.execute(statement)
    if number("PRAGMA application_id") != _APPLICATION:
        raise ResultsError(f"{path} is not a results store: it is some other database")
    if (version := number("PRAGMA user_version")) != VERSION:
        raise ResultsError(f"{path} has results of version {version}, expected {VERSION}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all or nothing; other writers wait before they begin, so none has to give up halfway."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system into one-line ResultsErrors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise ResultsError(
                f"{path} is busy: another process has held it for {_BUSY_SECONDS} seconds"
            ) from error
        raise ResultsError(f"cannot use {path} as a results store: {error}") from error
    except (sqlite3.Error, OSError) as error:
        raise ResultsError(f"cannot use {path} as a results store: {error}") from error

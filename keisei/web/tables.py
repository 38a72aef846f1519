"""All tables of a server: a limited number of them, and those that nobody uses end by themselves."""

import asyncio
import secrets
import time

from keisei.shogi import ShogiGame
from keisei.usi.play_setup import color_of, set_up
from keisei.web.answers import Fields, Refusal
from keisei.web.game_store import GameStore, stored_game
from keisei.web.run_shelf import RunShelf, WebPlayer, id_of
from keisei.web.table import Table
from keisei.web.table_clock import TableClock
from keisei.web.table_game import DECLARATION, MAX_MOVES, Seat, TableGame

MOST_TABLES = 8
IDLE_SECONDS = 1800.0  # without a request or a page
LEAST_VISITS, MOST_VISITS, USUAL_VISITS = 0, 20_000, 400
_LONGEST_CLOCK = 600.0  # minutes of main time, seconds of byoyomi
YOU = "you"


class Tables:
    """The tables by id; games: where a game goes once it is over."""

    def __init__(self, games: GameStore) -> None:
        self._games = games
        self._tables: dict[str, Table] = {}

    async def open(self, fields: Fields, opponent: WebPlayer, shelf: RunShelf) -> Table:
        """Begin a game as a page asks for it."""
        side = color_of(fields.one_of("side", ("black", "white", "random"), "black"))
        start = await asyncio.to_thread(self._start, fields, shelf)  # which may read files
        game = TableGame(Seat(side, YOU, opponent.name), start)
        self._make_room()
        table = Table(
            secrets.token_urlsafe(12),
            opponent,
            game,
            _clock(fields),
            visits=fields.whole("visits", LEAST_VISITS, MOST_VISITS, USUAL_VISITS),
            thinking=fields.flag("thinking", False),
            over=self._keep,
        )
        self._tables[table.id] = table
        return table

    def _start(self, fields: Fields, shelf: RunShelf) -> ShogiGame:
        if "game" in fields:
            record = self._games.game(fields.text("game"), shelf.runs()).record()
            ply = fields.whole("ply", 0, len(record.moves), len(record.moves))
            return set_up(record=record, moves=ply, max_moves=MAX_MOVES, declaration=DECLARATION)
        sfen = fields.text("sfen") if "sfen" in fields else None
        handicap = fields.text("handicap", most=20) if "handicap" in fields else None
        return set_up(sfen=sfen, handicap=handicap, max_moves=MAX_MOVES, declaration=DECLARATION)

    def table(self, wanted: str) -> Table:
        """Return the table with an id."""
        if wanted not in self._tables:
            raise Refusal(404, "no such table: it has ended, or the server was started anew")
        table = self._tables[wanted]
        table.used = time.monotonic()
        return table

    def remove(self, table: Table) -> None:
        """End a table."""
        table.close()
        self._tables.pop(table.id, None)

    def remove_idle(self) -> None:
        """End the tables that nobody uses."""
        now = time.monotonic()
        for table in [one for one in self._tables.values() if now - one.used > IDLE_SECONDS]:
            self.remove(table)

    def _make_room(self) -> None:
        """Remove the oldest table whose game is over, if there are too many."""
        self.remove_idle()
        if len(self._tables) >= MOST_TABLES:
            ended = [one for one in self._tables.values() if one.state in ("over", "failed")]
            if not ended:
                raise Refusal(429, f"{MOST_TABLES} games are in progress: end one of them first")
            self.remove(min(ended, key=lambda one: one.used))

    def _keep(self, table: Table) -> None:
        record = table.game.record()
        if record.moves:
            self._games.add(stored_game(record, id=id_of("table", table.id), run=None, kind="table"))

    def end_streams(self) -> None:
        """End the streams of all tables."""
        for table in self._tables.values():
            table.changes.end()

    def close(self) -> None:
        """End all of them."""
        for table in [*self._tables.values()]:
            self.remove(table)


def _clock(fields: Fields) -> TableClock | None:
    if "clock" not in fields:
        return None
    clock = fields.inner("clock")
    minutes, byoyomi = (clock.number(name, 0, _LONGEST_CLOCK) for name in ("minutes", "byoyomi"))
    if minutes + byoyomi == 0:
        raise Refusal(400, "clock: expected minutes or byoyomi above 0")
    return TableClock(minutes, byoyomi)

"""Everything that the routes share: runs and their feeds, games, tables, analyses."""

from dataclasses import dataclass, field
from pathlib import Path

from keisei.web.analyses import Analyses
from keisei.web.game_store import GameStore, StoredGame
from keisei.web.ladder import Ladders
from keisei.web.run_feed import RunFeed
from keisei.web.run_shelf import RunShelf
from keisei.web.tables import Tables


@dataclass
class Site:
    """The state of one server. lang: the one of the command line, None for the browser's own."""

    shelf: RunShelf
    lang: str | None = None
    games: GameStore = field(default_factory=GameStore)
    tables: Tables = field(init=False)
    analyses: Analyses = field(default_factory=Analyses)
    ladders: Ladders = field(default_factory=Ladders)
    feeds: dict[Path, RunFeed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tables = Tables(self.games)

    def feed(self, wanted: str) -> RunFeed:
        """Return the feed of the run with an id."""
        run = self.shelf.run(wanted)
        return self.feeds.setdefault(run.path, RunFeed(run))

    def game(self, wanted: str) -> StoredGame:
        """Return the game with an id."""
        return self.games.game(wanted, self.shelf.runs())

    def end_streams(self) -> None:
        """End all event streams, which would otherwise wait for their viewers."""
        for feed in self.feeds.values():
            feed.changes.end()
        self.tables.end_streams()
        self.analyses.end_streams()

    def close(self) -> None:
        """End all engines."""
        self.tables.close()
        self.analyses.close()

    def tidy(self) -> None:
        """End what nobody uses."""
        self.tables.remove_idle()
        self.analyses.pool.remove_idle()

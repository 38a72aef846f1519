"""Ratings of a run's players, from its store of results: one table for each set of conditions and seed."""

import math
import threading
from pathlib import Path
from typing import Any

from keisei.evaluation.matches.results_store import ResultsStore
from keisei.evaluation.ratings.rating import PairResult, Rating, Ratings, rate
from keisei.web.metric_rows import short

ANCHOR = "random"
_RESULTS = Path("evaluation") / "results.sqlite"


class Ladders:
    """The tables of runs, computed again when their results have changed. For threads, one at a time."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], list[dict[str, Any]]]] = {}
        self._lock = threading.Lock()

    def tables(self, run: Path) -> list[dict[str, Any]]:
        """Return the tables of a run, the one with the most games first."""
        path = run / _RESULTS
        with self._lock:
            try:
                stat = path.stat()
            except FileNotFoundError:
                return []
            stamp = (stat.st_mtime_ns, stat.st_size)
            if path not in self._known or self._known[path][0] != stamp:
                self._known[path] = (stamp, _tables(path))
            return self._known[path][1]


def _tables(path: Path) -> list[dict[str, Any]]:
    with ResultsStore.open(path) as results:
        names = {identity: one.name for identity, one in results.players().items()}
        return [
            {
                "conditions": conditions,
                "seed": str(seed),
                "players": _players(results.totals(conditions, seed), names),
            }
            for conditions, seed in results.settings()
        ]


def _players(totals: list[PairResult], names: dict[str, str]) -> list[dict[str, Any]]:
    """Return the players, the best first; without games of the anchor they have no Elo."""
    if any(ANCHOR in row[:2] for row in totals):
        ratings = rate(totals, ANCHOR)
        below = [*ratings.table[1:], None]
        return [
            _facts(one, names) | {"los": _superiority(ratings, one, other)}
            for one, other in zip(ratings.table, below, strict=True)
        ]
    anchor = totals[0].player
    unrated = [_facts(one, names) for one in rate(totals, anchor).table]
    return [{**one, "elo": None, "low": None, "high": None, "los": None} for one in unrated]


def _facts(rating: Rating, names: dict[str, str]) -> dict[str, Any]:
    return {
        "name": names.get(rating.player, rating.player),
        "elo": _whole(rating.elo),
        "low": _whole(rating.low),
        "high": _whole(rating.high),
        "games": rating.games,
        "score": short(rating.score),
    }


def _whole(elo: float) -> int | None:
    return round(elo) if math.isfinite(elo) else None


def _superiority(ratings: Ratings, rating: Rating, below: Rating | None) -> float | None:
    """Return the likelihood that a player is stronger than the next one."""
    if below is None or math.isnan(rating.elo) or math.isnan(below.elo):
        return None
    return short(ratings.superiority(rating.player, below.player))

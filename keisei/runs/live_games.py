"""RUN/live_games.json: some games of a running training, for whoever watches. Needs neither numpy nor torch.

A watcher calls `keep_watching` every few seconds, which touches RUN/watching; the training looks at the time
of that file and writes the games only while somebody watches, at most once a second. The file is replaced as
a whole, and a reader takes one that is absent or not as expected for none.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keisei.runs import durable
from keisei.shogi import Outcome

FILE, WATCHING = "live_games.json", "watching"
MOST_MOVES = 150  # of a game in the file; four games of this length take about 6 KB
WATCHED_SECONDS = 10.0  # a watcher that is silent for longer is gone


@dataclass(frozen=True, slots=True)
class LiveGame:
    """A game of the training, its last MOST_MOVES moves at most.

    before: the number of moves before these. sfen: the position after them. moves: in USI. black_percent: of
    the position before each move, the network's estimate of Black's score in percent; None where it is
    unknown, as for random moves. outcome: None if the game is in progress.
    """

    number: int
    before: int
    sfen: str
    moves: tuple[str, ...]
    black_percent: tuple[int | None, ...]
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class LiveGames:
    """Some games after an update.

    step: moves trained on with it. workers: what each worker process does, by number; empty without any.
    """

    step: int
    games: tuple[LiveGame, ...]
    workers: tuple[str, ...] = ()


def keep_watching(run: Path) -> None:
    """Tell a training that somebody watches; call this again within WATCHED_SECONDS."""
    (run / WATCHING).touch()


def stop_watching(run: Path) -> None:
    """Tell a training that nobody watches; another watcher will soon say otherwise."""
    (run / WATCHING).unlink(missing_ok=True)


def is_watched(run: Path) -> bool:
    """Return whether somebody watches a training."""
    try:
        return time.time() - (run / WATCHING).stat().st_mtime < WATCHED_SECONDS
    except FileNotFoundError:
        return False


def write_live_games(run: Path, live: LiveGames) -> None:
    """Replace the file."""
    games = [
        {**asdict(game), "moves": " ".join(game.moves), "outcome": _facts(game.outcome)}
        for game in live.games
    ]
    data = {"step": live.step, "games": games, "workers": live.workers}
    text = json.dumps(data, separators=(",", ":"))
    durable.write_whole(run / FILE, text.encode())


def remove_live_games(run: Path) -> None:
    """Remove the file, which a process that was killed may have left."""
    (run / FILE).unlink(missing_ok=True)


def read_live_games(run: Path) -> LiveGames | None:
    """Return what the file has, or None if there is none or it is not as expected."""
    try:
        data = json.loads((run / FILE).read_bytes())
        games, workers = tuple(_game(one) for one in data["games"]), tuple(map(str, data["workers"]))
        return LiveGames(int(data["step"]), games, workers)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _facts(outcome: Outcome | None) -> dict[str, Any] | None:
    """Return a result for the file: winner is 0 for Black, 1 for White and null for a draw."""
    return None if outcome is None else {"winner": outcome.winner, "reason": str(outcome.reason)}


def _game(data: dict[str, Any]) -> LiveGame:
    moves, percents = tuple(data["moves"].split()), tuple(data["black_percent"])
    known = [percent for percent in percents if percent is not None]
    if len(moves) != len(percents) or not all(isinstance(percent, int) for percent in known):
        raise ValueError(f"{len(percents)} estimates of {len(moves)} moves")
    outcome = None if data["outcome"] is None else Outcome.from_native(**data["outcome"])
    return LiveGame(int(data["number"]), int(data["before"]), str(data["sfen"]), moves, percents, outcome)

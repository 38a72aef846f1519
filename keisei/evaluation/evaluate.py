"""`keisei evaluate` and `keisei ladder`: matches, ratings and a report, in a directory."""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keisei.evaluation.conditions import Conditions
from keisei.evaluation.contest import ANCHOR, Contest
from keisei.evaluation.ladder import climb
from keisei.evaluation.match_result import MatchResult
from keisei.evaluation.player import Player
from keisei.evaluation.progress import MatchProgress
from keisei.evaluation.rating import Ratings
from keisei.evaluation.rating_plot import RatedStep, plot_rating_curve
from keisei.evaluation.rating_table import format_table
from keisei.evaluation.roster import BUILT_IN_NAMES, Machine, make_player
from keisei.evaluation.sprt import Sprt

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """How matches are played: conditions, seed, games side by side, on what, and a test that may end them."""

    conditions: Conditions = field(default_factory=Conditions)
    seed: int = 1
    side_by_side: int = 100
    machine: Machine = field(default_factory=Machine)
    sprt: Sprt | None = None


def evaluate(
    players: Sequence[str], against: Sequence[str], games: int, directory: Path, setting: Setting, tell: Tell
) -> Path:
    """Let players play so many games against each opponent, tell results and ratings, return the report.

    players, against: as make_player reads them.
    """
    report: dict[str, Any] = {"conditions": str(setting.conditions), "seed": setting.seed, "matches": []}
    with Contest(directory, setting.conditions, setting.seed) as contest, ExitStack() as stack:
        opponents = [_seated(text, setting, stack) for text in against]
        _link(contest, [opponent.identity for opponent in opponents], tell)
        for text in players:
            player = _seated(text, setting, stack)
            tell(_introduction(player))
            for opponent in opponents:
                if opponent.identity != player.identity:
                    result = _match(contest, player, opponent, games, setting, tell)
                    report["matches"].append(_match_report(player, opponent, result))
        _close(contest, directory, report, tell)
    return _written(directory / "report.json", report)


def ladder(
    texts: Sequence[str],
    directory: Path,
    setting: Setting,
    tell: Tell,
    *,
    batch: int = 20,
    precision: float = 60.0,
    minutes: float | None = None,
) -> Path:
    """Rate players by games where the ratings are least certain; tell the table, return the report.

    batch: games that two play before all are rated again. precision: of the 95 % intervals, ± Elo.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    report: dict[str, Any] = {"conditions": str(setting.conditions), "seed": setting.seed}
    with Contest(directory, setting.conditions, setting.seed) as contest, ExitStack() as stack:
        seats = [_seated(text, setting, stack) for text in texts]
        players = {player.identity: player for player in seats}
        if len(players) < len(seats):
            raise ValueError("a player is named twice, expected players that differ")
        if ANCHOR not in players:
            raise ValueError(f"{ANCHOR} is missing: its rating is 0, and the others are measured from there")
        for player in seats:
            tell(_introduction(player))

        def games() -> dict[frozenset[str], int]:
            totals = contest.results.totals(str(setting.conditions))
            return {
                frozenset((row.player, row.opponent)): row.wins + row.draws + row.losses for row in totals
            }

        def play(one: str, other: str) -> None:
            played = games().get(frozenset((one, other)), 0)
            _match(contest, players[one], players[other], played + batch, setting, tell)

        certain = climb(
            [*players],
            play,
            contest.ratings,
            games,
            precision=precision,
            should_stop=lambda: end is not None and time.monotonic() >= end,
        )
        if not certain:
            tell(f"the time is up before every interval is ± {precision:g} Elo; the same command goes on")
        _close(contest, directory, report, tell)
    return _written(directory / "report.json", report)


def _seated(text: str, setting: Setting, stack: ExitStack) -> Player:
    player = make_player(text, setting.seed, setting.machine)
    stack.callback(player.close)
    return player


def _link(contest: Contest, identities: Sequence[str], tell: Tell) -> None:
    """Give the built-in opponents, and the anchor, games among each other."""
    chain = [name for name in BUILT_IN_NAMES if name == ANCHOR or name in identities]
    if len(chain) > 1:
        tell(f"the scale: {', '.join(chain)} play each other first, once for this directory")
        contest.link(chain)


def _introduction(player: Player) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in player.describe().items())
    return f"{player.name}{f': {facts}' if facts else ''}"


def _match(
    contest: Contest, player: Player, opponent: Player, games: int, setting: Setting, tell: Tell
) -> MatchResult:
    progress = MatchProgress(f"{player.name} vs {opponent.name}", sys.stderr)
    try:
        result = contest.play(
            player,
            opponent,
            games,
            sprt=setting.sprt,
            side_by_side=setting.side_by_side,
            progress=progress,
        )
    finally:
        progress.clear()
    tell(str(result))
    return result


def _match_report(player: Player, opponent: Player, result: MatchResult) -> dict[str, Any]:
    return {
        "player": {"name": player.name, "identity": player.identity, **player.describe()},
        "opponent": {"name": opponent.name, "identity": opponent.identity, **opponent.describe()},
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "as_black": list(result.as_black),
        "as_white": list(result.as_white),
        "pairs": list(result.pairs),
        "score_interval": list(result.interval()),
        "reasons": dict(result.reasons),
        "mean_length": result.mean_length,
        "test": result.test,
    }


def _close(contest: Contest, directory: Path, report: dict[str, Any], tell: Tell) -> None:
    """Rate everybody, tell the table, draw the curve."""
    players = contest.results.players()
    report["players"] = {identity: {"name": one.name, **one.facts} for identity, one in players.items()}
    ratings = contest.ratings()
    if ratings is None:
        tell(f"no ratings: they begin at {ANCHOR}, and it has not played here")
        return
    tell(f"\n{format_table(ratings, {identity: one.name for identity, one in players.items()})}")
    report["ratings"] = [
        {"player": one.player, "elo": _finite(one.elo), "low": _finite(one.low), "high": _finite(one.high)}
        | {"games": one.games, "score": one.score}
        for one in ratings.table
    ]
    if (picture := draw_curve(contest, ratings, directory)) is not None:
        tell(f"\nthe rating over the moves of training: {picture}")


def draw_curve(contest: Contest, ratings: Ratings, directory: Path) -> Path | None:
    """Draw the ratings of networks over their steps to rating.png; None if fewer than two are rated."""
    curves: dict[str, list[RatedStep]] = {}
    lines: dict[str, float] = {}
    players = contest.results.players()
    for rating in ratings.table:
        player = players[rating.player]
        if player.step is not None:
            run, _, settings = player.name.partition("@")
            label = " ".join([run, *settings.split()[1:]])  # a search is another curve than the policy
            point = RatedStep(player.step, rating.elo, rating.low, rating.high)
            curves.setdefault(label, []).append(point)
        elif math.isfinite(rating.elo):
            lines[player.name] = rating.elo
    curves = {label: sorted(points) for label, points in curves.items() if len(points) > 1}
    if not curves:
        return None
    path = directory / "rating.png"
    plot_rating_curve(path, curves, lines)
    return path


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _written(path: Path, report: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path

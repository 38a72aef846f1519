"""`keisei evaluate` and `keisei ladder`: matches, ratings and a report, in a directory."""

import json
import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keisei.evaluation.matches.match_conditions import MatchConditions
from keisei.evaluation.matches.match_progress import MatchProgress
from keisei.evaluation.matches.match_result import MatchResult
from keisei.evaluation.matches.tournament import ANCHOR, LINK_GAMES, Tournament, neighbours, scale
from keisei.evaluation.players.player import Player, PlayerError
from keisei.evaluation.players.player_specs import Machine, make_player
from keisei.evaluation.players.usi_player import UsiPlayer
from keisei.evaluation.ratings.ladder import climb
from keisei.evaluation.ratings.rating import Ratings
from keisei.evaluation.ratings.rating_table import format_markdown, format_table
from keisei.evaluation.ratings.sprt import Sprt
from keisei.runs.durable import write_durably

Tell = Callable[[str], None]
FEW_GAMES = 40  # with fewer, an interval is wider than the ladder from random to greedy


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """How matches are played: conditions, seed, machine, and a test that may end them."""

    conditions: MatchConditions = field(default_factory=MatchConditions)
    seed: int = 1
    machine: Machine = field(default_factory=Machine)
    sprt: Sprt | None = None


def evaluate(
    players: Sequence[str],
    against: Sequence[str],
    games: int,
    directory: Path,
    setting: MatchSettings,
    tell: Tell,
) -> Path:
    """Play `games` games for each player and opponent, print results and ratings, return the report.

    players, against: texts for make_player.
    """
    report: dict[str, Any] = {"conditions": str(setting.conditions), "seed": setting.seed, "matches": []}
    evaluated = set()
    with ExitStack() as stack:
        opponents = [_seated(text, setting, stack) for text in dict.fromkeys(against)]
        with ExitStack() as tried:  # before anything is written
            _seated(players[0], setting, tried)
        tournament = stack.enter_context(Tournament(directory, setting.conditions, setting.seed))
        _repeated_openings(setting.conditions, games, tell)
        for text in players:
            with ExitStack() as own:  # checkpoints may be many: one is loaded at a time
                player = _seated(text, setting, own)
                tell(_introduction(player))
                evaluated.add(player.identity)
                # Only now that the players are known to exist; for the second player it is already done.
                _link(tournament, [opponent.identity for opponent in opponents], setting, tell)
                for opponent in opponents:
                    if opponent.identity == player.identity:
                        tell(f"{player.name} and {opponent.name} are the same player: nothing to play")
                        continue
                    result = _match(tournament, player, opponent, games, setting, tell)
                    report["matches"].append(_match_report(player, opponent, result))
        _close(tournament, directory, report, tell)
        if len(evaluated) > 1:
            _name_the_best(tournament, evaluated, tell)
    return _written(directory / "report.json", report)


def ladder(
    texts: Sequence[str],
    directory: Path,
    setting: MatchSettings,
    tell: Tell,
    *,
    batch: int = 20,
    precision: float = 60.0,
    minutes: float | None = None,
) -> Path:
    """Rate players by games where ratings are least certain; print the table, return the report.

    batch: games between two players before all are rated again. precision: of the 95 % intervals, ± Elo.
    """
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes

    def time_is_up() -> bool:
        return time.monotonic() >= end

    report: dict[str, Any] = {"conditions": str(setting.conditions), "seed": setting.seed}
    with ExitStack() as stack:
        seats = [_seated(text, setting, stack) for text in texts]
        players = {player.identity: player for player in seats}
        for player in seats:
            if players[player.identity] is not player:
                twin = players[player.identity].name
                raise PlayerError(f"{player.name} and {twin} are the same player, expected different ones")
        if ANCHOR not in players:
            raise PlayerError(f"{ANCHOR} is missing: its rating is 0, and the others are measured against it")
        tournament = stack.enter_context(Tournament(directory, setting.conditions, setting.seed))
        for player in seats:
            tell(_introduction(player))

        def play(one: str, other: str) -> None:
            two = players[one], players[other]
            _match(tournament, *two, tournament.count(*two) + batch, setting, tell, time_is_up)

        certain = climb(
            [*players], play, tournament.totals, ANCHOR, precision=precision, should_stop=time_is_up
        )
        if not certain:
            tell(f"time is up before every interval is ± {precision:g} Elo; run the same command to continue")
        _close(tournament, directory, report, tell)
    return _written(directory / "report.json", report)


def _seated(text: str, setting: MatchSettings, stack: ExitStack) -> Player:
    player = make_player(text, setting.seed, setting.machine)
    stack.callback(player.close)
    if isinstance(player, UsiPlayer):
        player.start()  # a missing program is reported before hours of games, not after
    return player


def _repeated_openings(conditions: MatchConditions, games: int, tell: Tell) -> None:
    """Warn if openings repeat: deterministic players then repeat their games."""
    pairs, openings = games // 2, len(conditions.openings)
    if not conditions.random_plies and pairs > openings:
        tell(
            f"openings: {openings} for {pairs} pairs of games, and no random moves after them;"
            " deterministic players repeat games, which then count as new"
        )


def _link(tournament: Tournament, opponents: Sequence[str], setting: MatchSettings, tell: Tell) -> None:
    """Play the missing games between the anchor and the built-in opponents."""
    links = neighbours(opponents, setting.seed, setting.machine)
    missing = [two for two in links if tournament.count(*two) < LINK_GAMES]
    if missing:
        tell(f"the scale: {', '.join(scale(opponents))} play each other first, once per directory")
    for stronger, weaker in missing:
        _match(tournament, stronger, weaker, LINK_GAMES, replace(setting, sprt=None), lambda _: None)


def _introduction(player: Player) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in player.describe().items())
    return f"{player.name}{f': {facts}' if facts else ''}"


def _match(
    tournament: Tournament,
    player: Player,
    opponent: Player,
    games: int,
    setting: MatchSettings,
    tell: Tell,
    should_stop: Callable[[], bool] | None = None,
) -> MatchResult:
    progress = MatchProgress(f"{player.name} vs {opponent.name}", sys.stderr)
    try:
        result = tournament.play(
            player,
            opponent,
            games,
            sprt=setting.sprt,
            progress=progress,
            should_stop=should_stop,
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
        "mean_length": _finite(result.mean_length),
        "test": result.test,
    }


def _close(tournament: Tournament, directory: Path, report: dict[str, Any], tell: Tell) -> None:
    """Rate all players, print the table, draw the curve."""
    players = tournament.results.players()
    report["players"] = {identity: {"name": one.name, **one.facts} for identity, one in players.items()}
    ratings = tournament.ratings()
    if ratings is None:
        tell(f"no ratings: they are relative to {ANCHOR}, which has not played here; add --against {ANCHOR}")
        return
    names = {identity: one.name for identity, one in players.items()}
    tell(f"\n{format_table(ratings, names)}")
    few = [one for one in ratings.table if one.games < FEW_GAMES and one.player != ANCHOR]
    if few:
        counted = ", ".join(f"{names[one.player]} ({one.games})" for one in few)
        tell(f"\na rating from fewer than {FEW_GAMES} games says next to nothing: {counted}")
    write_durably(directory / "ratings.md", format_markdown(ratings, names).encode())
    report["ratings"] = [
        {"player": one.player, "elo": _finite(one.elo), "low": _finite(one.low), "high": _finite(one.high)}
        | {"games": one.games, "score": _finite(one.score)}
        for one in ratings.table
    ]
    if (picture := draw_curve(tournament, ratings, directory)) is not None:
        tell(f"\nrating over training: {picture}")


def _name_the_best(tournament: Tournament, evaluated: Collection[str], tell: Tell) -> None:
    """Say which of these players has the highest lower bound: a few lucky games do not outdo many."""
    ratings, players = tournament.ratings(), tournament.results.players()
    rated = [] if ratings is None else [one for one in ratings.table if one.player in evaluated]
    if rated:
        best = max(rated, key=lambda one: (one.low, one.elo))
        name = players[best.player].name
        tell(f"\nthe best of {len(evaluated)}: {name}, Elo {best.elo:.0f}, at least {best.low:.0f}")


def draw_curve(tournament: Tournament, ratings: Ratings, directory: Path) -> Path | None:
    """Draw the ratings of networks over their steps to rating.png; None if fewer than two are rated."""
    curves: dict[str, list[tuple[int, float, float, float]]] = {}
    lines: dict[str, float] = {}
    players = tournament.results.players()
    for rating in ratings.table:
        player = players[rating.player]
        if player.step is not None:
            run, _, settings = player.name.rpartition("@")
            label = " ".join([run, *settings.split()[1:]])  # a search gets its own curve beside the policy's
            point = (player.step, rating.elo, rating.low, rating.high)
            curves.setdefault(label, []).append(point)
        elif math.isfinite(rating.elo):
            lines[player.name] = rating.elo
    curves = {label: sorted(points) for label, points in curves.items() if len(points) > 1}
    if not curves:
        return None
    # Imported here: matplotlib takes a second to load, which matches without a curve do not need.
    from keisei.evaluation.ratings.rating_plot import RatedStep, plot_rating_curve

    path = directory / "rating.png"
    drawn = {label: [RatedStep(*point) for point in points] for label, points in curves.items()}
    plot_rating_curve(path, drawn, lines)
    return path


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _written(path: Path, report: Mapping[str, Any]) -> Path:
    write_durably(path, (json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    return path

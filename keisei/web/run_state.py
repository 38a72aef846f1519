"""The `state` event: where a run stands, from its last metrics, its log and its live games."""

import re
from typing import Any

import numpy as np

from keisei.runs.live_games import LiveGames
from keisei.shogi import Reason
from keisei.web.metric_rows import MetricRows, short
from keisei.web.run_facts import facts_of, notices_of
from keisei.web.run_shelf import Run, about

WINDOW = 20  # rows over which pace, results and phases are computed
_RATING = "evaluation/rating"
_SCORE = re.compile(r"evaluation/(.+)_score")
_WORKER = re.compile(r"worker_(\d+)/(\w+)")


def state(run: Run, rows: MetricRows, live: LiveGames | None) -> dict[str, Any]:
    """Return the event's data; live: what the training last wrote, for the workers' states."""
    told = about(run)
    if len(rows):
        told["step"] = int(rows.steps[-1])
    pace = _pace(rows)
    left = max(told["total_steps"] - told["step"], 0) / pace if pace and told["total_steps"] else None
    return {
        "run": told,
        "facts": facts_of(run.path),
        "moves_per_second": pace,
        "seconds_left": None if left is None or told["state"] != "training" else round(left),
        "rating": _rating(rows),
        "scores": _scores(rows),
        "results": _results(rows),
        "phases": _phases(rows),
        "workers": _workers(rows, live) if told["state"] == "training" else [],
        "notices": notices_of(run.path),
    }


def _window(rows: MetricRows) -> int:
    return max(0, len(rows) - WINDOW)


def _sum(rows: MetricRows, name: str) -> float:
    return float(np.nansum(rows.column(name, _window(rows))))


def _pace(rows: MetricRows) -> float | None:
    """Return moves per second over the last rows."""
    if len(rows) == 0:
        return None
    first = len(rows) - WINDOW - 1  # the row before the window, or the beginning of the run
    moves, seconds = int(rows.steps[-1]), float(rows.seconds[-1])
    if first >= 0:
        moves, seconds = moves - int(rows.steps[first]), seconds - float(rows.seconds[first])
    return short(moves / seconds) if seconds > 0 and moves > 0 else None


def _last(rows: MetricRows, name: str) -> tuple[int, float] | None:
    """Return the last value of a metric and its row."""
    places = np.flatnonzero(np.isfinite(rows.column(name)))
    return (int(places[-1]), float(rows.column(name)[places[-1]])) if len(places) else None


def _rating(rows: MetricRows) -> dict[str, Any] | None:
    """Return the last rating; null for what is unbounded, as after winning all games."""
    ends = {end: rows.column(f"{_RATING}{end}") for end in ("", "_low", "_high")}
    known = np.flatnonzero(np.logical_or.reduce([np.isfinite(values) for values in ends.values()]))
    if not len(known):
        return None
    place = int(known[-1])
    elo, low, high = (short(float(values[place])) for values in ends.values())
    return {"elo": elo, "low": low, "high": high, "step": int(rows.steps[place])}


def _scores(rows: MetricRows) -> list[dict[str, Any]]:
    scores = []
    for name in rows.names:
        if (match := _SCORE.fullmatch(name)) and (found := _last(rows, name)):
            place, score = found
            scores.append({"opponent": match[1], "score": short(score), "step": int(rows.steps[place])})
    return scores


def _results(rows: MetricRows) -> dict[str, Any]:
    reasons = {str(reason): f"games/by_{reason.value.replace(' ', '_')}" for reason in Reason}
    counted = {reason: round(_sum(rows, name)) for reason, name in reasons.items()}
    return {
        "black": round(_sum(rows, "games/black_wins")),
        "white": round(_sum(rows, "games/white_wins")),
        "draws": round(_sum(rows, "games/draws")),
        "by": {reason: count for reason, count in counted.items() if count},
    }


def _phases(rows: MetricRows) -> dict[str, float | None]:
    """Return each phase's share of the learner's time, the largest first."""
    seconds = {name[5:]: _sum(rows, name) for name in rows.names if name.startswith("time/")}
    total = sum(seconds.values())
    shares = {name: short(spent / total) for name, spent in seconds.items() if total > 0 and spent > 0}
    return dict(sorted(shares.items(), key=lambda item: -(item[1] or 0)))


def _workers(rows: MetricRows, live: LiveGames | None) -> list[dict[str, Any]]:
    """Return the workers in the last row; their states are known while games are watched."""
    states = {} if live is None else dict(enumerate(live.workers))
    found: dict[int, dict[str, float]] = {}
    for name in rows.names:
        if match := _WORKER.fullmatch(name):
            value = float(rows.column(name)[-1])
            if np.isfinite(value):
                found.setdefault(int(match[1]), {})[match[2]] = value
    return [
        {
            "number": number,
            "state": states.get(number),
            "moves": round(facts.get("steps", 0)),
            "games": round(facts.get("games", 0)),
            "restarts": round(facts.get("restarts", 0)),
            "utilisation": short(facts.get("utilization", 0.0)),
            "memory_bytes": round(facts.get("memory_bytes", 0)),
        }
        for number, facts in sorted(found.items())
    ]

"""Routes about runs: the site, what a run's page follows, and its curves."""

import asyncio
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keisei.usi.play_setup import HANDICAP_NAMES
from keisei.web import run_shelf
from keisei.web.answers import Refusal, json_response, query_number
from keisei.web.curves import MOST_NAMES
from keisei.web.event_stream import EventStream
from keisei.web.site import Site
from keisei.web.tables import LEAST_VISITS, MOST_VISITS, USUAL_VISITS

_MOST_STEP = 2**53


def routes(site: Site) -> list[Route]:
    """Return these routes."""

    async def about(_request: Request) -> Response:
        return json_response(await asyncio.to_thread(_site_facts, site))

    async def events(request: Request) -> Response:
        feed = await asyncio.to_thread(site.feed, request.path_params["run"])
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        return EventStream(feed.events(_names(request), after))

    async def curves(request: Request) -> Response:
        feed = await asyncio.to_thread(site.feed, request.path_params["run"])
        steps = None
        if {"from", "to"} & set(request.query_params):
            start = query_number(request, "from", 0, _MOST_STEP, 0)
            steps = start, query_number(request, "to", start, _MOST_STEP, _MOST_STEP)
        return json_response(await feed.curves_once(_names(request), steps))

    async def ladder(request: Request) -> Response:
        run = await asyncio.to_thread(site.shelf.run, request.query_params.get("run", ""))
        return json_response({"tables": await asyncio.to_thread(site.ladders.tables, run.path)})

    return [
        Route("/api/site", about),
        Route("/api/ladder", ladder),
        Route("/api/runs/{run}/events", events),
        Route("/api/runs/{run}/curves", curves),
    ]


def _site_facts(site: Site) -> dict[str, Any]:
    return {
        "version": version("keisei"),
        "lang": site.lang,
        "runs": [run_shelf.about(run) for run in site.shelf.runs()],
        "players": [player.facts() for player in site.shelf.players()],
        "handicaps": [*HANDICAP_NAMES],
        "visits": {"least": LEAST_VISITS, "most": MOST_VISITS, "usual": USUAL_VISITS},
    }


def _names(request: Request) -> list[str]:
    """Return the metrics asked for, each once."""
    names = [name for name in request.query_params.get("names", "").split(",") if name]
    if len(names) > MOST_NAMES or any(len(name) > 100 for name in names):
        raise Refusal(400, f"names: expected at most {MOST_NAMES} metrics")
    return list(dict.fromkeys(names))

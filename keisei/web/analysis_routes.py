"""Routes about analyses: candidates of a position, and a whole game."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keisei.web.answers import Fields, Refusal, json_response, read_json
from keisei.web.event_stream import EventStream
from keisei.web.run_shelf import WebPlayer
from keisei.web.site import Site
from keisei.web.tables import MOST_VISITS, USUAL_VISITS

_LOOK_SECONDS = 0.25  # between two checks that the client is still there


def routes(site: Site) -> list[Route]:
    """Return these routes."""

    async def network(fields: Fields) -> WebPlayer:
        player = await asyncio.to_thread(site.shelf.player, fields.text("network"))
        if player.checkpoint is None:
            raise Refusal(400, f"network: {player.name} has no values, expected a network")
        return player

    async def candidates(request: Request) -> Response:
        fields = await read_json(request)
        game = await asyncio.to_thread(site.game, request.path_params["game"])
        ply = fields.whole("ply", 0, game.plies)
        visits = fields.whole("visits", 0, MOST_VISITS, USUAL_VISITS)
        asked = site.analyses.candidates(game, ply, await network(fields), visits)
        return json_response(await _while_connected(request, asked))

    async def begin(request: Request) -> Response:
        fields = await read_json(request)
        game = await asyncio.to_thread(site.game, request.path_params["game"])
        visits = fields.whole("visits", 1, MOST_VISITS, USUAL_VISITS)
        return json_response({"analysis": site.analyses.begin(game, await network(fields), visits).id}, 201)

    async def events(request: Request) -> Response:
        return EventStream(site.analyses.analysis(request.path_params["analysis"]).events())

    return [
        Route("/api/games/{game}/candidates", candidates, methods=["POST"]),
        Route("/api/games/{game}/analysis", begin, methods=["POST"]),
        Route("/api/analyses/{analysis}/events", events),
    ]


async def _while_connected(request: Request, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what work returns, but give up once the client has: it may have gone on to the next move."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=_LOOK_SECONDS))[0]:
            if await request.is_disconnected():
                raise Refusal(499, "the client has gone")
        return task.result()
    finally:
        task.cancel()

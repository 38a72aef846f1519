"""Routes about tables: begin a game, follow it, play, save."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keisei.web import game_facts
from keisei.web.answers import Fields, Refusal, json_response, read_json
from keisei.web.event_stream import EventStream
from keisei.web.game_routes import attachment, format_of
from keisei.web.site import Site
from keisei.web.table import Table
from keisei.web.tables import LEAST_VISITS, MOST_VISITS

_DEEDS = ("move", "undo", "resign", "declare", "hint", "set", "close")


def routes(site: Site) -> list[Route]:
    """Return these routes."""

    async def begin(request: Request) -> Response:
        fields = await read_json(request)
        opponent = await asyncio.to_thread(site.shelf.player, fields.text("opponent"))
        table = await site.tables.open(fields, opponent, site.shelf)
        return json_response(table.facts(), 201)

    async def look(request: Request) -> Response:
        return json_response(site.tables.table(request.path_params["table"]).facts())

    async def events(request: Request) -> Response:
        return EventStream(site.tables.table(request.path_params["table"]).events())

    async def act(request: Request) -> Response:
        fields = await read_json(request)
        table = site.tables.table(request.path_params["table"])
        try:
            answer = await _do(site, table, fields)
        except Refusal as refusal:
            if refusal.status != 409:
                raise
            raise Refusal(409, str(refusal), table.facts()) from refusal
        return json_response(table.facts() if answer is None else answer)

    async def record(request: Request) -> Response:
        kind, table = format_of(request), site.tables.table(request.path_params["table"])
        name = game_facts.file_name("keisei", table.opponent.name, kind=kind)
        return attachment(game_facts.written(table.game.record(), kind), name, kind)

    return [
        Route("/api/tables", begin, methods=["POST"]),
        Route("/api/tables/{table}", look, methods=["GET"]),
        Route("/api/tables/{table}", act, methods=["POST"]),
        Route("/api/tables/{table}/events", events),
        Route("/api/tables/{table}/record", record),
    ]


async def _do(site: Site, table: Table, fields: Fields) -> dict[str, Any] | None:
    """Do what a person asks for; return the answer, None for the table itself."""
    match fields.one_of("do", _DEEDS):
        case "move":
            table.move(fields.text("move", most=10), fields.whole("ply", 0, 10**6))
        case "undo":
            table.undo()
        case "resign":
            table.resign()
        case "declare":
            table.declare()
        case "hint":
            return await table.hint()
        case "set":
            thinking = fields.flag("thinking") if "thinking" in fields else None
            visits = fields.whole("visits", LEAST_VISITS, MOST_VISITS) if "visits" in fields else None
            table.set(thinking=thinking, visits=visits)
        case "close":
            facts = table.facts()
            site.tables.remove(table)
            return facts
    return None

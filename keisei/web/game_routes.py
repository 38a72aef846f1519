"""Routes about games: the listing, one game, and records to download."""

import asyncio
import io
import zipfile
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keisei.web import game_facts
from keisei.web.answers import Refusal, json_response, query_number
from keisei.web.game_search import MOST_LISTED, MOST_ZIPPED, GameFilter, listing
from keisei.web.game_store import StoredGame
from keisei.web.site import Site

_KINDS = {
    "kif": "application/x-kif",
    "csa": "application/x-csa",
    "usi": "text/plain",
    "zip": "application/zip",
}


def routes(site: Site) -> list[Route]:
    """Return these routes."""

    def games(request: Request) -> list[StoredGame]:
        wanted = request.query_params.get("run")
        runs = site.shelf.runs() if not wanted else [site.shelf.run(wanted)]
        found = site.games.games(runs)
        return [game for game in found if not wanted or game.run == wanted]

    async def many(request: Request) -> Response:
        wanted = GameFilter.of(request.query_params)
        offset = query_number(request, "offset", 0, 10**9, 0)
        limit = query_number(request, "limit", 0, MOST_LISTED, 50)
        found = await asyncio.to_thread(lambda: listing(games(request), wanted, offset, limit))
        return json_response(found)

    async def zipped(request: Request) -> Response:
        wanted, kind = GameFilter.of(request.query_params), format_of(request)
        found = await asyncio.to_thread(lambda: [game for game in games(request) if wanted.takes(game)])
        return attachment(await asyncio.to_thread(_zip, found[:MOST_ZIPPED], kind), "games.zip", "zip")

    async def one(request: Request) -> Response:
        return json_response(
            await asyncio.to_thread(lambda: game_facts.whole(site.game(request.path_params["game"])))
        )

    async def record(request: Request) -> Response:
        kind = format_of(request)
        game = await asyncio.to_thread(site.game, request.path_params["game"])
        name = game_facts.file_name(game.black, game.white, game.id, kind=kind)
        return attachment(await asyncio.to_thread(game_facts.written, game.record(), kind), name, kind)

    return [
        Route("/api/games", many),
        Route("/api/games.zip", zipped),
        Route("/api/games/{game}", one),
        Route("/api/games/{game}/record", record),
    ]


def format_of(request: Request) -> str:
    """Return the format of a record that a request asks for."""
    kind = request.query_params.get("format", "kif")
    if kind not in game_facts.FORMATS:
        raise Refusal(400, f"format: expected {', '.join(game_facts.FORMATS)}")
    return kind


def attachment(data: bytes, name: str, kind: str) -> Response:
    """Return a file that a browser saves."""
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'}
    return Response(data, headers=headers, media_type=_KINDS[kind])


def _zip(games: Sequence[StoredGame], kind: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, game in enumerate(games, 1):
            name = game_facts.file_name(f"{number:04}", game.black, game.white, kind=kind)
            archive.writestr(name, game_facts.written(game.record(), kind))
    return data.getvalue()

"""The application: pages and their texts, the API of each subject, and the guard before all of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from keisei.errors import UserError
from keisei.language.speaker import CODES
from keisei.shogi import NotationError, RulesError
from keisei.web import analysis_routes, game_routes, run_routes, table_routes
from keisei.web.answers import Refusal, json_response, refused
from keisei.web.guard import Guard
from keisei.web.site import Site
from keisei.web.texts import texts_in

STATIC = Path(__file__).parent / "static"
_PAGES = {
    "/": "live",
    "/games": "games",
    "/games/{game}": "replay",
    "/play": "play",
    "/play/{table}": "play",
    "/ladder": "ladder",
}
_TIDY_SECONDS = 60.0


def make_app(site: Site, token: str | None) -> Starlette:
    """Return the application of a site; token: what a client must show, None on loopback."""

    @asynccontextmanager
    async def tidied(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(_tidy(site))
        yield
        task.cancel()
        site.close()

    routes = [
        *(Route(path, _page(name)) for path, name in _PAGES.items()),
        Route("/api/texts", _texts),
        *run_routes.routes(site),
        *game_routes.routes(site),
        *table_routes.routes(site),
        *analysis_routes.routes(site),
        Route("/favicon.ico", _no_icon),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    # The guard comes first, and what it answers itself is not compressed.
    middleware = [Middleware(Guard, token=token), Middleware(GZipMiddleware, minimum_size=1000)]
    mistakes = (Refusal, UserError, NotationError, RulesError)
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers=dict.fromkeys(mistakes, refused),
        lifespan=tidied,
    )
    app.router.redirect_slashes = False
    return app


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def serve(_request: Request) -> Response:
        return FileResponse(STATIC / f"{name}.html", headers={"cache-control": "no-cache"})

    return serve


async def _texts(request: Request) -> Response:
    code = request.query_params.get("lang", "en")
    if code not in CODES:
        raise Refusal(400, f"lang: expected {' or '.join(CODES)}")
    return json_response(texts_in(code))


async def _no_icon(_request: Request) -> Response:
    return Response(status_code=204)


async def _tidy(site: Site) -> None:
    while True:
        await asyncio.sleep(_TIDY_SECONDS)
        site.tidy()

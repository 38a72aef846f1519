"""Who may ask: this machine's own browser, at a page of ours, and beyond loopback only with the token.

Without a token the Host must be a loopback name, with any port, so that tunnels work and a foreign name that
resolves to this machine (DNS rebinding) does not. An Origin must be the Host's own. What another site's page
loads, frames or sends is refused by Sec-Fetch-Site; it may only link to our pages. POST takes JSON alone,
which no form can send. Every answer has a content policy without inline script or style.
"""

import hmac
import re
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "keisei-token"

_LOOPBACK = re.compile(
    r"(localhost|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE
)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]


class Guard:
    """Lets requests through to the app, or answers them itself; token: asked for if it is set."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket here

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_RAW_HEADERS]
            await send(message)

        answer = self._refusal(scope) or self._without_token(scope)
        await (answer or self._app)(scope, receive, secured)

    def _refusal(self, scope: MutableMapping[str, Any]) -> Response | None:
        """Return why a request is refused, or None."""
        headers, method = _headers(scope), scope["method"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or (self._token is None and _LOOPBACK.fullmatch(hosts[0]) is None):
            return _told(403, "expected a Host of this machine: localhost or 127.0.0.1")
        for origin in headers.get("origin", []):
            if origin.partition("://")[2].lower() != hosts[0].lower():
                return _told(403, "a page of another origin may not ask here")
        if not _from_here(scope, headers):
            return _told(403, "a page of another site may not ask here")
        if method not in ("GET", "HEAD", "POST"):
            return _told(405, f"{method[:20]} is not known here: expected GET or POST")
        if method == "POST":
            kinds = [kind.partition(";")[0].strip().lower() for kind in headers.get("content-type", [])]
            if kinds != ["application/json"]:
                return _told(415, "expected a body of type application/json")
        return None

    def _without_token(self, scope: MutableMapping[str, Any]) -> Response | None:
        """Return the answer to a client that has not shown the token; one in the query becomes a cookie."""
        if self._token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given and self._is_token(given[-1]) and scope["method"] == "GET":
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = quote("/" + scope["path"].lstrip("/"))  # two slashes would name another host
            there = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            there.set_cookie(COOKIE, self._token, max_age=30 * 86400, httponly=True, samesite="strict")
            return there
        if any(self._is_token(token) for token in _tokens(_headers(scope))):
            return None
        return _told(401, "this page needs its token: open the address that keisei web has printed")

    def _is_token(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode(), self._token.encode())


def _headers(scope: MutableMapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _from_here(scope: MutableMapping[str, Any], headers: dict[str, list[str]]) -> bool:
    """Return whether one of our pages asks, or the person; a browser that does not say is taken for them."""
    (site,) = headers.get("sec-fetch-site", ["none"])[:1]
    if site in ("none", "same-origin"):
        return True
    linked = headers.get("sec-fetch-mode") == ["navigate"] and headers.get("sec-fetch-dest") == ["document"]
    is_page = not scope["path"].startswith(("/api/", "/static/"))
    return linked and is_page and scope["method"] == "GET"


def _tokens(headers: dict[str, list[str]]) -> list[str]:
    """Return what a request offers as the token."""
    found = [text.removeprefix("Bearer ") for text in headers.get("authorization", [])]
    for text in headers.get("cookie", []):
        try:
            cookies = SimpleCookie(text)
        except CookieError:  # of another program on this host
            continue
        found += [cookies[COOKIE].value] if COOKIE in cookies else []
    return found


def _told(status: int, message: str) -> Response:
    return PlainTextResponse(f"{message}\n", status, {"cache-control": "no-store"})

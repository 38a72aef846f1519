"""Answers to requests as JSON, and what a request says, checked.

A request that cannot be answered raises Refusal, which becomes its status and {"error": one line}.
"""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from keisei.errors import UserError

MOST_BYTES = 64 * 1024  # of a request's body


class Refusal(Exception):  # noqa: N818  (not an error of ours)
    """An answer instead of the one asked for: status, one line, and facts beside it."""

    def __init__(self, status: int, message: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status, self.facts = status, dict(facts or {})


def as_json(value: Any) -> bytes:
    """Return compact JSON; NaN and infinity are bugs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response that no cache keeps."""
    headers = {"cache-control": "no-store"}
    return Response(as_json(value), status, headers, media_type="application/json")


def refused(_request: Request, error: Exception) -> Response:
    """Return the response for a Refusal, or for a mistake that another package has found."""
    if isinstance(error, Refusal):
        return json_response({**error.facts, "error": str(error)}, error.status)
    assert isinstance(error, UserError | ValueError)
    return json_response({"error": " ".join(str(error).split())}, 400)


async def read_json(request: Request) -> "Fields":
    """Return the object in a request's body."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BYTES:
            raise Refusal(413, f"the body has more than {MOST_BYTES} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "expected a JSON object") from error
    if not isinstance(body, dict):
        raise Refusal(400, f"expected a JSON object, got {type(body).__name__}")
    return Fields(body)


class Fields:
    """The fields of an object that a client sent; a wrong one is refused by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        """Return whether a field is given; null is not."""
        return self._values.get(name) is not None

    def text(self, name: str, *, most: int = 300) -> str:
        """Return a field that is a text."""
        value = self._values.get(name)
        if not isinstance(value, str) or len(value) > most:
            raise Refusal(400, f"{name}: expected a text of at most {most} characters")
        return value

    def one_of(self, name: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """Return a field that is one of some words."""
        value = self._values.get(name, default)
        if value not in choices:
            raise Refusal(400, f"{name}: expected {' or '.join(choices)}")
        return str(value)

    def whole(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Return a field that is a whole number."""
        value = self._values.get(name, default)
        if type(value) is not int or not least <= value <= most:
            raise Refusal(400, f"{name}: expected a whole number {least} to {most}")
        return value

    def number(self, name: str, least: float, most: float) -> float:
        """Return a field that is a number."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise Refusal(400, f"{name}: expected a number {least:g} to {most:g}")
        return float(value)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a field that is true or false."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise Refusal(400, f"{name}: expected true or false")
        return value

    def inner(self, name: str) -> "Fields":
        """Return a field that is an object."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise Refusal(400, f"{name}: expected an object")
        return Fields(value)


def query_number(request: Request, name: str, least: int, most: int, default: int) -> int:
    """Return a whole number from a request's query."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16 and least <= int(text) <= most):
        raise Refusal(400, f"{name}: expected a whole number {least} to {most}")
    return int(text)

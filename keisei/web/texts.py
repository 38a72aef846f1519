"""All texts of the pages in both languages: each view's own, and results and sides of keisei.language."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from keisei.language.speaker import CODES
from keisei.language.texts import TEXTS as SPOKEN
from keisei.shogi import Reason

_SHARED = ("black", "white", "win", "draw", "unfinished", *map(str, Reason))


def _all() -> Mapping[str, tuple[str, str]]:  # until every module is there
    found = {key: SPOKEN[key] for key in _SHARED}
    for name in ("texts_games", "texts_live", "texts_play", "texts_shell"):
        if find_spec(f"keisei.web.{name}"):
            found |= import_module(f"keisei.web.{name}").TEXTS
    return found


def texts_in(code: str) -> dict[str, str]:
    """Return every text in one language."""
    number = CODES.index(code)
    return {key: both[number] for key, both in _all().items()}

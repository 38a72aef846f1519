"""Shared by all tests: paths to the data, random games, and the perft limit for slow builds."""

import os
import random
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from hypothesis import HealthCheck, settings
from web_fixtures import browser, page, playwright, pytest_collection_modifyitems, site

from keisei.shogi import ShogiGame

__all__ = ["browser", "page", "playwright", "pytest_collection_modifyitems", "site"]  # of tests/web
collect_ignore_glob = [] if find_spec("playwright") else ["web/browser/*"]

DATA = Path(__file__).parent / "data"

# Whoever runs the tests in the background may have told children to ignore Ctrl-C, which many tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A sanitized build is about 20 times slower; its make target sets a lower limit.
PERFT_NODES = int(os.environ.get("KEISEI_TEST_NODES", "1000000000"))

settings.register_profile(
    "keisei", max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("keisei")


def table(name: str) -> list[list[str]]:
    """Return the rows of a tab-separated table in tests/data, without comments."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def random_play(seed: int, plies: int, sfen: str | None = None) -> Iterator[ShogiGame]:
    """Yield the same game object before each move of random play, and after the last."""
    choose = random.Random(seed)
    game = ShogiGame(sfen, max_moves=None, declaration="off")
    for _ in range(plies):
        yield game
        moves = game.legal_moves()
        if not moves:
            return
        game.push(choose.choice(moves))
    yield game

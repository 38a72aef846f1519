"""Shared by all tests: where the data are, random games, and how much perft a slow build should do."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings

from keisei.shogi import ShogiGame

DATA = Path(__file__).parent / "data"

# A sanitized build counts some 20 times slower; its make target sets a lower limit.
PERFT_NODES = int(os.environ.get("KEISEI_TEST_NODES", "1000000000"))

settings.register_profile(
    "keisei", max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("keisei")


def table(name: str) -> list[list[str]]:
    """The rows of a tab-separated table of tests/data, without its comments."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def random_play(seed: int, plies: int, sfen: str | None = None) -> Iterator[ShogiGame]:
    """Yield one game object before each move of random play, and after the last."""
    choose = random.Random(seed)
    game = ShogiGame(sfen, max_moves=None, declaration="off")
    for _ in range(plies):
        yield game
        moves = game.legal_moves()
        if not moves:
            return
        game.push(choose.choice(moves))
    yield game

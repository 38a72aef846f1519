"""Mate by continuous checks (詰み): is there one, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from keisei import _native
from keisei._native import Move
from keisei.shogi.shogi_game import ShogiGame


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """What a search for mate found.

    kind: "mate" (forced, and line is one way; it need not be the shortest), "nomate" (no sequence of checks
    forces one, for certain) or "unknown" (the limits came first, the proof that there is none would take too
    much room, or the mate would come after the game's maximum length).
    """

    kind: Literal["mate", "nomate", "unknown"]
    line: tuple[Move, ...] = ()


def find_mate(
    game: ShogiGame,
    *,
    max_nodes: int = 1_000_000,
    seconds: float | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> MateAnswer:
    """Return whether the side to move can force mate, giving check with every move.

    max_nodes: positions that are looked into, some 100 bytes each. should_stop: asked every 10 ms or so.
    The GIL is not held. A game that is over is a RulesError; the side to move need not have a king.
    """
    kind, line = _native.find_mate(game, max_nodes, seconds, should_stop)
    return MateAnswer(cast(Literal["mate", "nomate", "unknown"], kind), tuple(line))

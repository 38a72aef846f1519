"""Search for a mate by continuous checks (詰み)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from keisei import _native
from keisei._native import Move
from keisei.shogi.shogi_game import ShogiGame


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """The result of a mate search.

    kind: "mate" (forced; line is one way, not necessarily the shortest), "nomate" (proven: no sequence of
    checks forces mate) or "unknown" (a limit was reached, a proof that there is none would take too much
    memory, or the mate would come after the game's maximum length).
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

    max_nodes: positions to expand, about 100 bytes each. should_stop: called every 10 ms or so.
    The GIL is released. A finished game is a RulesError; the side to move need not have a king.
    """
    kind, line = _native.find_mate(game, max_nodes, seconds, should_stop)
    return MateAnswer(cast(Literal["mate", "nomate", "unknown"], kind), tuple(line))

"""What an engine's thinking ends with, and what it tells on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keisei.shogi import Move
from keisei.usi.protocol import Info


@dataclass(frozen=True, slots=True)
class Decision:
    """What to play, and the reply to ponder on, if any. move: a Move, or "resign"."""

    move: Move | str
    ponder: Move | None = None


Tell = Callable[[Sequence[Info]], None]

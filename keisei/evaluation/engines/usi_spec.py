"""The specification of a USI engine, and its syntax on the command line.

    usi:fairy-stockfish;depth=1;Skill Level=-20;name=fsf-s-20-d1

After the command, which is split as by a shell, come key=value parts. Keisei's own keys are lower case:
exactly one of nodes, depth, byoyomi and movetime (milliseconds); name; processes, the number of games at
once; memory, such as 512M, 2G or none; start and move, in seconds. All other keys are engine options. Keys
and values cannot contain a semicolon.
"""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from keisei.evaluation.engines.usi_process import DEFAULT_MEMORY_BYTES, START_SECONDS

MARGIN_SECONDS = 1.0  # what an engine may take beyond byoyomi or movetime before it loses on time
UNTIMED_SECONDS = 60.0  # what it may take for a fixed number of nodes or a fixed depth

_PREFIX = "usi:"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class LimitKind(StrEnum):
    """The kind of limit on a move."""

    NODES = "nodes"
    DEPTH = "depth"
    BYOYOMI = "byoyomi"
    MOVETIME = "movetime"


@dataclass(frozen=True, slots=True)
class Limit:
    """An engine's limit per move: nodes, plies or milliseconds."""

    kind: LimitKind
    amount: int

    def __post_init__(self) -> None:
        if self.amount < 1:
            raise ValueError(f"{self.kind} is {self.amount}, expected at least 1")

    @property
    def timed(self) -> bool:
        """Whether the amount is in milliseconds."""
        return self.kind in (LimitKind.BYOYOMI, LimitKind.MOVETIME)

    @property
    def go(self) -> str:
        """The command that starts a search."""
        if self.kind is LimitKind.BYOYOMI:
            return f"go btime 0 wtime 0 byoyomi {self.amount}"
        return f"go {self.kind} {self.amount}"


@dataclass(frozen=True, slots=True)
class UsiEngineSpec:
    """An engine and how it plays.

    command: the program and its arguments. options: set before the first game. start_seconds: the time limit
    for answering usi, and again for isready. move_seconds: the time limit per move; None is MARGIN_SECONDS
    beyond a timed limit, and UNTIMED_SECONDS for nodes and depth. memory_bytes: the address space limit of a
    process, or None. processes: games played at once, one per process.
    """

    name: str
    command: tuple[str, ...]
    limit: Limit
    options: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = START_SECONDS
    move_seconds: float | None = None
    memory_bytes: int | None = DEFAULT_MEMORY_BYTES
    processes: int = 1

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise ValueError("the engine has no command, expected a program")
        if not self.name.strip():
            raise ValueError("the engine's name is empty")
        for text in (self.name, *self.command, *self.options, *self.options.values()):
            if re.search(r"[\x00-\x1f\x7f]", text):  # an engine would read the rest as another command
                raise ValueError(f"{text!r} has a control character, expected one line of text")
        for name in self.options:
            if not name.strip():
                raise ValueError("an option has no name")
        for what, seconds in (("start", self.start_seconds), ("move", self.move_seconds)):
            if seconds is not None and not 0 < seconds < math.inf:
                raise ValueError(f"{what} is {seconds} seconds, expected more than 0")
        if self.limit.timed and self.move_seconds is not None:
            least = self.limit.amount / 1000
            if self.move_seconds < least:
                raise ValueError(
                    f"move is {self.move_seconds:g} seconds, expected at least {least:g} ({self.limit.kind})"
                )
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise ValueError(f"memory is {self.memory_bytes} bytes, expected at least 1")
        if self.processes < 1:
            raise ValueError(f"processes is {self.processes}, expected at least 1")

    @property
    def answer_seconds(self) -> float:
        """The time after which an engine loses the game."""
        if self.move_seconds is not None:
            return self.move_seconds
        return self.limit.amount / 1000 + MARGIN_SECONDS if self.limit.timed else UNTIMED_SECONDS

    @property
    def identity(self) -> str:
        """What determines the engine's play: command, limit and options, as parse_spec reads them."""
        options = [f"{name}={value}" for name, value in sorted(self.options.items())]
        return ";".join(
            [_PREFIX + shlex.join(self.command), f"{self.limit.kind}={self.limit.amount}", *options]
        )


def parse_spec(text: str) -> UsiEngineSpec:
    """Return the engine that a text such as "usi:engine --flag;nodes=1000;Threads=1" describes."""
    command, parts = _split(text)
    limits = [kind for kind in LimitKind if kind in parts]
    if len(limits) != 1:
        given = " and ".join(limits) or "no limit"
        raise ValueError(f"{text!r} has {given}, expected one of {', '.join(LimitKind)}")
    kind = limits[0]
    limit = Limit(kind, _whole(kind, parts.pop(kind)))
    name = parts.pop("name", f"{PurePath(command[0]).name}-{kind}{limit.amount}")
    settings: dict[str, Any] = {}
    for key, (setting, read) in _SETTINGS.items():
        if key in parts:
            settings[setting] = read(key, parts.pop(key))
    return UsiEngineSpec(name, command, limit, parts, **settings)


def _split(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command, and the parts after it by key."""
    if not text.startswith(_PREFIX):
        raise ValueError(f"{text!r} is not a USI engine, expected {_PREFIX}COMMAND;KEY=VALUE…")
    first, *rest = text.removeprefix(_PREFIX).split(";")
    try:
        command = tuple(shlex.split(first))
    except ValueError as error:
        raise ValueError(f"cannot parse the command {first!r}: {str(error).lower()}") from error
    if not command:
        raise ValueError(f"{text!r} has no command, expected {_PREFIX}COMMAND;KEY=VALUE…")
    parts: dict[str, str] = {}
    for part in rest:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key or not equals:
            raise ValueError(f"cannot parse {part!r} in {text!r}, expected KEY=VALUE")
        if key in parts:
            raise ValueError(f"{text!r} has {key} twice")
        parts[key] = value
    return command, parts


def _whole(key: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(f"{key} is {text!r}, expected a whole number")
    return int(text)


def _seconds(key: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise ValueError(f"{key} is {text!r}, expected a number of seconds")
    return float(text)


def _bytes(key: str, text: str) -> int | None:
    if text == "none":
        return None
    found = re.fullmatch(r"([0-9]{1,9})([KMGT]?)", text)
    if found is None:
        raise ValueError(f"{key} is {text!r}, expected a size such as 512M or 2G, or none")
    return int(found[1]) * _UNITS[found[2]]


_SETTINGS = {
    "processes": ("processes", _whole),
    "memory": ("memory_bytes", _bytes),
    "start": ("start_seconds", _seconds),
    "move": ("move_seconds", _seconds),
}

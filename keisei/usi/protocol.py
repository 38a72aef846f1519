"""The USI protocol as text: lines to commands, and answers to lines. No I/O, no network, no rules.

Input: one line from a GUI, without its end. Output: a frozen command, or a ProtocolError that says what was
expected. Legal moves and existing options are checked elsewhere. Times are milliseconds, as in the protocol.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from keisei.shogi import START_SFEN

MAX_NUMBER = 10**12  # 30 years in milliseconds; more is a mistake
MAX_CP = 30_000  # GUIs take anything more for a mate

# The constant that shogi programs and GUIs share: a win rate p is 600 ln(p / (1 - p)) centipawns.
CP_SCALE = 600.0

_SHOWN = 60  # characters of a bad line that an error quotes


class ProtocolError(ValueError):
    """A line that is not a valid command; the message says what was expected and what was given."""


@dataclass(frozen=True, slots=True)
class Usi:
    """A request for name and options."""


@dataclass(frozen=True, slots=True)
class IsReady:
    """A request to load what takes time, then answer readyok."""


@dataclass(frozen=True, slots=True)
class SetOption:
    """A new value for an option; None for one without a value, such as a button."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class NewGame:
    """The start of a new game, to which the next position belongs."""


@dataclass(frozen=True, slots=True)
class SetPosition:
    """A start position and the moves from there, both unchecked."""

    sfen: str
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on thinking; None where not given.

    clocks, increments: (Black's, White's) milliseconds. byoyomi, movetime: milliseconds. nodes: visits.
    """

    clocks: tuple[int | None, int | None] = (None, None)
    increments: tuple[int | None, int | None] = (None, None)
    byoyomi: int | None = None
    movetime: int | None = None
    nodes: int | None = None
    depth: int | None = None
    infinite: bool = False


@dataclass(frozen=True, slots=True)
class Go:
    """A request to think and answer with a move; if ponder is set, not before ponderhit or stop."""

    limits: Limits = field(default_factory=Limits)
    ponder: bool = False


@dataclass(frozen=True, slots=True)
class GoMate:
    """A request to look for a forced mate; milliseconds is None if there is no limit."""

    milliseconds: int | None


@dataclass(frozen=True, slots=True)
class Stop:
    """A request to answer now."""


@dataclass(frozen=True, slots=True)
class PonderHit:
    """The end of pondering: the expected move was played, the clock runs. limits: replace those of go."""

    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class GameOver:
    """The end of a game. result: win, lose or draw for the engine; some GUIs do not say."""

    result: str | None


@dataclass(frozen=True, slots=True)
class Quit:
    """A request to exit."""


@dataclass(frozen=True, slots=True)
class Debug:
    """A request to show position and options; not part of USI, but most engines have it under the name d."""


Command = (
    Usi
    | IsReady
    | SetOption
    | NewGame
    | SetPosition
    | Go
    | GoMate
    | Stop
    | PonderHit
    | GameOver
    | Quit
    | Debug
)

_PLAIN: dict[str, Command] = {
    "usi": Usi(),
    "isready": IsReady(),
    "usinewgame": NewGame(),
    "stop": Stop(),
    "quit": Quit(),
    "d": Debug(),
}


def parse(line: str) -> Command | None:
    """Parse a line into a command; None if the line is blank."""
    words = line.split()
    if not words:
        return None
    name, arguments = words[0], words[1:]
    if name in _PLAIN:
        if arguments:
            raise ProtocolError(f"{name} takes no arguments, given {shown(' '.join(arguments))}")
        return _PLAIN[name]
    if name == "setoption":
        return _set_option(line)
    if name == "position":
        return _position(arguments)
    if name == "go":
        return _go(arguments)
    if name == "ponderhit":
        return PonderHit(_limits(name, arguments) if arguments else None)
    if name == "gameover":
        return _game_over(arguments)
    raise ProtocolError(f"unknown command {shown(line)}")


def shown(text: str) -> str:
    """Return untrusted text, shortened, as a quoted line of ASCII."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _set_option(line: str) -> SetOption:
    words = line.split(None, 2)
    rest = words[2].strip() if words[1:2] == ["name"] and len(words) == 3 else ""
    name, *value = re.split(r"(?:^|\s+)value(?:\s+|$)", rest, maxsplit=1)
    if not name:
        raise ProtocolError(f"expected setoption name NAME [value VALUE], given {shown(line)}")
    return SetOption(name, value[0] if value else None)


def _position(words: list[str]) -> SetPosition:
    cut = words.index("moves") if "moves" in words else len(words)
    start, moves = words[:cut], words[cut + 1 :]
    if start == ["startpos"]:
        return SetPosition(START_SFEN, tuple(moves))
    if start[:1] == ["sfen"] and len(start) > 1:
        return SetPosition(" ".join(start[1:]), tuple(moves))
    raise ProtocolError(
        f"expected position startpos|sfen SFEN [moves ...], given {shown(' '.join(['position', *words]))}"
    )


def _go(words: list[str]) -> Go | GoMate:
    if words[:1] == ["mate"]:
        if words[1:] == ["infinite"]:
            return GoMate(None)
        if len(words) != 2:
            raise ProtocolError(
                f"expected go mate MILLISECONDS|infinite, given {shown(' '.join(['go', *words]))}"
            )
        return GoMate(_number("go mate", words[1], 0))
    ponder = words.count("ponder")
    if ponder > 1:
        raise ProtocolError("go: ponder is given twice")
    return Go(_limits("go", [word for word in words if word != "ponder"]), bool(ponder))


# Each word that takes a number, and its minimum. A clock may have run below zero.
_NUMBERS = {
    "btime": -MAX_NUMBER,
    "wtime": -MAX_NUMBER,
    "binc": 0,
    "winc": 0,
    "byoyomi": 0,
    "movetime": 0,
    "nodes": 1,
    "depth": 1,
}


def _limits(command: str, words: list[str]) -> Limits:
    given: dict[str, int] = {}
    infinite = False
    rest = iter(words)
    for word in rest:
        if word in given or (infinite and word == "infinite"):
            raise ProtocolError(f"{command}: {word} is given twice")
        if word == "infinite":
            infinite = True
        elif word in _NUMBERS:
            number = next(rest, None)
            if number is None:
                raise ProtocolError(f"{command} {word}: expected a number, given nothing")
            given[word] = _number(f"{command} {word}", number, _NUMBERS[word])
        else:
            expected = ", ".join([*_NUMBERS, "infinite"])
            raise ProtocolError(f"{command}: expected one of {expected}, given {shown(word)}")
    return Limits(
        clocks=(given.get("btime"), given.get("wtime")),
        increments=(given.get("binc"), given.get("winc")),
        byoyomi=given.get("byoyomi"),
        movetime=given.get("movetime"),
        nodes=given.get("nodes"),
        depth=given.get("depth"),
        infinite=infinite,
    )


def _number(where: str, text: str, least: int) -> int:
    # Longer texts are not even parsed: that takes quadratic time.
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else None
    if number is None or not least <= number <= MAX_NUMBER:
        raise ProtocolError(f"{where}: expected a whole number {least} to {MAX_NUMBER}, given {shown(text)}")
    return number


def _game_over(words: list[str]) -> GameOver:
    if words not in ([], ["win"], ["lose"], ["draw"]):
        raise ProtocolError(f"expected gameover win|lose|draw, given {shown(' '.join(words))}")
    return GameOver(words[0] if words else None)


# ---- answers


def id_lines(name: str, author: str) -> list[str]:
    """Return the lines that identify the engine."""
    return [f"id name {name}", f"id author {author}"]


def check_line(name: str, default: bool) -> str:
    """Return the declaration of an on/off option."""
    return f"option name {name} type check default {str(default).lower()}"


def spin_line(name: str, default: int, least: int, most: int) -> str:
    """Return the declaration of a whole-number option."""
    return f"option name {name} type spin default {default} min {least} max {most}"


def string_line(name: str, default: str) -> str:
    """Return the declaration of a text option."""
    return f"option name {name} type string default {default or '<empty>'}"


def combo_line(name: str, default: str, choices: Sequence[str]) -> str:
    """Return the declaration of an option with a choice of words."""
    return f"option name {name} type combo default {default} {' '.join(f'var {word}' for word in choices)}"


def centipawns(value: float) -> int:
    """Return the score for a value, -1 (lost) to 1 (won): 600 ln(p / (1 - p)), p = (value + 1) / 2."""
    win_rate = min(max((value + 1) / 2, 0.0), 1.0)
    if win_rate in (0.0, 1.0):
        return MAX_CP if win_rate else -MAX_CP
    return max(-MAX_CP, min(MAX_CP, round(CP_SCALE * math.log(win_rate / (1 - win_rate)))))


@dataclass(frozen=True, slots=True)
class Info:
    """What the engine reports on a line of play, from the side to move's point of view.

    value: -1 to 1. mate: plies to a proven win, negative for a proven loss; None if neither is proven.
    hashfull: how full the tree is, in thousandths. multipv: its rank among several lines, None if only one
    was requested. kept: of the nodes, those of an earlier search. line_visits: of this line's first move.
    """

    depth: int
    seldepth: int
    value: float
    mate: int | None
    nodes: int
    seconds: float
    hashfull: int
    pv: Sequence[object]
    multipv: int | None = None
    kept: int = 0
    line_visits: int = 0


def info_line(info: Info) -> str:
    """Return the report on a line of play."""
    score = f"cp {centipawns(info.value)}" if info.mate is None else f"mate {info.mate}"
    words = [f"info depth {info.depth} seldepth {info.seldepth}"]
    if info.multipv is not None:
        words.append(f"multipv {info.multipv}")
    words.append(
        f"score {score} nodes {info.nodes} nps {round((info.nodes - info.kept) / max(info.seconds, 1e-3))}"
    )
    words.append(f"time {round(info.seconds * 1000)} hashfull {info.hashfull}")
    words.append(f"pv {' '.join(map(str, info.pv))}")
    return " ".join(words)


def error_line(message: str) -> str:
    """Return the line that reports an error; GUIs show it."""
    return string_info_line(f"error {message}")


def string_info_line(message: str) -> str:
    """Return a line of free text for the GUI to show."""
    return "info string " + " ".join(message.encode("ascii", "backslashreplace").decode().split())


def bestmove_line(move: object, ponder: object | None = None) -> str:
    """Return the answer to go: a move, resign or win, and the reply to ponder on, if any."""
    return f"bestmove {move}" if ponder is None else f"bestmove {move} ponder {ponder}"


def checkmate_line(status: str, moves: Sequence[object] = ()) -> str:
    """Return the answer to go mate: the moves of a mate, or a word such as nomate or timeout."""
    return f"checkmate {' '.join(map(str, moves)) if moves else status}"

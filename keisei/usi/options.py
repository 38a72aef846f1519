"""The options that a GUI can set: how they are declared, and how their values are parsed.

An unknown name or a bad value raises OptionError; options are frozen, so nothing has changed then.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from keisei.errors import UserError
from keisei.usi.protocol import check_line, combo_line, shown, spin_line, string_line


class OptionError(UserError, ValueError):
    """An unknown option, or an invalid value for one."""


@dataclass(frozen=True, slots=True)
class Options:
    """The engine's settings.

    ponder: name a reply to ponder on. hash_mb: memory for the tree. multipv: lines of play to report.
    visits: most visits of the root, 0 for no limit. policy: play the network's most probable move at once.
    temperature: 0 plays the best move; above 0, also others, by visits (by probability if policy is set).
    threads: for the network. batch: positions that the network sees at once. network_delay: milliseconds of
    each clock held in reserve. max_moves: the length at which a game is a draw, 0 for none. entering_king:
    27, 24, try or off. resign_value: win rate in percent below which to resign.
    """

    ponder: bool = False
    hash_mb: int = 256
    multipv: int = 1
    visits: int = 0
    policy: bool = False
    temperature: float = 0.0
    threads: int = 1
    batch: int = 8
    network_delay: int = 120
    max_moves: int = 0
    entering_king: str = "27"
    resign_value: int = 0


@dataclass(frozen=True, slots=True)
class _Check:
    field: str

    def line(self, name: str, default: bool) -> str:
        return check_line(name, default)

    def read(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return text == "true"


@dataclass(frozen=True, slots=True)
class _Spin:
    field: str
    least: int
    most: int

    def line(self, name: str, default: int) -> str:
        return spin_line(name, default, self.least, self.most)

    def read(self, text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not self.least <= int(text) <= self.most:
            raise ValueError(f"a whole number {self.least} to {self.most}")
        return int(text)


@dataclass(frozen=True, slots=True)
class _DecimalOption:
    """A decimal number. USI has none, so the GUI shows a text."""

    field: str
    most: float

    def line(self, name: str, default: float) -> str:
        return string_line(name, f"{default:g}")

    def read(self, text: str) -> float:
        try:
            number = float(text) if text.isascii() and len(text) <= 20 else math.nan
        except ValueError:
            number = math.nan
        if not 0 <= number <= self.most:
            raise ValueError(f"a number 0 to {self.most:g}")
        return number


@dataclass(frozen=True, slots=True)
class _Combo:
    field: str
    choices: tuple[str, ...]

    def line(self, name: str, default: str) -> str:
        return combo_line(name, default, self.choices)

    def read(self, text: str) -> str:
        if text not in self.choices:
            raise ValueError(" or ".join(self.choices))
        return text


_KINDS: dict[str, _Check | _Spin | _DecimalOption | _Combo] = {
    "USI_Ponder": _Check("ponder"),
    "USI_Hash": _Spin("hash_mb", 1, 65536),
    "MultiPV": _Spin("multipv", 1, 600),
    "Visits": _Spin("visits", 0, 10**9),
    "Policy": _Check("policy"),
    "Temperature": _DecimalOption("temperature", 100.0),
    "Threads": _Spin("threads", 1, 256),
    "Batch": _Spin("batch", 1, 1024),
    "NetworkDelay": _Spin("network_delay", 0, 10_000),
    "MaxMoves": _Spin("max_moves", 0, 100_000),
    "EnteringKingRule": _Combo("entering_king", ("27", "24", "try", "off")),
    "ResignValue": _Spin("resign_value", 0, 100),
}


OPTION_NAMES = tuple(_KINDS)


def option_lines(options: Options, names: Collection[str] = OPTION_NAMES) -> list[str]:
    """Return the declarations of the options with these names, with these values as defaults."""
    return [kind.line(name, getattr(options, kind.field)) for name, kind in _KINDS.items() if name in names]


def with_option(options: Options, name: str, value: str | None) -> Options:
    """Return the options with one of them changed."""
    if name not in _KINDS:
        raise OptionError(f"unknown option {shown(name)}, expected one of {', '.join(_KINDS)}")
    kind = _KINDS[name]
    try:
        read = kind.read("" if value is None else value)
    except ValueError as expected:
        given = "nothing" if value is None else shown(value)
        raise OptionError(f"option {name}: expected {expected}, given {given}") from expected
    return Options(**{**asdict(options), kind.field: read})


def options_from(values: Mapping[str, str], names: Collection[str] = OPTION_NAMES) -> Options:
    """Return the options with these values, by the names that a GUI sees: some of `names`."""
    options = Options()
    for name, value in values.items():
        if name not in names:
            raise OptionError(f"unknown option {shown(name)}, expected one of {', '.join(names)}")
        options = with_option(options, name, value)
    return options

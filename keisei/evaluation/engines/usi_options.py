"""The options that a USI engine announces, and the check of requested values."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# By the protocol every engine has these, announced or not.
_IMPLIED = ("USI_Ponder", "USI_Hash")


@dataclass(frozen=True, slots=True)
class UsiOption:
    """One option of an engine. kind: check, spin, combo, button, string or filename. choices: of a combo."""

    name: str
    kind: str
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()


def read_option(line: str) -> UsiOption | None:
    """Return the option that an `option name … type …` line announces, None if malformed."""
    found = re.fullmatch(r"option\s+name\s+(.+?)\s+type\s+(\S+)(.*)", line)
    if found is None:
        return None
    name, kind, rest = found.groups()
    if kind == "spin":
        bounds = dict(re.findall(r"\b(min|max)\s+(-?\d+)(?!\S)", rest, re.ASCII))
        least, most = (int(bounds[word]) if word in bounds else None for word in ("min", "max"))
        return UsiOption(name, kind, least, most)
    if kind == "combo":
        return UsiOption(name, kind, choices=tuple(text.strip() for text in re.split(r"\svar\s", rest)[1:]))
    return UsiOption(name, kind)


def setoption_lines(wanted: Mapping[str, str], announced: Iterable[UsiOption]) -> list[str]:
    """Return the commands that set these options; ValueError if the engine has no such option or value."""
    known = {name: UsiOption(name, "string") for name in _IMPLIED} | {each.name: each for each in announced}
    lines = []
    for name, value in wanted.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ValueError(f"unknown option {name!r}; the closest is {near!r}")
        option = known[name]
        _check(option, value)
        if option.kind == "button":
            lines.append(f"setoption name {name}")
        else:
            lines.append(f"setoption name {name} value {value or '<empty>'}")
    return lines


def _check(option: UsiOption, value: str) -> None:
    expected = None
    if option.kind == "check" and value not in ("true", "false"):
        expected = "true or false"
    elif option.kind == "button" and value:
        expected = "no value: it is a button"
    elif option.kind == "combo" and value not in option.choices:
        expected = f"one of {', '.join(option.choices)}"
    elif option.kind == "spin":
        number = int(value) if re.fullmatch(r"[+-]?\d{1,18}", value, re.ASCII) else None
        low, high = option.least, option.most
        if number is None or (low is not None and number < low) or (high is not None and number > high):
            bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
            expected = ", ".join(["a whole number", *bounds])
    if expected is not None:
        raise ValueError(f"option {option.name!r} is {value!r}, expected {expected}")

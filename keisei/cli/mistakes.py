"""What the command line says about a wrong option or argument: what came, and what was expected.

Takes the errors of typer, which differ between its versions; returns one line in our own words where the
error tells enough, otherwise in typer's.
"""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

_SETTINGS = "; settings are given without hyphens, {}: keisei config --describe lists them"
_EXPECTED = {
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {ge:.12g}",
    "less_than_equal": "at most {le:.12g}",
}
_TAKE_SETTINGS = ("train", "doctor", "profile", "config")


def explain(mistake: Any) -> str:
    """Return the line for an error of typer."""
    if getattr(mistake, "option_name", None) is not None and hasattr(mistake, "possibilities"):
        return _unknown_option(mistake)
    parameter = getattr(mistake, "param", None)
    problems = getattr(mistake.__cause__, "errors", None)  # of pydantic, which newer versions of typer use
    if parameter is not None and callable(problems):
        return f"{_name(parameter)} is {_expectation(problems()[0])}"
    text = str(mistake.format_message())
    if text.startswith("No such command"):
        wrong, _, near = text.rstrip(".?").partition(". Did you mean ")
        nearest = f"; nearest is {near.replace(chr(39), '')}" if near else ": keisei --help lists them"
        return wrong + nearest
    return text.removeprefix("Invalid value: ")


def one_line(text: str) -> str:
    """Return a text with escapes for what would break the line or steer the terminal, as in a file's name."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _unknown_option(mistake: Any) -> str:
    """Return the nearest option, or what to do where a setting was given as one: `keisei train --lr 0.1`."""
    text = f"No such option: {mistake.option_name}"
    known = {option.lstrip("-"): option for option in mistake.possibilities or ()}
    if near := get_close_matches(mistake.option_name.lstrip("-"), known, n=1):
        return f"{text}; nearest is {known[near[0]]}"
    context = mistake.ctx
    if context is None or context.info_name not in _TAKE_SETTINGS:
        return text
    return text + _SETTINGS.format(_as_setting(mistake.option_name.lstrip("-").replace("-", "_")))


def _as_setting(name: str) -> str:
    """Return how to give the setting that an option seems to mean: `training.learning_rate=…`."""
    # Only now: pydantic takes longer to load than the commands that have no settings.
    schema, errors = import_module("keisei.config.schema"), import_module("keisei.config.config_errors")
    near = errors.nearest(schema.AppConfig, name)
    return "training.games=32" if near is None else f"{near}=…"


def _name(parameter: Any) -> str:
    """Return an option as it is typed, or an argument as the help calls it."""
    name = str(parameter.opts[0])
    return name if name.startswith("-") else str(parameter.metavar or name)


def _expectation(problem: Any) -> str:
    """Return the value and what was expected instead: `x, expected a whole number`."""
    came = str(problem["input"]) or "''"
    reason = str(problem.get("ctx", {}).get("error", "")).rstrip(".")
    if reason:  # of a choice, or of Python: a null byte in a file's name
        choices = reason.partition(" is not ")[2]
        return f"{came}, expected {choices.replace(chr(39), '')}" if choices else f"{came}: {reason}"
    expected = _EXPECTED.get(problem["type"], "{msg}")
    return f"{came}, expected {expected.format(msg=problem['msg'], **problem.get('ctx', {}))}"

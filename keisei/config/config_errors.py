"""ConfigError: everything that is wrong with a config, all at once and in the schema's own words.

Takes a model and the data it rejected; returns one line per problem, by dotted path. pydantic looks for
contradictions only if every field is valid; here the bad values are removed and the rest is tried again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from keisei.config.fields import allowed, as_text, older_names, room_of, rooms, settings
from keisei.config.older_names import hint
from keisei.errors import UserError

CONTRADICTION = "contradiction"
_SOMEWHAT_LIKE = 0.9  # of 2; a random word reaches 0.8 with one of the settings
KeyPath = tuple[str, ...]


class ConfigError(UserError, ValueError):
    """A config that cannot be used; `problems`, and the error's text, have one line per reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)

    @property
    def lines(self) -> tuple[str, ...]:
        """What is reported, a line for each problem."""
        return self.problems


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Values that are allowed singly but not together: fields of one room, and what is wrong with them."""

    fields: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class _Problem:
    """A line of the error, and the fields to leave out when the rest is checked again."""

    line: str
    blamed: tuple[KeyPath, ...]


def problems(model: type[BaseModel], data: object) -> list[str]:
    """Return one line for everything in the data that a model rejects."""
    lines: list[str] = []
    seen: set[KeyPath] = set()
    while True:
        try:
            model.model_validate(data)
            return lines
        except ValidationError as error:
            found = [problem for details in error.errors() for problem in _read(model, data, details)]
        # A problem with a value that was already rejected does not count: the default stands in for it now.
        lines += dict.fromkeys(problem.line for problem in found if not seen.intersection(problem.blamed))
        blamed = {path for problem in found for path in problem.blamed} - seen
        if not blamed or not isinstance(data, Mapping):
            return lines
        seen |= blamed
        data = _without(data, blamed)


def unknown(model: type[BaseModel], path: str, section: Mapping[str, Any]) -> str:
    """Return the line for an unknown key: its name today, or the nearest key. section: what it stands in."""
    older = hint(path, section)
    if older is not None:
        return older
    row = next((row for row in settings(model) if path in (row.path, *row.older_names)), None)
    if row is not None:
        *parents, name = path.split(".")
        return f"{path}: a key has no dots; write {name} in the section {'.'.join(parents)}"
    near = nearest(model, path)
    say = f"nearest is {near}" if near else "keisei config --describe lists them"
    return f"{path}: unknown key; {say}"


def nearest(model: type[BaseModel], path: str) -> str | None:
    """Return the key that is most like an unknown one, if any is."""
    known = [name for row in settings(model) for name in (row.path, *row.older_names)]
    known += [name for name, _ in rooms(model) if name.count(".") == path.count(".")]
    best = max(known, key=lambda name: _likeness(path, name))
    return None if _likeness(path, best) < _SOMEWHAT_LIKE else best


def find(model: type[BaseModel], name: str) -> tuple[str, FieldInfo] | None:
    """Return a model's field by its name or an older name, along with its current name."""
    for real, field in model.model_fields.items():
        if name == real or name in older_names(real, field):
            return real, field
    return None


def _likeness(path: str, name: str) -> float:
    # With the section missing or wrong, the key still counts: `learning_rate`, `model.learning_rate`.
    key, other = path.rsplit(".", 1)[-1], name.rsplit(".", 1)[-1]
    if len(key) > 1 and key == "".join(word[0] for word in other.split("_")):  # lr is the learning_rate
        return 1 + SequenceMatcher(None, path, name).ratio()
    return SequenceMatcher(None, key, other).ratio() + SequenceMatcher(None, path, name).ratio()


def _read(model: type[BaseModel], data: object, error: ErrorDetails) -> Iterator[_Problem]:
    """Translate a pydantic error, whose location reaches inside fields that are lists or choices."""
    place: list[str] = []
    room: type[BaseModel] | None = model
    field: FieldInfo | None = None
    unknown_key = error["type"] == "extra_forbidden"
    for step in error["loc"][:-1] if unknown_key else error["loc"]:
        found = find(room, str(step)) if room is not None else None
        if found is None:
            break
        place.append(str(step))
        field = found[1]
        room = room_of(field)
    here = ".".join(place)
    if error["type"] == CONTRADICTION:
        for contradiction in error["ctx"]["contradictions"]:
            blamed = tuple((*place, name) for name in contradiction.fields)
            yield _Problem(f"{here}: {contradiction.message}" if here else contradiction.message, blamed)
    elif unknown_key:
        key = str(error["loc"][-1])
        path = ".".join([*place, key])
        twin = find(room, key) if room is not None else None
        if twin is not None:
            line = f"{path}: an older name of {'.'.join([*place, twin[0]])}, which is also given"
        else:
            line = unknown(model, path, _value(data, place))
        yield _Problem(line, ((*place, key),))
    elif field is None or room is not None:
        yield _Problem(
            f"{here or 'config'}: given {as_text(error['input'])}, expected a section", (tuple(place),)
        )
    else:
        given = as_text(_value(data, place))
        yield _Problem(f"{here}: given {given}, expected {allowed(field)}", (tuple(place),))


def _value(data: Any, place: list[str]) -> Any:
    for step in place:
        data = data[step]
    return data


def _without(data: Mapping[Any, Any], blamed: set[KeyPath], place: KeyPath = ()) -> dict[Any, Any]:
    kept = {}
    for key, value in data.items():
        here = (*place, key)
        if here not in blamed:
            kept[key] = _without(value, blamed, here) if isinstance(value, Mapping) else value
    return kept

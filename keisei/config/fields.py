"""The settings of a schema as rows: path, default, allowed values, description.

Takes a pydantic model whose fields are values or further models (rooms). Produces rows for the docs, and the
words errors use for what they expected. All of it is read from the models; nothing is written twice.
"""

import inspect
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class Like:
    """In the annotation of a text with a pattern: examples, which say more than the pattern."""

    examples: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A field that holds a value; `path` is dotted, `older_names` are other paths to the same field."""

    path: str
    default: object
    allowed: str
    description: str
    older_names: tuple[str, ...]


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[Setting]:
    """Yield every setting of a model and its rooms, in schema order."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        room = room_of(field)
        if room is not None:
            yield from settings(room, f"{path}.")
        else:
            older = tuple(f"{prefix}{older}" for older in older_names(name, field))
            yield Setting(
                path,
                field.get_default(),
                allowed(field),
                field.description or "",
                older,
            )


def rooms(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the dotted path and the model of every room in a model."""
    for name, field in model.model_fields.items():
        room = room_of(field)
        if room is not None:
            yield f"{prefix}{name}", room
            yield from rooms(room, f"{prefix}{name}.")


def room_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that is a room, or None for a setting."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def older_names(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Return the other names that a field accepts."""
    alias = field.validation_alias
    if not isinstance(alias, AliasChoices):
        return ()
    return tuple(choice for choice in alias.choices if isinstance(choice, str) and choice != name)


def allowed(field: FieldInfo) -> str:
    """Describe what a field accepts: `a whole number >= 2, <= 100000`."""
    return _words(field.annotation, field.metadata)


def kinds(annotation: Any) -> set[type]:
    """Return the plain types in a field's annotation; a Literal counts as the type of its choices."""
    origin = get_origin(annotation)
    if origin is Literal:
        return {type(choice) for choice in get_args(annotation)}
    if origin is Annotated:
        return kinds(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return set().union(*(kinds(part) for part in get_args(annotation)))
    return {origin or annotation}


def _words(annotation: Any, metadata: Sequence[Any]) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _either(_choices(annotation, ()))
    if origin is Annotated:
        inner = [limit for extra in parts[1:] for limit in getattr(extra, "metadata", [extra])]
        return _words(parts[0], [*metadata, *inner])
    if origin in (Union, types.UnionType):
        return _either([words for part in parts for words in _choices(part, metadata)])
    if origin is dict:
        return "a mapping like {width: 64}"
    if origin is list:
        return f"a list of {_words(parts[0], ())}"
    names: dict[Any, str] = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        types.NoneType: "null",
    }
    if any(isinstance(limit, Like) for limit in metadata):  # instead of its pattern
        metadata = [limit for limit in metadata if not hasattr(limit, "pattern")]
    limits = [_limit(limit) for limit in metadata] if annotation in (int, float, str) else []
    return f"{names[annotation]} {', '.join(limits)}".rstrip()


def _choices(part: Any, metadata: Sequence[Any]) -> list[str]:
    if get_origin(part) is Literal:
        return [str(choice) for choice in get_args(part)]
    return [_words(part, metadata)]


def _either(choices: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))


def _limit(limit: Any) -> str:
    match limit:
        case annotated_types.Ge(ge=bound):
            return f">= {bound}"
        case annotated_types.Gt(gt=bound):
            return f"> {bound}"
        case annotated_types.Le(le=bound):
            return f"<= {bound}"
        case annotated_types.Lt(lt=bound):
            return f"< {bound}"
        case annotated_types.MultipleOf(multiple_of=factor):
            return f"multiple of {factor}"
        case annotated_types.MinLen(min_length=length):
            return f"of length >= {length}"
        case Like(examples=examples):
            return f"like {examples}"
        case _:
            return f"like {limit.pattern}"


def as_text(value: object) -> str:
    """Return a value as it would look in YAML, on one line and not too long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        text = f"[{', '.join(map(as_text, value))}]"
    elif isinstance(value, dict):
        text = f"{{{', '.join(f'{key}: {as_text(one)}' for key, one in value.items())}}}"
    elif isinstance(value, str) and value and value.isprintable() and value == value.strip():
        text = value
    else:
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def reference(model: type[BaseModel]) -> str:
    """Return all settings of a model as Markdown: a heading, a sentence and a table for each room."""
    return "\n".join(
        f"### {path}\n\n{inspect.getdoc(room)}\n\n{_table(path, room)}" for path, room in rooms(model)
    )


def _table(path: str, room: type[BaseModel]) -> str:
    """Return a room's own settings as a Markdown table, aligned for a terminal."""
    rows = [("setting", "default", "allowed", "what it is")]
    rows += [
        (f"`{row.path}`", f"`{as_text(row.default)}`", row.allowed.replace("|", r"\|"), _what_it_is(row))
        for row in settings(room, f"{path}.")
        if row.path.rpartition(".")[0] == path
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3]))
    lines = (" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)


def _what_it_is(row: Setting) -> str:
    older = ", ".join(f"`{path.rpartition('.')[2]}`" for path in row.older_names)
    return f"{row.description} (older name: {older})" if older else row.description

"""Configs from YAML files and the command line, and back: load_config, to_yaml, differences.

A file has only what differs from the defaults, and an override (`training.learning_rate=0.001`) changes the
file's value. YAML gives the structure; the field decides what a plain word means, so `declaration: off` is
not a boolean, `learning_rate: 1e-3` is a number and `name: 2026-01-01` is text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from keisei.config.config_errors import ConfigError, find, problems, unknown
from keisei.config.fields import as_text, room_of, settings
from keisei.config.older_names import is_constant, translated
from keisei.config.schema import AppConfig

_LARGEST = 1 << 20  # bytes of a config
_FOLDER = Path(__file__).parent / "presets"
SHIPPED = tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))

# Settings and rooms that cannot change when a run is resumed. The weights fit only one network, and the games
# in a checkpoint continue with their own seed and rules. Everything else may change, even what affects the
# arithmetic (run.device, threads, numerics): the run continues, but not bit for bit.
UNSAFE_TO_CHANGE = frozenset(
    {
        "env.declaration",
        "env.max_moves",
        "env.random_plies",
        "env.scattered_start_share",
        "model",
        "run.seed",
        "training.games",
    }
)

_TAG = "tag:yaml.org,2002:"
_NULLS = ("", "~", "null", "Null", "NULL")
_SCALARS = {
    f"{_TAG}{kind}" for kind in ("str", "null", "bool", "int", "float", "timestamp", "merge", "value")
}


def load_config(source: str | Path | None = None, overrides: Sequence[str] = ()) -> AppConfig:
    """Return the config from a file, a shipped config's name or the defaults, with overrides applied.

    load_config("tiny", ["training.learning_rate=1e-3", "evaluation.opponents=[random]"])
    """
    wrong: list[str] = []
    given: dict[str, Any] = {}
    if source is not None:
        given = translated(_today(AppConfig, _read_file(source), "", wrong))
    return _checked(given, overrides, wrong)


def override(config: AppConfig, overrides: Sequence[str]) -> AppConfig:
    """Return a copy of a config with overrides applied, as in load_config."""
    return _checked(config.model_dump(), overrides, [])


def _checked(given: dict[str, Any], overrides: Sequence[str], wrong: list[str]) -> AppConfig:
    given = _merged(given, _read_overrides(overrides, wrong))
    wrong += problems(AppConfig, given)
    if wrong:
        raise ConfigError(*wrong)
    return AppConfig.model_validate(given)


def to_yaml(config: AppConfig) -> str:
    """Return the whole config as YAML; load_config reads it back as an equal config."""
    return yaml.safe_dump(config.model_dump(), sort_keys=False, allow_unicode=True, width=10**6)


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting with two values; prints as `training.games: 64 -> 32`."""

    path: str
    old: object
    new: object

    def __str__(self) -> str:
        return f"{self.path}: {as_text(self.old)} -> {as_text(self.new)}"


def differences(old: AppConfig, new: AppConfig) -> list[Difference]:
    """Return the settings in which two configs differ, in schema order."""
    pairs = ((row.path, _value(old, row.path), _value(new, row.path)) for row in settings(AppConfig))
    return [Difference(path, before, after) for path, before, after in pairs if before != after]


def refuse_unsafe(found: Iterable[Difference]) -> None:
    """Raise a ConfigError that names every change that a resumed run cannot make."""
    unsafe = [
        f"{difference.path}: given {as_text(difference.new)}, but the run has {as_text(difference.old)}, "
        "which cannot change on resume"
        for difference in found
        if any(f"{difference.path}.".startswith(f"{kept}.") for kept in UNSAFE_TO_CHANGE)
    ]
    if unsafe:
        raise ConfigError(*unsafe)


def _value(config: AppConfig, path: str) -> object:
    return reduce(getattr, path.split("."), config)


def _read_file(source: str | Path) -> dict[str, Any]:
    shipped = isinstance(source, str) and source in SHIPPED
    path = _FOLDER / f"{source}.yaml" if shipped else Path(source)
    if not source:
        raise ConfigError(f"the config has no name, expected a file or {', '.join(SHIPPED)}")
    try:
        with path.open("rb") as file:  # also a pipe, such as bash's <(…)
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file or shipped config ({', '.join(SHIPPED)})") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"{path}: larger than {_LARGEST:,} bytes, expected a config")
    try:
        data = _parse(content)
    except _UnreadableError as error:
        line = "" if error.line is None else f":{error.line}"
        raise ConfigError(f"{path}{line}: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1: given {as_text(data)}, expected sections such as `training:`")
    return data


def _read_overrides(overrides: Sequence[str], wrong: list[str]) -> dict[str, Any]:
    """Return the overrides as nested data under current names; what cannot be read is added to `wrong`."""
    given: dict[str, Any] = {}
    used: dict[str, str] = {}
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not path:
            wrong.append(f"{override}: not an override, expected setting=value")
            continue
        real = _real_path(path)
        if real is None:
            if not is_constant(path, text):
                wrong.append(unknown(AppConfig, path, _beside(path, overrides)))
            continue
        if used.setdefault(real, path) != path:
            wrong.append(f"{path}: also given as {used[real]}, which is the same setting")
            continue
        try:
            data = _parse(text)
        except _UnreadableError as error:
            wrong.append(f"{override}: {error}")
            continue
        if "\n" in text.strip() and isinstance(data, str) and data not in text:
            wrong.append(f"{path}: given {text!r}, expected one line")  # YAML makes a space of a line's end
            continue
        for name in reversed(real.split(".")):
            data = {name: data}
        given = _merged(given, _today(AppConfig, data, "", wrong))
    return given


def _beside(path: str, overrides: Sequence[str]) -> dict[str, str]:
    """Return the values of all overrides in the section of this one, by the last part of their names."""
    section = path.rpartition(".")[0]
    pairs = [override.partition("=") for override in overrides]
    return {name.rpartition(".")[2]: text for name, _, text in pairs if name.rpartition(".")[0] == section}


def _real_path(path: str) -> str | None:
    """Return a dotted path with older names replaced, or None if the schema has no such path."""
    room: type[BaseModel] | None = AppConfig
    real = []
    for name in path.split("."):
        found = find(room, name) if room is not None else None
        if found is None:
            return None
        real.append(found[0])
        room = room_of(found[1])
    return ".".join(real)


def _today(room: type[BaseModel], data: dict[str, Any], prefix: str, wrong: list[str]) -> dict[str, Any]:
    """Return the data under current names; an empty section is dropped."""
    named: dict[str, Any] = {}
    for key, value in data.items():
        found = find(room, key)
        if found is None:
            named[key] = value
            continue
        name, field = found
        inner = room_of(field)
        if name != key and name in data:
            wrong.append(f"{prefix}{key}: an older name of {prefix}{name}, which is also given")
        elif inner is None:
            named[name] = value
        elif isinstance(value, dict):
            named[name] = _today(inner, value, f"{prefix}{name}.", wrong)
        elif value is not None:
            named[name] = value
    return named


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep merge of both; `over` takes precedence."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


class _UnreadableError(ValueError):
    """YAML that cannot be read, with the line number, counted from 1."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def _parse(content: bytes | str) -> Any:
    """Return YAML as dicts, lists, text and None."""
    try:
        node = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise _UnreadableError(f"not YAML: {error.problem or error.context}", line) from error
    except yaml.YAMLError as error:  # bytes or characters that are invalid in YAML
        raise _UnreadableError(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise _UnreadableError("nested too deeply") from None
    return None if node is None else _plain(node, set())


def _plain(node: yaml.Node, seen: set[int]) -> Any:
    line = node.start_mark.line + 1
    if id(node) in seen:  # one node in two places, or in itself
        raise _UnreadableError("aliases to an anchor are not supported; write the value twice", line)
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_plain(item, seen) for item in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        data: dict[str, Any] = {}
        for key_node, value in node.value:
            key = _plain(key_node, seen)
            if not isinstance(key, str):
                raise _UnreadableError(f"the key {as_text(key)} is not text", key_node.start_mark.line + 1)
            if key in data:
                raise _UnreadableError(f"the key {as_text(key)} is given twice", key_node.start_mark.line + 1)
            data[key] = _plain(value, seen)
        return data
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return None if node.style is None and node.value in _NULLS else str(node.value)
    raise _UnreadableError(f"the tag {node.tag.replace(_TAG, '!!')} is not supported", line)

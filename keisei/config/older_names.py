"""Settings of earlier versions: some are now part of another setting, some are constants, some were missing.

Takes a config as nested data, from a file or a checkpoint, and returns it under the current names. What the
current settings cannot express is left as it is and rejected as unknown; `hint` says what to write instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keisei.config.fields import as_text

# Such a setting is ignored if it has its constant value, and rejected otherwise.
CONSTANTS: Mapping[str, float] = {
    "env.late_start_plies": 12,
    "env.late_start_pool": 512,
    "training.entropy_floor": 0.2,
    "training.material_reward_until": 0.8,
    "evaluation.temperature": 0.25,
    "evaluation.random_plies": 4,
}

_SWITCH = {
    **dict.fromkeys(("true", "yes", "on", "y", "t", "1"), "true"),
    **dict.fromkeys(("false", "no", "off", "n", "f", "0"), "false"),
}
_SCHEDULES = ("linear", "constant", "cosine")
Words = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Merged:
    """Settings that were merged into one.

    older: the words each could have, its default first. today: returns the nearest current value. keeps:
    returns whether that means the same; takes all values, and whether all of them were given.
    """

    room: str
    name: str
    older: Mapping[str, tuple[str, ...]]
    today: Callable[[Words], str | list[str]]
    keeps: Callable[[Words, bool], bool]


def _numerics(old: Words) -> str:
    measured = old["precision"] == "auto"
    layout = "+channels_last" if old["channels_last"] == "on" else ""
    compiled = old["compile"] == "on" or (measured and old["compile"] == "auto")
    return f"{old['precision']}{layout}{'+compile' if compiled else ''}"


def _keeps_numerics(old: Words, complete: bool) -> bool:
    """Return whether everything was measured, or nothing.

    Complete settings come from a run, whose formats are saved with it, so the nearest value will do.
    """
    layout, compiled = old["channels_last"], old["compile"]
    if old["precision"] == "auto":
        return complete or (layout != "off" and compiled != "on")
    return complete or "auto" not in (layout, compiled)


def _loggers(old: Words) -> list[str]:
    wandb = {"off": [], "online": ["wandb"], "offline": ["wandb-offline"]}[old["wandb"]]
    return [*(["tensorboard"] if old["tensorboard"] == "true" else []), *wandb]


def _schedule(old: Words) -> str:
    changed = [word for word in old.values() if word != _SCHEDULES[0]]
    return changed[0] if changed else _SCHEDULES[0]


_MERGED = (
    _Merged(
        "run",
        "numerics",
        {
            "precision": ("auto", "float32", "bfloat16"),
            "channels_last": ("auto", "on", "off"),
            "compile": ("off", "on", "auto"),
        },
        _numerics,
        _keeps_numerics,
    ),
    _Merged(
        "run",
        "loggers",
        {"tensorboard": ("true", "false"), "wandb": ("off", "offline", "online")},
        _loggers,
        lambda _old, _complete: True,
    ),
    _Merged(
        "training",
        "schedule",
        {"learning_rate_schedule": _SCHEDULES, "entropy_schedule": _SCHEDULES},
        _schedule,
        lambda old, _complete: len(set(old.values())) == 1,
    ),
)


@dataclass(frozen=True, slots=True)
class _Added:
    """Settings that a room did not have in earlier versions.

    older: some of those that it did have. A room with all of these is a complete one, as runs and `keisei
    config` write it. meant: what it meant without the new ones, where that is not today's default.
    """

    room: str
    older: tuple[str, ...]
    meant: Mapping[str, object]


_ADDED = (
    _Added(
        "env",
        ("max_moves", "declaration", "random_plies", "late_start_share"),
        {"scattered_start_share": 0.0},
    ),
    _Added(
        "model",
        ("name", "blocks", "channels", "norm_groups", "se_ratio", "policy_head", "value_hidden"),
        {"piece_values": "none"},
    ),
    _Added(
        "training",
        ("games", "steps_per_epoch", "ppo_epochs", "learning_rate", "clip_coef", "max_grad_norm"),
        {"algorithm": "ppo", "length_reward": 0.0},
    ),
)


def translated(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config's data under current names, as far as they can express the same."""
    result = {key: dict(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    for path in CONSTANTS:
        room, name = path.split(".")
        section = result.get(room)
        if isinstance(section, dict) and name in section and is_constant(path, section[name]):
            del section[name]
    for merged in _MERGED:
        section = result.get(merged.room)
        if not isinstance(section, dict) or merged.name in section:
            continue
        given = _given(merged, section)
        if not given or None in given.values():
            continue
        old = {name: str(word) for name, word in (_defaults(merged) | given).items()}
        if merged.keeps(old, len(given) == len(old)):
            result[merged.room] = {key: value for key, value in section.items() if key not in given}
            result[merged.room][merged.name] = merged.today(old)
    for added in _ADDED:
        section = result.get(added.room)
        if isinstance(section, dict) and set(added.older) <= set(section):
            result[added.room] = {**added.meant, **section}
    return result


def is_constant(path: str, value: object) -> bool:
    """Return whether a removed setting is given with its constant value."""
    try:
        return float(str(value)) == CONSTANTS.get(path)
    except ValueError:
        return False


def hint(path: str, section: Mapping[str, Any]) -> str | None:
    """Return the error line for an older setting that cannot be used, or None for any other path.

    section: everything that is given in its room, since other older settings may be merged into the same one.
    """
    if path in CONSTANTS:
        return f"{path}: removed, now always {as_text(CONSTANTS[path])}"
    room, _, name = path.partition(".")
    for merged in _MERGED:
        if room == merged.room and name in merged.older:
            today, words = f"{merged.room}.{merged.name}", _defaults(merged) | _given(merged, section)
            if None in words.values():
                return f"{path}: now part of {today}"
            nearest = merged.today({name: str(word) for name, word in words.items()})
            return f"{path}: now part of {today}; write {today}: {as_text(nearest)}"
    return None


def _given(merged: _Merged, section: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the words given in a section; None for what is not one of them."""
    return {name: _word(merged, name, section[name]) for name in merged.older if name in section}


def _defaults(merged: _Merged) -> dict[str, str | None]:
    return {name: words[0] for name, words in merged.older.items()}


def _word(merged: _Merged, name: str, value: object) -> str | None:
    """Return an older setting's value as one of its words, or None if it is not one of them."""
    words = merged.older[name]
    word = str(value).lower()
    word = _SWITCH.get(word, word) if "true" in words else word
    return word if word in words else None

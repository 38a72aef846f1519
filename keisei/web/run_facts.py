"""What a run's own files say about it: its settings, its device and size, and its last notices. Only read.

A file that cannot be read counts as missing, so that one run does not hide the others.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from keisei.config.files import load_config
from keisei.errors import UserError
from keisei.runs.find import RUN
from keisei.runs.run_directory import CONFIG

LOG = "train.log"
NOTICES = 20
_LOG_BYTES = 64 * 1024  # of its end
_NOTICE_LETTERS = 500
_ENTRY = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  ", re.MULTILINE)
# As keisei.training.listener.RunFacts tells it.
_FACTS = re.compile(r"run .*, seed (\d+), ([\d,]+) parameters, (.*); moves [\d,]+ to [\d,]+")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """total_steps: moves to train on, 0 if unknown. The others for display, "" if unknown."""

    total_steps: int = 0
    algorithm: str = ""
    network: str = ""


def settings_of(run: Path) -> RunSettings:
    """Return the settings that a run trains with."""
    try:
        stat = (run / CONFIG).stat()
        return _read_settings(run / CONFIG, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return RunSettings()


@lru_cache(maxsize=256)
def _read_settings(path: Path, _time: int, _size: int) -> RunSettings:
    try:
        config = load_config(path)
    except UserError:
        return _of_another_version(path)
    training = config.training
    return RunSettings(training.total_timesteps, training.algorithm, config.model.described())


def _of_another_version(path: Path) -> RunSettings:
    """Return what can be told of settings that this version would not train with."""
    try:
        training = yaml.safe_load(path.read_bytes())["training"]
        return RunSettings(int(training["total_timesteps"]), str(training.get("algorithm", "")))
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError):
        return RunSettings()


def facts_of(run: Path) -> dict[str, Any]:
    """Return what does not change while a run trains, for display; what is unknown is left out."""
    settings, described = settings_of(run), _description(run)
    facts: dict[str, Any] = {"seed": described.get("seed"), "began": described.get("time")}
    facts |= {"algorithm": settings.algorithm or None, "network": settings.network or None}
    facts["resumed"] = len(described["resumed"]) if isinstance(described.get("resumed"), list) else None
    if found := _FACTS.search(_beginning(run / LOG)):
        facts |= {"parameters": int(found[2].replace(",", "")), "device": found[3]}
    return {name: value for name, value in facts.items() if value is not None}


def notices_of(run: Path) -> list[dict[str, str]]:
    """Return the last entries of a run's log, oldest first."""
    try:
        with (run / LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    parts = _ENTRY.split(text)[1:]  # time, text, time, text …; what is before the first is cut off
    entries = list(zip(parts[::2], parts[1::2], strict=False))
    return [{"time": time, "text": _shortened(text)} for time, text in entries[-NOTICES:]]


def _shortened(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    more = rest.rstrip().rpartition("\n")[2]  # of a traceback, the last line says what happened
    told = f"{first} … {more}" if more else first
    return told if len(told) <= _NOTICE_LETTERS else f"{told[:_NOTICE_LETTERS]}…"


def _description(run: Path) -> Mapping[str, Any]:
    try:
        described = json.loads((run / RUN).read_bytes())
    except (OSError, ValueError):
        return {}
    return described if isinstance(described, dict) else {}


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""

"""A benchmark's results as JSON: `Report` with the machine, the versions and every turn, written and read.

Figures are kept per turn, so that medians, ratios and spreads can be computed again from the file.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contest import Result, Row, Turn

FORMAT = 1
ROOT = Path(__file__).parents[1]
# Recorded if installed: ours first, then those of bench/requirements-peers.txt.
PACKAGES = (
    "keisei", "torch", "numpy", "gymnasium", "cshogi", "rsshogi", "open_spiel", "envpool", "pgx", "jax",
    "sb3-contrib", "stable-baselines3", "pufferlib", "torchrl", "tensordict",
)  # fmt: skip


class BadResultError(ValueError):
    """A file that is not a benchmark's result."""


@dataclass
class Report:
    """One run of the benchmark: where, with what, and what came out.

    others: cores that other programs used just before. The load averages cannot tell: they include a
    benchmark that has just ended.
    """

    command: str
    date: str
    commit: str
    dirty: bool
    machine: dict[str, str]
    packages: dict[str, str]
    settings: dict[str, Any]
    load_start: list[float]
    others: float = 0.0
    load_end: list[float] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # peers that are not installed, with how to install them
    complete: bool = False
    contests: list[Result] = field(default_factory=list)
    format: int = FORMAT


def new_report(command: str, settings: dict[str, Any]) -> Report:
    """Return a report of this machine and this checkout, without results."""
    return Report(
        command=command,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=_git("rev-parse", "--short=10", "HEAD") or "unknown",
        dirty=bool(_git("status", "--porcelain")),
        machine=machine(),
        packages=versions(),
        settings=settings,
        load_start=load(),
        others=cores_in_use(),
    )


def machine() -> dict[str, str]:
    """Return what the figures were measured on."""
    return {
        "cpu": _cpu_name(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "compiler": _first_line([os.environ.get("CXX", "g++").split()[0], "--version"]),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "fairy-stockfish": fairy_stockfish_version(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the packages involved, of those that are installed."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def load() -> list[float]:
    """Return the load averages over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def cores_in_use(seconds: float = 0.5) -> float:
    """Watch the machine, without using it, and return how many cores are busy; 0 where nobody counts."""
    before = _busy_seconds()
    time.sleep(seconds)
    return round((_busy_seconds() - before) / seconds, 2)


def _busy_seconds() -> float:
    """Return the time that all cores together have been busy since the machine started."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").split()[1:9]
    except OSError:  # not Linux
        return 0.0
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def fairy_stockfish_path() -> str | None:
    """Return where Debian's fairy-stockfish is, if it is installed."""
    return shutil.which("fairy-stockfish") or shutil.which("fairy-stockfish", path="/usr/games")


def fairy_stockfish_version() -> str:
    """Return the first line that fairy-stockfish prints, or that it is missing."""
    path = fairy_stockfish_path()
    return _first_line([path, "quit"]) if path else "not installed"


def write(report: Report, path: Path) -> None:
    """Write a report as JSON, complete or not at all."""
    temporary = path.with_suffix(".partial")
    temporary.write_text(json.dumps(_rounded(asdict(report)), indent=1, ensure_ascii=False), encoding="utf-8")
    temporary.replace(path)


def read(path: Path) -> Report:
    """Read a report; BadResultError says what is wrong with the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadResultError(f"{path}: {getattr(error, 'strerror', None) or 'not text'}") from error
    except json.JSONDecodeError as error:
        raise BadResultError(f"{path}: not JSON (line {error.lineno}: {error.msg})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        given = data.get("format") if isinstance(data, dict) else None
        raise BadResultError(f"{path}: not a result of make bench: format is {given}, expected {FORMAT}")
    try:
        contests = [
            Result(
                **{
                    **contest,
                    "rows": [
                        Row(**{**row, "turns": [Turn(**turn) for turn in row["turns"]]})
                        for row in contest["rows"]
                    ],
                }
            )
            for contest in data.pop("contests")
        ]
        return Report(**data, contests=contests)
    except (KeyError, TypeError) as error:
        raise BadResultError(f"{path}: not a result of make bench: {error}") from error


def _rounded(value: Any) -> Any:
    """Return nested data with floats cut to six significant digits, which keeps the file small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str:
    return _output(["git", "-C", str(ROOT), *arguments])


def _first_line(command: list[str]) -> str:
    return next(iter(_output(command).splitlines()), "unknown")


def _output(command: list[str]) -> str:
    """Return what a command prints, or nothing if it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()

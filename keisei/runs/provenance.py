"""Where a run comes from: command, versions, machine and commit, as plain JSON values."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("keisei", "torch", "numpy")


def provenance(command: Sequence[str], now: datetime) -> dict[str, Any]:
    """Return what is needed to start a process like this one again."""
    return {
        "time": now.astimezone().isoformat(timespec="seconds"),
        "command": list(command),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "git": git_state(Path(__file__).parents[2]),
    }


def git_state(tree: Path) -> dict[str, Any] | None:
    """Return the commit and dirty flag of a source tree, or None if it is not itself a git checkout.

    A package in a virtual environment may sit inside some other checkout, so the checkout's root must be the
    tree itself.
    """
    root, commit = _git(tree, "rev-parse", "--show-toplevel"), _git(tree, "rev-parse", "HEAD")
    changes = _git(tree, "status", "--porcelain")
    if root is None or commit is None or changes is None or Path(root) != tree.resolve():
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git(tree: Path, *arguments: str) -> str | None:
    # In a git hook these variables name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # nosec B603 B607 # no shell, fixed arguments, git as the user's PATH has it
            ["git", "-C", str(tree), *arguments], capture_output=True, text=True, timeout=30, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # git is missing or hangs: the commit is unknown, as for a package from a wheel
    return done.stdout.strip() if done.returncode == 0 else None

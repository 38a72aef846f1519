"""What must be alike on all machines of a cluster, and what had better be: versions and kernels."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from keisei.core.native_tower import usable_kernels
from keisei.core.numerics import Numerics

Facts = dict[str, Any]


def machine_facts() -> Facts:
    """Return versions and kernels of this machine, as plain values."""
    return {
        "host": platform.node(),
        "python": platform.python_version(),
        **{package: _version(package) for package in ("keisei", "ray", "torch")},
        "cpu": _cpu(),
        "kernels": usable_kernels(),
        "token": os.environ.get("RAY_AUTH_MODE", "").lower() == "token",
    }


def described(facts: Facts) -> str:
    """Return facts in a phrase: "Python 3.11.7, keisei 0.1.0, ray 2.60.0, torch 2.13.0, AMD EPYC"."""
    versions = [f"{name} {facts[name]}" for name in ("keisei", "ray", "torch")]
    return ", ".join([f"Python {facts['python']}", *versions, facts["cpu"]])


def why_not(theirs: Facts, ours: Facts, numerics: Numerics, *, insecure: bool) -> str:
    """Return why a node cannot play for this learner, "" if it can."""
    for name in ("keisei", "python"):
        # A process of another Python reads the same messages; patch releases differ between machines.
        length = 2 if name == "python" else 10
        if theirs[name].split(".")[:length] != ours[name].split(".")[:length]:
            return f"it has {name} {theirs[name]}, expected {ours[name]}"
    if numerics.native and numerics.native not in theirs["kernels"]:
        return (
            f"its {theirs['cpu']} cannot run the {numerics.native} kernels of this run; "
            f"start with run.numerics=native-{theirs['kernels'][0]}"
        )
    if not (theirs["token"] or insecure):
        return (
            "it takes anybody's work without a token; start Ray there with RAY_AUTH_MODE=token, or set "
            "training.parallel.insecure=true"
        )
    return ""


def warnings(theirs: Facts, ours: Facts, numerics: Numerics) -> Iterator[str]:
    """Yield what may make a node's last bits differ."""
    if not numerics.native:
        for name in ("torch", "cpu"):
            if theirs[name] != ours[name]:
                yield f"it has {theirs[name]} and the learner {ours[name]}: last bits may differ"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()

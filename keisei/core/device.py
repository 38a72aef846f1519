"""The device, the cores and the memory that a run computes with. Only choose_device loads torch."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keisei.config.config_errors import ConfigError

if TYPE_CHECKING:
    import torch

CPU = "cpu"

# What the drivers of NVIDIA, of WSL and of AMD leave.
_ACCELERATOR_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def may_have_accelerator() -> bool:
    """Return whether torch may find a GPU here; if not, nobody need load torch to know."""
    return sys.platform == "darwin" or any(map(os.path.exists, _ACCELERATOR_FILES))


def choose_device(name: str, *, setting: str = "run.device") -> torch.device:
    """Return a device by name, with `auto` a GPU if there is one; ConfigError if it is not available.

    setting: what the error calls it.
    """
    import torch

    if name == "auto":
        available = torch.accelerator.is_available()
        found = torch.accelerator.current_accelerator() if available else None
        if found is not None and found.type == "cuda" and "LOCAL_RANK" in os.environ:  # each rank has its own
            return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        if device.type == "mps" and not torch.backends.mps.is_available():
            raise RuntimeError("torch finds no Apple GPU")  # its own reason is a list of all its parts
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"{setting}: given {name}, expected auto or an available device ({reason})"
        ) from error
    return device


def cores() -> int:
    """Return the number of cores this process may use: under torchrun, its share of this machine's."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, found // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def available_memory() -> int:
    """Return how many bytes of memory this process can get, unlimited where the system does not say.

    That is what the machine has left, or less if a container or another control group is limited.
    """
    free = next(
        (
            1024 * int(line.split()[1])
            for line in _lines(Path("/proc/meminfo"))
            if line.startswith("MemAvailable:")
        ),
        sys.maxsize,
    )
    return min([free, *_left_in_groups(Path("/sys/fs/cgroup"))])


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what is left of the memory limit of each control group that this process is in (version 2)."""
    own = [line.removeprefix("0::/") for line in _lines(Path("/proc/self/cgroup")) if line.startswith("0::/")]
    for group in [root / path for name in own for path in (Path(name), *Path(name).parents)]:
        limit, used = (_lines(group / f"memory.{what}") for what in ("max", "current"))
        if limit and used and limit[0] != "max":
            # Files that are cached there can be dropped.
            cached = [
                int(line.split()[1]) for line in _lines(group / "memory.stat") if line.startswith("file ")
            ]
            yield max(0, int(limit[0]) - int(used[0]) + sum(cached))


def _lines(path: Path) -> list[str]:
    """Return the lines of a file of the system, none if there is no such file."""
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def under_torchrun() -> bool:
    """Return whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def keep_freed_memory() -> None:
    """Make the C library keep freed memory for the network's next pass, instead of returning it.

    Otherwise the system clears the same pages again and again: on 2 cores, with a 3 × 32 network, a worker
    played at three quarters of the speed, and an update took an eighth longer.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        library.mallopt(_M_TRIM_THRESHOLD, 512 << 20)

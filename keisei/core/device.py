"""The device, the cores and the memory that a run computes with. Only choose_device loads torch."""

from __future__ import annotations

import ctypes
import os
import sys
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


def choose_device(name: str) -> torch.device:
    """Return a device by name, with `auto` a GPU if there is one; ConfigError if it is not available."""
    import torch

    if name == "auto":
        available = torch.accelerator.is_available()
        found = torch.accelerator.current_accelerator() if available else None
        if found is not None and found.type == "cuda" and "LOCAL_RANK" in os.environ:  # each rank has its own
            return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        return found or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"run.device: given {name}, expected auto or an available device ({reason})"
        ) from error
    return device


def cores() -> int:
    """Return the number of cores this process may use: under torchrun, its share of this machine's."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, found // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


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

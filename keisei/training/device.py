"""On what a run computes."""

import os

import torch

from keisei.config_errors import ConfigError


def choose_device(name: str) -> torch.device:
    """Return the device of a name, `auto` is a GPU if there is one; one that is missing is a ConfigError."""
    if name == "auto":
        available = torch.accelerator.is_available()
        return (
            torch.accelerator.current_accelerator() or torch.device("cpu")
            if available
            else torch.device("cpu")
        )
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"run.device: given {name}, expected auto or a device that is here ({reason})"
        ) from error
    return device


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

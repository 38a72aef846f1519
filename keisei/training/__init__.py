"""The loop, its files and its console."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei.training.doctor import diagnose
    from keisei.training.run import begin, resume

_HOMES = {"begin": "run", "diagnose": "doctor", "resume": "run"}
__all__ = ["begin", "diagnose", "resume"]


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: it takes torch, and a mistake in the settings is told before."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

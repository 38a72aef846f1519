"""Parallel experience collection: worker processes that play, for one learner. README.md is the tour."""

from importlib import import_module
from typing import Any

_HOMES = {
    "ModelSynchronizer": "model_sync",
    "ParallelManager": "parallel_manager",
    "SelfPlayWorker": "self_play_worker",
    "WorkerCommunicator": "communication",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: who only reads about workers does without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

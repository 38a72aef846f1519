"""Parallel experience collection: worker processes that play, for one learner. README.md is the tour."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keisei.training.parallel.communication import WorkerCommunicator
    from keisei.training.parallel.model_sync import ModelSynchronizer
    from keisei.training.parallel.parallel_manager import ParallelManager
    from keisei.training.parallel.self_play_worker import SelfPlayWorker

_HOMES = {
    "ModelSynchronizer": "model_sync",
    "ParallelManager": "parallel_manager",
    "SelfPlayWorker": "self_play_worker",
    "WorkerCommunicator": "communication",
}
__all__ = ["ModelSynchronizer", "ParallelManager", "SelfPlayWorker", "WorkerCommunicator"]


def __getattr__(name: str) -> Any:
    """Load a name on first use, so that importing the package does not load torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

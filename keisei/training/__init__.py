"""The training loop, its files and its console.

from keisei.training import train
result = train()                       # what `keisei train` does, as a function
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import keisei.core  # noqa: F401  # which must come before torch

if TYPE_CHECKING:
    from keisei.training.doctor import diagnose
    from keisei.training.ranks import RankError, join_ranks, was_restarted
    from keisei.training.run import RunResult, begin_run, follow_run, resume_run, train
    from keisei.training.trainer import Trainer
    from keisei.training.training_loop_manager import TrainingLoopManager

_HOMES = {
    "RankError": "ranks",
    "RunResult": "run",
    "Trainer": "trainer",
    "TrainingLoopManager": "training_loop_manager",
    "begin_run": "run",
    "diagnose": "doctor",
    "follow_run": "run",
    "join_ranks": "ranks",
    "resume_run": "run",
    "train": "run",
    "was_restarted": "ranks",
}
__all__ = [
    "RankError",
    "RunResult",
    "Trainer",
    "TrainingLoopManager",
    "begin_run",
    "diagnose",
    "follow_run",
    "join_ranks",
    "resume_run",
    "train",
    "was_restarted",
]


def __getattr__(name: str) -> Any:
    """Load a name on first use: these need torch, and mistakes in the settings are reported before that."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

"""Which agent learns by which algorithm."""

import torch

from keisei.config.schema import AppConfig
from keisei.core.learning_agent import LearningAgent
from keisei.core.numerics import Numerics
from keisei.core.phase_clock import PhaseClock
from keisei.core.ppo_agent import PPOAgent
from keisei.core.search_agent import SearchAgent


def agent_of(
    config: AppConfig,
    device: str | torch.device = "cpu",
    *,
    numerics: Numerics | None = None,
    clock: PhaseClock | None = None,
) -> LearningAgent:
    """Return a new agent that learns as training.algorithm says."""
    kind = SearchAgent if config.training.algorithm == "search" else PPOAgent
    return kind(config, device, numerics=numerics, clock=clock)

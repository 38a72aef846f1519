"""Networks by name: `model_factory` builds the one that a config or checkpoint asks for."""

import torch

from keisei.config.schema import ModelConfig, validated
from keisei.core.models.res_tower import ActorCriticResTower

__all__ = ["ActorCriticResTower", "model_factory"]


def model_factory(config: ModelConfig, *, seed: int = 0) -> ActorCriticResTower:
    """Return a new network; the same seed gives the same weights. torch's random state is left untouched."""
    checked = validated(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ActorCriticResTower(checked)

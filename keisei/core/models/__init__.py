"""Networks by name: `model_factory` builds the one that a config or checkpoint asks for."""

import math
from functools import lru_cache

import torch
from torch import nn

from keisei.config.schema import ModelConfig, validated
from keisei.core.models.own_network import build_own_network, require_named
from keisei.core.models.res_tower import ActorCriticResTower
from keisei.core.native_tower import weight_shapes

__all__ = ["ActorCriticResTower", "model_factory", "number_of_weights", "require_named"]


def model_factory(config: ModelConfig, *, seed: int = 0) -> nn.Module:
    """Return a new network; the same seed gives the same weights. torch's random state is left untouched.

    A network of one's own (`mypackage:Net`) is imported: call require_named first if a checkpoint named it.
    """
    checked = validated(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if checked.is_own:
            return build_own_network(checked.name, checked.options)
        return ActorCriticResTower(checked)


def number_of_weights(config: ModelConfig) -> int:
    """Return how many weights a network has; one of one's own is built to find out, once."""
    if config.is_own:
        return _weights_of_own(config.model_dump_json())
    return sum(math.prod(shape) for shape in weight_shapes(config).values())


@lru_cache
def _weights_of_own(config: str) -> int:
    network = model_factory(ModelConfig.model_validate_json(config))
    return sum(parameter.numel() for parameter in network.parameters())

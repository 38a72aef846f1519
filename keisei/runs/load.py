"""A network to play with: the weights of a checkpoint, and the hash that identifies them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from keisei.config.schema import AppConfig
from keisei.core.numerics import Numerics
from keisei.core.policy import NetworkPolicy
from keisei.runs.checkpoint_format import CheckpointError, parsed, verified
from keisei.runs.find import run_of

WEIGHTS = "weights"


@dataclass(frozen=True, slots=True, eq=False)
class LoadedNetwork:
    """A policy to play with, and where its weights came from.

    sha256: of weights.safetensors, the bytes that were read. step: its training moves. run: the name of its
    run's directory, or of the checkpoint's own if it is outside any run.
    """

    policy: NetworkPolicy
    run: str
    step: int
    sha256: str

    @property
    def name(self) -> str:
        """Its name in results, such as "first@400000"."""
        return f"{self.run}@{self.step}"


def load_network(path: Path, device: str | torch.device = "cpu") -> LoadedNetwork:
    """Return the network of the checkpoint in this directory; CheckpointError if it is damaged."""
    step, files = verified(path)
    checkpoint = parsed(path, step, files)
    try:
        config = _config_to_play(checkpoint.state["config"])
        measured = Numerics(**checkpoint.state["numerics"])
        same_device = torch.device(device).type == checkpoint.state["device"]
        numerics = replace(measured, compiled=False) if same_device else Numerics()
        policy = NetworkPolicy(config, device, numerics=numerics)
        policy.load_weights(checkpoint.tensors[WEIGHTS])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())  # messages of torch and pydantic have several lines
        raise CheckpointError(f"checkpoint {path} has no playable network: {reason}") from error
    run = run_of(path) or path.absolute()
    digest = hashlib.sha256(files[f"{WEIGHTS}.safetensors"]).hexdigest()
    return LoadedNetwork(policy, run.name, checkpoint.step, digest)


def _config_to_play(stored: Mapping[str, Any]) -> AppConfig:
    """Return a config with what playing needs: the network and the length of the games it was trained on.

    The rest of a stored config is about training, and may be from a version with other settings.
    """
    return AppConfig.model_validate(
        {"model": stored["model"], "env": {"max_moves": stored["env"]["max_moves"]}}
    )

"""A network to play with: the weights of a checkpoint, and the hash that identifies them.

On the CPU it plays by our own kernels, and torch is not loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from keisei.config.schema import AppConfig
from keisei.core.device import CPU, choose_device, may_have_accelerator
from keisei.core.native_policy import NativePolicy
from keisei.core.native_tower import usable_kernels
from keisei.core.policy import Policy
from keisei.runs.checkpoint_format import STATE, UNFIT, CheckpointError, parsed_json, verified
from keisei.runs.find import run_of
from keisei.shogi import ShogiGame
from keisei.shogi.positions import Positions

WEIGHTS = "weights"


@dataclass(frozen=True, slots=True, eq=False)
class StoredNetwork:
    """A network as a checkpoint has it.

    config: its architecture, and the length of the games it was trained on. weights: by name. kernels: the
    native ones that its run computed with, "" if it used torch. sha256: of weights.safetensors, the bytes
    that were read. step: its training moves. run: the name of its run's directory, or of the checkpoint's own
    if it is outside any run.
    """

    config: AppConfig
    weights: Mapping[str, npt.NDArray[np.float32]]
    kernels: str
    run: str
    step: int
    sha256: str

    @property
    def name(self) -> str:
        """Its name in results, such as "first@400000"."""
        return f"{self.run}@{self.step}"


@dataclass(frozen=True, slots=True, eq=False)
class LoadedNetwork:
    """A policy to play with; name, step and sha256 as in StoredNetwork."""

    policy: Policy
    name: str
    step: int
    sha256: str


def read_network(path: Path) -> StoredNetwork:
    """Return the network of the checkpoint in this directory; CheckpointError if it is damaged."""
    step, files = verified(path)
    state = parsed_json(path / STATE, files[STATE])
    file = f"{WEIGHTS}.safetensors"
    try:
        weights = safetensors.numpy.load(files[file])
        config = _config_to_play(state["config"])
        kernels = state["numerics"].get("native", "")
    except (*UNFIT, AttributeError) as error:
        raise _unplayable(path, error) from error
    run = run_of(path) or path.absolute()
    digest = hashlib.sha256(files[file]).hexdigest()
    return StoredNetwork(config, weights, kernels, run.name, step, digest)


def load_network(path: Path, device: str = CPU, *, threads: int = 1) -> LoadedNetwork:
    """Return the network of a checkpoint, ready to play; CheckpointError if it is damaged.

    device: as in run.device. threads: of the CPU.
    """
    stored = read_network(path)
    try:
        policy = _policy(stored, device, threads)
        policy.load_arrays(stored.weights)
        policy.evaluate(Positions.of_games([ShogiGame()]))  # a network that cannot says so now
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _unplayable(path, error) from error
    return LoadedNetwork(policy, stored.name, stored.step, stored.sha256)


def _policy(stored: StoredNetwork, device: str, threads: int) -> Policy:
    if device == CPU or (device == "auto" and not may_have_accelerator()):
        # The run's own kernels play to the bit what they played in training.
        kernels = stored.kernels if stored.kernels in usable_kernels() else ""
        return NativePolicy(stored.config, kernels=kernels, threads=threads)
    import torch

    from keisei.core.network_policy import NetworkPolicy
    from keisei.core.numerics import Numerics

    torch.set_num_threads(threads)
    return NetworkPolicy(stored.config, choose_device(device), numerics=Numerics())


def _unplayable(path: Path, error: Exception) -> CheckpointError:
    reason = " ".join(str(error).split())  # messages of torch and pydantic have several lines
    return CheckpointError(f"checkpoint {path} has no playable network: {reason}")


def _config_to_play(stored: Mapping[str, Any]) -> AppConfig:
    """Return a config with what playing needs: the network and the length of the games it was trained on.

    The rest of a stored config is about training, and may be from a version with other settings.
    """
    return AppConfig.model_validate(
        {"model": stored["model"], "env": {"max_moves": stored["env"]["max_moves"]}}
    )

"""A network to play with: the weights of a checkpoint, and the hash that identifies them.

On the CPU it plays by our own kernels, and torch is not loaded; a network of the user's own plays by torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from keisei.config.schema import AppConfig
from keisei.core.device import CPU, choose_device, may_have_accelerator
from keisei.core.native_policy import NativePolicy
from keisei.core.native_tower import check_shapes, usable_kernels, weight_shapes
from keisei.core.numerics import Numerics
from keisei.core.policy import Policy
from keisei.runs.checkpoint_format import STATE, UNFIT, CheckpointError, parsed_json, verified
from keisei.runs.find import run_of
from keisei.shogi import ShogiGame
from keisei.shogi.positions import Positions

if TYPE_CHECKING:
    import torch

WEIGHTS = "weights"


@dataclass(frozen=True, slots=True, eq=False)
class StoredNetwork:
    """A network as a checkpoint has it.

    config: its architecture, and the length of the games it was trained on. weights: by name. numerics,
    device: how and where its run computed. sha256: of weights.safetensors, the bytes that were read. step:
    its training moves. run: the name of its run's directory, or of the checkpoint's own if it is outside any.
    """

    config: AppConfig
    weights: Mapping[str, npt.NDArray[np.float32]]
    numerics: Numerics
    device: str
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
        if not config.model.is_own:  # the shapes of which are known when it is built
            check_shapes(weight_shapes(config.model), {name: array.shape for name, array in weights.items()})
        numerics, device = Numerics(**state["numerics"]), str(state["device"])
    except (*UNFIT, AttributeError) as error:
        raise _unplayable(path, error) from error
    run = run_of(path) or path.absolute()
    digest = hashlib.sha256(files[file]).hexdigest()
    return StoredNetwork(config, weights, numerics, device, run.name, step, digest)


def load_network(path: Path, device: str = CPU, *, threads: int = 1) -> LoadedNetwork:
    """Return the network of a checkpoint, ready to play; CheckpointError if it is damaged.

    device: as in run.device. threads: of the CPU.
    """
    stored = read_network(path)
    accelerator = _accelerator(device)
    try:
        if accelerator is None and not stored.config.model.is_own:
            policy = _native(stored, threads)
        else:
            policy = _by_torch(stored, accelerator, threads)
        policy.load_arrays(stored.weights)
        _, values = policy.evaluate(Positions.of_games([ShogiGame()]))
        if not np.isfinite(values).all():
            raise ValueError("its results are NaN or infinite")
    except ValueError as error:
        raise _unplayable(path, error) from error
    return LoadedNetwork(policy, stored.name, stored.step, stored.sha256)


def _accelerator(name: str) -> torch.device | None:
    """Return the device that torch must compute on, None for the CPU; without torch there is only that."""
    if name == CPU or (name == "auto" and not (may_have_accelerator() and find_spec("torch"))):
        return None
    device = choose_device(name, setting="device")
    return None if device.type == CPU else device


def _native(stored: StoredNetwork, threads: int) -> Policy:
    # The run's own kernels play to the bit what they played in training.
    kernels = stored.numerics.native if stored.numerics.native in usable_kernels() else ""
    return NativePolicy(stored.config, kernels=kernels, threads=threads)


def _by_torch(stored: StoredNetwork, accelerator: torch.device | None, threads: int) -> Policy:
    import torch

    from keisei.core.models import require_named
    from keisei.core.network_policy import NetworkPolicy

    if stored.config.model.is_own:
        require_named(stored.config.model.name)
    torch.set_num_threads(threads)
    device = accelerator or torch.device(CPU)
    same = device.type == stored.device
    numerics = replace(stored.numerics, compiled=False) if same else Numerics()
    return NetworkPolicy(stored.config, device, numerics=numerics)


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

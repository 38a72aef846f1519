"""A checkpoint's network as an ONNX file, for programs without Keisei; docs/export.md describes the file.

The file is written under a temporary name, run by onnxruntime on positions from random games, compared with
the network, and only then renamed. It needs the extra `onnx`, which is imported only on use, like torch.
"""

from __future__ import annotations

import io
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keisei.core.policy_labels import ACTION_LABELS, NO_LABEL
from keisei.errors import UserError, install_command
from keisei.runs.durable import sync_directory, temporary_beside, write_new
from keisei.runs.load import StoredNetwork, read_network
from keisei.shogi import encoding
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.vector import Batch, VectorGames

if TYPE_CHECKING:
    from torch import nn

Floats = npt.NDArray[np.float32]

ENCODING = "core46"
OPSET = 17  # the first with LayerNormalization; fewer programs read later ones
NEVER = -1e9  # the logit of an action that no piece can make

# Both sides to move, from openings to endings; a game that ends earlier is taken before its last move.
_PLIES = (7, 30, 61, 90, 121, 150, 181, 210)
_GAMES = 8
_BATCHES = (1, 2, 13, 48)  # all positions together


class ExportError(UserError):
    """A network that cannot be exported, or a file that would not compute what the network does."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How far the file is from the network: the largest |difference| in logits and in values.

    scale: the largest |logit|, but at least 1. A float32 of 30 is only precise to 2e-6, so the difference in
    logits is judged relative to it; values lie between -1 and 1.
    """

    policy: float
    value: float
    scale: float
    positions: int

    def within(self, tolerance: float) -> bool:
        """Return whether both are small enough; NaN is not."""
        return self.policy <= tolerance * self.scale and self.value <= tolerance


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written; name and sha256 are those of the checkpoint's weights, see StoredNetwork."""

    path: Path
    bytes: int
    opset: int
    name: str
    sha256: str
    differences: Differences


def export_onnx(checkpoint: Path, out: Path, *, tolerance: float = 1e-5, force: bool = False) -> ExportReport:
    """Write the network of a checkpoint directory as ONNX, and verify that it computes the same.

    out: a file, or a directory for one named after the network, such as first@400000.onnx. force: replace an
    existing file. tolerance: see `Differences`. On any failure, no new file is left.
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}, expected 0 or more")
    _need_extra()
    network = read_network(checkpoint)
    path = out / f"{network.name}.onnx" if out.is_dir() else out
    if not force and path.exists():
        raise ExportError(f"{path} exists already: expected a new file, or --force")
    module = network_of(network)
    data = _serialized(network, module)
    planes = _positions(network.config.env.max_moves)
    aside = temporary_beside(path)
    try:
        write_new(aside, data)
        differences = compare(aside, module, planes)
        if not differences.within(tolerance):
            raise ExportError(_verdict(path, differences, tolerance))
        os.replace(aside, path)
        sync_directory(path.parent)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # already renamed, or never written
            aside.unlink()
    return ExportReport(path, len(data), OPSET, network.name, network.sha256, differences)


def compare(file: Path, network: nn.Module, planes: Floats) -> Differences:
    """Compare an exported file with a network on planes [64, 46, 9, 9], given in several batches.

    The network is moved to the CPU as contiguous float32; onnxruntime runs the file on the CPU.
    """
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    parts = np.split(planes, np.cumsum(_BATCHES)[:-1])
    answers = [session.run(["policy", "value"], {"planes": part}) for part in parts]
    policy, value = (np.concatenate(columns) for columns in zip(*answers, strict=True))
    with torch.inference_mode():
        logits, values = (output.numpy() for output in _plain(network)(torch.from_numpy(planes)))
    # Put together by numpy, not by the exported module, whose order of actions is thus checked too.
    made = np.flatnonzero(ACTION_LABELS != NO_LABEL)
    expected = np.full((len(planes), ACTIONS), NEVER, np.float32)
    expected[:, made] = logits[:, _logit_of_action(network)[made]]
    with np.errstate(invalid="ignore"):  # infinities differ by NaN, which is within no tolerance
        return Differences(
            policy=float(np.abs(policy - expected).max()),
            value=float(np.abs(value - values).max()),
            scale=max(1.0, float(np.abs(logits).max())),
            positions=len(planes),
        )


def _need_extra() -> None:
    for name in ("onnx", "onnxruntime"):
        try:
            import_module(name)
        except ImportError as error:
            raise ExportError(f"{name} is missing: {install_command('onnx')}") from error


def _plain(network: nn.Module) -> nn.Module:
    """Return the network itself, moved to the CPU and out of channels-last; weights are always float32."""
    import torch

    return network.to(device="cpu", memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload,no-any-return]


def network_of(stored: StoredNetwork) -> nn.Module:
    """Return a checkpoint's network as one of torch."""
    import torch

    from keisei.core.models import model_factory, require_named

    if stored.config.model.is_own:
        require_named(stored.config.model.name)
    network = model_factory(stored.config.model)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in stored.weights.items()})
    return network


def _serialized(network: StoredNetwork, plain: nn.Module) -> bytes:
    """Return the bytes of the ONNX file: from planes to the logits of all actions and the value."""
    import onnx
    import torch

    module = _all_actions(_plain(plain))
    names = ["planes", "policy", "value"]
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The older of torch's two exporters, which it calls legacy: the newer one takes two more packages and
        # 3.4 s instead of 0.1 (default network, torch 2.13), and warns too. What the tracer cannot see, such
        # as other batch sizes, is covered by the comparison.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (torch.zeros(2, PLANES, 9, 9),),
            file,  # type: ignore[arg-type]  # the newer one takes paths only
            dynamo=False,
            opset_version=OPSET,
            input_names=names[:1],
            output_names=names[1:],
            dynamic_axes={name: {0: "batch"} for name in names},
        )
    model = onnx.load_from_string(file.getvalue())
    model.producer_name, model.producer_version = "keisei", version("keisei")
    onnx.helper.set_model_props(model, _metadata(network))
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _all_actions(network: nn.Module) -> nn.Module:
    """Return a module with outputs policy [B, 13527], a logit or NEVER for each action, and value [B]."""
    import torch
    from torch import Tensor, nn

    class AllActions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            index = np.where(ACTION_LABELS == NO_LABEL, 0, _logit_of_action(network) + 1)
            self.index = nn.Buffer(torch.from_numpy(index))

        def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
            logits, value = self.network(planes)
            # One more logit in front, for the actions that no piece can make.
            return nn.functional.pad(logits, (1, 0), value=NEVER).index_select(1, self.index), value

    return AllActions()


def _logit_of_action(network: nn.Module) -> npt.NDArray[np.int64]:
    table: npt.NDArray[np.int64] = network.logit_of_action  # type: ignore[assignment]
    return table


def _metadata(network: StoredNetwork) -> dict[str, str]:
    return {
        "keisei": version("keisei"),
        "encoding": ENCODING,
        "max_moves": str(network.config.env.max_moves),
        "run": network.run,
        "step": str(network.step),
        "weights_sha256": network.sha256,
    }


def _positions(max_moves: int) -> Floats:
    """Return the planes of positions from random games, [64, 46, 9, 9]."""
    found = []
    for plies in _PLIES:
        batch = Batch.empty(_GAMES, planes=False)
        VectorGames(_GAMES, seed=plies, random_plies=plies, max_moves=max_moves).observe(batch)
        found.append(encoding.planes(batch.packed))
    return np.concatenate(found)


def _verdict(path: Path, differences: Differences, tolerance: float) -> str:
    logits = f"{differences.policy:.2g} at a scale of {differences.scale:.2g}"
    return (
        f"{path} is not kept: on {differences.positions} positions its logits differ from the network's by "
        f"{logits}, its values by {differences.value:.2g}; expected at most {tolerance:.2g} of the scale"
    )

"""Exported networks: real checkpoints, real files, run by onnxruntime."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import torch
from checkpoint_samples import files_no_longer_than
from conftest import random_play
from training_runs import keisei, train

from keisei.config.schema import ModelConfig
from keisei.core.models import model_factory
from keisei.core.policy_labels import ACTION_LABELS
from keisei.runs import export
from keisei.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from keisei.runs.export import ExportError, compare, export_onnx, network_of
from keisei.runs.find import find_checkpoint
from keisei.runs.load import load_network, read_network
from keisei.shogi import ShogiGame, encoding
from keisei.shogi.positions import Positions

ROOT = Path(__file__).parents[2]

Outputs = list[npt.NDArray[np.float32]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs/first, a run of one update."""
    path = tmp_path_factory.mktemp("export")
    few = ["training.total_timesteps=64", "training.steps_per_epoch=64", "training.minibatch_size=64"]
    train(path, [*few, "run.name=first", "evaluation.every=0", "evaluation.final_games=0"])
    return path


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    return find_checkpoint("first", folder / "runs")


def remade(trained: Path, parent: Path, *, channels_last: bool = False, **model: Any) -> Path:
    """Rewrite the checkpoint with another network, of large weights."""
    old = load_checkpoint(trained)
    config = {**old.state["config"], "model": ModelConfig(**model).model_dump()}
    network = model_factory(ModelConfig(**model))
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() > 1:
                weight.normal_(std=(2 / weight[0].numel()) ** 0.5, generator=draw)
    numerics = {**old.state["numerics"], "channels_last": channels_last}
    state = {**old.state, "config": config, "numerics": numerics}
    return save_checkpoint(parent, Checkpoint(old.step, {"weights": network.state_dict()}, {}, state))


def with_weights(trained: Path, parent: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    """Rewrite the checkpoint with changed weights."""
    old = load_checkpoint(trained)
    weights = {name: tensor.clone() for name, tensor in old.tensors["weights"].items()}
    change(weights)
    parent.mkdir()
    return save_checkpoint(parent, replace(old, tensors={**old.tensors, "weights": weights}))


def played(seeds: range) -> npt.NDArray[np.uint8]:
    """Return packed positions from random games other than those of the check, one per game."""
    return np.concatenate([encoding.pack([list(random_play(seed, 20 * seed))[-1]]) for seed in seeds])


def run(path: Path, planes: npt.NDArray[np.float32]) -> Outputs:
    outputs: Outputs = onnxruntime.InferenceSession(path).run(["policy", "value"], {"planes": planes})
    return outputs


@pytest.mark.parametrize(
    "model",
    [
        {"blocks": 2, "channels": 16, "channels_last": True},
        {"blocks": 1, "channels": 8, "se_ratio": 0.25},
        {"blocks": 0, "channels": 4, "policy_head": "linear"},
    ],
)
def test_legal_moves_get_the_probabilities_that_the_agent_gives(
    trained: Path, tmp_path: Path, model: dict[str, Any]
) -> None:
    checkpoint = remade(trained, tmp_path, **model)
    report = export_onnx(checkpoint, tmp_path / "net.onnx")
    positions = Positions.of_packed(played(range(1, 10)))
    priors, values = load_network(checkpoint).policy.evaluate(positions)
    assert priors.max() > 0.2  # weights that make a difference
    for first, last in ((0, 1), (1, 3), (0, 9)):
        policy, value = run(report.path, positions.planes[first:last])
        assert policy.dtype == value.dtype == np.float32
        assert (policy.shape, value.shape) == ((last - first, 13527), (last - first,))
        np.testing.assert_allclose(value, values[first:last], atol=1e-5)
        assert (policy[:, ACTION_LABELS == -1] == -1e9).all()
        for row, index in enumerate(range(first, last)):
            shares = np.exp(policy[row, positions.legal(index)].astype(np.float64))
            own = slice(positions.offsets[index], positions.offsets[index + 1])
            np.testing.assert_allclose(shares / shares.sum(), priors[own], atol=1e-5)


def test_the_file_says_where_it_comes_from_and_nothing_of_this_machine(trained: Path, tmp_path: Path) -> None:
    report = export_onnx(trained, tmp_path / "net.onnx")
    network = read_network(trained)
    session = onnxruntime.InferenceSession(report.path)
    assert session.get_modelmeta().custom_metadata_map == {
        "keisei": version("keisei"),
        "encoding": "core46",
        "max_moves": "64",
        "run": "first",
        "step": "64",
        "weights_sha256": network.sha256,
    }
    assert [(item.name, item.shape, item.type) for item in session.get_inputs() + session.get_outputs()] == [
        ("planes", ["batch", 46, 9, 9], "tensor(float)"),
        ("policy", ["batch", 13527], "tensor(float)"),
        ("value", ["batch"], "tensor(float)"),
    ]
    data = report.path.read_bytes()
    assert (report.bytes, report.name, report.sha256) == (len(data), "first@64", network.sha256)
    assert [(item.domain, item.version) for item in onnx.load(report.path).opset_import] == [
        ("", report.opset)
    ]
    for place in (sys.prefix, str(Path(export.__file__).parents[2]), str(tmp_path)):
        assert place.encode() not in data
    assert export_onnx(trained, tmp_path / "again.onnx").path.read_bytes() == data


def test_a_changed_weight_is_noticed(trained: Path, tmp_path: Path) -> None:
    report = export_onnx(trained, tmp_path / "net.onnx")
    planes = encoding.planes(np.concatenate([played(range(1, 9))] * 8))
    network = network_of(read_network(trained))
    assert compare(report.path, network, planes).within(1e-6)
    with torch.no_grad():
        network.get_parameter("policy.conv.bias")[3] += 1e-3
    changed = compare(report.path, network, planes)
    assert not changed.within(1e-5)
    assert changed.policy == pytest.approx(1e-3, rel=0.01)
    assert changed.value < 1e-6
    with torch.no_grad():
        network.get_parameter("policy.conv.bias")[3] -= 1e-3
        network.get_parameter("value.out.bias")[0] += 1e-3
    assert not compare(report.path, network, planes).within(1e-5)


def test_logits_are_judged_by_their_scale_and_values_are_not() -> None:
    differences = export.Differences(policy=2e-5, value=1e-6, scale=4.0, positions=1)
    assert differences.within(1e-5)
    assert not replace(differences, scale=1.0).within(1e-5)
    assert not replace(differences, value=2e-5).within(1e-5)
    assert not replace(differences, value=float("nan")).within(1e-5)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_network_that_is_not_finite_is_not_exported(trained: Path, tmp_path: Path, number: float) -> None:
    checkpoint = with_weights(
        trained, tmp_path / "checkpoints", lambda weights: weights["policy.conv.bias"].fill_(number)
    )
    with pytest.raises(ExportError, match=r"net.onnx is not kept: on 64 positions its logits differ .* nan"):
        export_onnx(checkpoint, tmp_path / "net.onnx")
    assert os.listdir(tmp_path) == ["checkpoints"]


def test_a_file_that_fails_the_check_replaces_nothing(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_text("older")
    with pytest.raises(ExportError, match=r"is not kept: .* expected at most 0 of the scale"):
        export_onnx(trained, path, tolerance=0, force=True)
    assert os.listdir(tmp_path) == ["net.onnx"]
    assert path.read_text() == "older"
    with pytest.raises(ValueError, match="tolerance is nan, expected 0 or more"):
        export_onnx(trained, path, tolerance=float("nan"))


def test_an_existing_file_is_replaced_by_force_only(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "first@64.onnx"
    path.write_text("older")
    for out in (path, tmp_path):
        with pytest.raises(ExportError, match=r"first@64.onnx exists already: expected .* --force"):
            export_onnx(trained, out)
    assert path.read_text() == "older"
    assert export_onnx(trained, tmp_path, force=True).path == path
    onnx.checker.check_model(onnx.load(path))


def test_a_file_that_cannot_be_written_leaves_nothing(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, why in (("missing", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(ExportError, match=f"net.onnx cannot be written: {why}"):
            export_onnx(trained, tmp_path / place / "net.onnx")
    with files_no_longer_than(4096), pytest.raises(ExportError, match="cannot be written: File too large"):
        export_onnx(trained, tmp_path / "net.onnx")
    assert os.listdir(tmp_path) == ["file"]


def test_the_command_writes_the_file_and_one_line(folder: Path, trained: Path) -> None:
    path = folder / "first@64.onnx"
    path.write_text("older")
    done = keisei("export", "first", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    sha256 = read_network(trained).sha256
    size = f"{path.stat().st_size:,} bytes"
    assert done.stdout.startswith(
        f"first@64.onnx: {size}, opset 17, weights sha256 {sha256}; on 64 positions "
    )
    assert done.stdout.count("\n") == 1
    missing = keisei("export", "second", cwd=folder)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("keisei: no checkpoint at second: expected latest, a run, ")
    assert "keisei export first" in keisei("export", "--help", cwd=folder).stdout


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_a_missing_extra_is_one_line_and_told_before_torch_is_loaded(folder: Path, missing: str) -> None:
    code = (
        f"import atexit, sys; sys.modules[{missing!r}] = None; sys.argv[1:] = ['export', 'first', '--force'];"
        "atexit.register(lambda: print('torch' in sys.modules)); from keisei.cli import main; main()"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert (
        done.stderr == f"keisei: {missing} is missing: pip install '.[onnx]' in Keisei's source directory\n"
    )


def test_the_example_of_the_page_runs_and_needs_no_torch(trained: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    export_onnx(trained, tmp_path / "first@16384.onnx")
    code = f"{example}\nimport sys\nprint('torch' in sys.modules)"
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *moves, value, loads_torch = done.stdout.splitlines()
    game = ShogiGame()
    game.push("7g7f")
    assert {line.split()[0] for line in moves} <= set(map(str, game.legal_moves()))
    assert len({line.split()[0] for line in moves}) == 3
    assert re.fullmatch(r"value for white: [+-]0\.\d{3}", value)
    assert loads_torch == "False"

"""One checkpoint: the same bits come back, or a refusal by name."""

import hashlib
import io
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from checkpoint_samples import assert_same, tiny

from keisei.runs.checkpoint import (
    Checkpoint,
    CheckpointError,
    checkpoint_path,
    load_checkpoint,
    save_checkpoint,
)


def seal(path: Path) -> None:
    """Make the manifest fit whatever the files are now, as a forger would."""
    files = {name: (path / name).read_bytes() for name in os.listdir(path) if name != "manifest.json"}
    entries = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
    }
    body = {"format": 1, "step": 7, "files": dict(sorted(entries.items()))}
    write_sealed(path, body)


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    checksum = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    (path / "manifest.json").write_bytes(
        json.dumps({**body, "manifest_sha256": checksum}, indent=1).encode() + b"\n"
    )


def header(text: bytes) -> bytes:
    """The beginning of a safetensors file."""
    return len(text).to_bytes(8, "little") + text


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.marker,)


# What comes back


def test_every_kind_of_tensor_comes_back_to_the_bit(tmp_path: Path) -> None:
    payloads = torch.tensor([0x7FC00001, 0x7F800001, -1, -(2**31), 1], dtype=torch.int32).view(torch.float32)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    shared = torch.arange(6.0)
    saved = Checkpoint(
        2**53 + 1,
        {
            "weights": {
                "nan_payloads": payloads,
                "channels_last": image,
                "transposed": torch.arange(6).view(2, 3).T,
                "strided": torch.arange(10)[::3],
                "parameter": torch.nn.Parameter(torch.randn(3)),
                "tied": shared,
                "tied_too": shared,
                "part": shared[2:4],
            },
            "optimizer": {
                "int64": torch.tensor([2**63 - 1, -(2**63)]),
                "bool": torch.tensor([True, False]),
                "scalar": torch.tensor(0.1, dtype=torch.float64),
                "empty": torch.empty(0, 3),
                "bytes": torch.arange(256, dtype=torch.uint8),
                "half": torch.tensor([1e-7, 65504.0], dtype=torch.float16),
                "brain": torch.tensor([3e38], dtype=torch.bfloat16),
            },
            "none": {},
        },
        {"games": bytes(range(256)), "nothing": b""},
        {"float": 0.1 + 0.2, "large": 2**80, "nested": {"list": [1, None, True, "歩\n"]}, "": {}},
    )
    path = save_checkpoint(tmp_path, saved)
    assert path == tmp_path / "step_9007199254740993"
    loaded = load_checkpoint(path)
    assert_same(loaded, saved)
    for group in loaded.tensors.values():
        for tensor in group.values():
            assert tensor.is_contiguous()
            tensor.zero_()  # memory of its own, that may be written
    assert image.is_contiguous(memory_format=torch.channels_last)


def test_the_directory_holds_what_the_manifest_says_and_nothing_else(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny(409600))
    assert os.listdir(tmp_path) == ["step_000000409600"]
    assert set(os.listdir(path)) == {"weights.safetensors", "games.bin", "state.json", "manifest.json"}
    manifest = json.loads((path / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["step"]) == (1, 409600)
    for name, entry in manifest["files"].items():
        data = (path / name).read_bytes()
        assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert safetensors.torch.load_file(path / "weights.safetensors")["w"].tolist() == [1.5, 2.5]


def test_a_copy_under_any_other_name_loads(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(save_checkpoint(tmp_path, tiny()), tmp_path / "the best one"))
    assert_same(load_checkpoint(copy), tiny())


@pytest.mark.parametrize(
    ("unfit", "words"),
    [
        (Checkpoint(-1, {}, {}, {}), "step is -1"),
        (Checkpoint(1, {"../weights": {}}, {}, {}), "name '../weights'"),
        (Checkpoint(1, {}, {"a.b": b""}, {}), "name 'a.b'"),
        (Checkpoint(1, {"w": {"__metadata__": torch.zeros(1)}}, {}, {}), "__metadata__"),
        (Checkpoint(1, {"w": {"x": torch.eye(2).to_sparse()}}, {}, {}), "tensors 'w' cannot be stored"),
        (Checkpoint(1, {"w": {"x": torch.zeros(1, dtype=torch.complex128)}}, {}, {}), "cannot be stored"),
        (Checkpoint(1, {}, {}, {"loss": float("nan")}), "not JSON"),
        (Checkpoint(1, {}, {}, {"when": Path()}), "not JSON"),
        (Checkpoint(1, {}, {}, {"shape": (1, 2)}), "'shape' would be read back as [1, 2]"),
        (Checkpoint(1, {}, {}, {"games": {1: 2}}), "'games' would be read back as {'1': 2}"),
    ],
)
def test_what_would_not_come_back_is_not_written(tmp_path: Path, unfit: Checkpoint, words: str) -> None:
    with pytest.raises(CheckpointError) as refusal:
        save_checkpoint(tmp_path, unfit)
    assert words in str(refusal.value)
    assert os.listdir(tmp_path) == []


# What is refused


def refused(path: Path, file: str) -> str:
    with pytest.raises(CheckpointError) as refusal:
        load_checkpoint(path)
    message = str(refusal.value)
    assert str(path) in message
    assert file in message
    assert message[0].islower() or message[0] == "/"
    return message


@pytest.mark.parametrize("name", ["weights.safetensors", "games.bin", "state.json", "manifest.json"])
def test_a_flipped_byte_anywhere_is_refused(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, tiny())
    whole = (path / name).read_bytes()
    for position in range(len(whole)):
        for flip in (0x01, 0x20):  # the second changes the case of a letter
            damaged = bytearray(whole)
            damaged[position] ^= flip
            (path / name).write_bytes(damaged)
            refused(path, name)
    (path / name).write_bytes(whole)
    load_checkpoint(path)


@pytest.mark.parametrize("name", ["weights.safetensors", "games.bin", "state.json", "manifest.json"])
def test_a_file_cut_or_grown_by_any_length_is_refused(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, tiny())
    whole = (path / name).read_bytes()
    for damaged in [*(whole[:length] for length in range(len(whole))), whole + b"\n", whole * 2]:
        (path / name).write_bytes(damaged)
        refused(path, name)


def test_a_flipped_byte_in_a_large_file_is_refused(tmp_path: Path) -> None:
    large = Checkpoint(7, {"weights": {"w": torch.randn(300_000)}}, {}, {})
    path = save_checkpoint(tmp_path, large)
    whole = bytearray((path / "weights.safetensors").read_bytes())
    for position in [0, 7, 8, 100, *random.Random(1).sample(range(len(whole)), 40), len(whole) - 1]:
        whole[position] ^= 1
        (path / "weights.safetensors").write_bytes(whole)
        refused(path, "weights.safetensors")
        whole[position] ^= 1


@pytest.mark.parametrize("name", ["weights.safetensors", "games.bin", "state.json", "manifest.json"])
def test_a_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, tiny())
    (path / name).unlink()
    assert f"{name} is missing" in refused(path, name)


@pytest.mark.parametrize("name", ["extra", "weights.pt", "more.bin", ".hidden"])
def test_an_extra_file_is_refused(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, tiny())
    (path / name).touch()
    assert f"{name} does not belong there" in refused(path, name)


@pytest.mark.parametrize("name", ["weights.safetensors", "games.bin", "state.json", "manifest.json"])
@pytest.mark.parametrize("kind", ["symlink", "directory", "pipe", "device"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    path = save_checkpoint(tmp_path, tiny())
    original = (path / name).rename(tmp_path / "elsewhere")
    if kind == "symlink":
        (path / name).symlink_to(original)
    elif kind == "directory":
        (path / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(path / name)
    else:
        (path / name).symlink_to("/dev/zero")
    message = refused(path, name)
    assert kind != "pipe" or f"{name} is not a regular file" in message


def test_a_path_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny())
    (tmp_path / "link").symlink_to(path)
    assert "symbolic link" in refused(tmp_path / "link", "link")
    (tmp_path / "file").write_bytes(b"weights")
    assert "Not a directory" in refused(tmp_path / "file", "file")
    (tmp_path / "empty").mkdir()
    assert "manifest.json is missing" in refused(tmp_path / "empty", "empty")
    assert "No such file" in refused(tmp_path / "nothing", "nothing")


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny(7)).rename(checkpoint_path(tmp_path, 8))
    assert "says step 7" in refused(path, "manifest.json")


def test_another_format_is_refused_by_its_number(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny())
    body = json.loads((path / "manifest.json").read_bytes())
    del body["manifest_sha256"]
    write_sealed(path, {**body, "format": 2})
    assert "format 2, this version of keisei reads 1" in refused(path, "manifest.json")


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("name", ["weights.safetensors", "state.json", "manifest.json"])
def test_a_pickle_is_refused_and_never_run(tmp_path: Path, name: str, sealed: bool) -> None:
    marker = tmp_path / "marker"
    stored = io.BytesIO()
    torch.save({"w": torch.zeros(2), "bomb": Bomb(marker)}, stored)
    for data in (pickle.dumps(Bomb(marker)), stored.getvalue()):
        path = save_checkpoint(tmp_path, tiny())
        (path / name).write_bytes(data)
        if sealed and name != "manifest.json":
            seal(path)
            refused(path, name)
        else:
            refused(path, name)
        shutil.rmtree(path)
    assert not marker.exists()
    pickle.loads(pickle.dumps(Bomb(marker)))
    assert marker.exists()  # so the bomb was one


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("state.json", b"[" * 100_000),
        ("state.json", b"[]"),
        ("state.json", b'{"n": ' + b"9" * 10_000 + b"}"),
        ("state.json", b'{"a": "\xff"}'),
        ("weights.safetensors", b""),
        ("weights.safetensors", b"\xff" * 64),
        ("weights.safetensors", header(b'{"w":{"dtype":"F32","shape":[9],"data_offsets":[0,8]}}') + bytes(8)),
        ("weights.safetensors", header(b'{"w":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}') + bytes(8)),
    ],
)
def test_a_forged_file_with_the_right_hash_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    path = save_checkpoint(tmp_path, tiny())
    (path / name).write_bytes(data)
    seal(path)
    refused(path, name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": {"/elsewhere.bin": {"bytes": 0, "sha256": ""}}}, "manifest.json is damaged"),
        ({"files": {"../elsewhere.bin": {"bytes": 0, "sha256": ""}}}, "manifest.json is damaged"),
        ({"files": {"state.json": {"bytes": "3", "sha256": ""}}}, "manifest.json is damaged"),
        ({"files": {"state.json": 3}}, "manifest.json is damaged"),
        ({"files": []}, "manifest.json is damaged"),
        ({"files": {}}, "manifest.json does not name state.json"),
        (
            {"files": {"state.json": {"bytes": 10**30, "sha256": ""}}},
            f"state.json has 3 bytes, expected {10**30}",
        ),
        ({"files": {"state.json": {"bytes": 3, "sha256": ""}}}, "state.json is damaged"),
        ({"step": "7"}, "manifest.json is damaged"),
        ({"step": 7.0}, "manifest.json is damaged"),
        ({"step": -7}, "manifest.json says step -7"),
    ],
)
def test_a_forged_manifest_with_the_right_checksum_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = save_checkpoint(tmp_path, Checkpoint(7, {}, {}, {})).rename(tmp_path / "other")
    body = json.loads((path / "manifest.json").read_bytes())
    del body["manifest_sha256"]
    write_sealed(path, {**body, **change})
    assert words in refused(path, "")


def test_a_huge_manifest_is_refused_unread(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny())
    os.truncate(path / "manifest.json", 1 << 40)
    assert "manifest.json has 1099511627776 bytes, expected 1048576" in refused(path, "manifest.json")

"""The checkpoints of a run: the newest, the same step again, pruning, the best."""

import json
import os
import random
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from checkpoint_samples import assert_same, tiny

from keisei.runs.checkpoint import (
    SPREAD,
    CheckpointError,
    best_checkpoint,
    checkpoint_path,
    checkpoint_steps,
    load_checkpoint,
    mark_best,
    newest_checkpoint,
    prune_checkpoints,
    save_checkpoint,
    spread_steps,
)

# The newest one


def test_the_newest_valid_one_is_found_and_the_damaged_are_named(tmp_path: Path) -> None:
    for step in (5, 10**12, 90, 100):
        save_checkpoint(tmp_path, tiny(step))
    (checkpoint_path(tmp_path, 10**12) / "games.bin").write_bytes(b"")
    (checkpoint_path(tmp_path, 100) / "manifest.json").unlink()
    (tmp_path / ".tmp-step_000000000200-0").mkdir()
    (tmp_path / "step_200").mkdir()
    (tmp_path / "step_0000000000300").mkdir()
    newest, notices = newest_checkpoint(tmp_path)
    assert newest.step == 90
    assert [notice.split(": ")[0] for notice in notices] == ["skipped a damaged checkpoint"] * 2
    assert "step_1000000000000: games.bin has 0 bytes, expected 6" in notices[0]
    assert "step_000000000100: manifest.json is missing" in notices[1]
    assert checkpoint_steps(tmp_path) == [10**12, 100, 90, 5]


def test_no_valid_one_is_an_error_that_names_them_all(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="it has none"):
        newest_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=r"nowhere: No such file or directory"):
        newest_checkpoint(tmp_path / "nowhere")
    for step in (1, 2):
        (save_checkpoint(tmp_path, tiny(step)) / "state.json").write_bytes(b"{}")
    with pytest.raises(
        CheckpointError, match=r"step_000000000002: state.json .*step_000000000001: state.json"
    ):
        newest_checkpoint(tmp_path)


def test_leftovers_are_removed_by_the_next_save(tmp_path: Path) -> None:
    (tmp_path / ".tmp-step_000000000007-0").mkdir()
    (tmp_path / ".tmp-step_000000000007-0" / "weights.safetensors").touch()
    (tmp_path / ".tmp-best.json-0").touch()
    save_checkpoint(tmp_path, tiny(7))
    assert os.listdir(tmp_path) == ["step_000000000007"]


# The same step again


def test_the_very_same_checkpoint_is_left_as_it_is(tmp_path: Path) -> None:
    before = (save_checkpoint(tmp_path, tiny()) / "manifest.json").stat().st_ino
    assert (save_checkpoint(tmp_path, tiny()) / "manifest.json").stat().st_ino == before


def test_another_one_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, tiny(value=1.0))
    assert_same(load_checkpoint(save_checkpoint(tmp_path, tiny(value=2.0))), tiny(value=2.0))
    assert os.listdir(tmp_path) == ["step_000000000007"]


def test_a_damaged_one_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    (save_checkpoint(tmp_path, tiny()) / "games.bin").unlink()
    assert_same(load_checkpoint(save_checkpoint(tmp_path, tiny())), tiny())
    shutil.rmtree(checkpoint_path(tmp_path, 7))
    checkpoint_path(tmp_path, 7).write_bytes(b"a file")
    assert_same(load_checkpoint(save_checkpoint(tmp_path, tiny())), tiny())
    assert os.listdir(tmp_path) == ["step_000000000007"]


def test_a_replacement_cut_off_between_its_renames_loses_nothing(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, tiny(value=1.0))
    path.rename(tmp_path / "step_000000000007.replaced")
    newest, notices = newest_checkpoint(tmp_path)
    assert_same(newest, tiny(value=1.0))
    assert notices == []
    save_checkpoint(tmp_path, tiny(8))
    assert_same(load_checkpoint(path), tiny(value=1.0))

    old = shutil.copytree(path, tmp_path / "old")
    save_checkpoint(tmp_path, tiny(value=2.0))
    Path(old).rename(tmp_path / "step_000000000007.replaced")  # this time interrupted after the second
    assert prune_checkpoints(tmp_path, keep=2) == []
    assert_same(load_checkpoint(path), tiny(value=2.0))
    assert sorted(os.listdir(tmp_path)) == ["step_000000000007", "step_000000000008"]


# Pruning, and the best one


def test_the_oldest_go_and_the_spared_stay(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4, 5, 6):
        save_checkpoint(tmp_path, tiny(step))
    assert prune_checkpoints(tmp_path, keep=3, spare={2}) == [1, 3]
    assert sorted(os.listdir(tmp_path)) == [f"step_00000000000{step}" for step in (2, 4, 5, 6)]
    assert prune_checkpoints(tmp_path, keep=3, spare=[6]) == [2]
    assert prune_checkpoints(tmp_path, keep=9) == []
    with pytest.raises(ValueError, match="keep is 0, expected at least 1"):
        prune_checkpoints(tmp_path, keep=0)


def test_a_damaged_one_is_not_kept_in_place_of_a_valid_one(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save_checkpoint(tmp_path, tiny(step))
    for step in (3, 4):
        (checkpoint_path(tmp_path, step) / "games.bin").write_bytes(b"\x00gamf\xff")
    assert prune_checkpoints(tmp_path, keep=1) == [1]
    assert newest_checkpoint(tmp_path)[0].step == 2
    save_checkpoint(tmp_path, tiny(5))
    assert prune_checkpoints(tmp_path, keep=1) == [2, 3, 4]


def test_the_best_one_is_remembered(tmp_path: Path) -> None:
    assert best_checkpoint(tmp_path) is None
    for step in (1, 2):
        save_checkpoint(tmp_path, tiny(step))
    mark_best(tmp_path, 1, 0.1 + 0.2)
    assert best_checkpoint(tmp_path) == (1, 0.1 + 0.2)
    mark_best(tmp_path, 2, 1)
    assert best_checkpoint(tmp_path) == (2, 1.0)
    with pytest.raises(
        CheckpointError, match=r"best.json cannot name step 3: .*step_000000000003 does not exist"
    ):
        mark_best(tmp_path, 3, 2.0)
    with pytest.raises(CheckpointError, match=r"best.json cannot be written: not JSON"):
        mark_best(tmp_path, 2, float("nan"))
    assert json.loads((tmp_path / "best.json").read_bytes()) == {"step": 2, "score": 1.0}
    assert sorted(os.listdir(tmp_path)) == ["best.json", "step_000000000001", "step_000000000002"]


@pytest.mark.parametrize("data", [b"", b"{}", b'{"step": 1}', b'{"step": true, "score": 1.0}', b"\x80\x04N."])
def test_a_damaged_best_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "best.json").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"best.json"):
        best_checkpoint(tmp_path)


def test_a_growing_run_keeps_a_few_checkpoints_evenly_spread() -> None:
    """Kept one by one, as a run does, they are those that would be chosen of all."""
    moments, kept, saved, step = random.Random(1), set[int](), set[int](), 0
    for _ in range(500):
        step += moments.choice([256, 250_000, 250_368])
        saved.add(step)
        kept = spread_steps(kept | {step})
        assert kept == spread_steps(saved)
        assert len(kept) <= SPREAD
    ordered = sorted(kept)
    gaps = [after - before for before, after in pairwise([0, *ordered])]
    assert len(kept) >= 5
    assert max(gaps) < step / 4
    assert spread_steps([]) == set()

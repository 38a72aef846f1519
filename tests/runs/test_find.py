"""One grammar for runs and checkpoints, whether for playing or resuming."""

import json
import os
import shutil
from pathlib import Path

import pytest
from checkpoint_samples import tiny

from keisei.runs.checkpoint import CheckpointError, checkpoint_path, mark_best, save_checkpoint
from keisei.runs.find import Found, find, find_checkpoint


def begin(parent: Path, name: str, *steps: int) -> Path:
    run = parent / name
    (run / "checkpoints").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"resumed": []}))
    for step in steps:
        save_checkpoint(run / "checkpoints", tiny(step))
    return run


def saved(run: Path, step: int) -> Path:
    return checkpoint_path(run / "checkpoints", step)


def test_the_latest_is_the_run_that_saved_last(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no run in .*nowhere: No such file or directory"):
        find("latest", tmp_path / "nowhere")
    for name in ("b", "a", "c"):
        begin(tmp_path, name)
    with pytest.raises(CheckpointError, match=r"has a checkpoint \(3 without one\)"):
        find("latest", tmp_path)
    for time, name in enumerate(("b", "a")):
        save_checkpoint(tmp_path / name / "checkpoints", tiny(9 - time))
        os.utime(tmp_path / name / "checkpoints", (time, time))
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").touch()
    assert find("latest", tmp_path) == Found(tmp_path / "a", any_valid=True)
    save_checkpoint(tmp_path / "b" / "checkpoints", tiny(10))
    assert find("latest", tmp_path) == Found(tmp_path / "b", any_valid=True)
    assert find_checkpoint("latest", tmp_path) == saved(tmp_path / "b", 10)
    assert find("latest@9", tmp_path) == Found(tmp_path / "b", saved(tmp_path / "b", 9))


def test_a_run_is_found_by_path_by_name_and_by_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(tmp_path / "runs", "fast", 3)
    assert find(str(run), Path("elsewhere")) == Found(run)
    assert find("fast", tmp_path / "runs") == Found(run)
    assert find(str(saved(run, 3)), Path("elsewhere")) == Found(run, saved(run, 3))
    monkeypatch.chdir(run / "checkpoints")
    assert find(saved(run, 3).name, Path("elsewhere")) == Found(run, Path(saved(run, 3).name))


def test_a_checkpoint_is_named_after_an_at_sign(tmp_path: Path) -> None:
    run = begin(tmp_path, "fast", 3, 5, 7)
    for which, step in (("latest", 7), ("5", 5), ("3", 3)):
        for where in (f"fast@{which}", f"latest@{which}", f"{run}@{which}"):
            assert find(where, tmp_path) == Found(run, saved(run, step))
    with pytest.raises(CheckpointError, match=r"fast has no best checkpoint: .*best\.json does not exist$"):
        find("latest@best", tmp_path)
    mark_best(run / "checkpoints", 5, 1.0)
    assert find("latest@best", tmp_path) == find("fast@best", tmp_path) == Found(run, saved(run, 5))
    with pytest.raises(CheckpointError, match=r"no checkpoint @4: expected best, latest or one of 3, 5, 7$"):
        find("fast@4", tmp_path)
    with pytest.raises(CheckpointError, match="is itself a checkpoint and has no @best"):
        find(f"{saved(run, 3)}@best", tmp_path)


def test_playing_takes_the_best_of_a_run_or_its_last(tmp_path: Path) -> None:
    run = begin(tmp_path, "fast", 3, 5, 7)
    assert find_checkpoint("fast", tmp_path) == find_checkpoint("latest", tmp_path) == saved(run, 7)
    mark_best(run / "checkpoints", 5, 1.0)
    assert find_checkpoint("fast", tmp_path) == find_checkpoint("latest", tmp_path) == saved(run, 5)
    assert find_checkpoint("fast@latest", tmp_path) == saved(run, 7)
    begin(tmp_path, "slow")
    with pytest.raises(CheckpointError, match=r"run .*slow has no checkpoint yet"):
        find_checkpoint("slow", tmp_path)


def test_a_checkpoint_of_a_run_is_found_also_when_it_is_damaged(tmp_path: Path) -> None:
    run = begin(tmp_path, "fast", 3)
    for path in saved(run, 3).iterdir():
        path.unlink()
    assert find(str(saved(run, 3)), tmp_path) == Found(run, saved(run, 3))


def test_a_checkpoint_may_lie_in_no_run(tmp_path: Path) -> None:
    run = begin(tmp_path, "fast", 3)
    alone = tmp_path / "copy" / "checkpoint"
    shutil.copytree(saved(run, 3), alone)
    assert find(str(alone), tmp_path) == Found(None, alone)
    assert find_checkpoint(str(alone), tmp_path) == alone


def test_what_is_no_run_is_not_found(tmp_path: Path) -> None:
    run = begin(tmp_path, "fast", 3)
    for where in (str(tmp_path), "slow", "slow@best", str(saved(run, 4)), "Latest"):
        with pytest.raises(CheckpointError) as refusal:
            find(where, tmp_path)
        assert str(refusal.value) == (
            f"no checkpoint at {where}: expected latest, a run, RUN@best, "
            "a checkpoint in RUN/checkpoints or shipped"
        )

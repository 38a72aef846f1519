"""A run that is stopped, killed or changed continues exactly, or says why it cannot."""

import dataclasses
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from training_runs import (
    KEISEI,
    SEARCHING,
    SMALL,
    assert_same,
    keisei,
    last,
    metrics,
    saved_steps,
    start,
    the_run,
    train,
    wait_for_a_new_checkpoint,
)

from keisei.core.native_tower import best_kernels, usable_kernels
from keisei.runs.checkpoint import (
    best_checkpoint,
    checkpoint_steps,
    load_checkpoint,
    mark_best,
    save_checkpoint,
)
from keisei.runs.find import find_checkpoint
from keisei.runs.load import load_network

KILLS = 20


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run of SMALL."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(folder, [*SMALL, "run.keep_checkpoints=100"])
    return the_run(folder)


def copy_of(run: Path, folder: Path) -> Path:
    copy = folder / "runs" / "copy"
    copy.parent.mkdir(exist_ok=True)
    shutil.copytree(run, copy)
    return copy


def test_the_same_seed_gives_the_same_metrics_and_weights(finished: Path, tmp_path: Path) -> None:
    train(tmp_path, [*SMALL, "run.keep_checkpoints=100"])
    assert metrics(the_run(tmp_path)) == metrics(finished)
    assert_same(last(the_run(tmp_path)), last(finished))


def test_another_seed_gives_others(finished: Path, tmp_path: Path) -> None:
    train(tmp_path, [*SMALL, "run.seed=2", "training.total_timesteps=512"])
    assert metrics(the_run(tmp_path))[0] != metrics(finished)[0]


def test_the_undisturbed_run_did_what_it_should(finished: Path) -> None:
    recorded = metrics(finished)
    assert [line["step"] for line in recorded] == [*range(256, 6144 + 1, 256)]
    assert any(line["games/late_starts"] for line in recorded)
    assert [line["step"] for line in recorded if "evaluation/random_score" in line] == [2048, 4096, 6144]
    assert recorded[0]["schedule/material_reward"] > recorded[5]["schedule/material_reward"] > 0
    assert recorded[-1]["schedule/material_reward"] == 0
    assert recorded[-1]["schedule/learning_rate"] < 0.3 * recorded[0]["schedule/learning_rate"]
    names = sorted(path.name for path in (finished / "checkpoints").iterdir() if path.is_dir())
    assert names == [f"step_{step:012d}" for step in range(512, 6144 + 1, 512)]


@pytest.mark.timeout(600)
def test_killed_twenty_times_at_random_points_it_ends_as_if_undisturbed(
    finished: Path, tmp_path: Path
) -> None:
    moments, kills, resumed, folder = random.Random(1), 0, 0, tmp_path / "0"
    while True:
        folder.mkdir(exist_ok=True)
        before = saved_steps(folder)
        if not before:  # killed before the first checkpoint: there is nothing to resume
            shutil.rmtree(folder / "runs", ignore_errors=True)
        overrides = [] if before else [*SMALL, "run.keep_checkpoints=100"]
        process = start(folder, resume=bool(before), overrides=overrides)
        resumed += bool(before)
        if kills % 2:  # on a busy machine it would else be killed at its start again and again
            wait_for_a_new_checkpoint(process, folder, before)
        process.join(moments.uniform(0.05, 0.9) if kills < KILLS else 120)
        if process.exitcode is None:
            process.kill()
            process.join(10)
            if process.exitcode == -signal.SIGKILL:
                kills += 1
                continue
        assert process.exitcode == 0  # it may also have ended just before it was killed
        assert metrics(the_run(folder)) == metrics(finished)
        assert_same(last(the_run(folder)), last(finished))
        if kills == KILLS:
            assert resumed >= KILLS // 4
            return
        # A fast machine finished between two kills: try again, from the beginning.
        folder = tmp_path / str(len(list(tmp_path.iterdir())))


@pytest.mark.timeout(600)
def test_a_run_that_searches_ends_as_if_undisturbed_too(tmp_path: Path) -> None:
    """Its replay window and its games are part of a checkpoint, and a search never outlasts a move."""
    overrides = [*SMALL, *SEARCHING, "training.total_timesteps=3072", "run.keep_checkpoints=100"]
    train(tmp_path / "undisturbed", overrides)
    expected = the_run(tmp_path / "undisturbed")
    recorded = metrics(expected)
    assert all(line["search/kl"] > 0 for line in recorded)
    assert last(expected).tensors["window"]["actions"].shape == (700,)
    moments, folder, kills = random.Random(2), tmp_path / "killed", 0
    while kills < 3:
        folder.mkdir(exist_ok=True)
        before = saved_steps(folder)
        process = start(folder, resume=bool(before), overrides=[] if before else overrides)
        wait_for_a_new_checkpoint(process, folder, before)
        process.join(moments.uniform(0.0, 0.1))
        process.kill()
        process.join(10)
        kills += 1
        if process.exitcode == 0:  # a fast machine has finished already: begin again
            shutil.rmtree(folder)
            kills = 0
    assert len(saved_steps(folder)) >= 3  # with the second the window is full
    train(folder, [], resume=True)
    assert metrics(the_run(folder)) == recorded
    assert_same(last(the_run(folder)), last(expected))


def test_a_run_can_change_its_algorithm_and_go_on(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    ends = {
        "search": [*SEARCHING, "training.total_timesteps=6656"],
        "search with more candidates": [
            "training.search.candidates=6",
            "training.search.reuse=0.1",  # some updates have no gradient step
            "training.total_timesteps=7168",
        ],
        "ppo": ["training.algorithm=ppo", "training.total_timesteps=7680"],
    }
    for what, overrides in ends.items():
        done = keisei("train", "--resume", "runs/copy", *overrides, cwd=tmp_path)
        assert done.returncode == 0, (what, done.stderr)
    recorded = metrics(copy)
    assert [("search/kl" in line, "policy/approx_kl" in line) for line in recorded[-2:]] == [
        (False, True)
    ] * 2
    by_search = [line for line in recorded if 6144 < line["step"] <= 7168]
    assert [line["update/minibatches"] for line in by_search] == [7, 8, 1, 0]
    assert all(("search/kl" in line) == (line["update/minibatches"] > 0) for line in by_search)


def wait_for(text: str, process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"the process ended without saying {text!r}")


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_leaves_a_run_that_goes_on_exactly(
    finished: Path, tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    with subprocess.Popen(
        [KEISEI, "train", "--config", "tiny", *SMALL, "run.keep_checkpoints=100"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for("moves/s", process)
        process.send_signal(signum)
        assert process.wait(60) == code
    saved = last(the_run(tmp_path))
    assert 0 < saved.step < 6144
    assert saved.step == metrics(the_run(tmp_path))[-1]["step"]
    done = keisei("train", "--resume", "latest", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert metrics(the_run(tmp_path)) == metrics(finished)
    assert_same(last(the_run(tmp_path)), last(finished))


def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    code = """
import os, signal, time
from keisei.training.interrupt import StopRequest
with StopRequest() as stop:
    stop.tell(lambda name: print("first", name, flush=True), lambda: print("leaving", flush=True))
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    print("not reached", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (143, "first SIGINT\nleaving\n")


def test_a_damaged_checkpoint_is_refused_by_name_and_passed_over_only_for_latest(
    finished: Path, tmp_path: Path
) -> None:
    copy = copy_of(finished, tmp_path)
    newest = copy / "checkpoints" / "step_000000006144"
    weights = bytearray((newest / "weights.safetensors").read_bytes())
    weights[len(weights) // 2] ^= 1
    (newest / "weights.safetensors").write_bytes(weights)

    refused = keisei("train", "--resume", str(newest), cwd=tmp_path)
    assert refused.returncode == 2
    assert "step_000000006144" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1

    passed_over = keisei("train", "--resume", "latest", cwd=tmp_path)
    assert passed_over.returncode == 0, passed_over.stderr
    assert re.search(r"skipped a damaged checkpoint: .*step_000000006144", passed_over.stdout)
    assert_same(last(copy), last(finished))
    assert metrics(copy) == metrics(finished)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("model.channels=16", "model.channels"),
        ("run.seed=3", "run.seed"),
        ("training.games=8", "training.games"),
        ("env.max_moves=100", "env.max_moves"),
        ("training.learning_rat=1", "training.learning_rate"),
    ],
)
def test_an_unsafe_change_is_refused(finished: Path, change: str, said: str) -> None:
    before = metrics(finished)
    done = keisei("train", "--resume", str(finished), change, cwd=finished.parent)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert metrics(finished) == before


def test_a_safe_change_is_told(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    done = keisei("train", "--resume", "runs/copy", "training.total_timesteps=6400", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "changed: training.total_timesteps: 6144 -> 6400" in done.stdout
    assert metrics(copy)[-1]["step"] == 6400
    log = (copy / "train.log").read_text(encoding="utf-8").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  \S", line) for line in log)
    first, second = (number for number, line in enumerate(log) if "  run " in line)
    assert log[first].endswith("moves 0 to 6,144")
    assert "  trained on 6,144 moves" in log[second - 1]
    assert log[second].endswith("moves 6,144 to 6,400")
    assert log[second + 1].endswith("  changed: training.total_timesteps: 6144 -> 6400")
    assert "  trained on 6,400 moves" in log[-1]


def test_two_processes_cannot_train_in_one_directory(tmp_path: Path) -> None:
    first = start(
        tmp_path, resume=False, overrides=[*SMALL, "training.total_timesteps=1000000000", "run.name=one"]
    )
    try:
        deadline = time.monotonic() + 240
        while not list(tmp_path.glob("runs/one/checkpoints/step_*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for arguments in (["--resume", "runs/one"], ["--config", "tiny", "run.name=one"]):
            second = keisei("train", *arguments, cwd=tmp_path)
            assert second.returncode == 2
            assert f"process {first.pid}" in second.stderr
    finally:
        first.kill()
        first.join(10)


@pytest.mark.parametrize("settings", [[], SEARCHING], ids=["ppo", "search"])
def test_weights_that_are_not_finite_stop_the_run_with_a_dump(
    finished: Path, tmp_path: Path, settings: list[str]
) -> None:
    copy = copy_of(finished, tmp_path)
    for path in (copy / "checkpoints").iterdir():
        if path.is_dir() and path.name != "step_000000000512":
            shutil.rmtree(path)
    poisoned = load_checkpoint(copy / "checkpoints" / "step_000000000512")
    poisoned.tensors["weights"]["stem.weight"].fill_(float("nan"))
    save_checkpoint(copy / "checkpoints", poisoned)
    done = keisei("train", "--resume", "runs/copy", *settings, cwd=tmp_path)
    assert done.returncode == 1
    assert "not finite in 3 gradient steps in a row" in done.stderr
    assert (copy / "not_finite.npz").exists()


def test_a_disk_that_is_full_does_no_harm(tmp_path: Path) -> None:
    limit = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # its data would not fit either
os.execv(sys.argv[1], sys.argv[1:])
"""
    training = ["train", "--config", "tiny", *SMALL, "training.total_timesteps=1024"]
    command = [sys.executable, "-c", limit, KEISEI, *training]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert re.search(r"step_000000000512 cannot be written: .*; the run continues", done.stdout)
    assert re.search(r"step_000000001024 cannot be written", done.stderr)
    assert "Traceback" not in done.stderr
    assert not list(the_run(tmp_path).glob("checkpoints/*"))
    assert [line["step"] for line in metrics(the_run(tmp_path))] == [256, 512, 768, 1024]


def test_to_go_on_from_an_older_checkpoint_sets_the_newer_ones_aside(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    older = copy / "checkpoints" / "step_000000005120"
    done = keisei("train", "--resume", str(older), "training.total_timesteps=5376", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert last(copy).step == 5376
    (aside,) = (copy / "set_aside").iterdir()
    assert f"set_aside/{aside.name}" in done.stdout
    assert sorted(path.name for path in aside.glob("step_*")) == ["step_000000005632", "step_000000006144"]
    assert_same(load_checkpoint(aside / "step_000000006144"), last(finished))
    assert (aside / "metrics.jsonl").read_bytes() == (finished / "metrics.jsonl").read_bytes()
    assert [line["step"] for line in metrics(copy)] == [*range(256, 5376 + 1, 256)]


@pytest.mark.parametrize("where", ["copy@5120", "latest@5120", "runs/copy@best"])
def test_a_checkpoint_to_go_on_from_is_named_as_for_playing(
    finished: Path, tmp_path: Path, where: str
) -> None:
    copy = copy_of(finished, tmp_path)
    mark_best(copy / "checkpoints", 5120, 1.0)
    done = keisei("train", "--resume", where, "training.total_timesteps=5376", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line["step"] for line in metrics(copy)] == [*range(256, 5376 + 1, 256)]
    assert len(list((copy / "set_aside").glob("*/step_*"))) == 2


def test_a_checkpoint_that_lies_in_no_run_is_not_continued(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "checkpoints" / "step_000000006144", tmp_path / "alone")
    done = keisei("train", "--resume", "alone", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "keisei: checkpoint alone is not in a run: expected one of a run\n"


def rewrite_settings(run: Path, text: str) -> None:
    """Write these settings to a run's config and to its last checkpoint."""
    (run / "config.yaml").write_text(text, encoding="utf-8")
    newest = last(run)
    state = {**newest.state, "config": yaml.safe_load(text)}
    save_checkpoint(run / "checkpoints", dataclasses.replace(newest, state=state))


def of_an_earlier_version(text: str) -> str:
    """Return settings under their old names."""
    text = text.replace(
        "  numerics: float32\n", "  precision: float32\n  channels_last: 'off'\n  compile: 'off'\n"
    )
    text = text.replace("  loggers: []\n", "  tensorboard: false\n  wandb: 'off'\n")
    text = text.replace(
        "  schedule: cosine\n", "  learning_rate_schedule: cosine\n  entropy_schedule: cosine\n"
    )
    text = text.replace(
        "  late_start_share:", "  late_start_pool: 512\n  late_start_plies: 12\n  late_start_share:"
    )
    assert {"precision", "channels_last", "compile", "tensorboard", "wandb"} <= set(
        yaml.safe_load(text)["run"]
    )
    return text


def test_a_run_of_an_earlier_version_goes_on_and_plays(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "today").mkdir()
    (tmp_path / "older").mkdir()
    today, older = copy_of(finished, tmp_path / "today"), copy_of(finished, tmp_path / "older")
    settings = (finished / "config.yaml").read_text(encoding="utf-8").replace(": native\n", ": float32\n")
    rewrite_settings(today, settings)
    rewrite_settings(older, of_an_earlier_version(settings))
    assert load_network(find_checkpoint(f"{older}@latest")).step == 6144
    for run in (today, older):
        done = keisei("train", "--resume", "latest", "--total-timesteps=6400", cwd=run.parents[1])
        assert done.returncode == 0, done.stderr
        changed = [line for line in done.stdout.splitlines() if "changed:" in line]
        assert [line.partition("changed: ")[2] for line in changed] == [
            "training.total_timesteps: 6144 -> 6400"
        ]
    assert metrics(older) == metrics(today)
    assert_same(last(older), last(today))


def test_wandb_that_is_missing_is_said_before_anything_is_written(tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", "run.loggers=[wandb-offline]", cwd=tmp_path)
    assert (done.returncode, not list(tmp_path.iterdir())) == (2, True)
    assert "pip install '.[wandb]' in Keisei's source directory" in done.stderr


def test_a_checkpoint_of_another_run_is_refused_by_name(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    stranger = load_checkpoint(copy / "checkpoints" / "step_000000006144")
    config = {**stranger.state["config"], "model": {**stranger.state["config"]["model"], "channels": 16}}
    save_checkpoint(
        copy / "checkpoints",
        dataclasses.replace(stranger, step=6400, state={**stranger.state, "config": config}),
    )
    for where in ("latest", "runs/copy/checkpoints/step_000000006400"):
        done = keisei("train", "--resume", where, cwd=tmp_path)
        assert done.returncode == 2
        assert "step_000000006400 does not belong to this run: model.channels" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert metrics(copy) == metrics(finished)


@pytest.mark.parametrize("spoil", ["weights", "settings", "games", "numerics"])
def test_a_checkpoint_that_makes_no_sense_is_refused_by_name(
    finished: Path, tmp_path: Path, spoil: str
) -> None:
    copy = copy_of(finished, tmp_path)
    good = load_checkpoint(copy / "checkpoints" / "step_000000006144")
    state, tensors, blobs = dict(good.state), dict(good.tensors), dict(good.blobs)
    if spoil == "weights":
        tensors["weights"] = {
            **tensors["weights"],
            "stem.weight": tensors["weights"]["stem.weight"][:4].clone(),
        }
    elif spoil == "settings":
        state["config"] = {**state["config"], "future": {}}
    elif spoil == "games":
        blobs["games_0"] = b"no games"
    else:
        state["numerics"] = {"float128": True}
    bad = dataclasses.replace(good, step=6400, state=state, tensors=tensors, blobs=blobs)
    save_checkpoint(copy / "checkpoints", bad)
    done = keisei("train", "--resume", "latest", "--total-timesteps=12288", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "step_000000006400" in done.stderr
    assert "Traceback" not in done.stderr
    if spoil == "settings":
        assert "has unknown settings: future: unknown key; nearest is " in done.stderr
    assert json.loads((copy / "run.json").read_text(encoding="utf-8"))["resumed"] == []


def test_formats_can_be_changed_on_resume_and_are_kept_otherwise(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    done = keisei(
        "train",
        "--resume",
        "latest",
        "run.numerics=float32+channels_last",
        "training.total_timesteps=6400",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert last(copy).state["numerics"]["channels_last"] is True
    assert "numerics: float32+channels_last" in (copy / "config.yaml").read_text(encoding="utf-8")
    done = keisei("train", "--resume", "latest", "training.total_timesteps=6656", cwd=tmp_path)
    assert last(copy).state["numerics"]["channels_last"] is True, done.stderr


def test_kernels_that_this_machine_has_not_are_replaced_and_told(finished: Path, tmp_path: Path) -> None:
    copy = copy_of(finished, tmp_path)
    good = last(copy)
    for kernels in ("portable", "mmx"):
        numerics = {**good.state["numerics"], "native": kernels}
        newer = dataclasses.replace(good, step=good.step + 256, state={**good.state, "numerics": numerics})
        save_checkpoint(copy / "checkpoints", newer)
        done = keisei("train", "--resume", "latest", f"--total-timesteps={newer.step + 256}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found, told = last(copy).state["numerics"]["native"], "the run computed with native mmx so far, now"
        assert found == (kernels if kernels in usable_kernels() else best_kernels())
        assert (told in done.stdout) == (kernels == "mmx")
        good = last(copy)


def test_an_override_is_checked_against_the_run_and_not_against_the_defaults(
    finished: Path, tmp_path: Path
) -> None:
    copy_of(finished, tmp_path)  # it uses minibatches of 64 moves, the default 256
    change = "training.steps_per_epoch=320"
    done = keisei("train", "--resume", "latest", change, "--total-timesteps=6400", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_best_checkpoint_is_kept_and_marked_again_if_its_mark_was_lost(
    finished: Path, tmp_path: Path
) -> None:
    best = best_checkpoint(finished / "checkpoints")
    assert best is not None
    copy = copy_of(finished, tmp_path)
    (copy / "checkpoints" / "best.json").unlink()
    changes = ["run.keep_checkpoints=1", "evaluation.every=0", "evaluation.final_games=0"]
    done = keisei("train", "--resume", "latest", *changes, "--total-timesteps=6656", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert best_checkpoint(copy / "checkpoints") == best
    # The parts of a run of 6,656 moves are 1,024 long, and it saved every 512.
    kept = {512, *range(1024, 6656, 1024), 6656, best[0]}
    assert checkpoint_steps(copy / "checkpoints") == sorted(kept, reverse=True)


def test_a_log_that_nobody_reads_any_more_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    training = [
        "train",
        "--config",
        "tiny",
        *SMALL,
        "training.total_timesteps=1000000000",
        "evaluation.every=512",
    ]
    with subprocess.Popen(
        [KEISEI, *training], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for("moves/s", process)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(60) == 1
        assert "the run is saved" in process.stderr.read()
    assert last(the_run(tmp_path)).step > 0

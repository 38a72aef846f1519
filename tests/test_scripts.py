"""Scripts and examples run as documented."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from compare_settings import Study, Workshop
from keep_network import keep, where_from

from keisei.config.config_errors import ConfigError
from keisei.errors import UserError
from keisei.profiling.processes import command_line
from keisei.runs.find import find_checkpoint
from keisei.runs.load import load_network
from keisei.shogi import ShogiGame
from keisei.shogi.positions import Positions

ROOT = Path(__file__).parents[1]


def run(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "GOMP_SPINCOUNT": "5000"},
    )


def test_the_example_of_a_loop_of_ones_own_trains_with_workers(tmp_path: Path) -> None:
    script = str(ROOT / "examples" / "parallel_training_example.py")
    done = run(script, "--workers", "2", "--updates", "2", "--steps", "512", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *updates, account, first, second = done.stdout.splitlines()
    assert [line.partition(",")[0] for line in updates] == ["update 1: 512 moves", "update 2: 512 moves"]
    assert account == "1,024 moves generated = 1,024 trained on + 0 in flight + 0 discarded"
    assert [line.partition(",")[0] for line in (first, second)] == [
        "worker 0: 512 moves",
        "worker 1: 512 moves",
    ]


def test_the_example_of_a_network_of_ones_own_trains(tmp_path: Path) -> None:
    done = run(str(ROOT / "examples" / "own_network.py"), "--steps", "512", "--width", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    update, end = done.stdout.splitlines()
    assert update.startswith("   512 moves: loss ")
    assert end.startswith("512 moves in runs/")


def test_the_example_of_a_sweep_prints_a_row_for_each_setting(tmp_path: Path) -> None:
    done = run(str(ROOT / "examples" / "sweep.py"), "--steps", "512", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heading, *rows = done.stdout.splitlines()
    assert heading.split() == ["loss", "entropy", "moves/s"]
    assert [row[:12].strip() for row in rows] == ["lr 0.0015", "lr 0.005", "ppo"]
    assert all(row.count("±") == 3 for row in rows)
    assert len([*(tmp_path / "runs").iterdir()]) == 6


def test_the_benchmark_of_workers_prints_its_tables_and_draws(tmp_path: Path) -> None:
    script = str(ROOT / "scripts" / "benchmark_parallel.py")
    small = ["--rounds", "1", "--network", "1x8", "--games", "8", "--steps", "4"]
    done = run(script, "--workers", "1,2", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    for name in ("one game, 1 thread", "serial, 1 thread", "1 workers", "2 workers", "end to end"):
        assert name in rows
    assert (tmp_path / "benchmark_parallel.png").stat().st_size > 10_000


def test_a_wrong_number_for_the_benchmark_is_one_line(tmp_path: Path) -> None:
    done = run(str(ROOT / "scripts" / "benchmark_parallel.py"), "--workers", "0,2", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected numbers from 1 up" in done.stderr.splitlines()[-1]


STUDY = """
cpu_seconds: 0.5
config: tiny
settings: [training.games=8]
variants:
  plain: [config=ppo, training.steps_per_epoch=64]
  with search: [training.search.simulations=2, training.search.candidates=2]
seeds: [3]
choosing: {opponents: [random], games: 2}
reporting: {opponents: [greedy], games: 2, visits: [0, 4]}
"""


@pytest.mark.timeout(900)
def test_a_study_trains_plays_reports_and_knows_what_it_has_done(tmp_path: Path) -> None:
    script = str(ROOT / "scripts" / "compare_settings.py")
    (tmp_path / "study.yaml").write_text(STUDY)
    command = [script, "study.yaml", "--out", "out", "--report", "--curve"]
    first = run(*command, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    tables = [line for line in first.stdout.splitlines() if line.startswith("| plain")]
    assert [line.split("|")[4].strip() for line in tables] == ["random", "greedy", "greedy, with 4 visits"]
    known = json.loads((tmp_path / "out" / "known.json").read_text())
    assert set(known["seconds"]) == {"plain-seed3", "with_search-seed3"}
    assert all(seconds > 0.5 for seconds in known["seconds"].values())
    assert set(known["moves"]) == {"plain", "with search"}
    assert min(known["moves"].values()) > 100
    config = yaml.safe_load((tmp_path / "out" / "runs" / "with_search-seed3" / "config.yaml").read_text())
    assert (config["training"]["algorithm"], config["run"]["seed"]) == ("search", 3)
    config = yaml.safe_load((tmp_path / "out" / "runs" / "plain-seed3" / "config.yaml").read_text())
    assert (config["training"]["algorithm"], config["model"]["piece_values"]) == ("ppo", "none")
    assert (tmp_path / "out" / "curve.png").stat().st_size > 5_000
    again = run(*command, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "CPU-seconds\n" not in again.stdout.replace("CPU-seconds |", "")  # nothing was trained
    assert json.loads((tmp_path / "out" / "known.json").read_text()) == known
    (tmp_path / "study.yaml").write_text(STUDY.replace("simulations=2", "simulations=3"))
    other = run(*command, cwd=tmp_path)
    assert other.returncode == 2
    assert "has runs of 'with search' with other settings: take another one" in other.stderr


@pytest.mark.timeout(900)
def test_a_study_that_makes_no_sense_is_one_line(tmp_path: Path) -> None:
    script = str(ROOT / "scripts" / "compare_settings.py")
    for old, new, error in (
        ("opponents: [greedy]", "opponents: [random]", "random: an opponent for choosing cannot be one"),
        ("cpu_seconds", "seconds", "got an unexpected keyword argument 'seconds'"),
        ("games=8", "games=0", "training.games"),
        ("with search", "a/b", "variant 'a/b': expected letters"),
        ("seeds: [3]", "seeds: []", "at least one variant and seed"),
        ("seeds: [3]", "seeds: 3", "expected a list of settings for each variant"),
        ("seeds: [3]", "seeds: [3, 3]", "have the same name"),
        (
            "  plain: [config=ppo, training.steps_per_epoch=64]",
            "  plain:",
            "expected a list of settings for each variant",
        ),
        ("cpu_seconds: 0.5", "cpu_seconds: soon", "cpu_seconds is 'soon', expected a number above 0"),
    ):
        (tmp_path / "study.yaml").write_text(STUDY.replace(old, new))
        done = run(script, "study.yaml", "--out", "out", cwd=tmp_path)
        assert done.returncode == 2, new
        assert error in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("cpu_seconds: 0.5", "cpu_seconds: .inf", "cpu_seconds is inf, expected a number above 0"),
        ("config: tiny", "config: 5", "config is 5, expected a shipped config or a file"),
        ("settings: [training.games=8]", "settings: [8]", "expected a list of settings for each variant"),
        ("  plain:", "  1:", "variant 1: expected a text"),
        ("seeds: [3]", "seeds: [one]", "run.seed: given one, expected a whole number"),
        ("[random], games: 2", "random, games: 2", "choosing: opponents is 'random', expected a list"),
        ("[random], games: 2", "[], games: 2", "expected a list of different players"),
        ("[random], games: 2", "[random, random], games: 2", "expected a list of different players"),
        ("[random], games: 2", "[nobody], games: 2", "player 'nobody': not one of random, greedy"),
        ("[random], games: 2", "['usi:nothing;depth=1'], games: 2", "nothing: No such file or directory"),
        ("[random], games: 2", "[random], games: 3", "games is 3, expected an even number, at least 2"),
        ("visits: [0, 4]", "visits: 4", "reporting: visits is 4, expected a list of numbers, 0 or more"),
        ("visits: [0, 4]", "visits: [-1]", "expected a list of numbers, 0 or more"),
        ("{opponents: [random], games: 2}", "5", "choosing is 5, expected opponents, games and visits"),
    ],
)
def test_what_would_end_a_study_later_is_said_before_it_begins(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    assert old in STUDY
    (tmp_path / "study.yaml").write_text(STUDY.replace(old, new))
    with pytest.raises((UserError, ConfigError)) as caught:
        Workshop(Study.read(tmp_path / "study.yaml"), tmp_path / "out", 1).check_opponents()
    assert error in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_study_may_play_against_networks_that_it_trains_itself(tmp_path: Path) -> None:
    own = f"[random, {tmp_path / 'out' / 'runs' / 'plain-seed3'}], games: 2"
    (tmp_path / "study.yaml").write_text(STUDY.replace("[random], games: 2", own))
    Workshop(Study.read(tmp_path / "study.yaml"), tmp_path / "out", 1).check_opponents()


def test_a_study_whose_results_have_no_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "file").touch()
    script = str(ROOT / "scripts" / "compare_settings.py")
    done = run(script, "study.yaml", "--out", "file/out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "compare_settings.py: file/out: Not a directory\n"


@pytest.mark.timeout(600)
def test_the_seconds_of_a_run_are_known_after_a_kill_and_nothing_trains_on(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    code = f"""
from pathlib import Path
import compare_settings
compare_settings.NOTE_EVERY = 0.2
study = compare_settings.Study.read(Path({str(tmp_path / "study.yaml")!r}))
workshop = compare_settings.Workshop(study, Path({str(tmp_path / "out")!r}), 1)
workshop._process("killed", "with search", 3, 10**9)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT / "scripts") as script:
        try:
            until(lambda: any((tmp_path / "out" / "runs" / "killed" / "checkpoints").glob("step_*")))
            before = seconds_of_unfinished(tmp_path)
            until(lambda: seconds_of_unfinished(tmp_path) > before > 0)
            children = Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text().split()
        finally:
            script.kill()
    (child,) = map(int, children)
    until(lambda: "train" not in command_line(child))  # a zombie has none
    log = (tmp_path / "out" / "runs" / "killed" / "train.log").read_text()
    assert "SIGTERM" in log


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 250
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def seconds_of_unfinished(folder: Path) -> float:
    known = folder / "out" / "known.json"
    unfinished = json.loads(known.read_text())["unfinished"] if known.exists() else {}
    return float(unfinished.get("killed", 0.0))


@pytest.mark.timeout(900)
def test_a_kept_network_plays_the_same_and_says_where_it_comes_from(tmp_path: Path) -> None:
    settings = ["run.name=first", "run.seed=7", f"run.directory={tmp_path / 'runs'}", "evaluation.every=0"]
    settings += ["evaluation.final_games=0", "training.total_timesteps=512"]
    train = "from keisei.cli import main; main()"
    assert run("-c", train, "train", "--config", "tiny", *settings, cwd=tmp_path).returncode == 0
    script = str(ROOT / "scripts" / "keep_network.py")
    done = run(script, "runs/first", "--out", "networks/kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kept, trained = (
        load_network(tmp_path / "networks" / "kept"),
        load_network(find_checkpoint("first", tmp_path / "runs")),
    )
    assert (kept.sha256, kept.step) == (trained.sha256, 512)
    positions = Positions.of_games([ShogiGame()])
    for one, other in zip(kept.policy.evaluate(positions), trained.policy.evaluate(positions), strict=True):
        np.testing.assert_array_equal(one, other)
    state = json.loads((tmp_path / "networks" / "kept" / "state.json").read_text())
    assert (state["from"]["seed"], state["from"]["sha256"]) == (7, kept.sha256)
    assert "run.name=first" in state["from"]["pieces"][0]["command"]
    assert str(tmp_path) not in json.dumps(state)
    assert {path.name for path in (tmp_path / "networks" / "kept").iterdir()} == {
        "manifest.json",
        "state.json",
        "weights.safetensors",
    }
    for network, message in (
        ("runs/first", "exists already"),
        ("networks/kept", "is not a run's checkpoint"),
    ):
        again = run(script, network, "--out", "networks/kept", cwd=tmp_path)
        assert again.returncode == 2
        assert message in again.stderr
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file/kept cannot be written: Not a directory"):
        keep(find_checkpoint("first", tmp_path / "runs"), tmp_path / "file" / "kept")


def test_a_kept_network_does_not_say_where_files_were(tmp_path: Path) -> None:
    checkpoint = tmp_path / "runs" / "first" / "checkpoints" / "step_000000000001"
    checkpoint.mkdir(parents=True)
    facts = {"time": "", "versions": {}, "platform": "", "cores": 2, "git": None, "seed": 7}
    places = ["--config", f"{tmp_path}/mine.yaml", f"run.directory={tmp_path}"]
    again = {**facts, "command": ["keisei", "train", "--resume", str(tmp_path / "runs" / "first")]}
    run_facts = {**facts, "command": ["keisei", "train", *places, "run.seed=7"], "resumed": [again]}
    (checkpoint.parents[1] / "run.json").write_text(json.dumps(run_facts))
    first, then = where_from(checkpoint)["pieces"]
    assert first["command"] == ["keisei", "train", "--config", "mine.yaml", "run.seed=7"]
    assert then["command"] == ["keisei", "train", "--resume", "first"]

"""`keisei train` as the user sees it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from training_runs import keisei, last, metrics, the_run

from keisei.config.files import load_config
from keisei.core.device import cores
from keisei.training.metrics import explanation, read_metrics

ROOT = Path(__file__).parents[2]


def test_a_run_leaves_everything_that_is_needed_to_repeat_it(tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", "run.name=first", "run.loggers=[tensorboard]", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    run = tmp_path / "runs" / "first"
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["model"]["channels"] == 8
    again = load_config(run / "config.yaml")
    assert again == load_config(
        "tiny", ["run.name=first", "run.loggers=[tensorboard]", "training.learners=1"]
    )
    described = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert described["seed"] == 1
    assert list((run / "tensorboard").iterdir())
    assert [line["step"] for line in metrics(run)] == [512, 1024, 1536, 2048]
    assert last(run).step == 2048
    assert "2,048" in done.stdout
    names = {name for line in read_metrics(run / "metrics.jsonl") for name in line} - {"step"}
    assert all(explanation(name) for name in names)
    assert not {name for name in names if name.startswith(("parallel/", "worker_"))}
    assert not {"time/collect", "time/synchronize"} & names

    picture = tmp_path / "console.svg"
    script = [sys.executable, str(ROOT / "scripts" / "draw_console.py"), str(run), str(picture), "--at", "1"]
    subprocess.run(script, timeout=120, check=True)
    drawn = picture.read_text(encoding="utf-8")
    assert "where" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_the_last_partial_epoch_is_trained_on_too(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "keisei" / "train.py"), "--config=tiny", "--total-timesteps=700"]
    command.append("training.algorithm=ppo")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    recorded = metrics(the_run(tmp_path))
    # 700 - 512 moves are 12 in each of 16 games, rounded up.
    assert [line["step"] for line in recorded] == [512, 512 + 12 * 16]
    assert [line["update/minibatches"] for line in recorded] == [4, 2]
    assert last(the_run(tmp_path)).step == 704


@pytest.mark.parametrize(
    ("players", "end", "minibatches"),
    [
        (["training.parallel.enabled=false", "training.games=16"], 80, 3),
        (
            [
                "training.parallel.enabled=true",
                "training.parallel.num_workers=2",
                "training.parallel.episodes_per_worker=8",
            ],
            72,
            1,
        ),
    ],
    ids=["serial", "workers"],
)
def test_an_epoch_of_20_moves_is_rounded_up_to_whole_rounds(
    tmp_path: Path, players: list[str], end: int, minibatches: int
) -> None:
    sizes = ["training.steps_per_epoch=20", "training.minibatch_size=7", "training.total_timesteps=70"]
    sizes.append("training.algorithm=ppo")
    quick = ["evaluation.every=0", "evaluation.final_games=0", "run.checkpoint_every=32"]
    done = keisei("train", "--config", "tiny", *sizes, *quick, *players, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = the_run(tmp_path)
    # 2 moves in each of 16 games; for the 6 that are left of 70, one in each, or one in each of a worker's 8.
    assert [row["step"] for row in metrics(run)] == [32, 64, end]
    assert [row["update/minibatches"] for row in metrics(run)] == [5, 5, minibatches]
    assert last(run).step == end
    more = keisei("train", "--resume", "latest", f"--total-timesteps={end + 1}", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert [row["step"] for row in metrics(run)] == [32, 64, end, end + end - 64]


def test_plot_takes_the_name_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "first"
    (run / "plots").mkdir(parents=True)
    (run / "run.json").write_text("{}", encoding="utf-8")
    (run / "metrics.jsonl").write_text('{"step": 1, "loss/total": 1.0}\n', encoding="utf-8")
    plotted = keisei("plot", "first", cwd=tmp_path)
    assert plotted.stdout == "runs/first/plots/curves.png\n", plotted.stderr


def test_time_is_up(tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", "training.max_minutes=0.00001", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = the_run(tmp_path)
    assert last(run).step == 512
    assert f"trained on 512 moves of 0 games, in runs/{run.name}: 1e-05 minutes are up" in done.stdout
    assert re.search(rf"\n +keisei train --resume runs/{run.name} +# train on\n$", done.stdout)


def test_the_end_says_why_how_strong_and_what_to_do_next(tmp_path: Path) -> None:
    done = keisei("train", "--config", "tiny", "run.name=a run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    end = done.stdout.partition("\ntrained on 2,048 moves of ")[2].splitlines()
    assert re.fullmatch(
        r"\d+ games, in runs/a run: all moves are played, after \d+:\d\d; "
        r"the best evaluation was at [\d,]+ \(.*@best\)",
        end[0],
    )
    assert re.fullmatch(
        r"evaluated at 2,048 moves: Elo -?\d+ \(-?\d+ to -?\d+\), \d+ % against random, \d+ % against greedy",
        end[1],
    )
    commands = [shlex.split(line, comments=True)[1:] for line in end[2:]]
    assert [command[0] for command in commands] == ["play", "evaluate", "plot", "train"]
    plotted = keisei(*commands[2], cwd=tmp_path)
    assert plotted.returncode == 0, plotted.stderr

    finished = keisei("train", "--resume", "runs/a run", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith(
        "run runs/a run is finished: 2,048 of 2,048 moves are played; train on with: "
    )
    finished = keisei("train", "--resume", "runs/a run@2048", cwd=tmp_path)
    assert finished.stdout == (
        "run runs/a run@2048 is finished: 2,048 of 2,048 moves are played; train on with: "
        "keisei train --resume 'runs/a run@2048' training.total_timesteps=4096\n"
    )
    assert last(tmp_path / "runs" / "a run").step == 2048

    on = [*commands[3][:-1], "training.total_timesteps=2560", "evaluation.final_games=0"]
    assert commands[3][-1] == "training.total_timesteps=4096"
    more = keisei(*on, cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert last(tmp_path / "runs" / "a run").step == 2560


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["training.games=0", "training.gama=1"], ["training.gamma", "training.games"]),
        (["run.device=cuda:77"], ["run.device"]),
        (["run.directory=/proc/nowhere"], ["/proc/nowhere"]),
        (["--config", "nowhere.yaml"], ["nowhere.yaml"]),
        (["--resume", "latest"], ["runs"]),
        (["--resume", "nowhere"], ["nowhere"]),
        (["--total-timesteps", "many"], ["--total-timesteps"]),
    ],
)
def test_a_mistake_is_told_in_a_line_each(tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    done = keisei("train", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == len(said)
    for line, text in zip(lines, said, strict=True):
        assert text in line
    assert not list(tmp_path.glob("runs/*/checkpoints/*"))


def test_help_teaches() -> None:
    done = keisei("train", "--help", cwd=ROOT)
    assert done.returncode == 0
    assert "--resume latest" in done.stdout
    assert "training.learning_rate=0.001" in done.stdout


def test_the_doctor_tells_what_is_here(tmp_path: Path) -> None:
    done = keisei("doctor", "--config", "tiny", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for subject in ("keisei", "torch", "cores", "device", "free disk", "formats", "wandb"):
        assert subject in done.stdout
    if cores() > 1:
        assert re.search(
            r"\nlearning +2 learners [\d,]+ moves/s, alone [\d,]+ with \d+ threads, ×", done.stdout
        )
    assert "training.learners: auto uses 1" in done.stdout
    assert re.search(r"^collecting +\d+ workers [\d,]+ moves/s, this process [\d,]+ ", done.stdout, re.M)
    assert not list(tmp_path.iterdir())

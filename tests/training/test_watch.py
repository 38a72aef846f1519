"""`keisei watch` beside a real training, which is killed at the end."""

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sessions import PATIENCE, learner, wait_for
from short_games import GAMES_END_SOON, WORKERS
from training_runs import KEISEI, keisei

pytestmark = pytest.mark.timeout(600)
SETTINGS = [*GAMES_END_SOON, *WORKERS, "training.total_timesteps=1000000000", "run.console=plain"]


def lines_of(watcher: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield the lines of a watcher's output until it ends."""
    assert watcher.stdout is not None
    yield from (line.rstrip("\n") for line in watcher.stdout)


def test_games_are_watched_until_the_training_is_killed(tmp_path: Path) -> None:
    started = time.monotonic()
    with learner("train", "--config", "tiny", *SETTINGS, "run.name=first", cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        command = [KEISEI, "watch", "--speed", "1000"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as watcher:
            seen = []
            for line in lines_of(watcher):
                seen.append(line)
                if re.fullmatch(r"game \d+: .* by .*, \d+ moves", line):
                    break
                assert time.monotonic() - started < PATIENCE
            watcher.send_signal(signal.SIGINT)
            assert watcher.wait(60) == 130
        assert seen[0] == "watching runs/first; games appear after its next update, Ctrl-C ends"
        move = r"game \d+, move \d+: \S+(, network: ☗ \d+ % ☖ \d+ %)?"
        assert all(re.fullmatch(move, line) for line in seen[1:-1])
        assert any("network" in line for line in seen)
        assert not (tmp_path / "runs" / "first" / "watching").exists()

        command = [KEISEI, "watch", "first", "--speed", "1000", "--lang", "ja"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as watcher:
            output = lines_of(watcher)
            assert next(output).startswith("runs/first を観戦します")
            move = r"第\d+局 \d+手目: [▲△]\S+(  期待勝率 ☗ \d+ % ☖ \d+ %)?"
            assert re.fullmatch(move, next(output))
            process.kill()
            rest = list(output)
            assert watcher.wait(60) == 0
    assert "runs/first は学習中ではありません" in rest
    assert rest[-1] == "  keisei train --resume runs/first"

    done = keisei("watch", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "runs/first is not training"
    games = tmp_path / "runs" / "first" / "evaluation" / "games"
    games.mkdir(parents=True)
    for name in ("greedy_vs_random-1", "first@512_vs_random-2"):
        (games / f"{name}.csa").touch()
    assert "first@512_vs_random-2.csa --game 1" in keisei("watch", cwd=tmp_path).stdout
    assert keisei("watch", "--lang", "ja", cwd=tmp_path).stdout.startswith(
        "runs/first は学習中ではありません\n"
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "no run in runs: No such file or directory"),
        (("nowhere",), "no run at nowhere: expected a run's path, or its name in runs"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = keisei("watch", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"keisei: {why}")

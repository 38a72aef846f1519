"""Scripts and examples run as documented."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=200,
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

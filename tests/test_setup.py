"""What the set-up promises: one clear line if the machine lacks something, and nothing is built twice."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


# These tests may themselves run under make, whose variables would reach the inner make.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )


def fake_python(folder: Path, version: str) -> str:
    """Return a command that answers like an old Python."""
    path = folder / f"python{version}"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_a_wrong_python_gives_one_clear_line(tmp_path: Path) -> None:
    done = make("tools", f"PYTHON={fake_python(tmp_path, '3.8')}")
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first.startswith("keisei needs Python 3.11 or newer, but '")
    assert all(line.startswith("make") for line in rest)


def test_no_python_at_all_gives_the_same_line() -> None:
    assert make("tools", "PYTHON=no-such-python").stderr.startswith("keisei needs Python 3.11 or newer")


def test_a_missing_compiler_gives_one_clear_line() -> None:
    done = make("tools", "CXX=no-such-compiler")
    assert done.returncode == 2
    assert done.stderr.startswith("keisei needs a C++20 compiler, but 'no-such-compiler' was not found")


def test_a_second_build_has_nothing_to_do_and_a_changed_source_has() -> None:
    if not list((ROOT / ".venv").glob(".built-*")):
        pytest.skip("this run does not use make's own .venv")
    version = f"PYTHON={sys.executable}"
    assert make("--question", version, "build").returncode == 0
    assert make("--question", version, "--what-if=native/movegen.cpp", "build").returncode == 1
    assert make("--question", version, "--what-if=constraints.txt", "build").returncode == 1


def test_another_python_is_set_up_anew(tmp_path: Path) -> None:
    path = tmp_path / "python3.99"
    path.write_text("#!/bin/sh\necho 3.99\n")
    path.chmod(0o755)
    assert make("--question", f"PYTHON={path}", "build").returncode == 1


def test_a_python_in_a_folder_with_spaces_and_a_compiler_with_options_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    assert make("tools", f"PYTHON={path}", "CXX=g++ -m64").returncode == 0


def test_every_target_of_help_exists() -> None:
    lines = make("help").stdout.splitlines()
    assert {"test", "lint", "bench", "sanitize", "fuzz"} <= {line.split()[0] for line in lines}
    for line in lines:
        assert make("--dry-run", line.split()[0]).returncode == 0


def test_ci_script_is_valid_bash() -> None:
    bash = shutil.which("bash")
    assert bash is not None
    assert subprocess.run([bash, "-n", ROOT / ".ci" / "run"], timeout=60).returncode == 0

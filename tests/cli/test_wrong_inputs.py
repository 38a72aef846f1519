"""Whatever is wrong on the command line: one line that says so, exit code 2, and nothing done.

The table is tests/data/wrong_inputs.tsv. Its commands run in children of one process that has everything
loaded (forked_commands), and some of them as processes of their own, to show that the answers are the same.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import table
from forked_commands import snapshot
from wrong_inputs import make_files

from keisei.cli.app import COMMANDS

pytestmark = pytest.mark.timeout(900)  # the first one waits for all commands

ROWS = {row[0]: row[1:] for row in table("wrong_inputs.tsv")}
# What cannot stand in the table: letters that no terminal shows, and names that are too long.
UNPRINTABLE = [
    (["train", "run.name=a\nb"], r"run.name: given 'a\nb', expected one line"),
    (["train", "run.name=a\x1bb"], r"run.name=a\x1bb: not YAML"),
    (
        ["train", "--config", "tiny", f"run.name={'x' * 300}"],
        "cannot start a run in runs: File name too long",
    ),
    (
        ["train", "--config", "tiny", f"run.name={'漢' * 100}"],
        "cannot start a run in runs: File name too long",
    ),
    (["train", "--config", "a\nb.yaml"], r"a\nb.yaml: no such file or shipped config"),
    (["train", "--resume", "a\nb"], r"no checkpoint at a\nb: expected latest, a run"),
    (["show", "a\nb.kif"], r"a\nb.kif: No such file or directory"),
    (["show", "a\x1b[31mb.kif"], r"a\x1b[31mb.kif: No such file or directory"),
    (["play", "random", "--save", f"{'x' * 300}.kif"], "File name too long"),
    (["play", "random", "--color", "re\nd"], r"color is re\nd, expected black, white or random"),
]
SCRIPT = "scripts/"
AS_PROCESSES = [
    "nonsense",
    "train --lr 0.1",
    "config training.games=0 training.typo=1",
    "plot metrics-broken --out nodir/x.png",
    "play 'first;visits=x'",
    "show illegal.kif",
    "perft 1 '歩'",
    "keisei/train.py run.device=tpu",
    "scripts/release_notes.py v99",
]

Result = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    make_files(folder)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[tuple[str, ...], Result]:
    """Return what happened to every command of the table."""
    commands = [*map(shlex.split, ROWS), *(arguments for arguments, _ in UNPRINTABLE)]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("forked_commands.py"), folder],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=880,
        check=True,
    )
    return dict(zip(map(tuple, commands), json.loads(done.stdout), strict=True))


def check(result: Result, answers: list[str], *, script: bool) -> None:
    assert result["code"] == 2, result
    assert result["out"] == ""
    assert result["changed"] == []
    assert "Traceback" not in result["err"]
    lines = result["err"].splitlines()
    if script:  # argparse shows the usage first
        lines = [line.removeprefix("keisei: ") for line in lines[-1:]]
    else:
        assert all(line.startswith("keisei: ") for line in lines)
    assert len(lines) == len(answers), result["err"]
    for line, answer in zip(lines, answers, strict=True):
        assert answer in line


@pytest.mark.parametrize("command", ROWS)
def test_a_mistake_is_answered_in_one_line_and_nothing_is_done(
    command: str, results: dict[tuple[str, ...], Result]
) -> None:
    check(results[tuple(shlex.split(command))], ROWS[command], script=command.startswith(SCRIPT))


@pytest.mark.parametrize(("arguments", "answer"), UNPRINTABLE)
def test_unprintable_and_overlong_names_are_answered_in_one_line(
    arguments: list[str], answer: str, results: dict[tuple[str, ...], Result]
) -> None:
    check(results[tuple(arguments)], [answer], script=False)


@pytest.mark.parametrize("command", AS_PROCESSES)
def test_a_process_of_its_own_answers_the_same(
    command: str, folder: Path, results: dict[tuple[str, ...], Result]
) -> None:
    words = shlex.split(command)
    program = [str(Path(sys.executable).with_name("keisei"))]
    if words[0].endswith(".py"):
        program, words[0] = [sys.executable], str(Path(__file__).parents[2] / words[0])
    before = snapshot(folder)
    done = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    told = results[tuple(shlex.split(command))]
    assert (done.returncode, done.stdout, done.stderr) == (told["code"], told["out"], told["err"])
    assert snapshot(folder) == before


def test_the_table_has_every_command_and_script() -> None:
    scripts = (Path(__file__).parents[2] / SCRIPT).glob("*.py")
    taking_arguments = {path.name for path in scripts if "argparse" in path.read_text(encoding="utf-8")}
    given = {command.split()[0] for command in ROWS}
    assert given >= {*COMMANDS, "keisei/train.py", *(f"{SCRIPT}{name}" for name in taking_arguments)}

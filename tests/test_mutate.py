"""The tool that changes code to see whether tests notice: what it changes, and a run of it."""

import os
import subprocess
import sys
from pathlib import Path

import mutate as tool
import pytest
from mutants import mutants

ROOT = Path(__file__).parents[1]


def changed(source: str) -> set[str]:
    """Return every changed version of a source."""
    return {mutant.apply(source.encode()).decode() for mutant in mutants(source.encode())}


@pytest.mark.parametrize(
    ("source", "versions"),
    [
        ("a < b", {"(a <= b)"}),
        ("a == b != c", {"(a != b != c)", "(a == b == c)"}),
        ("a + b * c", {"(a - b * c)", "a + (b // c)"}),
        ("a and b", {"(a or b)"}),
        ("not a", {"a"}),
        ("x = -(a and b)", {"x = (a and b)", "x = -((a or b))"}),
        ("x = 7", {"x = 8"}),
        ("x = True", {"x = False"}),
        ("x = 'é', 1", {"x = 'é', 2"}),
        ("x += y", {"x -= y", "pass"}),
        ("call()", {"pass"}),
        ("a.b = c", {"pass"}),
        ("raise Wrong", {"pass"}),
        ("def f():\n    return x", {"def f():\n    return None"}),
        ("while a:\n    break", {"while (not a):\n    break", "while a:\n    continue"}),
        ("if a is b: c()", {"if (a is not b): c()", "if a is b: pass"}),
        ("if a > b: c()", {"if (a >= b): c()", "if (not a > b): c()", "if a > b: pass"}),
    ],
)
def test_it_changes_one_thing_at_a_time(source: str, versions: set[str]) -> None:
    assert changed(source) == versions


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "def f():\n    return None",
        "x: 'int | None'",
        "def f(x: A | B) -> C | D: ...",
        "@d(1)\nclass A: ...",
        "x = f'{a + 1}'",
    ],
)
def test_what_tests_need_not_pin_stays_as_it_is(source: str) -> None:
    assert not changed(source.replace("...", "pass"))


@pytest.mark.parametrize("room", ["core", "runs", "usi"])
def test_what_was_python_stays_python(room: str) -> None:
    for path in (ROOT / "keisei" / room).rglob("*.py"):
        source = path.read_bytes()
        for mutant in mutants(source)[::10]:
            assert mutant.apply(source) != source
            compile(mutant.apply(source), path, "exec", dont_inherit=True)


def mutate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "scripts" / "mutate.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)


def test_a_change_that_no_test_notices_is_shown_and_the_tree_stays_as_it_was() -> None:
    path = ROOT / "keisei" / "core" / "schedules.py"
    before = path.read_bytes()
    test = "tests/core/test_schedules.py::test_a_floor_of_nothing_is_nothing"
    sample = ("--max", "2", "--seed", "2", "--floor", "60")
    done = mutate("keisei/core/schedules.py", "--tests", test, *sample)
    assert path.read_bytes() == before
    assert done.returncode == 1, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("2 of 18 changes, at most ")
    assert rest == [
        "survived: keisei/core/schedules.py:11 (constant)",
        "@@ -10,3 +10,3 @@",
        '     """Return the value after a share of the run: from start at 0 down to floor * start at 1."""',
        "-    progress = min(max(progress, 0.0), 1.0)",
        "+    progress = min(max(progress, 0.0), 2.0)",
        '     if schedule == "constant":',
        "1 of 2 changes noticed: 50.0 %",
    ]
    assert done.stderr == "mutate: 50.0 % is below the floor of 60 %\n"


def test_a_change_that_keeps_tests_from_starting_is_noticed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    source = "assert 7 == 7\n"
    (tree / "changed.py").write_text(source, encoding="utf-8")
    (tree / "conftest.py").write_text("import changed\n", encoding="utf-8")
    (tree / "test_nothing.py").write_text("def test_nothing(): pass\n", encoding="utf-8")
    mutant = next(one for one in mutants(source.encode()) if b"!=" in one.apply(source.encode()))
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    assert tool._tried(tree, "changed.py", mutant, 0, ["test_nothing.py"], environment, 60)
    assert (tree / "changed.py").read_text(encoding="utf-8") == source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["keisei/core/nothing.py", "--tests", "tests"], "expected Python files of this tree"),
        (["keisei/usi/__init__.py", "--tests", "tests"], "nothing to change in these files"),
        (["keisei/core/schedules.py", "--tests", "tests/nothing.py"], "ERROR: file or directory not found"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], message: str) -> None:
    done = mutate(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"mutate: {message}")
    assert len(done.stderr.splitlines()) == 1

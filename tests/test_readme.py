"""The documents tell the truth: their Python sessions and their commands are run."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("checkpoints", "configuration", "engine", "evaluation", "parallel", "shogi", "training")
DOCUMENTS = ["README.md", *(f"docs/{name}.md" for name in PAGES)]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("name", DOCUMENTS)
def test_python_sessions_print_what_they_show(name: str) -> None:
    # Without the code fences, which would be read as expected output.
    text = re.sub(r"^```.*$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert len(test.examples) > 5
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_readme_commands_run(tmp_path: Path) -> None:
    (tmp_path / "game.kif").write_text(
        "   1 ７六歩(77)\n   2 ３四歩(33)\n   3 ２二角成(88)\n", encoding="utf-8"
    )
    ran = 0
    for command in commands():
        words = shlex.split(command)
        if words[0] == "make":  # that would be this very run; only check that the target exists
            done = subprocess.run(
                ["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, timeout=60
            )
        else:
            done = subprocess.run(
                [BIN / words[0], *words[1:]],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,  # an engine exits at the end of its input
                capture_output=True,
                timeout=60,
            )
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        ran += 1
    assert ran >= 4


def test_every_file_that_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in (
        "native",
        "keisei/shogi/records",
        "bench/rules.py",
        "scripts/fuzz_readers.py",
        "docs/board.svg",
    ):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"\b(?:docs|bench|scripts|tests)/[\w./]+\w", text):
        assert (ROOT / name).exists(), name

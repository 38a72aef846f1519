"""The documents tell the truth: their Python sessions and commands are run, their links and pictures exist.

Commands of README.md and docs/engine.md are cheap and run in order. Those of the other pages may train for
hours: for these it is checked that the command, its options and the files of the repository exist.
"""

import doctest
import re
import shlex
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer

from keisei.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
EXECUTED = [README, ROOT / "docs" / "engine.md"]
ONNX = ROOT / "docs" / "export.md"  # tests/runs/test_export.py runs its script
A_GAME = "   1 ７六歩(77)\n   2 ３四歩(33)\n   3 ２二角成(88)\n"


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


def session(page: Path) -> doctest.DocTest:
    """Return a page's Python sessions as one test, its names shared from block to block."""
    text = "\n".join(blocks(page, "python"))
    return doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)


@pytest.mark.parametrize("name", names([page for page in PAGES if page != ONNX and blocks(page, "python")]))
def test_python_sessions_print_what_they_show(name: str) -> None:
    test = session(ROOT / name)
    assert test.examples, f"{name} has Python without >>>, which nothing checks"
    assert len(test.examples) == len(re.findall(r"^ *>>> ", (ROOT / name).read_text("utf-8"), re.MULTILINE))
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


def test_the_board_in_the_readme_is_the_one_of_its_game() -> None:
    test = session(README)
    doctest.DocTestRunner().run(test, out=lambda _: None, clear_globs=False)
    assert test.globs["game"].svg() == (ROOT / "docs" / "board.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", names(EXECUTED))
def test_commands_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "game.kif").write_text(A_GAME, encoding="utf-8")
    ran = 0
    for command in commands(ROOT / name):
        words = shlex.split(command, comments=True)
        if words[0] == "make":  # that would be this very run; only check that the target exists
            done = subprocess.run(
                ["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, timeout=60
            )
        else:
            done = subprocess.run(
                [BIN / words[0], *words[1:]],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,  # a game or an engine exits at the end of its input
                capture_output=True,
                timeout=60,
            )
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        ran += 1
    assert ran >= 3


@pytest.mark.parametrize("name", names([page for page in PAGES if page not in EXECUTED and commands(page)]))
def test_commands_of_other_pages_exist(name: str) -> None:
    for command in commands(ROOT / name):
        words = shlex.split(command, comments=True)
        if words[0] == "keisei":
            assert words[1] in COMMANDS, command
            assert parse(words[1], words[2:]) is None, command
        elif words[0] == "make":
            done = subprocess.run(
                ["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, timeout=60
            )
            assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        for path in re.findall(r"\b(?:bench|scripts|examples|tests)/[\w./]+\w", command):
            assert (ROOT / path).exists(), command


def parse(command: str, words: list[str]) -> str | None:
    """Parse a command's words without running it; return what is wrong with them, or None.

    A placeholder or a missing file is no mistake in a document; an unknown or missing word is.
    """
    loaded: Any = load_command(command)
    usage_error: Any = typer.BadParameter.__mro__[1]  # typer may bring its own click
    try:
        loaded.make_context(command, list(takewhile(lambda word: word not in (">", "|", "&&"), words)))
    except typer.BadParameter as mistake:
        return mistake.format_message() if type(mistake) is not typer.BadParameter else None
    except usage_error as mistake:
        return str(mistake.format_message())
    return None


def test_an_unknown_option_in_a_document_is_found() -> None:
    assert "--sumary" in str(parse("plot", ["runs/first", "--sumary", "first.png"]))
    assert "RUN" in str(parse("plot", [])).upper()
    assert parse("plot", ["runs/first", "--summary", "first.png"]) is None
    assert parse("evaluate", ["runs/first", "--games", "N"]) is None


def test_a_visitor_gives_the_readme_a_minute() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_links_and_pictures_of_the_readme_exist() -> None:
    text = README.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    pictures = re.findall(r'<img src="([^"]+)"', text)
    assert len(links) > 10
    assert {"docs/strength.png", "docs/board.svg", "docs/web-live.png"} <= set(pictures)
    for link in [*links, *pictures]:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).is_file(), link
        if anchor:
            assert anchor in anchors(ROOT / path), link
    assert text.count("<img ") == len(re.findall(r'<img src="[^"]+" alt="[^"]+" width="(?:300|800)">', text))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_file_that_the_readme_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    for name in re.findall(r"\b(?:docs|bench|scripts|tests|shogi)/[\w./-]+\w", text):
        assert (ROOT / name).exists() or (ROOT / "tests" / name).exists(), name
    (tree,) = re.findall(r"^## Where things are\n+```\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    parents: dict[int, Path] = {}
    for line in tree.splitlines():
        indent = len(line) - len(line.lstrip())
        entries = re.split(r" {3,}", line.strip())[0].split("  ")
        for entry in entries:
            path = parents.get(indent - 2, ROOT) / entry
            assert path.exists(), line
        parents[indent] = parents.get(indent - 2, ROOT) / entries[0]

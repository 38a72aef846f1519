"""The pages' texts: both languages have the same braces, and every key that a script uses exists."""

import re
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from keisei.config.schema import Algorithm, Opponent
from keisei.training.metrics import PHASES
from keisei.training.parallel.worker_status import State
from keisei.web.app import STATIC
from keisei.web.texts import TEXTS, texts_in

SCRIPTS = sorted(STATIC.glob("*.js"))
# t("key"), t("key", {…}), t(`key ${x}`): of the last only what is before the first ${ is checked.
_USED = re.compile(r"""\bt\(\s*(?:"([^"]+)"|'([^']+)'|`([^`$]*)(\$?)[^`]*`)""")


@pytest.mark.parametrize("key", sorted(TEXTS))
def test_both_languages_have_the_same_braces(key: str) -> None:
    english, japanese = ({name for _, name, _, _ in Formatter().parse(text) if name} for text in TEXTS[key])
    assert english == japanese
    assert all(TEXTS[key])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_key_that_a_script_uses_exists(path: Path) -> None:
    for one, other, start, rest in _USED.findall(path.read_text(encoding="utf-8")):
        if key := one or other:
            assert key in TEXTS, f"{path.name}: {key}"
        else:
            assert any(name.startswith(start) if rest else name == start for name in TEXTS), (
                f"{path.name}: {start}"
            )


def test_what_runs_name_has_a_text() -> None:
    kinds = {"opponent": Opponent, "worker": State, "algorithm": Algorithm}
    keys = {f"live.{kind} {name}" for kind, names in kinds.items() for name in get_args(names)}
    keys |= {f"live.phase {name}" for name in PHASES}
    assert keys - set(TEXTS) == set()


def test_the_scripts_use_texts() -> None:
    assert sum(len(_USED.findall(path.read_text(encoding="utf-8"))) for path in SCRIPTS) > 50
    assert texts_in("en")["checkmate"] == "checkmate"
    assert texts_in("ja")["checkmate"] == "詰み"


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_static_files_have_nothing_inline_and_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/)", text), "an address of another host"
    assert "innerHTML" not in text
    assert not re.search(r"\beval\(|new Function\(|document\.write\(", text)
    if path.suffix == ".html":
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))

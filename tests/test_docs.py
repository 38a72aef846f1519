"""The documents hold together: every link leads somewhere, the API is complete, the site builds strictly."""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docs_docstrings import native_docstring, with_field_lists
from docs_site import existing, loaded_from_outside
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
MARKDOWN = MarkdownIt("commonmark").enable("table")  # as file browsers show it
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "keisei/**/*.md",
        "bench/**/*.md",
        "examples/**/*.md",
        ".github/**/*.md",
    )
    for path in ROOT.glob(pattern)
)

# Packages whose __all__ is for everyone, and names that users import from their own modules.
PUBLIC = (
    "keisei.shogi",
    "keisei.envs",
    "keisei.utils",
    "keisei.config_schema",
    "keisei.core.models",
    "keisei.training",
    "keisei.training.parallel",
    "keisei.evaluation",
)
FURTHER = (
    "keisei.shogi.vector.Batch",
    "keisei.shogi.vector.VectorGames",
    "keisei.envs.shogi_v0.env",
    "keisei.core.ppo_agent.PPOAgent",
    "keisei.core.experience_buffer.ExperienceBuffer",
    "keisei.evaluation.evaluate.evaluate",
    "keisei.evaluation.evaluate.ladder",
    "keisei.analysis.game_analysis.Analyst",
    "keisei.training.cluster.cluster_hands.cluster_hands",
)


class Elements(HTMLParser):
    """The elements of a page: how many of each, where links and pictures lead, and the names given."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            if value and (tag, name) in (("a", "href"), ("img", "src")):
                self.targets.append(value)
            elif value and name in ("id", "name"):
                self.names.add(value)


def anchors(text: str) -> set[str]:
    """Return the names of a document's headings, as file browsers make them, and those given in HTML."""
    found = Elements(MARKDOWN.render(text)).names
    tokens = MARKDOWN.parse(text)
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            title = "".join(child.content for child in content.children or [])
            name = slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            number = 0
            while name in found:
                number += 1
                name = f"{slug}-{number}"
            found.add(name)
    return found


def broken_links(root: Path, document: str) -> Iterator[str]:
    """Yield every link of a document to a file or heading that does not exist; other hosts are not asked."""
    for target in Elements(MARKDOWN.render((root / document).read_text(encoding="utf-8"))).targets:
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        file = (root / document).parent / path if path else root / document
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    assert list(broken_links(ROOT, document)) == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](b.md), [c](b.md#a-title-b), [d](#here)\n\n# Here", []),
        ("![a](no.png)", ["no.png: no such file"]),
        ('<img src="no.png" alt="">', ["no.png: no such file"]),
        ("[a](../no.md#x)", ["../no.md#x: no such file"]),
        ("[a](b.md#title)", ["b.md#title: no such heading"]),
        ("[a][b]\n\n[b]: no.md", ["no.md: no such file"]),
        ("# Twice\n\n# Twice\n\n[a](#twice-1) [b](#twice-2)", ["#twice-2: no such heading"]),
        ("`[a](no.md)` and\n\n```\n[a](no.md)\n```\n", []),
        ("[a](https://example.com/no.md)", []),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, text: str, broken: list[str]) -> None:
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    (tmp_path / "b.md").write_text("# A *title*, `b`\n", encoding="utf-8")
    assert list(broken_links(tmp_path, "a.md")) == broken


def public_names() -> list[str]:
    names = [f"{package}.{name}" for package in PUBLIC for name in import_module(package).__all__]
    return [name for name in names if callable(found(name))] + list(FURTHER)  # not constants and aliases


def listed_names(page: Path) -> list[str]:
    return re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def test_every_public_name_is_on_the_api_pages_and_has_a_docstring() -> None:
    listed = [name for path in (ROOT / "docs" / "api").glob("*.md") for name in listed_names(path)]
    assert len(listed) == len(set(listed))
    homes = {id(found(name)) for name in listed}  # a name may be listed under its other path
    assert [name for name in public_names() if id(found(name)) not in homes] == []
    assert [name for name in listed if not found(name).__doc__] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return out


def page_of(site: Path, document: str) -> Path:
    path = Path(document)
    return site / path.parent / ("index.html" if path.name == "README.md" else f"{path.stem}.html")


def test_a_page_of_the_site_has_the_lists_tables_and_code_of_its_document(site: Path) -> None:
    """mkdocs reads Markdown less freely than file browsers do: a list needs a blank line before it."""
    required = {"README.md", "CONTRIBUTING.md", *(name for name in DOCUMENTS if name.startswith("docs/"))}
    assert [name for name in required if not page_of(site, name).is_file()] == []
    for document in DOCUMENTS:
        page = page_of(site, document)
        if page.is_file() and not document.startswith("docs/api/"):
            html = page.read_text(encoding="utf-8")
            shown = Elements(html[html.index("<article") : html.index("</article>")]).counts
            expected = Elements(MARKDOWN.render((ROOT / document).read_text(encoding="utf-8"))).counts
            for element in ("h1", "h2", "h3", "ul", "ol", "li", "table", "tr", "pre", "img"):
                assert shown.get(element, 0) == expected.get(element, 0), (document, element)


def test_the_site_has_every_docstring_of_the_api(site: Path) -> None:
    for path in (ROOT / "docs" / "api").glob("*.md"):
        page = Elements((site / "docs" / "api" / f"{path.stem}.html").read_text(encoding="utf-8"))
        for name in listed_names(path):
            assert name in page.names
            first = (inspect.getdoc(found(name)) or "").partition(".")[0]
            assert re.sub(r"[\s`]", "", first) in re.sub(r"\s", "", page.text), name
            if path.stem == "shogi" and name.endswith("ShogiGame"):
                assert f"{name}.push" in page.names  # inherited from C++, with its text
                assert "Play a legal move, given as a Move or as its USI text." in page.text


def test_the_search_finds_settings_and_names_and_also_works_from_a_disk(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    entries = {entry["location"]: entry["text"] for entry in json.loads(index)["docs"]}
    assert "training.learning_rate" in entries["docs/configuration.html#training"]
    assert "docs/api/training.html#keisei.training.train" in entries
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8") == f"var __index = {index}"
    assert "lunr" in (site / "search" / "worker.js").read_text(encoding="utf-8")
    assert 'src="docs/assets/search_from_disk.js"' in (site / "index.html").read_text(encoding="utf-8")


def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    assert list(loaded_from_outside(site)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script defer src="https://example.com/a.js"></script>'),
        ("a.html", "<img alt='' src='//example.com/a.png'>"),
        ("a.html", '<link rel="stylesheet" href="https://example.com/a.css">'),
        ("a.html", "<style>p { background: url(https://example.com/a.png) }</style>"),
        ("a.css", "@font-face { src: url('https://example.com/a.woff2') }"),
        ("a.css", '@import "https://example.com/a.css";'),
    ],
)
def test_what_a_page_would_load_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [line.partition("example.com")[1] for line in loaded_from_outside(tmp_path)] == ["example.com"]
    (tmp_path / name).write_text('<a href="https://example.com/">a link is not loaded</a>', encoding="utf-8")
    assert list(loaded_from_outside(tmp_path)) == []


def test_the_nav_leaves_out_what_does_not_exist() -> None:
    nav = [
        {"Start": "README.md"},
        {"Empty": [{"No": "docs/no.md"}]},
        {"Two": [{"No": "no.md"}, {"Log": "docs/log.md"}]},
    ]
    assert existing(nav) == [{"Start": "README.md"}, {"Two": [{"Log": "docs/log.md"}]}]


def test_docstrings_from_c_come_without_their_signatures() -> None:
    assert native_docstring("Game.resign") == "Resign for the side to move."
    assert native_docstring("Game.ply").startswith("Moves played since")
    assert native_docstring("Game._outcome") == ""


def test_fields_of_a_docstring_become_a_list() -> None:
    text = "A thing.\n\na, b: two\n    numbers\nc: one\n\nNote: not a list."
    assert with_field_lists(text) == "A thing.\n\n- `a, b`: two\n    numbers\n- `c`: one\n\nNote: not a list."

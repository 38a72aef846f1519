"""The documentation site: what mkdocs does not do by itself. `make docs` runs it.

A hook of mkdocs.yml. Pages are files of the repository under their own paths: README.md is the first page,
docs/ has the others, and a file elsewhere that a page links to comes along. So the links of the repository
are the links of the site, and `mkdocs build --strict` checks them all. A site that would load anything from
another host is refused.
"""

import json
import os.path
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
MORE = "More"  # the section for pages of docs/ that the nav does not name
# Who searches a word wants the page that explains it, not one that mentions it.
SEARCH_BOOST = {"docs/configuration.md": 3, "docs/api/": 0.5, "docs/log.md": 0.2, "CHANGELOG.md": 0.2}

LINK = re.compile(r"(?<!`)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")
SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)

# What a browser loads unasked. A link that a reader may click is not among it.
_OUTSIDE = r"[\"']?((?:https?:)?//[^\"'\s>)]+)"
LOADED = (
    re.compile(rf"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data)={_OUTSIDE}"),
    re.compile(rf"<(?:link\b(?![^>]*\bcanonical)|image\b)[^>]*?\bhref={_OUTSIDE}"),
    re.compile(rf"url\(\s*{_OUTSIDE}"),
    re.compile(rf"@import\s+{_OUTSIDE}"),
)


def on_config(config: MkDocsConfig) -> None:
    """Leave out pages that do not exist, and add those of docs/ that the nav does not name."""
    nav = existing(config.nav or [])
    named = set(_paths(nav))
    others = [path for path in _files_of_docs() if path.endswith(".md") and path not in named]
    config.nav = [*nav, {MORE: others}] if others else nav


def existing(nav: list[Any]) -> list[Any]:
    """Return the nav without pages that do not exist, and without sections that have no page."""
    kept: list[Any] = []
    for entry in nav:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            if pages := existing(value):
                kept.append({title: pages})
        elif (ROOT / value).is_file():
            kept.append(entry)
    return kept


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the pages of the nav, everything in docs/, and the files that pages link to."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    waiting = [*_paths(config.nav or []), *_files_of_docs()]
    found: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _linked(path) if path.endswith(".md") else []
    return Files([*theme, *(_file(config, path) for path in sorted(found))])


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Unlink directories, which the site does not have, and mark Python sessions as sessions."""
    path = page.file.src_uri
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # it would have one entry
    for start, boost in SEARCH_BOOST.items():
        if path.startswith(start):
            page.meta["search"] = {"boost": boost}

    def unlinked(link: re.Match[str]) -> str:
        return link["text"] if (ROOT / _resolved(path, link["target"])).is_dir() else link[0]

    return SESSION.sub("```pycon\n", LINK.sub(unlinked, markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """Make the search work from a disk; then refuse a site that would load anything from another host."""
    site = Path(config.site_dir)
    search = site / "search"
    index = (search / "search_index.json").read_text(encoding="utf-8")
    (search / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    text = json.dumps(worker.read_text(encoding="utf-8"))
    (search / "worker.js").write_text(f"var searchWorker = {text}", encoding="utf-8")
    if outside := list(loaded_from_outside(site)):
        raise PluginError("the site would load from other hosts:\n" + "\n".join(outside))


def loaded_from_outside(site: Path) -> Iterator[str]:
    """Yield `file: address` for what the pages, style sheets and drawings of a site load from elsewhere."""
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            text = path.read_text(encoding="utf-8")
            for pattern in LOADED:
                for address in pattern.findall(text):
                    yield f"{path.relative_to(site)}: {address}"


def _file(config: MkDocsConfig, path: str) -> File:
    # Included explicitly, because mkdocs would leave out .github and the like.
    return File.generated(config, path, abs_src_path=str(ROOT / path), inclusion=InclusionLevel.INCLUDED)


def _paths(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in [entry] if isinstance(entry, str) else entry.values():
            yield from _paths(value) if isinstance(value, list) else [value]


def _files_of_docs() -> list[str]:
    files = (path for path in (ROOT / "docs").rglob("*") if path.is_file())
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def _linked(page: str) -> list[str]:
    """Return the files of the repository that a page links to."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = (_resolved(page, link["target"]) for link in LINK.finditer(text))
    return [target for target in targets if not target.startswith("..") and (ROOT / target).is_file()]


def _resolved(page: str, target: str) -> str:
    """Return where a page's link leads, as a path in the repository; there is no file at another host's."""
    path = target.partition("#")[0]
    return os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page

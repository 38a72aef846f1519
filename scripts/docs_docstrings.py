"""Docstrings for the API pages: an extension of griffe, which reads the sources without importing them.

`make docs` uses it. The native module's docstrings are in C++, so they are taken from the module itself. A
list of fields in a docstring, `name: what it is` line by line, becomes a list on the page.
"""

import re
from typing import Any

import griffe

from keisei import _native

FIELD = re.compile(r"(?P<names>\w+(?:, \w+)*): (?P<text>.*)")


class Docstrings(griffe.Extension):
    """What the API pages show of each class and function."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a class of the stub the first of its constructors, so that the page shows the arguments."""
        if constructors := cls.overloads.get("__init__"):
            cls.members.setdefault("__init__", constructors[0])

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Complete and format the docstring of an object that has been read."""
        module, _dot, path = obj.canonical_path.partition("._native.")
        is_value = obj.is_attribute and "." not in path  # a constant, or a type that only the stub has
        if module == "keisei" and path and not is_value and (text := native_docstring(path)):
            obj.docstring = griffe.Docstring(text, parent=obj)
        if obj.docstring is not None:
            obj.docstring.value = with_field_lists(obj.docstring.value)


def native_docstring(path: str) -> str:
    """Return the docstring of `Game.push` and the like, without the signature that nanobind puts first."""
    found: Any = _native
    for name in path.split("."):
        found = getattr(found, name)
    first, blank, rest = (found.__doc__ or "").partition("\n\n")
    return rest if blank else "" if "->" in first else first


def with_field_lists(text: str) -> str:
    """Return a docstring in which a paragraph of two or more `name: text` is a Markdown list."""
    return "\n\n".join(_listed(paragraph) for paragraph in text.split("\n\n"))


def _listed(paragraph: str) -> str:
    lines = paragraph.splitlines()
    fields = [FIELD.fullmatch(line) for line in lines]
    if sum(map(bool, fields)) < 2 or not fields[0]:
        return paragraph
    return "\n".join(
        f"- `{field['names']}`: {field['text']}" if field else f"    {line.strip()}"
        for line, field in zip(lines, fields, strict=True)
    )

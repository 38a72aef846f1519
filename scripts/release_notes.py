"""Print the notes of a release: `python scripts/release_notes.py v0.1.0`.

They are CHANGELOG.md's section of that version. A tag that differs from pyproject.toml's version, and a
version without a section, are one line on stderr and exit code 2; so a wrong tag stops a release early.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


class ReleaseError(Exception):
    """A tag that cannot be released; the message says what was expected."""


def release_notes(tag: str, root: Path = ROOT) -> str:
    """Return the changelog's section of a tag such as v0.1.0, without its heading."""
    version = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if version != project["version"]:
        raise ReleaseError(
            f"tag {tag!r} is not the version in pyproject.toml: expected v{project['version']}"
        )
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## +", changelog, flags=re.MULTILINE)
    for section in sections:
        title, _, body = section.partition("\n")
        if title.split()[:1] == [version]:
            if not body.strip():
                raise ReleaseError(f"CHANGELOG.md: the section '## {version}' is empty")
            return f"{body.strip()}\n"
    raise ReleaseError(f"CHANGELOG.md has no section '## {version}'")


def main() -> None:
    """Print the notes, or say why there are none."""
    parser = argparse.ArgumentParser(description="Print CHANGELOG.md's section of a version.")
    parser.add_argument("tag", help="the tag or version, such as v0.1.0")
    try:
        print(release_notes(parser.parse_args().tag), end="")
    except ReleaseError as error:
        print(f"release_notes: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()

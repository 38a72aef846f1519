"""Check the licences of everything that `make build` installs: `python scripts/check_licences.py [--write]`.

The packages are keisei[dev], the build tools and all that these need, as their installed metadata say. Each
must have a licence from ALLOWED or a reason in JUDGED; everything else, GPL included, is refused.
docs/licences.md holds the list: --write writes it, without --write it must be up to date. Exit code 1 if not.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[1] / "docs" / "licences.md"
BUILD_NEEDS = ("scikit-build-core", "nanobind", "cmake", "ninja")
# In the order in which a package is attributed: the smallest installation that brings it.
EXTRAS = ("", "train", "gym", "onnx", "web", "ray", "dev")
NAMES = {"": "`keisei`", "dev": "development"} | {name: f"`keisei[{name}]`" for name in EXTRAS[1:-1]}

ALLOWED = {
    *(
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
    ),
    *("CC0-1.0", "ISC", "MIT", "MIT-CMU", "PSF-2.0", "Unlicense", "Zlib"),
}

# Weak copyleft is judged for each package: its files keep their licence, unchanged and not shipped by us.
JUDGED = {
    "certifi": (
        "MPL-2.0",
        "root certificates, used by Ray and check-jsonschema; not imported by the package",
    ),
    "hypothesis": ("MPL-2.0", "used by tests; not imported by the package"),
    "pathspec": ("MPL-2.0", "used by mypy and scikit-build-core; not imported by the package"),
}

VAGUE = {"OSI Approved", "DFSG approved"}

# The words used in metadata without an SPDX expression.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def licence(found: Distribution) -> str:
    """Return a package's licence as an SPDX expression where its metadata allow, else in their words."""
    metadata = found.metadata
    if expression := metadata["License-Expression"]:
        return str(expression)
    field = str(metadata["License"] or "").strip()
    classifiers = [
        name
        for text in metadata.get_all("Classifier", ())
        if text.startswith("License :: ") and (name := text.rpartition(" :: ")[2]) not in VAGUE
    ]
    short = SPDX.get(field, field)
    words = [short] if short in ALLOWED or not classifiers else [SPDX.get(word, word) for word in classifiers]
    words += [word for word in classifiers if "GPL" in word]  # whatever the other field says
    return " AND ".join(dict.fromkeys(word.partition("\n")[0] for word in words)) or "unknown"


def allowed(expression: str) -> bool:
    """Return whether an SPDX expression can be met by allowed licences alone."""
    for operator, enough in ((" OR ", any), (" AND ", all)):  # AND binds tighter
        parts = _split(expression, operator)
        if len(parts) > 1:
            return enough(map(allowed, parts))
    inner = re.fullmatch(r"\((.*)\)", expression.strip())
    return allowed(inner[1]) if inner else expression.strip() in ALLOWED


def _split(expression: str, operator: str) -> list[str]:
    """Return the parts of an expression between the operators that are outside parentheses."""
    parts = [""]
    for piece in re.split(f"({operator})", expression):
        if piece == operator and parts[-1].count("(") == parts[-1].count(")"):
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def installed(extra: str) -> dict[str, Distribution]:
    """Return what an installation of keisei with this extra brings, by normalised name."""
    waiting = [Requirement(f"keisei[{extra}]" if extra else "keisei")]
    waiting += [Requirement(name) for name in BUILD_NEEDS if extra == "dev"]
    found: dict[str, Distribution] = {}
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        package = distribution(requirement.name)
        found[canonicalize_name(requirement.name)] = package
        for text in package.requires or ():
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": name}) for name in extras):
                waiting.append(needed)
    del found["keisei"]
    return found


def refusals(licences: Mapping[str, str]) -> list[str]:
    """Return a line for each package whose licence is neither allowed nor judged, or judged needlessly."""
    found = []
    for name, text in licences.items():
        if name in JUDGED:
            if text != JUDGED[name][0]:
                found.append(f"{name}: licence {text!r}, but it was judged as {JUDGED[name][0]!r}")
        elif not allowed(text):
            found.append(
                f"{name}: licence {text!r} is not allowed; judge it in scripts/check_licences.py or remove it"
            )
    return found


def page(packages: Mapping[str, Distribution], comes_with: Mapping[str, str]) -> str:
    """Return docs/licences.md."""
    lines = [
        "# Licences of the dependencies",
        "",
        "Written by `make licences ARGS=--write`, checked by `make licences`: everything that",
        "`make build` installs on Linux x86-64 with Python 3.11, and the smallest installation that brings",
        "it. The licences are those named by the packages' own metadata. No package under the GPL or AGPL",
        "is accepted. The extra `wandb` is not installed, so it is not listed.",
        "",
        "| package | licence | comes with |",
        "|---|---|---|",
    ]
    lines += [
        f"| {packages[name].name} | {licence(packages[name])} | {comes_with[name]} |"
        for name in sorted(packages)
    ]
    lines += ["", "Judged one by one, because the licence asks for more than a notice:", ""]
    lines += [f"- {name}, {text}: {reason}." for name, (text, reason) in JUDGED.items() if name in packages]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Check, and with --write write the list."""
    parser = argparse.ArgumentParser(description="Check the licences of all dependencies.")
    parser.add_argument("--write", action="store_true", help="write docs/licences.md")
    write = parser.parse_args().write
    packages: dict[str, Distribution] = {}
    comes_with: dict[str, str] = {}
    for extra in EXTRAS:
        try:
            brought = installed(extra)
        except PackageNotFoundError as error:
            sys.exit(f"check_licences: {error.name} is not installed; make build installs everything")
        packages |= brought
        comes_with = dict.fromkeys(brought, NAMES[extra]) | comes_with
    problems = refusals({name: licence(found) for name, found in packages.items()})
    text = page(packages, comes_with)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        problems.append("docs/licences.md is not up to date: make licences ARGS=--write")
    for problem in problems:
        print(f"check_licences: {problem}", file=sys.stderr)
    print(f"{len(packages)} packages, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

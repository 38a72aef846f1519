"""Write requirements.lock: `make lock`. Every package that `make build` installs, with version and SHA-256.

pip resolves keisei[dev] and the build tools under constraints.txt and reports what it would install, without
installing anything. The hashes are those of the files for this Python and platform, so the lock is for Linux
x86-64 and Python 3.11 alone; elsewhere constraints.txt gives the versions.
"""

import json
import platform
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
BUILD_NEEDS = ("scikit-build-core", "nanobind", "cmake", "ninja")
SUPPORTED = ("Linux", "x86_64", "3.11")
HEADER = """\
# Written by `make lock` for Linux x86-64 and Python 3.11; not by hand.
# pip install --require-hashes --requirement requirements.lock
# torch is the CPU build, whose version ends in +cpu: docs/CI_CD.md says where it comes from.
"""


def requirements(project: dict[str, Any], extra: str) -> list[str]:
    """Return the requirements of the project with an extra, which may name further extras of the project."""
    found = list(project["dependencies"])
    for text in project["optional-dependencies"][extra]:
        if text.startswith("keisei["):
            for inner in text.removeprefix("keisei[").rstrip("]").split(","):
                found += requirements(project, inner)
        else:
            found.append(text)
    return found


def lock(report: dict[str, Any]) -> str:
    """Return the lock of pip's report."""
    lines = []
    for item in report["install"]:
        metadata, archive = item["metadata"], item["download_info"]["archive_info"]
        digest = archive["hashes"]["sha256"]
        lines.append(f"{metadata['name']}=={metadata['version']} --hash=sha256:{digest}\n")
    return HEADER + "".join(sorted(lines, key=str.lower))


def main() -> None:
    """Resolve and write."""
    here = (platform.system(), platform.machine(), ".".join(platform.python_version_tuple()[:2]))
    if here != SUPPORTED:
        sys.exit(f"lock_requirements: the lock is for {' '.join(SUPPORTED)}, but this is {' '.join(here)}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary", ":all:", "--constraint", str(ROOT / "constraints.txt")]
        command += ["--report", str(report), *BUILD_NEEDS, *requirements(project, "dev")]
        subprocess.run(command, check=True, timeout=900)
        text = lock(json.loads(report.read_text(encoding="utf-8")))
    LOCK.write_text(text, encoding="utf-8")
    print(f"{LOCK.name}: {text.count('--hash=')} packages")


if __name__ == "__main__":
    main()

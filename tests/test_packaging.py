"""What is installed and published: the small package, archives, lock, licences, release notes.

The archives and the environment that `make package` makes are tested where it names that environment's bin
directory in KEISEI_PACKAGE; the rest always.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_run

from keisei.cli.app import COMMANDS, TRAINING_PACKAGES

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = os.environ.get("KEISEI_PACKAGE")
ENGINE_COMMANDS = {
    "perft",
    "show",
    "convert",
    "config",
    "evaluate",
    "ladder",
    "usi",
    "play",
    "analyze",
    "watch",
    "web",
}
WITH_ARGUMENT = {"plot", "evaluate", "usi", "play", "export"}
LICENCES = runpy.run_path(str(ROOT / "scripts" / "check_licences.py"))
AUDIT = runpy.run_path(str(ROOT / "scripts" / "audit_dependencies.py"))
LOCK = runpy.run_path(str(ROOT / "scripts" / "lock_requirements.py"))

needs_package = pytest.mark.skipif(PACKAGE is None, reason="only `make package` has an installed wheel")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {
        normalized(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    }


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", text)[0] for text in requirements}


# The small package.


def test_the_extra_train_is_what_the_command_line_asks_for() -> None:
    assert names(PROJECT["optional-dependencies"]["train"]) == TRAINING_PACKAGES
    assert not names(PROJECT["dependencies"]) & TRAINING_PACKAGES


def main_without(module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    code = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['keisei', *{arguments}]\n"
        "from keisei.cli import main; main()"
    )
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("module", "command"), [("torch", "doctor"), ("matplotlib", "plot")])
def test_a_command_without_its_packages_names_the_extra(module: str, command: str) -> None:
    done = main_without(module, command, *(["x"] if command in WITH_ARGUMENT else []))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"keisei: this command needs {module}, which is not installed: "
        "pip install '.[train]' in Keisei's source directory\n"
    )


def test_another_missing_module_is_a_bug_and_not_hidden() -> None:
    done = main_without("keisei.config.fields", "config")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


@needs_package
@pytest.mark.parametrize("command", sorted(set(COMMANDS) - ENGINE_COMMANDS - {"export", "cluster"}))
def test_the_wheel_alone_does_not_train_and_says_what_to_install(command: str, tmp_path: Path) -> None:
    arguments = ["x"] if command in WITH_ARGUMENT else []
    done = subprocess.run(
        [f"{PACKAGE}/keisei", command, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith("pip install '.[train]' in Keisei's source directory\n")
    assert not list(tmp_path.iterdir())


@needs_package
def test_the_wheel_alone_says_what_a_cluster_needs(tmp_path: Path) -> None:
    command = [f"{PACKAGE}/keisei", "cluster", "status"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith("ray is not installed: pip install '.[ray]' in Keisei's source directory\n")
    assert not list(tmp_path.iterdir())


@needs_package
@pytest.mark.parametrize("arguments", ["--version", "--help", "perft 3", "config tiny"])
def test_the_wheel_alone_runs_the_engine(arguments: str, tmp_path: Path) -> None:
    command = [f"{PACKAGE}/keisei", *arguments.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@needs_package
def test_the_wheel_alone_plays_and_rates_and_export_names_its_extra(tmp_path: Path) -> None:
    run = small_run(tmp_path / "first", 512)
    command = [f"{PACKAGE}/keisei", "export", "first", "--out", "net.onnx"]
    done = subprocess.run(command, cwd=run.parent, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install '.[onnx]' in Keisei's source directory" in done.stderr
    commands = {
        "usi first": "readyok",
        "play first --visits 4": "you are black",
        "evaluate first --games 2": "Elo",
    }
    for arguments, says in commands.items():
        done = subprocess.run(
            [f"{PACKAGE}/keisei", *arguments.split()],
            input="isready\nquit\n",
            cwd=run.parent,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert says in done.stdout


@needs_package
def test_the_wheel_alone_brings_no_more_than_the_engine_needs(tmp_path: Path) -> None:
    command = [f"{PACKAGE}/python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    installed = {normalized(each["name"]) for each in json.loads(done.stdout)}
    assert names(PROJECT["dependencies"]) <= installed | {"PyYAML"}
    assert not (TRAINING_PACKAGES - {"rich"}) & installed  # typer brings rich
    assert len(installed) < 25


# The archives.


@needs_package
def test_the_wheel_holds_the_package_and_nothing_else() -> None:
    (path,) = (ROOT / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
        info = {name.partition(".dist-info/")[2] for name in wheel.namelist() if ".dist-info/" in name}
        metadata = wheel.read(f"keisei-{PROJECT['version']}.dist-info/METADATA").decode()
    extension = {name for name in files if name.endswith(".so")}
    assert len(extension) == 1
    tracked = {str(path.relative_to(ROOT)) for path in (ROOT / "keisei").rglob("*") if path.is_file()}
    tracked = {name for name in tracked if "__pycache__" not in name and not name.endswith((".so", ".md"))}
    assert files - extension == tracked
    assert {"keisei/py.typed", "keisei/_native.pyi", "keisei/config/presets/default.yaml"} <= files
    assert {"keisei/web/static/live.html", "keisei/web/static/board.js"} <= files
    assert info == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    for line in (
        "Name: keisei",
        f"Version: {PROJECT['version']}",
        "License-Expression: MIT",
        "License-File: LICENSE",
        "Author: Keisei developers",
    ):
        assert f"\n{line}\n" in metadata
    assert "Project-URL" not in metadata  # until there is one


@needs_package
def test_the_sdist_holds_what_is_tracked() -> None:
    (path,) = (ROOT / "dist").glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a checkout")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert files == {*done.stdout.splitlines(), "PKG-INFO"}


# The lock.


def test_lock_and_constraints_agree() -> None:
    locked = pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    constrained = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert {name: version.partition("+")[0] for name, version in locked.items()} == constrained


def test_every_line_of_the_lock_has_a_hash_and_none_an_address() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert len(packages) > 50
    for line in packages:
        assert re.fullmatch(r"[\w.-]+==[\w.+]+ --hash=sha256:[0-9a-f]{64}", line), line


def test_everything_names_the_same_build_tools() -> None:
    (line,) = re.findall(
        r"^BUILD_NEEDS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert tuple(line.split()) == LOCK["BUILD_NEEDS"] == LICENCES["BUILD_NEEDS"]


def test_extras_that_name_extras_are_resolved() -> None:
    project = {
        "dependencies": ["a"],
        "optional-dependencies": {"x": ["b>=1"], "y": ["c"], "dev": ["keisei[x,y]", "d"]},
    }
    assert set(LOCK["requirements"](project, "dev")) == {"a", "b>=1", "c", "d"}


# Licences and vulnerabilities.


def distribution(folder: Path, *lines: str) -> Distribution:
    path = folder / "x-1.dist-info"
    path.mkdir(parents=True)
    (path / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.1", "Name: x", "Version: 1", *lines]) + "\n"
    )
    return Distribution.at(path)


@pytest.mark.parametrize(
    ("lines", "licence", "fine"),
    [
        (["License-Expression: MIT"], "MIT", True),
        (["License-Expression: Apache-2.0 OR GPL-2.0-only"], "Apache-2.0 OR GPL-2.0-only", True),
        (["License-Expression: MIT AND GPL-3.0-only"], "MIT AND GPL-3.0-only", False),
        (["License-Expression: MIT AND (GPL-2.0-only OR (MIT))"], "MIT AND (GPL-2.0-only OR (MIT))", True),
        (["License-Expression: GPL-3.0-only AND (MIT OR MIT)"], "GPL-3.0-only AND (MIT OR MIT)", False),
        (["License-Expression: (GPL-2.0-only) OR (MIT AND X)"], "(GPL-2.0-only) OR (MIT AND X)", False),
        (["License: BSD 3-Clause License"], "BSD-3-Clause", True),
        (["Classifier: License :: OSI Approved :: Apache Software License"], "Apache-2.0", True),
        (["License: AGPL-3.0"], "AGPL-3.0", False),
        (
            ["License: MIT", "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)"],
            "MIT AND GNU General Public License v3 (GPLv3)",
            False,
        ),
        (["License: ask the author"], "ask the author", False),
        ([], "unknown", False),
    ],
)
def test_a_licence_is_read_and_judged(lines: list[str], licence: str, fine: bool, tmp_path: Path) -> None:
    assert LICENCES["licence"](distribution(tmp_path, *lines)) == licence
    assert (LICENCES["refusals"]({"x": licence}) == []) is fine


def test_a_judged_package_that_changes_its_licence_is_judged_again() -> None:
    assert LICENCES["refusals"]({"certifi": "MPL-2.0"}) == []
    assert LICENCES["refusals"]({"certifi": "MIT"}) == [
        "certifi: licence 'MIT', but it was judged as 'MPL-2.0'"
    ]


def test_the_page_of_licences_lists_every_locked_package() -> None:
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = {normalized(name) for name in re.findall(r"^\| ([\w.-]+) \|", page, re.MULTILINE)} - {"package"}
    assert listed == set(pins((ROOT / "requirements.lock").read_text(encoding="utf-8")))


def test_vulnerable_unknown_and_unreachable_are_told_apart() -> None:
    fine = {"name": "a", "version": "1", "vulns": []}
    unknown = {"name": "b", "skip_reason": "not found"}
    bad = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}
    assert AUDIT["findings"]([fine]) == []
    assert AUDIT["findings"]([fine, unknown, bad]) == [
        "b: unknown to the vulnerability service",
        "c 2: CVE-1, fixed in 2.1",
    ]
    assert AUDIT["findings"]([unknown])[0].startswith("cannot run here: ")
    assert AUDIT["versions"]("# x\ntorch==2.13.0+cpu --hash=sha256:0\na.b==1 --hash=sha256:1\n") == [
        "torch==2.13.0",
        "a.b==1",
    ]


# Release notes.


def notes(folder: Path, tag: str, changelog: str) -> "subprocess.CompletedProcess[str]":
    (folder / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "release_notes.py", folder / "scripts")
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    return subprocess.run([sys.executable, script, tag], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("tag", ["v1.2.0", "1.2.0"])
def test_release_notes_are_the_changelogs_section(tag: str, tmp_path: Path) -> None:
    done = notes(
        tmp_path, tag, "# Changelog\n\n## Unreleased\n\n## 1.2.0 (today)\n\n- new\n\n## 1.1.0\n\n- old\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "- new\n", "")


@pytest.mark.parametrize(
    ("tag", "changelog", "says"),
    [
        ("v1.3.0", "## 1.3.0\n\n- x\n", "tag 'v1.3.0' is not the version in pyproject.toml: expected v1.2.0"),
        ("v1.2.0", "## Unreleased\n\n- 1.2.0\n", "CHANGELOG.md has no section '## 1.2.0'"),
        ("v1.2.0", "## 1.2.0\n\n## 1.1.0\n\n- x\n", "CHANGELOG.md: the section '## 1.2.0' is empty"),
    ],
)
def test_a_release_without_notes_is_refused_in_one_line(
    tag: str, changelog: str, says: str, tmp_path: Path
) -> None:
    done = notes(tmp_path, tag, changelog)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"release_notes: {says}\n")


def test_this_version_has_release_notes() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "release_notes.py"), f"v{PROJECT['version']}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

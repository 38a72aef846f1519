"""The workflows: what GitHub accepts, what keeps them safe, and that they run what a contributor can run."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BIN = Path(sys.executable).parent
LOCAL_CI = ROOT / "scripts" / "run_local_ci.sh"
# These tests may themselves run under make, whose variables would reach the inner make.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found = load(path)["jobs"]
    assert isinstance(found, dict)
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


CI, RELEASE = WORKFLOWS


def test_both_workflows_are_there() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize(
    ("schema", "pattern", "word"),
    [
        ("github-workflows", "workflows/*.yml", "timeout-minutes"),
        ("github-issue-forms", "ISSUE_TEMPLATE/[!c]*.yml", "attributes"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml", "blank_issues_enabled"),
        ("dependabot", "dependabot.yml", "package-ecosystem"),
    ],
)
def test_github_accepts_the_files(schema: str, pattern: str, word: str, tmp_path: Path) -> None:
    def check(*files: Path) -> int:
        return run(BIN / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files).returncode

    files = sorted((ROOT / ".github").glob(pattern))
    assert check(*files) == 0
    broken = tmp_path / files[0].name
    broken.write_text(files[0].read_text(encoding="utf-8").replace(word, "nonsense"), encoding="utf-8")
    assert check(broken) == 1


def test_an_auditor_of_workflows_finds_nothing(tmp_path: Path) -> None:
    assert run(BIN / "zizmor", "--offline", "--strict-collection", ".github").returncode == 0
    broken = tmp_path / ".github" / "workflows" / "ci.yml"
    broken.parent.mkdir(parents=True)
    broken.write_text(CI.read_text(encoding="utf-8").replace("persist-credentials: false", ""))
    assert run(BIN / "zizmor", "--offline", "--strict-collection", tmp_path).returncode != 0


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert len(lines) == sum("uses" in step for step in steps(path)) > 5
    for line in lines:
        assert re.fullmatch(r" +- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_action_has_one_version() -> None:
    used = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    assert len({name.partition("@")[0] for name in used}) == len(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_has_a_time_limit_and_no_more_rights_than_it_needs(path: Path) -> None:
    assert load(path)["permissions"] == {}
    writers = {"publish": {"id-token": "write"}, "github-release": {"contents": "write"}}
    for name, job in jobs(path).items():
        assert 5 <= job["timeout-minutes"] <= 60, name
        assert job["permissions"] == writers.get(name, {"contents": "read"}), name
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_only_a_tag_publishes_and_only_after_everything_is_built() -> None:
    publish = jobs(RELEASE)["publish"]
    assert publish["environment"] == "release"
    assert publish["if"] == "github.event_name == 'push' && startsWith(github.ref, 'refs/tags/v')"
    assert set(publish["needs"]) == {"notes", "sdist", "wheels"}
    assert jobs(RELEASE)["github-release"]["needs"] == "publish"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_run_existing_make_targets_and_nothing_else(path: Path) -> None:
    commands = {step["run"] for step in steps(path) if "run" in step}
    assert len(commands) > 3
    for command in commands:
        assert re.fullmatch(r'make [a-z-]+( [A-Z]+=("\$GITHUB_REF_NAME"|[\w.${} -]+))?', command), command
    done = run("make", "--dry-run", "--keep-going", *(command.split()[1] for command in commands))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_matrix_has_the_pythons_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    prefix = "Programming Language :: Python :: "
    named = [text.removeprefix(prefix) for text in project["project"]["classifiers"] if prefix in text]
    assert named == ["3.11", "3.12", "3.13"]
    assert jobs(CI)["test"]["strategy"]["matrix"]["python"] == named
    tags = [f"cp{version.replace('.', '')}-*" for version in named]
    assert project["tool"]["cibuildwheel"]["build"].split() == tags


def test_local_ci_lists_exactly_the_commands_of_the_workflow() -> None:
    expected = []
    for name, job in jobs(CI).items():
        pythons = job.get("strategy", {}).get("matrix", {}).get("python", [""])
        for step in job["steps"]:
            if "run" in step:
                expected += [
                    [name, *step["run"].replace("${{ matrix.python }}", python).split()] for python in pythons
                ]
    done = run(LOCAL_CI, "--list")
    assert [line.split() for line in done.stdout.splitlines()] == expected
    assert done.returncode == 0


def test_local_ci_chooses_jobs() -> None:
    only = run(LOCAL_CI, "--list", "--only", "lint,docs").stdout.splitlines()
    assert [line.split()[0] for line in only] == ["lint", "docs"]
    rest = run(LOCAL_CI, "--list", "--skip", "lint,docs").stdout.splitlines()
    assert {line.split()[0] for line in rest} == set(jobs(CI)) - {"lint", "docs"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "nonsense"], "no job nonsense; jobs: lint test"),
        (["--only"], "--only needs a list of jobs"),
        (["--nonsense"], "unknown option --nonsense; see --help"),
    ],
)
def test_a_wrong_option_of_local_ci_is_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    done = run(LOCAL_CI, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("run_local_ci: ")
    assert says in done.stderr


@pytest.fixture
def small_project(tmp_path: Path) -> Path:
    """A project whose jobs pass, fail, cannot run here, and ask for a Python that no machine has."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / LOCAL_CI.name).symlink_to(LOCAL_CI)
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text(
        "jobs:\n"
        "  good:\n    steps:\n      - run: make good\n"
        "  bad:\n    steps:\n      - run: make bad\n"
        "  quoting:\n    steps:\n      - run: make quoting\n"
        "  offline:\n    steps:\n      - run: make offline\n"
        '  other:\n    strategy:\n      matrix:\n        python: ["3.99"]\n    steps:\n'
        "      - run: make good PYTHON=python${{ matrix.python }}\n"
    )
    (tmp_path / "Makefile").write_text(
        "good:\n\t@echo done well\n"
        "bad:\n\t@exit 3\n"
        "quoting:\n\t@echo 'cannot run here: no network'; echo '1 failed'; exit 1\n"
        "offline:\n\t@echo 'x: cannot run here: no network'; exit 1\n"
    )
    return tmp_path


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    table = done.stdout.rpartition("\n\n")[2].splitlines()
    assert table[0].split() == ["job", "command", "time", "result"]
    return {line.split()[0]: line.split(" s  ")[1] for line in table[1:]}


def test_local_ci_goes_on_after_a_failure_and_says_what_it_skipped(small_project: Path) -> None:
    done = run(small_project / "scripts" / LOCAL_CI.name, cwd=small_project)
    assert done.returncode == 1
    assert "== good: make good\ndone well\n" in done.stdout
    assert rows(done) == {
        "good": "ok",
        "bad": "FAILED: build/local_ci/2-bad.log",
        "quoting": "FAILED: build/local_ci/3-quoting.log",
        "offline": "skipped: no network",
        "other": "skipped: no Python 3.99 on this machine",
    }
    passing = run(small_project / "scripts" / LOCAL_CI.name, "--skip", "bad,quoting", cwd=small_project)
    assert passing.returncode == 0


def test_local_ci_stops_at_the_first_failure_if_asked_to(small_project: Path) -> None:
    done = run(small_project / "scripts" / LOCAL_CI.name, "--fail-fast", cwd=small_project)
    assert done.returncode == 1
    assert [*rows(done).values()][2:] == ["not run"] * 3


def test_the_ci_script_runs_the_readme_command_and_jobs_that_exist() -> None:
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "\nmake test\n" in text
    chosen = re.search(r"--only ([\w,-]+)", text)
    assert chosen is not None
    assert set(chosen[1].split(",")) < set(jobs(CI))


def test_scripts_are_valid_bash() -> None:
    for path in (LOCAL_CI, ROOT / ".ci" / "run"):
        assert run("bash", "-n", path).returncode == 0


def test_hooks_run_the_pinned_tools() -> None:
    hooks = [hook for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert {hook["id"] for hook in hooks} >= {"ruff", "ruff-format", "mypy", "bandit", "workflows"}
    for hook in hooks:
        assert (BIN / hook["entry"].split()[0].removeprefix(".venv/bin/")).exists(), hook["id"]

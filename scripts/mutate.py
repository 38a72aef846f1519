"""python scripts/mutate.py keisei/core/advantages.py --tests tests/core/test_advantages.py

Measures what tests notice. Copies the tree, makes one small change at a time to the given files (comparison,
operator, constant, condition, return value, dropped statement), and runs the given tests. Output:
each change that no test noticed, as a diff, and the share of those noticed. Exit code 1 below --floor.

The tests import the copy, also in processes that they start: its package comes before the installed one, and
the compiled extension is copied into it. A change that makes the tests hang counts as noticed.
"""

import argparse
import contextlib
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[1]

# An editable install finds the package before any path does; the copy's processes must not.
SITE = """\
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""
PROBE = "import keisei, keisei._native as native; print(keisei.__file__); print(native.__file__)"


class MutationError(Exception):
    """The tool cannot do its work: a mistake on the command line, or tests that fail without a change."""


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure which small changes of the code the tests notice.")
    parser.add_argument("files", nargs="+", type=Path, help="Python files or folders to change")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is to run for each change")
    parser.add_argument(
        "--max", type=_positive, metavar="N", help="try N changes, drawn at random (default all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default %(default)s)")
    parser.add_argument("--floor", type=float, default=0.0, metavar="PERCENT", help="exit 1 below this share")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="for one run (default: 4 × the unchanged one + 20)"
    )
    arguments = parser.parse_args()
    try:
        return _measure(arguments)
    except MutationError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 up, got {text}")
    return number


def _measure(arguments: argparse.Namespace) -> int:
    names = _python_files(arguments.files)
    candidates = [(name, mutant) for name in names for mutant in mutants((ROOT / name).read_bytes())]
    if not candidates:
        raise MutationError("nothing to change in these files")
    chosen = candidates
    if arguments.max is not None and arguments.max < len(candidates):
        kept = sorted(random.Random(arguments.seed).sample(range(len(candidates)), arguments.max))
        chosen = [candidates[i] for i in kept]
    with tempfile.TemporaryDirectory(prefix="keisei-mutants-") as folder:
        tree = Path(folder).resolve() / "tree"
        environment = _copy_tree(tree)
        _check_imports(tree, environment)
        began = time.monotonic()
        if _notices(arguments.tests, tree, environment, arguments.timeout or 900.0):
            raise MutationError("the tests fail without any change; run them with pytest first")
        timeout = arguments.timeout or 4 * (time.monotonic() - began) + 20
        print(f"{len(chosen)} of {len(candidates)} changes, at most {timeout:.0f} s each", flush=True)
        survivors = 0
        for number, (name, mutant) in enumerate(chosen):
            if not _tried(tree, name, mutant, number, arguments.tests, environment, timeout):
                survivors += 1
                print(f"survived: {name}:{mutant.line} ({mutant.what})")
                print(_diff(name, mutant), flush=True)
    score = 100 * (1 - survivors / len(chosen))
    print(f"{len(chosen) - survivors} of {len(chosen)} changes noticed: {score:.1f} %")
    if score < arguments.floor:
        print(f"mutate: {score:.1f} % is below the floor of {arguments.floor:g} %", file=sys.stderr)
        return 1
    return 0


def _python_files(paths: list[Path]) -> list[str]:
    """Return the Python files that the arguments name, relative to the tree."""
    found: list[str] = []
    for path in paths:
        full = path.resolve()
        files = sorted(full.rglob("*.py")) if full.is_dir() else [full]
        if not files or not all(file.is_file() and file.is_relative_to(ROOT) for file in files):
            raise MutationError(f"expected Python files of this tree, got {path}")
        found += [str(file.relative_to(ROOT)) for file in files]
    return list(dict.fromkeys(found))


def _copy_tree(tree: Path) -> dict[str, str]:
    """Copy what git knows, and the compiled extension; return the environment that imports the copy."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    probe = subprocess.run([sys.executable, "-P", "-c", PROBE], capture_output=True, text=True, timeout=60)
    if probe.returncode != 0:
        raise MutationError("keisei is not installed here: make build")
    native = Path(probe.stdout.splitlines()[1])
    shutil.copy2(native, tree / "keisei" / native.name)
    site = tree.parent / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(tree)])}


def _check_imports(tree: Path, environment: dict[str, str]) -> None:
    """Fail unless package and extension come from the copy."""
    probe = [sys.executable, "-P", "-c", PROBE]
    done = subprocess.run(probe, cwd=tree, env=environment, capture_output=True, text=True, timeout=60)
    places = done.stdout.splitlines()
    if len(places) != 2 or not all(Path(place).is_relative_to(tree) for place in places):
        raise MutationError(f"the copy is not what Python imports, but {places}: {done.stderr}")


def _tried(
    tree: Path,
    name: str,
    mutant: Mutant,
    number: int,
    tests: list[str],
    environment: dict[str, str],
    timeout: float,
) -> bool:
    """Make one change in the copy, run the tests, undo it; return whether they noticed."""
    path = tree / name
    source = path.read_bytes()
    times = path.stat()
    path.write_bytes(mutant.apply(source))
    # Python takes a compiled file for current if the source has the same size and the same second.
    os.utime(path, (number, number))
    try:
        return _notices(tests, tree, environment, timeout)
    except MutationError:  # not one test could be started
        return True
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _notices(tests: list[str], tree: Path, environment: dict[str, str], timeout: float) -> bool:
    """Return whether tests fail, or do not end in time. They and what they start are then gone."""
    own = ["-p", "no:cacheprovider", f"--basetemp={tree.parent / 'tests'}"]  # leave nothing behind
    command = [sys.executable, "-m", "pytest", "-q", "-x", *own, *tests]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return True
        finally:
            _end(process)
        if code in (4, 5):  # pytest's codes for wrong usage and for no tests
            output.seek(0)
            raise MutationError(output.read().decode(errors="replace").strip().splitlines()[-1])
        return code != 0


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def _diff(name: str, mutant: Mutant) -> str:
    source = (ROOT / name).read_bytes()
    before, after = (text.decode().splitlines() for text in (source, mutant.apply(source)))
    return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])


if __name__ == "__main__":
    sys.exit(main())

"""Run many command lines quickly: a process that has loaded everything forks a child for each.

    python forked_commands.py FOLDER <table.json

The table is a list of argument lists; FOLDER is where the commands run. Prints a JSON list with a dictionary
for each: `code`, `out`, `err`, and `changed`, the files of the folder that are new, gone or different.
A child is a process of its own with everything as at the start, except that the imports are done.
"""

import gc
import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from keisei.cli import main
from keisei.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
# What commands import once their settings are right. torch has no threads before it has computed something,
# so that a fork is safe.
LOADED_LATER = ("keisei.training.run", "keisei.training.doctor", "keisei.profiling.profile")
SECONDS = 20  # until a command that should have been refused is ended

Result = dict[str, int | str | list[str]]


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and time of change of everything in a folder."""
    found = {}
    for path in folder.rglob("*"):
        if path.name == "lock":  # of a run: whoever looks into it leaves his process id
            continue
        status = path.lstat()
        found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found


def run(arguments: list[str], folder: Path) -> Result:
    """Run one command in a child."""
    before = snapshot(folder)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _be_the_command(arguments, folder, out, err)
        _, status = os.waitpid(child, 0)
        texts = [_content(stream) for stream in (out, err)]
    after = snapshot(folder)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": texts[0],
        "err": texts[1],
        "changed": changed,
    }


def _be_the_command(arguments: list[str], folder: Path, out: BinaryIO, err: BinaryIO) -> None:
    """Run a command as a process of its own would, and end the process."""
    code: object = 1
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, file in enumerate((nothing, out.fileno(), err.fileno())):
            os.dup2(file, number)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        os.chdir(folder)
        if arguments[0].endswith(".py"):
            sys.argv = [str(ROOT / arguments[0]), *arguments[1:]]
            sys.path[0] = str(Path(sys.argv[0]).parent)
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            sys.argv = ["keisei", *arguments]
            main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _content(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def run_table() -> None:
    """Read the table, run its rows one after another and print the results."""
    folder = Path(sys.argv[1])
    rows = json.load(sys.stdin)
    for name in COMMANDS:
        load_command(name)
    for module in LOADED_LATER:
        import_module(module)
    gc.freeze()  # a child's collector would copy all memory
    json.dump([run(row, folder) for row in rows], sys.stdout)


if __name__ == "__main__":
    run_table()

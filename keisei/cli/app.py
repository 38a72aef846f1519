"""The command line: the list of commands, the module of each, and how mistakes are reported.

A command's module is imported only when the command is called, so `keisei perft` does not wait for torch;
`keisei --help` reads only the table.
"""

import errno
import io
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from keisei.cli import raise_on_interrupt
from keisei.cli.mistakes import explain, one_line
from keisei.errors import UserError, install_command, system_message
from keisei.shogi import NotationError, RulesError

# Command: its module, which has a function of that name, and the first line of its help.
COMMANDS = {
    "train": ("training", "Train a player by self-play; Ctrl-C saves, and --resume continues from there."),
    "plot": (
        "plotting",
        "Plot the training curves and ratings of a run, or the curves of several runs in one picture.",
    ),
    "config": ("settings", "Check a config and print it in full, as YAML."),
    "doctor": (
        "training",
        "Report what this machine offers for training, and measure which numeric formats are fast here.",
    ),
    "cluster": (
        "cluster",
        "Show what a Ray cluster offers for training: nodes, cores, versions, token, and who plays there.",
    ),
    "profile": (
        "profiling",
        "Show where the time of a training goes: phases, functions, stacks and memory of every process.",
    ),
    "play": (
        "playing",
        "Play a game against a trained network or another player in the terminal; "
        "type help for the commands.",
    ),
    "analyze": (
        "analysis",
        "Analyze a game with a network: the win rate at every move, a graph, and the better moves missed.",
    ),
    "watch": (
        "watching",
        "Watch the games of a running training: board, moves, the network's estimate and results.",
    ),
    "web": (
        "web",
        "Show runs as they learn and their games, and play against them, on a page in the browser.",
    ),
    "usi": (
        "playing",
        "Run as a USI engine for a shogi GUI or another program: commands on stdin, answers on stdout.",
    ),
    "evaluate": (
        "matches",
        "Play matches with a trained network and rate it: Elo with 95 % intervals, "
        "with the random player at 0.",
    ),
    "ladder": (
        "matches",
        "Rate many players against each other, playing where the ratings are least certain.",
    ),
    "show": ("records", "Check a game record against the rules, and print its result and a position."),
    "convert": (
        "records",
        "Convert a game record (CSA, KIF, KI2, USI) to CSA, KIF or USI, checking every move.",
    ),
    "export": (
        "exporting",
        "Write a checkpoint's network as ONNX, after running it and comparing it with the original.",
    ),
    "perft": (
        "records",
        "Count the legal move sequences of a given length, to check and time the move generator.",
    ),
}
# How --help groups them, by their modules.
GROUPS = {
    **dict.fromkeys(("training", "plotting", "settings", "cluster", "profiling"), "Train"),
    **dict.fromkeys(("playing", "analysis", "watching", "web"), "Play"),
    "matches": "Measure",
    **dict.fromkeys(("records", "exporting"), "Convert and check"),
}

# What the extra `train` adds to the engine.
TRAINING_PACKAGES = frozenset({"torch", "rich", "tensorboard", "matplotlib"})

_HELP_OPTIONS = {"help_option_names": ["--help", "-h"]}

# The base class of typer's errors; its import path differs between versions of typer.
_ClickException: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class _LazyGroup(TyperGroup):
    """A group that lists commands from the table, and loads only the one that is called."""

    def __init__(self, **settings: Any) -> None:
        listed = {
            name: TyperCommand(name, help=text, rich_help_panel=GROUPS[module])
            for name, (module, text) in COMMANDS.items()
        }
        super().__init__(**{**settings, "commands": listed})

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        command = load_command(str(name))
        if name != "train":  # which handles signals itself as soon as there is something to save
            raise_on_interrupt()
        return name, command, rest


def load_command(name: str) -> Any:
    """Import a command's module and return the command that typer makes of its function."""
    module = import_module(f"keisei.cli.{COMMANDS[name][0]}")
    alone = typer.Typer(add_completion=False, context_settings=_HELP_OPTIONS)
    alone.command(name)(getattr(module, name))
    return get_command(alone)


app = typer.Typer(
    cls=_LazyGroup,
    context_settings=_HELP_OPTIONS,
    pretty_exceptions_enable=False,
    help="Keisei (形勢): shogi self-play training.",
)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if show_version:
        print(f"keisei {version('keisei')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def run_command_line() -> None:
    """Run the command line; keisei.cli.main calls this."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show 歩 shows ?
    try:
        sys.exit(app(standalone_mode=False))  # None, or typer's exit code: 130 after Ctrl-C
    except _ClickException as mistake:  # a wrong option or argument
        _refuse(explain(mistake))
    except UserError as mistake:
        _refuse(*mistake.lines)
    except (NotationError, RulesError) as mistake:
        _refuse(str(mistake))
    except ModuleNotFoundError as mistake:  # `pip install keisei` alone brings the engine
        if mistake.name is None or mistake.name.partition(".")[0] not in TRAINING_PACKAGES:
            raise
        _refuse(f"this command needs {mistake.name}, which is not installed: {install_command('train')}")
    except OSError as mistake:
        # Files are named where they are written, so a full disk without a name is that of the output.
        nameless = mistake.errno == errno.ENOSPC and mistake.filename is None
        _refuse(f"{'the output: ' if nameless else ''}{system_message(mistake)}")


def _refuse(*messages: str) -> NoReturn:
    """Report a user's mistake, one line per message, and exit with code 2."""
    for message in messages:
        print(f"keisei: {one_line(message)}", file=sys.stderr)
    sys.exit(2)

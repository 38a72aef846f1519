"""The `keisei` command: doors only, one function each. A user's mistake is one line and exit code 2."""

import io
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from keisei import cli_play
from keisei.cli_common import let_threads_sleep, refuse
from keisei.config.errors import ConfigError
from keisei.config.fields import table
from keisei.config.files import load_config, to_yaml
from keisei.config.schema import AppConfig
from keisei.runs.checkpoint import CheckpointError
from keisei.shogi import (
    START_SFEN,
    GameRecord,
    NotationError,
    RulesError,
    perft,
    read_records,
    write_record,
)
from keisei.shogi.perft_counts import divided_perft
from keisei.training.metrics import MetricsError

# The base of typer's own complaints, which every version of typer keeps in another place.
_ClickException: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Keisei (形勢): shogi self-play training.",
)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if show_version:
        print(f"keisei {version('keisei')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command("perft")
def perft_command(
    depth: Annotated[int, typer.Argument(min=0, max=100, help="Length of the sequences.")],
    sfen: Annotated[str, typer.Argument(help="SFEN, in quotes.", show_default="start")] = START_SFEN,
    divide: Annotated[bool, typer.Option("--divide", help="One line for each first move.")] = False,
    kings: Annotated[
        str, typer.Option(help="Who must have one: both, or defender, as in mate problems.")
    ] = "both",
) -> None:
    """Count the legal move sequences of a length, to check and to time the move generator.

    keisei perft 5

    keisei perft 3 "7lk/9/8S/9/9/9/9/7L1/8K b P 1" --divide
    """
    if kings not in ("both", "defender"):
        raise typer.BadParameter(f"--kings is {kings!r}, expected both or defender")
    start = time.perf_counter()
    if divide and depth > 0:
        nodes = 0
        for move, count in divided_perft(sfen, depth, kings=kings):
            print(f"{move} {count}", flush=True)
            nodes += count
    else:
        nodes = perft(sfen, depth, kings=kings)
    seconds = time.perf_counter() - start
    print(f"depth {depth}: {nodes} nodes in {seconds:.3f} s, {nodes / seconds / 1e6:.1f} million nodes/s")


@app.command()
def show(
    record: Annotated[Path, typer.Argument(help="A .csa, .kif, .kifu or .usi file.")],
    ply: Annotated[int | None, typer.Option(help="After this many moves; the end if not given.")] = None,
    game_number: Annotated[
        int | None, typer.Option("--game", min=1, help="Which game, of a file that has several.")
    ] = None,
) -> None:
    """Check a game record against the rules and print its result and a position.

    keisei show game.kif --ply 40

    keisei show match.csa --game 17
    """
    read = _one_game(record, game_number)
    if ply is not None and not 0 <= ply <= len(read.moves):
        raise typer.BadParameter(f"--ply is {ply}, expected 0 to {len(read.moves)}")
    game = read.game()
    while ply is not None and len(game.history) > ply:
        game.pop()
    players = f"☗{read.black or '?'} ☖{read.white or '?'}"
    print(f"{players}: {len(read.moves)} moves, {read.outcome or 'unfinished'}\n{game}")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A .csa, .kif, .kifu or .usi file.")],
    target: Annotated[Path, typer.Argument(help="The file to write; its ending names the format.")],
    game_number: Annotated[
        int | None, typer.Option("--game", min=1, help="Which game, of a file that has several.")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Every game of the file, to TARGET-001, TARGET-002 and so on.")
    ] = False,
) -> None:
    """Convert a game record between CSA, KIF and USI, checking every move.

    keisei convert game.kif game.csa

    keisei convert match.csa game.kif --each
    """
    if each and game_number is not None:
        raise typer.BadParameter("--each and --game are given, expected one of them")
    if not each:
        write_record(target, _one_game(source, game_number))
        return
    games = read_records(source)
    digits = max(3, len(str(len(games))))
    for number, record in enumerate(games, 1):
        write_record(target.with_stem(f"{target.stem}-{number:0{digits}}"), record)


@app.command("config")
def config_command(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE|SETTING=VALUE", help="A YAML file, or default, gpu or tiny; then what differs."
        ),
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Print every setting, as a table.")] = False,
) -> None:
    """Check a config and print all of it, as YAML.

    keisei config tiny training.learning_rate=1e-3 run.name=first

    keisei config --describe
    """
    if describe:
        if arguments:
            raise typer.BadParameter(f"--describe stands alone, but {arguments[0]} is given too")
        print(table(AppConfig), end="")
    else:
        print(to_yaml(load_config(*_source_and_overrides(arguments or []))), end="")


@app.command()
def train(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="SETTING=VALUE", help="Settings to change: training.learning_rate=0.001"),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="A YAML file, or default, gpu or tiny.", show_default="default"),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            help="Go on with a run: latest, its directory, or one of its checkpoints. With latest, a damaged "
            "checkpoint is passed over. --config replaces all of its settings, SETTING=VALUE some."
        ),
    ] = None,
    total_timesteps: Annotated[int | None, typer.Option(help="Short for training.total_timesteps=…")] = None,
) -> None:
    """Train a player by self-play; Ctrl-C saves, and --resume goes on from there.

    keisei train run.name=first training.total_timesteps=1000000

    keisei train --resume latest

    keisei config --describe lists the settings.
    """
    changes = [*(overrides or [])]
    if total_timesteps is not None:
        changes.append(f"training.total_timesteps={total_timesteps}")
    command = ["keisei", *sys.argv[1:]]
    settings = load_config(config, changes) if resume is None else None
    let_threads_sleep()
    # Here, because it loads torch, which takes seconds: a mistake in the settings is told before.
    from keisei.training import run

    try:
        if settings is not None:
            raise typer.Exit(run.begin(settings, command))
        raise typer.Exit(run.resume(str(resume), config, changes, command))
    except run.MISTAKES as mistake:
        refuse(str(mistake))


@app.command()
def doctor(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="SETTING=VALUE", help="As for train: run.device=cpu")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="A YAML file, or default, gpu or tiny.", show_default="default")
    ] = None,
) -> None:
    """Tell what this machine has for training, and measure which numeric formats are fast here.

    keisei doctor --config gpu
    """
    settings = load_config(config, overrides or [])
    let_threads_sleep()
    from keisei.training.doctor import diagnose  # here: it loads torch

    for subject, finding in diagnose(settings):
        print(f"{subject:15} {finding}", flush=True)


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs; several share one picture.")],
    out: Annotated[
        Path | None, typer.Option(help="A .png or .svg; RUN/plots/curves.png if not given.")
    ] = None,
) -> None:
    """Draw the curves of a run and of its rating, or the curves of several runs over each other.

    keisei plot runs/first

    keisei plot runs/seed1 runs/seed2 --out seeds.svg
    """
    from keisei.training.plot import (  # here: matplotlib would slow every other command
        plot_rating,
        plot_run,
        plot_runs,
    )

    if out is None and len(runs) > 1:
        raise typer.BadParameter(f"--out is missing: expected a file for the picture of {len(runs)} runs")
    if out is not None:
        print(plot_runs(runs, out))
        return
    print(plot_run(runs[0]))
    if (ratings := plot_rating(runs[0])) is not None:
        print(ratings)


for command in (cli_play.evaluate, cli_play.ladder, cli_play.usi, cli_play.play, cli_play.export):
    app.command()(command)


def _one_game(path: Path, number: int | None) -> GameRecord:
    """Return a game of a file: the one with this number, or the only one."""
    games = read_records(path)
    if number is None and len(games) != 1:
        raise typer.BadParameter(f"{path} has {len(games)} games: expected --game 1 to {len(games)}")
    if (number or 1) > len(games):
        raise typer.BadParameter(f"--game is {number}, expected 1 to {len(games)}")
    return games[(number or 1) - 1]


def _source_and_overrides(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Part a command's arguments: one with an equals sign is an override, the other one is the source."""
    sources = [argument for argument in arguments if "=" not in argument]
    if len(sources) > 1:
        raise typer.BadParameter(f"two configs, {sources[0]} and {sources[1]}; an override is setting=value")
    return next(iter(sources), None), [argument for argument in arguments if "=" in argument]


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show 歩 shows ?
    try:
        sys.exit(app(standalone_mode=False))  # None, or typer's own exit code, 130 after Ctrl-C
    except _ClickException as mistake:  # a wrong option or argument
        refuse(mistake.format_message())
    except ConfigError as mistake:
        refuse(*mistake.problems)
    except (NotationError, RulesError, MetricsError, CheckpointError) as mistake:
        refuse(str(mistake))
    except OSError as mistake:
        refuse(f"{mistake.filename}: {mistake.strerror}" if mistake.filename else str(mistake))
    except Exception as mistake:
        if isinstance(mistake, cli_play.mistakes()):
            refuse(str(mistake))
        raise

"""The commands that play: evaluate, ladder, usi, play, export. Doors only; keisei.cli offers them.

What they need is loaded inside of them: it takes numpy, which no other command should wait for.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.cli_common import let_threads_sleep
from keisei.core.device import cores

if TYPE_CHECKING:
    from keisei.evaluation.evaluate import MatchSettings


Where = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_CHECKPOINT",
        help="A checkpoint, or a run: its best one, or its last; RUN@best, RUN@latest, RUN@STEP.",
    ),
]
Games = Annotated[int, typer.Option(min=2, help="Games against each opponent, an even number.")]
RandomPlies = Annotated[
    int | None,
    typer.Option(min=0, max=200, help="Random moves of an opening.", show_default="4, 0 with --openings"),
]
Openings = Annotated[
    Path | None, typer.Option(help="A file of positions, an SFEN or a USI position on each line.")
]
MaxMoves = Annotated[int, typer.Option(min=2, max=100_000, help="A longer game is a draw.")]
Seed = Annotated[
    int, typer.Option(min=0, help="Of openings and players; the same seed plays the same games.")
]
Threads = Annotated[
    int, typer.Option(min=0, max=1024, help="Threads; 0 is one for each core, which pays for large networks.")
]
Device = Annotated[str, typer.Option(help="Of the networks: auto, cpu, cuda.")]


def evaluate(
    where: Where,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="An opponent: random, greedy, material, alphabeta-1 to alphabeta-6, a run or checkpoint, or "
            "'usi:COMMAND;depth=1'. May be given several times.",
            show_default="random, greedy, material",
        ),
    ] = None,
    games: Games = 200,
    visits: Annotated[int | None, typer.Option(min=1, help="Search with so many visits for a move.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Search for so many seconds a move.")] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="Without a search: how freely the policy chooses.", show_default="0.25"),
    ] = None,
    every_checkpoint: Annotated[
        bool, typer.Option("--all", help="Every checkpoint of the run, and a curve of their ratings.")
    ] = False,
    sprt: Annotated[
        str | None,
        typer.Option(metavar="ELO0,ELO1", help="End a match as soon as one of two hypotheses is refuted."),
    ] = None,
    random_plies: RandomPlies = None,
    openings: Openings = None,
    max_moves: MaxMoves = 512,
    seed: Seed = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Where results, games and report go.", show_default="evaluation in the run"),
    ] = None,
    threads: Threads = 1,
    device: Device = "cpu",
) -> None:
    """Play matches with a trained network, and rate it: Elo with 95 % intervals, the random player being 0.

    Games that were played before with the same seed are counted and not played again.

    keisei evaluate runs/first --against random --against greedy

    keisei evaluate runs/first@best --visits 100 --against 'usi:fairy-stockfish;depth=1' --games 40

    keisei evaluate runs/first --all
    """
    from keisei.runs.find import checkpoints_of, find_checkpoint, run_of

    efforts = {"visits": visits, "seconds": seconds, "temperature": temperature}
    suffix = "".join(f";{name}={value}" for name, value in efforts.items() if value is not None)
    path = find_checkpoint(where)
    run = run_of(path)
    places = [path]
    if every_checkpoint:
        if run is None:
            raise typer.BadParameter(f"--all: {where} is a checkpoint outside of a run, expected a run")
        places = checkpoints_of(run)
    let_threads_sleep()
    from keisei.evaluation import evaluate as matches

    setting = _setting(random_plies, openings, max_moves, seed, threads, device, sprt)
    directory = out or (run / "evaluation" if run is not None else Path("evaluation"))
    opponents = against or ["random", "greedy", "material"]
    players = [f"{place}{suffix}" for place in places]
    with _told_on_ctrl_c():
        report = matches.evaluate(players, opponents, _even(games), directory, setting, _tell)
    print(f"report: {report}")


def ladder(
    players: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAYER", help="More players, as for evaluate --against; a run may have ;visits=N."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=2, help="Games of two players before all are rated again.")] = 20,
    precision: Annotated[
        float, typer.Option(min=1, help="Stop when all 95 % intervals are at most ± so many Elo.")
    ] = 60.0,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after so many minutes.", show_default="no limit")
    ] = None,
    built_in: Annotated[
        bool, typer.Option(help="Rate random, greedy, material and alphabeta-1 to -3 too.")
    ] = True,
    random_plies: RandomPlies = None,
    openings: Openings = None,
    max_moves: MaxMoves = 512,
    seed: Seed = 1,
    out: Annotated[Path, typer.Option(help="Where results, games and report go.")] = Path("ladder"),
    threads: Threads = 1,
    device: Device = "cpu",
) -> None:
    """Rate many players against each other, with games where the ratings are least certain.

    The same command goes on with the games that are in --out.

    keisei ladder runs/first 'runs/first;visits=100' 'usi:fairy-stockfish;depth=1' --minutes 30
    """
    let_threads_sleep()
    from keisei.evaluation import evaluate as matches
    from keisei.evaluation.players.player_specs import BUILT_IN_NAMES

    deepest = BUILT_IN_NAMES.index("alphabeta-3")  # more plies take long, and are there for who asks
    seated = [*BUILT_IN_NAMES[: deepest + 1]] if built_in else ["random"]
    seated += [player for player in players or [] if player not in seated]
    setting = _setting(random_plies, openings, max_moves, seed, threads, device, None)
    with _told_on_ctrl_c():
        report = matches.ladder(
            seated, out, setting, _tell, batch=_even(batch), precision=precision, minutes=minutes
        )
    print(f"report: {report}")


def usi(
    where: Where,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option's default; may be given several times."),
    ] = None,
) -> None:
    """Be a USI engine, for a shogi GUI or another program: commands on standard input, answers on output.

    keisei usi runs/first --option Visits=400
    """
    let_threads_sleep()
    from keisei.usi.main import main

    raise typer.Exit(main(where, _named(option or [])))


def play(
    where: Where,
    color: Annotated[str, typer.Option(help="Yours: black (first), white or random.")] = "black",
    visits: Annotated[
        int, typer.Option(min=0, help="How much the network searches for a move; 0 is its policy alone.")
    ] = 400,
    sfen: Annotated[str | None, typer.Option(help="The position to begin with.")] = None,
    handicap: Annotated[str | None, typer.Option(help="What White gives, such as lance or 2-piece.")] = None,
    declaration: Annotated[str, typer.Option(help="Wins by declaration: 27, 24, try or off.")] = "27",
    max_moves: MaxMoves = 512,
    save: Annotated[Path | None, typer.Option(help="Write the game here: .kif, .csa or .usi.")] = None,
) -> None:
    """Play a game against a trained network, in the terminal; type help there.

    keisei play runs/first --color white --save game.kif
    """
    let_threads_sleep()
    from keisei.usi import play as terminal

    raise typer.Exit(
        terminal.main(
            where,
            color=color,
            visits=visits,
            sfen=sfen,
            handicap=handicap,
            declaration=declaration,
            max_moves=max_moves,
            save=save,
        )
    )


def export(
    where: Where,
    out: Annotated[
        Path, typer.Option(help="The file, or a directory for RUN@STEP.onnx.", show_default="here")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    tolerance: Annotated[
        float, typer.Option(min=0, help="How far logits, as a share of the largest, and values may differ.")
    ] = 1e-5,
) -> None:
    """Write the network of a checkpoint as ONNX; the file is run and compared with the network first.

    keisei export first

    keisei export runs/first@400000 --out first.onnx
    """
    let_threads_sleep()
    from keisei.runs.export import export_onnx
    from keisei.runs.find import find_checkpoint

    done = export_onnx(find_checkpoint(where), out, tolerance=tolerance, force=force)
    found = done.differences
    print(
        f"{done.path}: {done.bytes:,} bytes, opset {done.opset}, weights sha256 {done.sha256}; "
        f"on {found.positions} positions logits differ by {found.policy:.1e}, values by {found.value:.1e}"
    )


def _named(options: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in options]
    for name, equals, value in pairs:
        if not name or not equals:
            raise typer.BadParameter(f"--option {name}{equals}{value}: expected NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _tell(line: str) -> None:
    print(line, flush=True)


def _even(games: int) -> int:
    if games % 2:
        raise typer.BadParameter(f"{games} games, expected an even number: each opening is played twice")
    return games


def _setting(
    random_plies: int | None,
    openings: Path | None,
    max_moves: int,
    seed: int,
    threads: int,
    device: str,
    sprt: str | None,
) -> "MatchSettings":
    """Return how matches are played; native players and torch use so many threads."""
    from keisei.evaluation.evaluate import MatchSettings
    from keisei.evaluation.matches.match_conditions import START, MatchConditions, read_openings
    from keisei.evaluation.players.player_specs import Machine
    from keisei.evaluation.ratings.sprt import Sprt

    if random_plies is None:
        random_plies = 4 if openings is None else 0
    positions = (START,) if openings is None else read_openings(openings)
    conditions = MatchConditions(random_plies, max_moves, openings=positions)
    test = None
    if sprt is not None:
        try:
            elo0, elo1 = map(float, sprt.split(","))
            test = Sprt(elo0, elo1)
        except ValueError:
            raise typer.BadParameter(f"--sprt {sprt}: expected two numbers, the first less: 0,50") from None
    return MatchSettings(conditions, seed, machine=Machine(threads or cores(), device), sprt=test)


@contextmanager
def _told_on_ctrl_c() -> Iterator[None]:
    """Say that nothing is lost, and leave with exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        print("keisei: stopped; games that are over are kept, and the same command goes on", file=sys.stderr)
        raise typer.Exit(130) from None

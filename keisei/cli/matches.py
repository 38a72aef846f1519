"""evaluate, ladder: matches and ratings."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from keisei.cli.arguments import PLAYERS, MaxMoves, PlayerOrShipped, is_player, or_a_player
from keisei.core.device import cores
from keisei.evaluation import evaluate as matches
from keisei.evaluation.matches.match_conditions import RANDOM_PLIES, START, MatchConditions, read_openings
from keisei.evaluation.players.player_specs import BUILT_IN_NAMES, Machine
from keisei.evaluation.ratings.sprt import MAX_ELO, Sprt
from keisei.runs.find import SHIPPED, NothingFoundError, checkpoints_of, find_checkpoint, run_of

Games = Annotated[int, typer.Option(min=2, max=1_000_000, help="Games against each opponent; must be even.")]
RandomPlies = Annotated[
    int | None,
    typer.Option(min=0, max=200, help="Random opening moves.", show_default="4, or 0 with --openings"),
]
Openings = Annotated[
    Path | None, typer.Option(help="A file of positions, one SFEN or USI position per line.")
]
Seed = Annotated[
    int,
    typer.Option(
        min=0, max=2**64 - 1, help="Seed of openings and players; the same seed plays the same games."
    ),
]
Threads = Annotated[
    int, typer.Option(min=0, max=1024, help="Threads; 0 is one per core, which pays off for large networks.")
]
Device = Annotated[str, typer.Option(help="Device of the networks: auto, cpu, mps, cuda or cuda:0.")]


def evaluate(
    where: PlayerOrShipped = SHIPPED,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="An opponent: random, greedy, material, alphabeta-1 to alphabeta-6, a run or checkpoint, or "
            "'usi:COMMAND;depth=1'. Can be repeated.",
            show_default="random, greedy, material",
        ),
    ] = None,
    games: Games = 200,
    visits: Annotated[int | None, typer.Option(min=1, help="Search with this many visits per move.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Search for this many seconds per move.")] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="Without a search: how freely the policy chooses.", show_default="0.25"),
    ] = None,
    every_checkpoint: Annotated[
        bool, typer.Option("--all", help="Rate every checkpoint of the run, and plot the ratings.")
    ] = False,
    sprt: Annotated[
        str | None,
        typer.Option(metavar="ELO0,ELO1", help="Stop a match as soon as either hypothesis is rejected."),
    ] = None,
    random_plies: RandomPlies = None,
    openings: Openings = None,
    max_moves: MaxMoves = 512,
    seed: Seed = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for results, games and report.", show_default="evaluation in the run"),
    ] = None,
    threads: Threads = 1,
    device: Device = "cpu",
) -> None:
    """Play matches with a trained network and rate it: Elo with 95 % intervals, with the random player at 0.

    Games already played with the same seed are counted, not played again.

    keisei evaluate runs/first --against random --against greedy

    keisei evaluate runs/first@best --visits 100 --against 'usi:fairy-stockfish;depth=1' --games 40

    keisei evaluate runs/first --all
    """
    efforts = {"visits": visits, "seconds": seconds, "temperature": temperature}
    suffix = "".join(f";{name}={value}" for name, value in efforts.items() if value is not None)
    run, players = _evaluated(where, suffix, every=every_checkpoint)
    setting = _setting(random_plies, openings, max_moves, seed, threads, device, sprt)
    directory = out or (run / "evaluation" if run is not None else Path("evaluation"))
    opponents = against or [name for name in PLAYERS if name != where]
    with _told_on_ctrl_c():
        report = matches.evaluate(players, opponents, _even(games), directory, setting, _tell)
    print(f"report: {report}")


def _evaluated(where: str, suffix: str, *, every: bool) -> tuple[Path | None, list[str]]:
    """Return the run, if it is one, and the players to rate: one, or all checkpoints of the run."""
    if is_player(where):
        if suffix or every:
            option = "--all" if every else f"--{suffix[1:].partition('=')[0]}"
            raise typer.BadParameter(f"{option} is for a run or checkpoint, the player is {where}")
        return None, [where]
    try:
        path = find_checkpoint(where)
    except NothingFoundError as error:
        raise or_a_player(error) from error
    run = run_of(path)
    if not every:
        return run, [f"{path}{suffix}"]
    if run is None:
        raise typer.BadParameter(f"--all: {where} is a checkpoint outside any run, expected a run")
    return run, [f"{place}{suffix}" for place in checkpoints_of(run)]


def ladder(
    players: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAYER", help="More players, as for evaluate --against; a run can have ;visits=N."
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=2, max=1_000_000, help="Games per pairing before the ratings are updated.")
    ] = 20,
    precision: Annotated[
        float, typer.Option(min=1, help="Stop when all 95 % intervals are within ± this many Elo.")
    ] = 60.0,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Stop after this many minutes.", show_default="no limit")
    ] = None,
    built_in: Annotated[
        bool, typer.Option(help="Also rate random, greedy, material and alphabeta-1 to -3.")
    ] = True,
    random_plies: RandomPlies = None,
    openings: Openings = None,
    max_moves: MaxMoves = 512,
    seed: Seed = 1,
    out: Annotated[Path, typer.Option(help="Directory for results, games and report.")] = Path("ladder"),
    threads: Threads = 1,
    device: Device = "cpu",
) -> None:
    """Rate many players against each other, playing where the ratings are least certain.

    Run the same command again to continue from the games in --out.

    keisei ladder runs/first 'runs/first;visits=100' 'usi:fairy-stockfish;depth=1' --minutes 30
    """
    deepest = BUILT_IN_NAMES.index("alphabeta-3")  # deeper ones are slow, so they must be asked for
    seated = [*BUILT_IN_NAMES[: deepest + 1]] if built_in else ["random"]
    seated += [player for player in players or [] if player not in seated]
    if len(seated) < 2:
        raise typer.BadParameter(f"the only player is {seated[0]}, expected at least two")
    setting = _setting(random_plies, openings, max_moves, seed, threads, device, None)
    with _told_on_ctrl_c():
        report = matches.ladder(
            seated, out, setting, _tell, batch=_even(batch), precision=precision, minutes=minutes
        )
    print(f"report: {report}")


def _tell(line: str) -> None:
    print(line, flush=True)


def _even(games: int) -> int:
    if games % 2:
        raise typer.BadParameter(f"{games} games, expected an even number, as each opening is played twice")
    return games


def _setting(
    random_plies: int | None,
    openings: Path | None,
    max_moves: int,
    seed: int,
    threads: int,
    device: str,
    sprt: str | None,
) -> matches.MatchSettings:
    """Return how matches are played; threads is for native players and for torch."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise typer.BadParameter(f"--device is {device!r}, expected auto, cpu, mps, cuda or cuda:0")
    if random_plies is None:
        random_plies = RANDOM_PLIES if openings is None else 0
    positions = (START,) if openings is None else read_openings(openings)
    conditions = MatchConditions(random_plies, max_moves, openings=positions)
    test = None
    if sprt is not None:
        try:
            elo0, elo1 = map(float, sprt.split(","))
            test = Sprt(elo0, elo1)
        except ValueError:
            raise typer.BadParameter(
                f"--sprt {sprt or repr(sprt)}: expected two numbers, the smaller first: 0,50 "
                f"(from -{MAX_ELO} to {MAX_ELO})"
            ) from None
    return matches.MatchSettings(conditions, seed, machine=Machine(threads or cores(), device), sprt=test)


@contextmanager
def _told_on_ctrl_c() -> Iterator[None]:
    """On Ctrl-C, say that nothing is lost and exit with code 130."""
    try:
        yield
    except KeyboardInterrupt:
        print("keisei: stopped; finished games are kept, run the same command to continue", file=sys.stderr)
        raise typer.Exit(130) from None

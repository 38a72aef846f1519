"""Speed of play: GOMP_SPINCOUNT=5000 python bench/play.py [RUN_OR_CHECKPOINT]

200 games of the network against the random player, alpha-beta's moves per second by depth, the search's
visits per second for one game and for many, and the USI engine's start-up time. Without a checkpoint the
default network plays untrained: a move takes just as long, a game may take longer.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from keisei.config.schema import AppConfig
from keisei.core.device import cores, keep_freed_memory
from keisei.core.policy import Policy
from keisei.core.self_play import SelfPlay
from keisei.evaluation import AlphaBetaPlayer, NetworkPlayer, RandomPlayer, Turn, play_match
from keisei.runs.checkpoint import save_checkpoint
from keisei.runs.find import find_checkpoint
from keisei.runs.load import load_network
from keisei.search.puct import Search, SearchSettings
from keisei.shogi import ShogiGame
from keisei.training.trainer import Trainer


def middle_games(count: int, first_ply: int = 40) -> list[ShogiGame]:
    """Return games between depth-1 alpha-beta players, each after 40 or more moves."""
    games = [ShogiGame() for _ in range(count)]
    player = AlphaBetaPlayer(1, seed=1)
    for number, game in enumerate(games):
        for _ in range(first_ply + number % 30):
            (move,) = player.choose([Turn(game, number)])
            game.push(move)
            if game.outcome() is not None:
                game.pop()
                break
    return games


def match_with_random(policy: Policy) -> str:
    """Play the 200 games."""
    begin = time.perf_counter()
    result = play_match(NetworkPlayer(policy, "network", seed=1, temperature=0.25), RandomPlayer(seed=2))
    seconds = time.perf_counter() - begin
    plies = result.mean_length * result.games
    return f"{seconds:.1f} s, {plies / seconds:,.0f} moves/s; {result}"


def alpha_beta_speed(depth: int, threads: int) -> str:
    """Measure alpha-beta in middle games for a few seconds."""
    turns = [Turn(game, number) for number, game in enumerate(middle_games(32))]
    player = AlphaBetaPlayer(depth, seed=1, threads=threads)
    begin, moves = time.perf_counter(), 0
    while time.perf_counter() - begin < 3:
        moves += len(player.choose(turns))
    return f"{moves / (time.perf_counter() - begin):,.0f} moves/s"


def search_speed(policy: Policy, games: int, leaves: int) -> str:
    """Search this many games at once for a few seconds."""
    search = Search(middle_games(games), policy.evaluate, settings=SearchSettings(leaves=leaves))
    search.run(visits=8)
    before, begin = sum(search.result(i).visits for i in range(games)), time.perf_counter()
    search.run(seconds=4)
    visits = sum(search.result(i).visits for i in range(games)) - before
    return f"{visits / (time.perf_counter() - begin):,.0f} visits/s"


def usi_start(checkpoint: Path) -> str:
    """Start the engine and wait for usiok and readyok."""
    command = [sys.executable, "-m", "keisei.usi.main", str(checkpoint)]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        times = {}
        for question, answer in (("usi", "usiok"), ("isready", "readyok")):
            print(question, file=engine.stdin, flush=True)
            for line in engine.stdout:
                if line.strip() == answer:
                    break
            else:
                raise RuntimeError(f"the engine ended before {answer}")
            times[answer] = time.perf_counter() - begin
        print("quit", file=engine.stdin, flush=True)
    return ", ".join(f"{answer} after {seconds:.2f} s" for answer, seconds in times.items())


def untrained(folder: Path) -> Path:
    """Write a checkpoint of the default network as it is before training."""
    config = AppConfig()
    trainer = Trainer(config, torch.device("cpu"))
    return save_checkpoint(folder, trainer.snapshot([SelfPlay.begin(config.env, games=1, seed=1).save()]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", nargs="?", help="a run or a checkpoint; default: an untrained network")
    parser.add_argument("--threads", type=int, default=1, help="threads for the network")
    arguments = parser.parse_args()
    where = arguments.checkpoint
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        path = find_checkpoint(where) if where else untrained(Path(folder))
        policy = load_network(path, threads=arguments.threads).policy
        print(f"{cores()} cores, network on {arguments.threads} thread(s)")
        print(f"200 games against random    {match_with_random(policy)}", flush=True)
        for depth in range(1, 5):
            print(f"alpha-beta, depth {depth}, 1 thread {alpha_beta_speed(depth, 1)}", flush=True)
        print(f"alpha-beta, depth 3, {cores()} threads {alpha_beta_speed(3, cores())}", flush=True)
        for games, leaves in ((1, 8), (1, 16), (32, 2)):
            rate = search_speed(policy, games, leaves)
            print(f"search, games {games}, leaves {leaves}  {rate}", flush=True)
        print(f"USI engine                  {usi_start(path)}")


if __name__ == "__main__":
    main()

"""Measure how fast workers collect experience: python scripts/benchmark_parallel.py --workers 1,2,4,8

All contestants play with the same untrained network and take turns, one segment at a time, so that load on
the machine affects them equally. Prints the medians over the rounds, and the medians of the ratios within a
round. The plot goes to benchmark_parallel.png.

one game: serial collection, one game at a time. serial: many games side by side in one process, with one
    thread and with one per core. N workers: the same number of games side by side in each of N processes.
efficiency: steps/s divided by those of one worker and by the number of workers, or of cores if fewer.
overhead: share of all CPU time spent on transport and bookkeeping: in the workers reading weights and
    messages, counting, checksums and sending; in the learner everything.
end to end: collecting and learning in turns, as in training, 4,096 moves per update.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "5000")  # as `keisei train` does, before torch is loaded

import torch

from keisei.config.schema import AppConfig
from keisei.core.device import cores, keep_freed_memory
from keisei.core.ppo_agent import PPOAgent
from keisei.core.self_play import SelfPlay
from keisei.training.collector import make_collector
from keisei.training.parallel import ParallelManager
from keisei.training.trainer import Trainer

EPOCH = 4096


@dataclass(frozen=True)
class Turn:
    """The measurements of one contestant's turn; fields from overhead_seconds on are for workers only."""

    steps: int
    seconds: float
    cpu_seconds: float
    overhead_seconds: float = 0.0
    memory_bytes: int = 0
    queue_depth: float = 0.0
    sync_milliseconds: float = 0.0

    @property
    def speed(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds


Contestant = Callable[[], Turn]


def config_of(arguments: argparse.Namespace, workers: int, epoch: int) -> AppConfig:
    """Return the config for the requested network and sizes."""
    blocks, channels = (int(part) for part in arguments.network.split("x"))
    parallel = {
        "enabled": workers > 0,
        "num_workers": max(1, workers),
        "episodes_per_worker": arguments.games,
    }
    return AppConfig.model_validate(
        {
            "model": {"blocks": blocks, "channels": channels},
            "training": {
                "games": arguments.games,
                "steps_per_epoch": epoch,
                "parallel": parallel,
            },
            "run": {"numerics": arguments.numerics, "console": "off"},
        }
    )


def serial(arguments: argparse.Namespace, games: int, threads: int) -> Contestant:
    """Return a contestant that plays in this process."""
    config = config_of(arguments, 0, EPOCH)
    agent = PPOAgent(config)
    self_play = SelfPlay.begin(config.env, games=games, seed=1)

    def turn() -> Turn:
        agent.use_threads(threads)
        start, cpu = time.perf_counter(), time.process_time()
        played = self_play.rollout(agent, arguments.steps)
        return Turn(len(played.segment), time.perf_counter() - start, time.process_time() - cpu)

    turn()
    return turn


def parallel(arguments: argparse.Namespace, workers: int, stack: ExitStack) -> Contestant:
    """Return a contestant that plays in workers."""
    epoch = workers * arguments.games * arguments.steps
    config = config_of(arguments, workers, epoch)
    agent = PPOAgent(config)
    manager = stack.enter_context(ParallelManager(config, agent))

    def turn() -> Turn:
        agent.version += 1  # the same weights again, so that the broadcast is measured too
        before = _worker_times(manager)
        start, cpu = time.perf_counter(), time.process_time()
        manager.synchronize_models()
        played = manager.collect_experiences(epoch)
        seconds, learner = time.perf_counter() - start, time.process_time() - cpu
        in_workers, transport = (
            after - was for after, was in zip(_worker_times(manager), before, strict=True)
        )
        metrics = manager.metrics()
        return Turn(
            sum(len(one.segment) for one in played),
            seconds,
            learner + in_workers,
            learner + transport,
            int(metrics["parallel/memory_bytes"]),
            metrics["parallel/queue_depth"],
            metrics["parallel/sync_milliseconds"],
        )

    turn()
    return turn


def _worker_times(manager: ParallelManager) -> tuple[float, float]:
    """Return the CPU seconds of all workers, and the part spent on transport."""
    ticks = 0
    for worker in manager.workers:
        fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    transport = sum(seconds["transport"] for seconds in manager.get_statistics()["worker_seconds"])
    return ticks / os.sysconf("SC_CLK_TCK"), transport


def training(arguments: argparse.Namespace, workers: int, threads: int, stack: ExitStack) -> Contestant:
    """Return a contestant that collects and learns; 0 workers is this process alone."""
    games = max(1, arguments.games // max(1, workers))  # the same total, for the same kind of updates
    config = config_of(argparse.Namespace(**{**vars(arguments), "games": games}), workers, EPOCH)
    trainer = Trainer(config, torch.device("cpu"))
    collector = make_collector(config, trainer.agent)
    stack.callback(lambda: collector.close(trainer.steps))
    collector.start_workers()

    def turn() -> Turn:
        trainer.agent.use_threads(threads)
        start, cpu = time.perf_counter(), time.process_time()
        segments = [one.segment for one in collector.collect_experiences(EPOCH)]
        trainer.perform_ppo_update(segments)
        collector.synchronize_models()
        return Turn(sum(map(len, segments)), time.perf_counter() - start, time.process_time() - cpu)

    turn()
    return turn


def tournament(contestants: dict[str, Contestant], rounds: int) -> dict[str, list[Turn]]:
    """Run all contestants in turns."""
    turns: dict[str, list[Turn]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name, run in contestants.items():
            turns[name].append(run())
        print(f"round {number + 1} of {rounds}", flush=True)
    return turns


def ratio(turns: dict[str, list[Turn]], one: str, other: str) -> float:
    """Return how many times as fast one is as the other: the median over the rounds."""
    return statistics.median(
        first.speed / second.speed for first, second in zip(turns[one], turns[other], strict=True)
    )


def median(turns: Sequence[Turn], figure: Callable[[Turn], float]) -> float:
    """Return the median of a figure."""
    return statistics.median(figure(turn) for turn in turns)


def print_collecting(turns: dict[str, list[Turn]], counts: Sequence[int]) -> None:
    """Print the table for collecting."""
    one_game, vectorised, *_ = turns
    first = f"{counts[0]} workers"
    print(
        f"\n{'collecting':22s}{'steps/s':>9s}{'× one game':>12s}{'× serial':>10s}{'efficiency':>12s}"
        f"{'CPU µs/step':>13s}{'overhead':>10s}{'memory':>9s}{'queue':>7s}{'sync ms':>9s}"
    )
    for name, own in turns.items():
        line = (
            f"{name:22s}{median(own, lambda turn: turn.speed):9,.0f}{ratio(turns, name, one_game):12.2f}"
            f"{ratio(turns, name, vectorised):10.2f}"
        )
        cpu = median(own, lambda turn: turn.cpu_seconds / turn.steps * 1e6)
        if name.endswith("workers"):
            workers = int(name.split()[0])
            per_worker = ratio(turns, name, first) * counts[0] / min(workers, cores())
            line += (
                f"{per_worker:12.0%}{cpu:13.0f}"
                f"{median(own, lambda turn: turn.overhead_seconds / turn.cpu_seconds):10.1%}"
                f"{median(own, lambda turn: turn.memory_bytes) / 1e6:6.0f} MB"
                f"{median(own, lambda turn: turn.queue_depth):7.2f}"
                f"{median(own, lambda turn: turn.sync_milliseconds):9.2f}"
            )
        else:
            line += f"{'':12s}{cpu:13.0f}"
        print(line)


def print_training(turns: dict[str, list[Turn]]) -> None:
    """Print the table for training end to end."""
    first = next(iter(turns))
    print(f"\n{'end to end':22s}{'steps/s':>9s}{'× the first':>13s}")
    for name, own in turns.items():
        print(f"{name:22s}{median(own, lambda turn: turn.speed):9,.0f}{ratio(turns, name, first):13.2f}")


def plot(
    collecting: dict[str, list[Turn]], learning: dict[str, list[Turn]], network: str, path: Path
) -> None:
    """Draw the speeds of collecting and of training as bars, each with its figure."""
    import matplotlib.pyplot as plt  # imported here because only the plot needs it

    sizes = [len(collecting), len(learning)]
    figure, panels = plt.subplots(
        2, 1, figsize=(8, 0.42 * sum(sizes) + 1.9), height_ratios=sizes, layout="constrained"
    )
    titles = (f"collecting, moves per second, network {network}", "training end to end, moves per second")
    for axes, title, turns in zip(panels, titles, (collecting, learning), strict=True):
        names = list(turns)
        speeds = [median(own, lambda turn: turn.speed) for own in turns.values()]
        colors = ["#2a78b5" if name.endswith("workers") else "#9aa5b1" for name in names]
        axes.barh(names, speeds, color=colors, height=0.7)
        base = "serial, 1 thread"
        for row, (name, speed) in enumerate(zip(names, speeds, strict=True)):
            times = f"  ×{ratio(turns, name, base):.2f}" if name != base else "  = ×1"
            axes.text(speed, row, f" {speed:,.0f}{times}", va="center", fontsize=11)
        axes.set_title(title, loc="left", fontsize=12)
        axes.set(xlim=(0, max(speeds) * 1.25), xticks=[])
        axes.tick_params(axis="y", length=0, labelsize=11)
        axes.invert_yaxis()
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(path, dpi=150)
    print(f"\n{path}")


def parsed() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,2,4,8", help="numbers of workers (default 1,2,4,8)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant (default 5)")
    parser.add_argument("--network", default="3x32", help="blocks x channels (default 3x32)")
    parser.add_argument(
        "--numerics", default="native", help="run.numerics, such as float32+channels_last (default native)"
    )
    parser.add_argument("--games", type=int, default=64, help="games side by side in a process (default 64)")
    parser.add_argument("--steps", type=int, default=64, help="moves of each game in a turn (default 64)")
    parser.add_argument("--plot", type=Path, default=Path("benchmark_parallel.png"), help="the plot file")
    arguments = parser.parse_args()
    try:
        arguments.workers = sorted({int(count) for count in arguments.workers.split(",")})
        _, channels = (int(part) for part in arguments.network.split("x"))
        if arguments.workers[0] < 1 or min(arguments.rounds, arguments.games, arguments.steps, channels) < 1:
            raise ValueError
        if EPOCH % arguments.games:
            parser.error(f"--games is {arguments.games}, expected a number that divides {EPOCH}")
    except ValueError:
        parser.error("expected numbers from 1 up: --workers 1,2 --network 3x32 --games 64 --steps 64")
    return arguments


def main() -> None:
    """Print the tables and draw the plot."""
    arguments = parsed()
    keep_freed_memory()  # as `keisei train` does
    many = cores()
    with ExitStack() as stack:
        contestants = {
            "one game, 1 thread": serial(arguments, 1, 1),
            "serial, 1 thread": serial(arguments, arguments.games, 1),
            f"serial, {many} threads": serial(arguments, arguments.games, many),
            **{f"{count} workers": parallel(arguments, count, stack) for count in arguments.workers},
        }
        turns = tournament(contestants, arguments.rounds)
        print_collecting(turns, arguments.workers)
    with ExitStack() as stack:
        contestants = {
            f"serial, {many} threads": training(arguments, 0, many, stack),
            "serial, 1 thread": training(arguments, 0, 1, stack),
            f"{many} workers": training(arguments, many, many, stack),
        }
        learning = tournament(contestants, arguments.rounds)
        print_training(learning)
    plot(turns, learning, arguments.network, arguments.plot)


if __name__ == "__main__":
    main()

"""Measure how fast workers collect experience: python scripts/benchmark_parallel.py --workers 1,2,4,8

All contestants play with the same untrained network and take turns, one segment at a time, so that load on
the machine affects them equally. Prints the medians over the rounds, and the medians of the ratios within a
round. The plot goes to benchmark_parallel.png.

one game: serial collection, one game at a time. serial: many games side by side in one process, with one
    thread and with one per core. N workers: the same number of games side by side in each of N processes.
efficiency: steps/s divided by those of one worker and by the number of workers, or of cores if fewer.
overhead: share of all CPU time spent on transport and bookkeeping: in the workers reading weights and
    messages, counting, checksums and sending; in the learner everything.
end to end: collecting and learning in turns, as in training, 4,096 moves per update. exchange, wait: shares
    of the time in which the learner handed out steps and added gradients, and waited for the workers' ones.
more cores: calculated, not measured, from the time that shares of a minibatch take on one thread, what a step
    takes beside them, and the speed of one worker.
"""

import argparse
import os
import socket
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "5000")  # as `keisei train` does, before torch is loaded

import numpy as np
import torch

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.agents import agent_of
from keisei.core.device import cores, keep_freed_memory
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.gradient_step import GradientStep
from keisei.core.self_play import SelfPlay
from keisei.training.collector import make_collector
from keisei.training.machine_limits import PROCESSES_PER_CORE
from keisei.training.parallel import ParallelManager
from keisei.training.trainer import Trainer

EPOCH, MINIBATCH = 4096, 256


@dataclass(frozen=True)
class Turn:
    """The measurements of one contestant's turn; overhead_seconds to sync_milliseconds are for workers only.

    update_seconds: of learning, phases: the learner's seconds, both in training only.
    """

    steps: int
    seconds: float
    cpu_seconds: float
    overhead_seconds: float = 0.0
    memory_bytes: int = 0
    queue_depth: float = 0.0
    sync_milliseconds: float = 0.0
    update_seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)

    @property
    def speed(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds


Contestant = Callable[[], Turn]


def config_of(arguments: argparse.Namespace, workers: int, epoch: int, learners: int = 1) -> AppConfig:
    """Return the config for the requested network and sizes."""
    blocks, channels = (int(part) for part in arguments.network.split("x"))
    settings: dict[str, object] = {
        "model.blocks": blocks,
        "model.channels": channels,
        "training.games": arguments.games,
        "training.steps_per_epoch": epoch,
        "training.minibatch_size": MINIBATCH,
        "training.learners": learners,
        "training.parallel.enabled": workers > 0,
        "training.parallel.num_workers": max(1, workers),
        "training.parallel.episodes_per_worker": arguments.games,
        "run.numerics": arguments.numerics,
        "run.console": "off",
    }
    shipped = {"search": "default", "ppo": "ppo"}[arguments.algorithm]
    return load_config(shipped, [f"{name}={value}" for name, value in settings.items()])


def serial(arguments: argparse.Namespace, games: int, threads: int) -> Contestant:
    """Return a contestant that plays in this process."""
    config = config_of(arguments, 0, EPOCH)
    agent = agent_of(config)
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
    agent = agent_of(config)
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


def training(
    arguments: argparse.Namespace,
    stack: ExitStack,
    *,
    threads: int,
    workers: int = 0,
    learners: int = 1,
    games: int | None = None,
) -> Contestant:
    """Return a contestant that collects and learns; 0 workers is this process alone."""
    # The same number of games in all, for the same kind of updates.
    games = games or max(1, arguments.games // max(1, workers))
    own = argparse.Namespace(**{**vars(arguments), "games": games})
    config = config_of(own, workers, EPOCH, learners)
    trainer = Trainer(config, torch.device("cpu"))
    collector = make_collector(config, trainer.agent)
    stack.callback(lambda: collector.close(trainer.steps))
    collector.start_workers()

    def turn() -> Turn:
        trainer.agent.use_threads(threads)
        trainer.clock.lap()
        start, cpu = time.perf_counter(), time.process_time()
        segments = [one.segment for one in collector.collect_experiences(EPOCH)]
        collected = time.perf_counter()
        trainer.perform_update(segments, before_minibatch=collector.supervise, exchange=collector.exchange)
        learned = time.perf_counter()
        collector.synchronize_models()
        return Turn(
            sum(map(len, segments)),
            time.perf_counter() - start,
            time.process_time() - cpu,
            update_seconds=learned - collected,
            phases=trainer.clock.lap(),
        )

    turn()
    return turn


def share_milliseconds(arguments: argparse.Namespace, counts: Sequence[int]) -> dict[int, float]:
    """Return how long a share of a minibatch takes on one thread, by the number of shares."""
    agent = agent_of(config_of(arguments, 0, EPOCH))
    played = SelfPlay.begin(agent.config.env, games=MINIBATCH, seed=1).rollout(agent, 4)
    buffer = ExperienceBuffer(gamma=0.99, gae_lambda=0.95)
    buffer.add_batch(played.segment)
    step = GradientStep.of(
        next(buffer.minibatches(MINIBATCH, np.random.default_rng(1))), 0.01, normalize=True
    )
    found: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(15):
        for count, times in found.items():
            start = time.perf_counter()
            agent.gradients(step.share(0, count), threads=1)
            times.append(1000 * (time.perf_counter() - start))
    return {count: statistics.median(times) for count, times in found.items()}


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
    print(
        f"\n{'end to end':24s}{'steps/s':>9s}{'× the first':>13s}{'ms a minibatch':>16s}{'× the first':>13s}"
        f"{'exchange':>10s}{'wait':>7s}"
    )
    for name, own in turns.items():
        updates = statistics.median(
            one.update_seconds / other.update_seconds for one, other in zip(turns[first], own, strict=True)
        )
        shares = [
            median(own, lambda turn, phase=phase: turn.phases.get(phase, 0.0) / turn.seconds)  # type: ignore[misc]
            for phase in ("exchange", "wait")
        ]
        print(
            f"{name:24s}{median(own, lambda turn: turn.speed):9,.0f}{ratio(turns, name, first):13.2f}"
            f"{median(own, milliseconds):16.1f}{updates:13.2f}{shares[0]:10.1%}{shares[1]:7.1%}"
        )


def milliseconds(turn: Turn) -> float:
    """Return how long a minibatch took."""
    return 1000 * turn.update_seconds / (turn.steps / MINIBATCH)


def print_more_cores(
    shares: Mapping[int, float],
    alone: Sequence[Turn],
    several: Sequence[Turn],
    worker_speed: float,
    add: float,
) -> None:
    """Print what more cores would give; alone: one process with one thread, several: two learners.

    add: milliseconds to hand out one more share and to add its gradients.
    """
    fixed = median(alone, milliseconds) - shares[1]  # of a step beside the share: sums, clipping, Adam
    exchange = median(
        several, lambda turn: 1000 * turn.phases.get("exchange", 0.0) / (turn.steps / MINIBATCH)
    )
    print(f"\n{'cores, calculated':20s}{'collecting':>12s}{'ms a minibatch':>16s}{'training':>10s}{'×':>12s}")
    one_core = 0.0
    for count, share in shares.items():
        step = share + fixed + (exchange + add * (count - 2) if count > 1 else 0.0)
        collecting = count * worker_speed
        speed = 1 / (1 / collecting + step / 1000 / MINIBATCH)
        one_core = one_core or speed
        print(f"{count:<20d}{collecting:12,.0f}{step:16.1f}{speed:10,.0f}{speed / one_core:12.1f}")


def add_milliseconds(arguments: argparse.Namespace) -> float:
    """Return how long the learner takes for one more worker: a message there and back, and a sum."""
    total = torch.zeros(agent_of(config_of(arguments, 0, EPOCH)).parameters)
    shares = [torch.ones_like(total) for _ in range(16)]
    mine, theirs = socket.socketpair()
    with mine, theirs:
        start = time.perf_counter()
        for share in shares:
            mine.send(b"task")
            theirs.send(b"done")
            mine.recv(100)
            total += share
        return 1000 * (time.perf_counter() - start) / len(shares)


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
        colors = ["#2a78b5" if "workers" in name else "#9aa5b1" for name in names]
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
    parser.add_argument("--algorithm", default="search", choices=["ppo", "search"], help="(default search)")
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
    if arguments.workers[-1] > PROCESSES_PER_CORE * cores():
        most = f"{PROCESSES_PER_CORE} for each of {cores()} cores"
        parser.error(f"--workers is {arguments.workers[-1]}, expected at most {most}")
    if arguments.plot.suffix not in (".png", ".svg") or not arguments.plot.parent.is_dir():
        parser.error(f"--plot is {arguments.plot}, expected a .png or .svg file in a directory that exists")
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
            "serial, 1 thread": training(arguments, stack, threads=1),
            f"serial, {many} threads": training(arguments, stack, threads=many),
            f"{many} workers, 1 learner": training(arguments, stack, workers=many, threads=many),
            f"{many} workers, {many} learners": training(
                arguments, stack, workers=many, learners=many, threads=many
            ),
            "one game, 1 thread": training(arguments, stack, threads=1, games=1),
        }
        learning = tournament(contestants, arguments.rounds)
        print_training(learning)
    if many > 1:
        first = f"{arguments.workers[0]} workers"
        speed = median(turns[first], lambda turn: turn.speed) / min(arguments.workers[0], many)
        shares = share_milliseconds(arguments, [1, 2, 4, 8, 16, 32])
        names = list(learning)
        print_more_cores(shares, learning[names[0]], learning[names[3]], speed, add_milliseconds(arguments))
    plot(turns, learning, arguments.network, arguments.plot)


if __name__ == "__main__":
    main()

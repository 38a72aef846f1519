"""What a Ray cluster costs: python scripts/benchmark_cluster.py [--rounds 9] [--workers 2] [--moves 64].

The same collection by local workers and by one node of a cluster on this machine, by turns, so that other
load hits both. Printed are medians of the ratios: speed, time of a turn, CPU time of all processes.

With --slow 0.4: a node with one worker, alone and beside another one whose worker is stopped for 60 % of the
time, by turns. Printed is the median of the ratios of their speed together to the sum of what they can do.
"""

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from small_cluster import SmallCluster, descendants, kill, wait_until

from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.agents import agent_of
from keisei.core.device import cores, keep_freed_memory
from keisei.training.cluster.cluster_hands import cluster_hands
from keisei.training.machine_limits import PROCESSES_PER_CORE
from keisei.training.parallel.parallel_manager import ParallelManager

GAMES = 32  # per worker
_PLACES = 8  # of a slow node and a fast one: four for each worker
_PERIOD = 0.02  # seconds between two stops of a slow worker
_TICK = os.sysconf("SC_CLK_TCK")


def config_of(workers: int, moves: int, algorithm: str, cluster: str | None) -> AppConfig:
    """Return the default network, with one place for each worker."""
    changes = [f"training.parallel.num_workers={workers}", f"training.parallel.episodes_per_worker={GAMES}"]
    changes += [f"training.steps_per_epoch={workers * GAMES * moves}", "training.parallel.enabled=true"]
    changes += ["training.learners=1", *([] if cluster is None else [f"training.parallel.cluster={cluster}"])]
    return load_config("ppo" if algorithm == "ppo" else "default", changes)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that processes have used so far."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(map(int, fields.rsplit(")", 1)[1].split()[11:13]))
    return total / _TICK


class Side:
    """One of the two collectors; others: processes that work for it, besides this one."""

    def __init__(self, config: AppConfig, *, far: bool) -> None:
        self.agent = agent_of(config)
        hire = cluster_hands(config.training.parallel) if far else None
        before = set(descendants(os.getpid()))
        self.manager = ParallelManager(config, self.agent, hire=hire, notice=lambda _: None)
        self.manager.start_workers()
        self.moves = config.training.steps_per_epoch
        self.others: list[int] = []
        for _ in range(3):  # until all workers are there, which do not start at once
            self.turn()
        self.others = sorted(set(descendants(os.getpid())) - before)

    def turn(self) -> tuple[float, float]:
        """Publish weights and collect; return wall and CPU seconds."""
        began, cpu = time.perf_counter(), time.process_time() + cpu_seconds(self.others)
        self.agent.version += 1
        self.manager.synchronize_models()
        self.manager.collect_experiences(self.moves)
        wall = time.perf_counter() - began
        return wall, time.process_time() + cpu_seconds(self.others) - cpu

    def wait_for_nodes(self, nodes: int) -> None:
        """Collect until so many nodes play."""

        def all_there() -> bool:
            self.turn()
            return self.manager.metrics()["parallel/nodes"] == nodes

        wait_until(all_there)


@contextmanager
def slowed(pid: int, share: float) -> Iterator[None]:
    """Let a process run for only this share of the time."""
    ended = threading.Event()

    def stop_and_go() -> None:
        while not ended.wait(_PERIOD * share):
            kill(pid, signal.SIGSTOP)
            time.sleep(_PERIOD * (1 - share))
            kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def beside_a_slow_node(cluster: SmallCluster, given: argparse.Namespace) -> str:
    """Measure how much of what a slow node and a fast one can do together they do."""
    cluster.add()
    side = Side(config_of(_PLACES, given.moves, given.algorithm, cluster.address), far=True)
    fast = set(cluster.workers())
    ratios = []
    for number in range(given.rounds):
        alone = sum(side.turn()[0] for _ in range(given.turns))
        raylet = cluster.add()
        side.wait_for_nodes(2)
        (slow,) = (pid for pid in cluster.workers() if pid not in fast)
        with slowed(slow, given.slow):
            side.turn()  # in which it turns out how slow it is
            used = cpu_seconds([slow])
            both = sum(side.turn()[0] for _ in range(given.turns))
        share = (cpu_seconds([slow]) - used) / both
        ratios.append(alone / both / (1 + given.slow))
        times = f"alone {alone:.3f} s, both {both:.3f} s"
        sys.stderr.write(f"round {number + 1}: {times}, of which the slow worker ran {share:.2f}\n")
        cluster.remove(raylet)
        side.wait_for_nodes(1)
    side.manager.shutdown()
    return (
        f"a node at {given.slow:g} of its speed beside another, {_PLACES} places, segments of "
        f"{GAMES * given.moves:,} moves: {statistics.median(ratios):.2f} of the summed speed "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} pairs)"
    )


def _share(text: str) -> float:
    """Return a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"given {text}, expected a number between 0 and 1")
    return value


def _positive(text: str) -> int:
    """Return a number of a thousand at most."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= 1000):
        raise argparse.ArgumentTypeError(f"given {text}, expected a number from 1 to 1000")
    return int(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=_positive, default=9, help="pairs of measurements")
    parser.add_argument(
        "--turns", type=_positive, default=5, help="updates' worth of moves in each measurement"
    )
    parser.add_argument("--workers", type=_positive, default=2, help="local workers, and cores of the node")
    parser.add_argument("--moves", type=_positive, default=64, help="of each of 32 games in a segment")
    parser.add_argument("--algorithm", choices=("ppo", "search"), default="ppo", help="how moves are chosen")
    parser.add_argument("--slow", type=_share, metavar="SHARE", help="measure a slow node beside another")
    given = parser.parse_args()
    if given.workers > PROCESSES_PER_CORE * cores():
        most = PROCESSES_PER_CORE * cores()
        parser.error(f"--workers is {given.workers}, expected at most {most} on this machine")
    keep_freed_memory()
    with SmallCluster(nodes=0) as cluster:
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(cluster.token)
        if given.slow is not None:
            print(beside_a_slow_node(cluster, given))
            return
        cluster.add(given.workers)
        here = Side(config_of(given.workers, given.moves, given.algorithm, None), far=False)
        far = Side(config_of(given.workers, given.moves, given.algorithm, cluster.address), far=True)
        # All of Ray's processes too, and each process once.
        far.others = sorted({*far.others, cluster.process.pid, *descendants(cluster.process.pid)})
        pairs = []
        for number in range(given.rounds):
            order = (here, far) if number % 2 else (far, here)
            spent = {side: [side.turn() for _ in range(given.turns)] for side in order}
            sums = [[sum(one[what] for one in spent[side]) for what in (0, 1)] for side in (here, far)]
            pairs.append(sums)
            sys.stderr.write(f"round {number + 1}: local {sums[0][0]:.3f} s, cluster {sums[1][0]:.3f} s\n")
        for side in (here, far):
            side.manager.shutdown()
    print(report(pairs, here.moves, given.turns, given.workers, given.moves))


def report(pairs: list[list[list[float]]], moves: int, turns: int, workers: int, steps: int) -> str:
    """Return the medians in a few lines."""
    speed = [here[0] / far[0] for here, far in pairs]
    cpu = [far[1] / here[1] for here, far in pairs]
    more = [1000 * (far[0] - here[0]) / turns for here, far in pairs]
    local = statistics.median(moves * turns / here[0] for here, _ in pairs)
    return (
        f"{workers} workers, segments of {GAMES * steps:,} moves, {len(pairs)} pairs: "
        f"local {local:,.0f} moves/s; cluster x{statistics.median(speed):.3f} "
        f"({min(speed):.3f} to {max(speed):.3f}), {statistics.median(more):+.1f} ms a turn, "
        f"CPU x{statistics.median(cpu):.3f}"
    )


if __name__ == "__main__":
    main()

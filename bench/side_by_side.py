"""Contests for the benchmarks: all contestants take turns, so that load on the machine hits all of them."""

import argparse
import statistics
from collections.abc import Callable

# Name → a function that returns a rate per second; the others are compared with the first.
Contenders = dict[str, Callable[[], float]]


def report(title: str, unit: str, contenders: Contenders, rounds: int) -> None:
    """Run the contenders and print a line for each: its median, and the median ratio within a round."""
    results: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            results[name].append(run())
    leader, first = next(iter(results.items()))
    width = max(map(len, results)) + 2
    print(f"\n{title}", flush=True)
    for name, figures in results.items():
        ratio = statistics.median(own / other for own, other in zip(first, figures, strict=True))
        if name == leader:
            comparison = ""
        elif name.startswith("keisei"):
            comparison = f"×{1 / ratio:.2f} of the first"
        else:
            comparison = f"keisei is ×{ratio:.2f}"
        line = f"  {name:{width}s} {statistics.median(figures):12,.1f} {unit:18s} {comparison}"
        print(line.rstrip(), flush=True)


def rounds_from_arguments(description: str | None) -> int:
    """Return --rounds from the command line."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each contestant runs (default 5)")
    rounds: int = parser.parse_args().rounds
    if rounds < 1:
        parser.error(f"--rounds is {rounds}, expected at least 1")
    return rounds

"""Several settings with several seeds, and a table at the end: python examples/sweep.py

One run after the other, each in its own directory. Change SETTINGS and STEPS to what you want to know.
scripts/compare_settings.py does more: equal CPU time for all, matches with intervals, curves, continuing.
"""

import argparse
from statistics import mean, stdev

from keisei.training import train
from keisei.utils import load_config

SETTINGS = {
    "lr 0.0015": ["training.learning_rate=0.0015"],
    "lr 0.005": ["training.learning_rate=0.005"],
    "ppo": ["training.algorithm=ppo"],
}
MEASURED = {"loss": "loss/total", "entropy": "policy/entropy", "moves/s": "speed/steps_per_second"}


def main() -> None:
    """Train every setting with every seed, and print the mean and the deviation over the seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", default="tiny", help="what all runs have in common (default tiny)")
    parser.add_argument("--steps", type=int, default=2048, help="moves of each run (default 2048)")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each setting (default 2)")
    arguments = parser.parse_args()
    common = [f"training.total_timesteps={arguments.steps}", "evaluation.final_games=0", "run.console=off"]

    print(f"{'':12}" + "".join(f"{name:>18}" for name in MEASURED))
    for name, changes in SETTINGS.items():
        found = []
        for seed in range(1, arguments.seeds + 1):
            own = [f"run.seed={seed}", f"run.name={name.replace(' ', '-')}-seed-{seed}"]
            result = train(load_config(arguments.config, [*common, *changes, *own]))
            if result.exit_code:
                raise SystemExit(f"{name}, seed {seed}: {result.message}")
            found.append(result.metrics)
        columns = [[metrics[metric] for metrics in found] for metric in MEASURED.values()]
        print(f"{name:12}" + "".join(f"{_spread(column):>18}" for column in columns), flush=True)


def _spread(figures: list[float]) -> str:
    return f"{mean(figures):,.2f} ± {stdev(figures) if len(figures) > 1 else 0:,.2f}"


if __name__ == "__main__":
    main()

"""Draw a run's console as it looked at some step: python scripts/draw_console.py RUN docs/console.svg

RUN is a directory with metrics.jsonl and a checkpoint, which supplies the board. The terminal has 120 columns
and 40 rows.
"""

import argparse
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import rich.console
import yaml

from keisei.runs.checkpoint import newest_checkpoint
from keisei.shogi.vector import VectorGames
from keisei.training.dashboard import draw
from keisei.training.listener import RunFacts
from keisei.training.metrics import read_metrics
from keisei.training.parallel.worker_status import WorkerStatus
from keisei.training.run_progress import Progress

WIDTH, HEIGHT = 120, 40


def workers_in(row: Mapping[str, float]) -> list[WorkerStatus]:
    """Return the workers in an update's metrics, all as "playing": their state is not recorded."""
    found: list[WorkerStatus] = []
    while f"worker_{len(found)}/steps" in row:
        prefix = f"worker_{len(found)}/"
        own = {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
        found.append(
            WorkerStatus(
                worker=len(found),
                state="playing",
                incarnation=int(own["restarts"]),
                pid=None,
                utilization=own["utilization"],
                steps=int(own["steps"]),
                games=int(own["games"]),
                weights_version=int(own["weights_version"]),
                restarts=int(own["restarts"]),
                memory_bytes=int(own["memory_bytes"]),
                last_error="",
            )
        )
    return found


def main() -> None:
    """Read a run and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--at", type=float, default=0.6, help="share of the run that is done (default 0.6)")
    arguments = parser.parse_args()
    run: Path = arguments.run

    checkpoint, _ = newest_checkpoint(run / "checkpoints")
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    seed = json.loads((run / "run.json").read_text(encoding="utf-8"))["seed"]
    total = config["training"]["total_timesteps"]
    parameters = sum(tensor.numel() for tensor in checkpoint.tensors["weights"].values())
    facts = RunFacts(str(run), total, 0, parameters, "cpu", seed)

    seconds = 0.0
    progress = Progress(facts, lambda: seconds)
    notices = []
    for row in read_metrics(run / "metrics.jsonl"):
        step = int(row.pop("step"))
        if step > arguments.at * total:
            break
        seconds += sum(value for name, value in row.items() if name.startswith("time/"))
        if progress.update(step, row, workers_in(row)):
            scores = [f"{name} {matches[-1].score:.1%}" for name, matches in progress.evaluations.items()]
            notices.append(f"{step:,} moves: {', '.join(scores)}")
    board = str(VectorGames.restore(checkpoint.blobs["games_0"]).game(0))
    console = rich.console.Console(
        record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True, emoji=False
    )
    console.print(draw(progress, board, notices, WIDTH, HEIGHT))
    svg = console.export_svg(title="keisei train", unique_id="t")
    # Remove the comment and the fonts, which would be fetched from the network.
    svg = re.sub(r"@font-face\s*\{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL)
    arguments.out.write_text(svg.replace("Fira Code", "DejaVu Sans Mono"), encoding="utf-8")


if __name__ == "__main__":
    main()

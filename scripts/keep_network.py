"""Keep a trained network to play with: python scripts/keep_network.py runs/long@best --out networks/long

The result is a small checkpoint to play with (`keisei play networks/long`), not to train on: weights and
architecture, without optimiser, games and moves. Its state.json also says where the network comes from: the
commands, commits and machine of its run, its seed, its training moves and the SHA-256 of its weights.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from keisei.errors import UserError
from keisei.runs.checkpoint_format import MANIFEST, STATE, json_bytes, manifest_of, parsed_json, verified
from keisei.runs.durable import write_durably
from keisei.runs.find import RUN, find_checkpoint, run_of
from keisei.runs.load import WEIGHTS, load_network

FACTS = ("time", "command", "versions", "platform", "cores", "git")


def where_from(checkpoint: Path) -> dict[str, Any]:
    """Return what is known of a checkpoint's run, without the directories and processes of its machine."""
    run = run_of(checkpoint)
    if run is None or not (run / RUN).exists():
        raise UserError(f"{checkpoint} is not a run's checkpoint, so nobody knows where it comes from")
    try:
        described = json.loads((run / RUN).read_text(encoding="utf-8"))
        pieces = [{name: one[name] for name in FACTS} for one in (described, *described["resumed"])]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{run / RUN} does not describe a run: expected {', '.join(FACTS)}") from error
    for piece in pieces:
        words = [word for word in piece["command"] if not word.startswith("run.directory=")]
        piece["command"] = [Path(word).name if Path(word).is_absolute() else word for word in words]
    return {"run": run.name, "seed": described["seed"], "pieces": pieces}


def keep(checkpoint: Path, out: Path) -> str:
    """Write the network and return the SHA-256 of its weights."""
    step, files = verified(checkpoint)
    state, name = parsed_json(checkpoint / STATE, files[STATE]), f"{WEIGHTS}.safetensors"
    digest = hashlib.sha256(files[name]).hexdigest()
    config = state["config"]
    facts = {
        "config": {"model": config["model"], "env": {"max_moves": config["env"]["max_moves"]}},
        "numerics": state["numerics"],
        "device": state["device"],
        "from": where_from(checkpoint) | {"moves": step, "sha256": digest},
    }
    kept = {name: files[name], STATE: json_bytes(out / STATE, facts)}
    if out.exists():
        raise UserError(f"{out} exists already, expected a new directory")
    try:
        out.mkdir(parents=True)
        for file, data in (kept | {MANIFEST: manifest_of(step, kept)}).items():
            write_durably(out / file, data)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from error
    load_network(out)  # it can play
    return digest


def main() -> int:
    """Keep one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "network", metavar="RUN[@STEP]", help="as for keisei play: a run's best, or a checkpoint"
    )
    parser.add_argument("--out", type=Path, required=True, help="a directory that does not exist yet")
    arguments = parser.parse_args()
    try:
        digest = keep(find_checkpoint(arguments.network), arguments.out)
    except UserError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.out}: weights {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

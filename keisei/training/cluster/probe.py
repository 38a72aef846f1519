"""Probe: look at a cluster and at what plays there, as JSON on stdout. A driver, so a process of its own."""

import json
import logging
import os
import sys
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from keisei.training.cluster.bridge import NAMESPACE, list_nodes, why_refused
from keisei.training.cluster.machine_facts import machine_facts

_ANSWER_SECONDS = 40.0  # Ray starts a process for it, which takes several seconds on a busy node


def _answers(references: list[Any]) -> list[Any]:
    """Return what arrives in time, None for everything else."""
    ready, _ = ray.wait(references, num_returns=len(references), timeout=_ANSWER_SECONDS)
    found = []
    for reference in references:
        answer = None
        if reference in ready:
            with suppress(RayError):
                answer = ray.get(reference)
        found.append(answer)
    return found


def look() -> dict[str, Any]:
    """Return address and nodes: what each has, and whom it plays for."""
    nodes = [node for node in list_nodes() if node["Alive"]]
    ask: Any = ray.remote(machine_facts)
    asked = [
        ask.options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote()
        for node in nodes
    ]
    for name in list_named_actors():
        with suppress(ValueError):  # it has just ended
            asked.append(ray.get_actor(name).about.remote())
    answers = _answers(asked)
    facts, playing = answers[: len(nodes)], [one for one in answers[len(nodes) :] if one is not None]
    return {
        "address": ray.get_runtime_context().gcs_address,
        "nodes": [
            {
                "host": node["NodeManagerHostname"],
                "address": node["NodeManagerAddress"],
                "cores": int(node["Resources"].get("CPU", 0)),
                "facts": known,
                "plays": [one for one in playing if one["ray_id"] == node["NodeID"]],
            }
            for node, known in zip(nodes, facts, strict=True)
        ],
    }


def main(address: str) -> None:
    """Print what is there, or why it cannot be seen."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray prints is no answer
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        found = look()
    except Exception as error:  # whatever it is, the user is told
        found = {"refused": why_refused(error, address)}
    print(json.dumps(found), file=answers, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Shared by the tests of profiling: a small profile with round numbers."""

from dataclasses import replace
from typing import Any

from keisei.profiling.measurements import Function, Memory, ProcessTimes, Profile

PROFILE = Profile(
    mode="parallel",
    workers=2,
    cores=2,
    moves=1000,
    seconds=2.0,
    updates=4,
    start_seconds=1.0,
    network="3 blocks of 32 channels",
    numerics="float32, contiguous (as configured)",
    timeline={"update": 1.2, "inference": 0.5, "env": 0.1, "encode": 0.1, "other": 0.1},
    processes=[
        ProcessTimes(
            "learner", 10, {"collect": 0.6, "update": 1.2, "encode": 0.1, "other": 0.1}, {"update": 2.0}
        ),
        ProcessTimes("worker 0", 11, {"inference": 0.5, "env": 0.1, "wait": 1.4}, {"inference": 0.4}),
    ],
    memory=[Memory("learner", [(0.0, 300_000_000), (1.0, 500_000_000), (2.0, 400_000_000)])],
    functions={"learner": [Function("core/ppo_agent.py:99 learn", 4, 0.25, 1.5)]},
    speeds={"phases": 500.0, "functions": 250.0},
    notes=["a notice"],
    settings={},
    provenance={
        "command": ["keisei", "profile"],
        "time": "2026-01-02T03:04:05+00:00",
        "platform": "Linux",
        "cpu": "a processor",
        "load": 0.5,
        "git": {"commit": "0123456789abcdef", "dirty": False},
    },
    skipped=1,
)


def changed(**values: Any) -> Profile:
    """Return the profile with other values."""
    return replace(PROFILE, **values)

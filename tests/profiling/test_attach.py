"""A running training's phases, from its metrics."""

from typing import Any

import pytest

from keisei.config.files import load_config
from keisei.profiling.attach import phases_of

WORKERS = {"parallel/seconds_env": 0.5, "parallel/seconds_inference": 4.0, "parallel/seconds_sampling": 1.0}


@pytest.mark.parametrize(
    ("enabled", "number", "rows", "learner", "workers"),
    [
        (False, 2, [{"step": 512, "time/env": 1.0}, {"step": 1024, "time/env": 0.5}], {"env": 1.5}, {}),
        (
            True,
            4,
            [{"time/collect": 2.0, **WORKERS}, {"time/collect": 1.0, "time/update": 3.0, **WORKERS}],
            {"collect": 3.0, "update": 3.0},
            {"env": 0.25, "inference": 2.0, "sampling": 0.5, "transport": 0.0, "learning": 0.0},
        ),
        (
            True,
            1,
            [{"time/update": 3.0, "parallel/seconds_transport": 0.5, "parallel/sync_milliseconds": 7.0}],
            {"update": 3.0},
            {"env": 0.0, "inference": 0.0, "sampling": 0.0, "transport": 0.5, "learning": 0.0},
        ),
    ],
)
def test_phases_are_summed_and_those_of_workers_averaged_over_all_that_are_configured(
    enabled: bool, number: int, rows: list[dict[str, float]], learner: Any, workers: Any
) -> None:
    config = load_config(
        "tiny", [f"training.parallel.enabled={enabled}", f"training.parallel.num_workers={number}"]
    )
    assert phases_of(rows, config) == (learner, workers)

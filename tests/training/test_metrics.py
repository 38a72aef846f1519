"""Metrics: every name is explained, and what is written can be read, resumed and refused."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from fake_run import STEPS, fake_metrics, fake_parallel_metrics, fake_workers
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from keisei.config.schema import EvaluationConfig
from keisei.training.listener import Listener, Update
from keisei.training.metrics import (
    OPPONENTS,
    JsonlSink,
    MetricsError,
    TensorBoardSink,
    WandbSink,
    explain,
    explanation,
    read_metrics,
    worker_metrics,
)
from keisei.training.parallel.worker_status import WorkerStatus

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
FAKE_WANDB = """
import json, pathlib

class Run:
    def __init__(self, options):
        self.file = (pathlib.Path(options["dir"]) / "wandb.log").open("w")
        self.file.write(json.dumps(options) + "\\n")

    def log(self, data, step):
        self.file.write(json.dumps([step, data]) + "\\n")

    def finish(self):
        self.file.write('"finished"\\n')
        self.file.close()

def init(**options):
    return Run(options)
"""


def write(path: Path, first: int, last: int, resume_step: int | None) -> None:
    sink = JsonlSink(path, resume_step)
    for update in range(first, last + 1):
        sink.update(Update(update * STEPS, fake_metrics(update)))
    sink.close()


def test_every_metric_is_explained_in_the_document() -> None:
    table = "\n".join(["| name | meaning |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in explain.items())])
    assert table in DOCUMENT.read_text(encoding="utf-8")
    recorded = fake_metrics(10).keys() | fake_parallel_metrics(10, fake_workers(10, 2)).keys()
    recorded |= {f"evaluation/{name}_{what}" for name in OPPONENTS for what in ("score", "draws", "length")}
    recorded |= {f"evaluation/rating{end}" for end in ("", "_low", "_high")}
    assert {explanation(name) for name in recorded} == set(explain.values())
    assert len(set(explain.values())) == len(explain)
    assert all(text.endswith(".") for text in explain.values())


def test_workers_are_explained_by_one_entry_for_all() -> None:
    assert explanation("worker_0/steps") == explanation("worker_12/steps") == explain["worker_N/steps"]
    assert explanation("loss/policy") == explain["loss/policy"]
    for name in ("worker_3/speed", "worker_/steps", "worker_x/steps", "my_worker_3/steps", "steps"):
        with pytest.raises(KeyError, match=name.split("/")[-1]):
            explanation(name)


def test_a_worker_gives_its_figures_under_its_number() -> None:
    status = WorkerStatus(
        worker=3,
        state="playing",
        incarnation=2,
        pid=77,
        utilization=0.5,
        steps=1000,
        games=7,
        weights_version=17,
        restarts=2,
        memory_bytes=1 << 28,
        last_error="",
    )
    assert worker_metrics([status]) == {
        "worker_3/utilization": 0.5,
        "worker_3/steps": 1000.0,
        "worker_3/games": 7.0,
        "worker_3/weights_version": 17.0,
        "worker_3/restarts": 2.0,
        "worker_3/memory_bytes": float(1 << 28),
    }
    two = worker_metrics(fake_workers(10, 2))
    assert {name.split("/")[0] for name in two} == {"worker_0", "worker_1"}
    assert len(two) == 12
    assert all(type(value) is float for value in two.values())
    assert worker_metrics([]) == {}


def test_every_opponent_that_the_config_allows_has_metrics() -> None:
    (names,) = get_args(EvaluationConfig.model_fields["opponents"].annotation)
    assert set(get_args(names)) == set(OPPONENTS)


def test_a_line_is_readable_before_the_next_is_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    sink: Listener = JsonlSink(path, None)
    sink.update(Update(4096, {"loss/policy": 0.25, "loss/value": math.nan, "loss/total": -math.inf}))
    line = '{"step": 4096, "loss/policy": 0.25, "loss/value": null, "loss/total": null}\n'
    assert path.read_text(encoding="utf-8") == line
    (row,) = read_metrics(path)
    assert (row["step"], row["loss/policy"]) == (4096, 0.25)
    assert math.isnan(row["loss/value"])
    sink.close()


def test_a_new_run_refuses_a_file_that_exists(tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", 1, 2, None)
    with pytest.raises(FileExistsError):
        JsonlSink(tmp_path / "metrics.jsonl", None)
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 2


@pytest.mark.parametrize("torn_bytes", [0, 1, 2, 300])
def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path: Path, torn_bytes: int) -> None:
    whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
    write(whole, 1, 9, None)
    write(resumed, 1, 7, None)
    content = resumed.read_bytes()
    resumed.write_bytes(content[: len(content) - torn_bytes])
    write(resumed, 6, 9, 5 * STEPS)
    assert resumed.read_bytes() == whole.read_bytes()


def test_a_kept_line_without_its_end_gets_one(tmp_path: Path) -> None:
    path, whole = tmp_path / "metrics.jsonl", tmp_path / "whole.jsonl"
    write(whole, 1, 4, None)
    write(path, 1, 3, None)
    path.write_bytes(path.read_bytes()[:-1])
    write(path, 4, 4, 3 * STEPS)
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(("resume_step", "kept"), [(0, 0), (STEPS - 1, 0), (STEPS, 1), (99 * STEPS, 3)])
def test_resuming_keeps_what_is_not_beyond_the_step(tmp_path: Path, resume_step: int, kept: int) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, 1, 3, None)
    JsonlSink(path, resume_step).close()
    assert [row["step"] for row in read_metrics(path)] == [STEPS * (n + 1) for n in range(kept)]


def test_resuming_without_a_file_begins_one(tmp_path: Path) -> None:
    write(tmp_path / "metrics.jsonl", 3, 4, 2 * STEPS)
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"garbage", "expected a JSON object, got b'garbage"),
        (b"\xff\xfe", "expected a JSON object"),
        (b"", "expected a JSON object"),
        (b"[1]", 'expected an object with an integer "step"'),
        (b'{"step": 1.5}', 'expected an object with an integer "step"'),
        (b'{"step": null}', 'expected an object with an integer "step"'),
        (b'{"step": 3, "loss/policy": NaN}', "expected a JSON object"),
        (b'{"step": 3, "loss/policy": "low"}', "expected a number for 'loss/policy', got 'low'"),
        (b'{"step": 3, "loss/policy": true}', "expected a number for 'loss/policy', got True"),
        (b'{"step": 1}', "step 1 follows step 2"),
    ],
)
def test_garbage_is_refused_with_file_and_line(tmp_path: Path, line: bytes, says: str) -> None:
    path = tmp_path / "metrics.jsonl"
    content = b'{"step": 2}\n' + line + b'\n{"step": 4}\n'
    path.write_bytes(content)
    with pytest.raises(MetricsError, match="line 2: ") as caught:
        read_metrics(path)
    assert str(caught.value).startswith(f"{path}, line 2: {says}")
    with pytest.raises(MetricsError):
        JsonlSink(path, 4)
    assert path.read_bytes() == content


def test_a_line_that_is_being_written_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 2}\n{"step": 4, "lo')
    assert read_metrics(path) == [{"step": 2}]


def test_tensorboard_forgets_what_is_beyond_the_step(tmp_path: Path) -> None:
    for first, last, resume_step in ((1, 4, None), (3, 5, 2 * STEPS)):
        sink: Listener = TensorBoardSink(tmp_path, resume_step)
        for update in range(first, last + 1):
            sink.update(Update(update * STEPS, fake_metrics(update)))
        sink.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    points = events.Scalars("loss/value")
    assert [point.step for point in points] == [update * STEPS for update in range(1, 6)]
    assert points[0].value == pytest.approx(fake_metrics(1)["loss/value"])
    assert set(events.Tags()["scalars"]) == set(fake_metrics(1))


def test_tensorboard_gets_only_finite_values(tmp_path: Path) -> None:
    sink: Listener = TensorBoardSink(tmp_path, None)
    sink.update(Update(7, {"loss/policy": 0.25, "loss/value": math.nan, "evaluation/rating_high": math.inf}))
    sink.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Tags()["scalars"] == ["loss/policy"]
    assert [(event.step, event.value) for event in events.Scalars("loss/policy")] == [(7, 0.25)]


def test_metrics_load_neither_torch_nor_tensorboard() -> None:
    code = "import sys, keisei.training.metrics; print(sorted({'torch', 'tensorboard'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"


def test_wandb_gets_the_run_and_its_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb.py").write_text(FAKE_WANDB, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    sink: Listener = WandbSink(tmp_path, "offline", "first run", {"seed": 1}, None)
    sink.update(Update(4096, {"loss/policy": 0.5}))
    sink.close()
    options, logged, end = map(json.loads, (tmp_path / "wandb.log").read_text().splitlines())
    assert options == {
        "project": "keisei",
        "name": "first run",
        "id": "first-run",
        "dir": str(tmp_path),
        "mode": "offline",
        "config": {"seed": 1},
        "resume": "never",
    }
    assert (logged, end) == ([4096, {"loss/policy": 0.5}], "finished")
    WandbSink(tmp_path, "online", "first run", {}, 4096).close()
    assert json.loads((tmp_path / "wandb.log").read_text().splitlines()[0])["resume"] == "allow"


def test_a_missing_wandb_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"^run\.loggers has wandb, .* pip install '\.\[wandb\]'"):
        WandbSink(tmp_path, "offline", "first", {}, None)

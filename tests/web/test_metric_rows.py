"""Reading a metrics.jsonl that grows, is torn, cut and replaced; buckets and marks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from made_runs import line

from keisei.web import metric_rows
from keisei.web.curves import MOST_ROWS, curves, rows_since, stretch
from keisei.web.metric_rows import MOST_BUCKETS, Buckets, Mark, MetricRows


def row(step: int, **values: float | None) -> str:
    named = {name.replace("__", "/"): value for name, value in values.items()}
    return json.dumps({"step": step, **named}) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def read(path: Path) -> MetricRows:
    rows = MetricRows(path)
    rows.read_on()
    return rows


def test_no_file_is_no_rows(path: Path) -> None:
    rows = read(path)
    assert len(rows) == 0
    assert rows.end == Mark()
    assert curves(rows, ["a"]) == {
        "anew": True,
        "x": {"step": [], "time": []},
        "curves": {"a": {"low": [], "high": [], "mean": []}},
        "points": {},
    }


def test_rows_are_columns_with_gaps(path: Path) -> None:
    path.write_text(row(10, a=1.5) + row(20, b=2, a=None) + row(30, a=3.0, b=4))
    rows = read(path)
    assert rows.steps.tolist() == [10, 20, 30]
    np.testing.assert_array_equal(rows.column("a"), [1.5, math.nan, 3.0])
    np.testing.assert_array_equal(rows.column("b"), [math.nan, 2, 4])
    np.testing.assert_array_equal(rows.column("unknown", 1), [math.nan, math.nan])
    assert rows_since(rows, ["a", "c"], 1) == {
        "step": [20, 30],
        "time": [0.0, 0.0],
        "values": {"a": [None, 3.0], "c": [None, None]},
    }


def test_the_time_is_that_of_the_phases_and_else_of_the_pace(path: Path) -> None:
    timed = row(100, time__env=1, time__update=2.5)
    paced = row(300, speed__steps_per_second=50)
    path.write_text(timed + paced + row(400) + timed.replace("100", "500"))
    assert read(path).seconds.tolist() == [3.5, 7.5, 7.5, 11.0]


def test_a_torn_last_line_waits_for_its_end(path: Path) -> None:
    whole = line(1) + line(2)
    for size in [*range(40), *range(len(whole) - 40, len(whole) + 1)]:
        path.write_bytes(whole.encode()[:size])
        rows = MetricRows(path)
        assert rows.read_on() == (size >= len(line(1)))
        assert len(rows) == whole[:size].count("\n")
        path.write_text(whole)
        rows.read_on()
        assert rows.steps.tolist() == [4096, 8192]
        assert rows.end == read(path).end


def test_reading_on_equals_reading_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(update) for update in range(1, 31)]
    piecewise = MetricRows(path)
    for update, text in enumerate(lines, 1):
        with path.open("a") as file:
            file.write(text)
        assert piecewise.read_on()
        assert not piecewise.read_on()
        assert len(piecewise) == update
    monkeypatch.setattr(metric_rows, "_CHUNK_BYTES", 1000)
    at_once = read(path)
    assert at_once.names == piecewise.names
    for name in at_once.names:
        np.testing.assert_array_equal(at_once.column(name), piecewise.column(name))
    assert [at_once.mark(count) for count in range(31)] == [piecewise.mark(count) for count in range(31)]


def test_a_file_that_is_cut_and_grows_again_is_read_anew(path: Path) -> None:
    """As a run does that is resumed from an older checkpoint; nobody may have looked meanwhile."""
    path.write_text("".join(row(step, a=step) for step in range(1, 6)))
    rows = read(path)
    before = rows.end
    path.write_text("".join(row(step, a=step) for step in range(1, 4)))
    assert rows.read_on()
    assert rows.column("a").tolist() == [1, 2, 3]
    assert rows.rows_until(before) is None

    path.write_text("".join(row(step, a=step) for step in (1, 2, 7, 8, 9)))  # as long as at first
    assert rows.read_on()
    assert rows.column("a").tolist() == [1, 2, 7, 8, 9]
    assert rows.rows_until(before) is None

    path.unlink()
    assert rows.read_on()
    assert len(rows) == 0


def test_a_file_that_is_replaced_is_read_anew(path: Path, tmp_path: Path) -> None:
    path.write_text(row(1, a=1) + row(2, a=2))
    rows = read(path)
    (tmp_path / "other").write_text(row(1, a=5) + row(2, a=6) + row(3, a=7))
    (tmp_path / "other").replace(path)
    assert rows.read_on()
    assert rows.column("a").tolist() == [5, 6, 7]


def test_a_mark_is_known_to_a_reader_who_begins_anew(path: Path) -> None:
    path.write_text("".join(map(line, range(1, 21))))
    rows = read(path)
    assert [rows.rows_until(rows.mark(count)) for count in range(21)] == list(range(21))
    mark = Mark.parse(str(rows.mark(7)))
    assert mark is not None
    assert read(path).rows_until(mark) == 7
    assert rows.rows_until(Mark(mark.offset, mark.checksum ^ 1)) is None
    assert rows.rows_until(Mark(mark.offset + 1, mark.checksum)) is None


@pytest.mark.parametrize(
    "text", ["", "x", "1", "1-", "-1-00000000", "1-zzzzzzzz", "9" * 30 + "-00000000", "１-00000000"]
)
def test_a_foreign_mark_is_none(text: str) -> None:
    assert Mark.parse(text) is None


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '{"step": "x"}',
        '{"step": true}',
        '{"step": -1}',
        '{"step": 1, "a": "x"}',
        '{"step": 1, "a": []}',
        '{"a": 1}',
        '{"step": 1e3}',
        '{"step": 9' + "9" * 400 + "}",
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_row_is_passed_over(path: Path, foreign: str) -> None:
    path.write_text(row(1, a=1) + foreign + "\n" + row(2, a=2))
    rows = read(path)
    assert rows.steps.tolist() == [1, 2]
    assert not rows.read_on()
    with path.open("a") as file:
        file.write(foreign + "\n")
        file.flush()
        rows.read_on()
        file.write(row(3, a=3))
    assert rows.read_on()
    assert rows.column("a").tolist() == [1, 2, 3]
    assert not rows.read_on()


def test_numbers_beyond_float32_are_shown_as_none(path: Path) -> None:
    path.write_text('{"step": 1, "a": 1e200, "b": NaN, "c": -Infinity, "d": 1}\n')
    values = rows_since(read(path), ["a", "b", "c", "d"], 0)["values"]
    assert values == {"a": [None], "b": [None], "c": [None], "d": [1.0]}


@pytest.mark.parametrize("count", [1, 7, MOST_BUCKETS, MOST_BUCKETS + 1, 2441, 10_000])
def test_buckets_have_what_the_rows_have(path: Path, count: int) -> None:
    values = [None if index % 7 == 3 else math.sin(index) * index for index in range(count)]
    path.write_text("".join(row(10 * index, a=value) for index, value in enumerate(values)))
    told = curves(read(path), ["a", "evaluation/b"])
    steps, bands = told["x"]["step"], told["curves"]["a"]
    assert len(steps) == len(told["x"]["time"]) <= MOST_BUCKETS
    assert {len(part) for part in bands.values()} == {len(steps)}
    assert steps[-1] == 10 * (count - 1)
    before = -1
    for index, step in enumerate(steps):
        inside = [value for value in values[before + 1 : step // 10 + 1] if value is not None]
        before = step // 10
        found = [bands[name][index] for name in ("low", "high", "mean")]
        if inside:
            wanted = [min(inside), max(inside), sum(inside) / len(inside)]
            assert found == pytest.approx(wanted, rel=1e-4, abs=1e-4)
        else:
            assert found == [None] * 3


def test_a_stretch_has_the_detail_that_the_whole_has_not(path: Path) -> None:
    path.write_text("".join(row(10 * index, a=index) for index in range(5000)))
    rows = read(path)
    first, after = stretch(rows, 1000, 1500)
    told = curves(rows, ["a"], first, after)
    assert told["x"]["step"] == list(range(1000, 1501, 10))
    assert told["curves"]["a"]["mean"] == list(range(100, 151))
    assert stretch(rows, 10**9, 10**9) == (5000, 5000)
    assert curves(rows, ["a"], 5000, 5000)["x"]["step"] == []


def test_rare_metrics_are_points_and_at_most_a_thousand(path: Path) -> None:
    path.write_text(
        "".join(row(index, **({"evaluation__rating": index} if index % 3 else {})) for index in range(6000))
    )
    points = curves(read(path), ["evaluation/rating"])["points"]["evaluation/rating"]
    assert len(points) == 1000
    assert points[0] == [1, 0.0, 1.0]
    assert points[-1] == [5999, 0.0, 5999.0]
    assert all(step == value and step % 3 for step, _, value in points)


def test_buckets_of_nothing() -> None:
    assert Buckets.of(5, 5).summary(np.zeros(9, np.float32)) == {"low": [], "high": [], "mean": []}
    assert MOST_ROWS < MOST_BUCKETS

"""The rows of a metrics.jsonl as columns, read on from where the last reading ended.

In: a file that a training appends to, cuts when it is resumed from an older checkpoint, or replaces. Out:
columns of float32, NaN where a row lacks a metric; buckets with minimum, maximum and mean for drawing.

Each row has a mark: the offset of its end and a checksum of its line. A mark that fits tells that the file up
to there is the one that was read, also for a reader who comes back after the server was started anew.
"""

import json
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_BUCKETS = 1000
_CHUNK_BYTES = 4 * 1024 * 1024  # read and parsed at once
_LONGEST_LINE = 1024 * 1024  # a longer one is not a row

Floats = npt.NDArray[np.float32]


class Column:
    """Numbers that are appended to, in one array that grows."""

    def __init__(self, kind: Any, filled: int = 0) -> None:
        self._data = np.full(max(256, 2 * filled), np.nan if kind == np.float32 else 0, kind)
        self._used = filled

    def extend(self, values: Sequence[Any] | npt.NDArray[Any]) -> None:
        """Append values."""
        used = self._used + len(values)
        if used > len(self._data):
            grown = np.empty(2 * used, self._data.dtype)
            grown[: self._used] = self._data[: self._used]
            self._data = grown
        self._data[self._used : used] = values
        self._used = used

    @property
    def values(self) -> npt.NDArray[Any]:
        """Those so far; do not change them."""
        return self._data[: self._used]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a row ends in the file, and the checksum of its line; 0, 0 is the beginning."""

    offset: int = 0
    checksum: int = 0

    def __str__(self) -> str:
        """Return it as a stream's event id."""
        return f"{self.offset}-{self.checksum:08x}"

    @classmethod
    def parse(cls, text: str) -> "Mark | None":
        """Return the mark that a text is, None if it is none."""
        offset, dash, checksum = text.partition("-")
        if not (dash and offset.isascii() and offset.isdigit() and len(offset) < 19 and len(checksum) == 8):
            return None
        try:
            return cls(int(offset), int(checksum, 16))
        except ValueError:
            return None


class MetricRows:
    """The rows of one file so far; `read_on` is to be called from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._steps, self._seconds = Column(np.int64), Column(np.float64)
        self._ends, self._checksums = Column(np.int64), Column(np.uint32)
        self._columns: dict[str, Column] = {}
        self._checksum = 0  # of the lines since the last row

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._ends.values)

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """Moves trained on, of each row."""
        return self._steps.values

    @property
    def seconds(self) -> npt.NDArray[np.float64]:
        """Seconds of training since the run began, pauses left out, of each row."""
        return self._seconds.values

    @property
    def names(self) -> list[str]:
        """All metrics."""
        return sorted(self._columns)

    @property
    def end(self) -> Mark:
        """The mark of the last row."""
        return self.mark(len(self))

    def mark(self, count: int) -> Mark:
        """Return the mark after so many rows."""
        if count == 0:
            return Mark()
        return Mark(int(self._ends.values[count - 1]), int(self._checksums.values[count - 1]))

    def rows_until(self, mark: Mark) -> int | None:
        """Return how many rows there are up to a mark, None if this is not the file that it was of."""
        count = int(np.searchsorted(self._ends.values, mark.offset, "right"))
        return count if self.mark(count) == mark else None

    def column(self, name: str, first: int = 0) -> Floats:
        """Return a metric from a row on, NaN where it is absent."""
        if name not in self._columns:
            return np.full(len(self) - first, np.nan, np.float32)
        return self._columns[name].values[first:]

    def read_on(self) -> bool:
        """Take what was appended; if the file is another one or was cut, everything anew. Return whether
        anything is different.
        """
        before = self.end
        try:
            with self.path.open("rb") as file:
                if not self._is_as_read(file):
                    self._begin()
                file.seek(self.end.offset)
                self._take(file)
        except FileNotFoundError:
            self._begin()
        return self.end != before

    def _is_as_read(self, file: Any) -> bool:
        """Return whether the file still has the last line that was read."""
        if not len(self):
            return True
        ends = self._ends.values
        start = int(ends[-2]) if len(self) > 1 else 0
        file.seek(start)
        line = file.read(int(ends[-1]) - start)
        return zlib.crc32(line) == self.end.checksum and len(line) == ends[-1] - start

    def _take(self, file: Any) -> None:
        rest, offset, self._checksum = b"", self.end.offset, 0
        while data := file.read(_CHUNK_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            self._add(lines, offset)
            offset += sum(map(len, lines)) + len(lines)
            if len(rest) > _LONGEST_LINE:
                return  # not a file of metrics

    def _add(self, lines: Sequence[bytes], offset: int) -> None:
        """Add whole lines, given without their ends; a line that is no row belongs to the next row."""
        rows, ends, checksums, crc = [], [], [], self._checksum
        for line in lines:
            offset += len(line) + 1
            crc = zlib.crc32(b"\n", zlib.crc32(line, crc))
            if (row := _parsed(line)) is not None:
                rows.append(row)
                ends.append(offset)
                checksums.append(crc)
                crc = 0
        self._checksum = crc
        if not rows:
            return
        known = len(self)
        for name in {name for row in rows for name in row} - {"step"}:
            if name not in self._columns:
                self._columns[name] = Column(np.float32, known)
        with np.errstate(over="ignore"):  # beyond float32 a number is infinite, and not shown
            for name, column in self._columns.items():
                column.extend(np.array([row.get(name) for row in rows], np.float32))
        total = float(self.seconds[-1]) if known else 0.0
        last = int(self.steps[-1]) if known else 0
        times = []
        for row in rows:
            total += _duration(row, row["step"] - last)
            last = row["step"]
            times.append(total)
        self._steps.extend([row["step"] for row in rows])
        self._seconds.extend(times)
        self._ends.extend(ends)
        self._checksums.extend(checksums)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return a row, None if the line is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or type(row.get("step")) is not int or not 0 <= row["step"] < 2**62:
        return None
    if any(value is not None and type(value) not in (int, float) for value in row.values()):
        return None
    too_long = any(isinstance(value, int) and abs(value) >= 10**300 for value in row.values())
    return None if too_long else row


def _duration(row: dict[str, Any], moves: int) -> float:
    """Return how long an update took."""
    spent = sum(value for name, value in row.items() if name.startswith("time/") and value is not None)
    if spent == 0 and (pace := row.get("speed/steps_per_second")):
        spent = moves / pace
    return float(spent) if math.isfinite(spent) and spent > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Buckets:
    """Where the buckets of some rows begin: at most MOST_BUCKETS, of the same number of rows but the last."""

    starts: npt.NDArray[np.int64]
    lasts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, first: int, after: int) -> "Buckets":
        """Return those of the rows from first on and before after."""
        width = max(1, -(-(after - first) // MOST_BUCKETS))
        starts = np.arange(first, after, width, dtype=np.int64)
        return cls(starts, np.minimum(starts + width, after) - 1)

    def summary(self, values: Floats) -> dict[str, list[float | None]]:
        """Return low, high and mean of a whole column in each bucket, None where it has no value."""
        if not len(self.starts):
            return {"low": [], "high": [], "mean": []}
        part = values[: int(self.lasts[-1]) + 1].astype(np.float64)
        known = np.isfinite(part)
        counts = np.add.reduceat(known.astype(np.int64), self.starts)
        sums = np.add.reduceat(np.where(known, part, 0.0), self.starts)
        low = np.minimum.reduceat(np.where(known, part, np.inf), self.starts)
        high = np.maximum.reduceat(np.where(known, part, -np.inf), self.starts)
        mean = sums / np.maximum(counts, 1)
        return {
            name: [short(value) if count else None for value, count in zip(one.tolist(), counts, strict=True)]
            for name, one in (("low", low), ("high", high), ("mean", mean))
        }


def short(value: float) -> float | None:
    """Return a number with six digits, None for one that is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def shortened(values: Iterable[float]) -> list[float | None]:
    """Return numbers for a page."""
    return [short(value) for value in values]

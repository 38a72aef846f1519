"""Consoles: the dashboard in a real terminal, the lines in a log."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_run import FACTS, GAMES, STEPS, UPDATES, fake_metrics, fake_parallel_metrics, fake_workers
from terminal import Terminal

from keisei.core.self_play import SavedGames
from keisei.training.console import PlainConsole, RichConsole, make_console
from keisei.training.listener import Listener, SilentListener, Update

CHILD = Path(__file__).with_name("console_child.py")
COLOR = re.compile(r"\x1b\[[\d;]*\b(3[0-7]|9[0-7])[;m]")
NARROW, WIDE = (80, 24), (200, 60)


class Session:
    """A child in a pseudo-terminal, and what the terminal shows."""

    def __init__(
        self, size: tuple[int, int], halfway: str, workers: int, environment: dict[str, str]
    ) -> None:
        self.master, slave = pty.openpty()
        self.terminal = Terminal(*size)
        self.output = ""
        self._pending = b""
        self.resize(size)
        self.process = subprocess.Popen(
            [sys.executable, CHILD, "auto", halfway, str(workers)],
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PYTHONUTF8": "1", **environment},
        )
        os.close(slave)

    def resize(self, size: tuple[int, int]) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.terminal.resize(*size)

    def read(self) -> bool:
        """Read on; return False once the child is gone."""
        try:
            self._pending += os.read(self.master, 65536)
        except OSError:  # how Linux says that the other end is closed
            return False
        text = self._pending.decode("utf-8", errors="ignore")
        self._pending = self._pending[len(text.encode()) :]
        self.output += text
        self.terminal.feed(text)
        return True

    def read_until(self, done: Callable[[str], bool]) -> None:
        while not done(self.terminal.text):
            assert self.read(), self.output

    def finish(self) -> int:
        while self.read():
            pass
        return self.process.wait(timeout=120)


@contextmanager
def session(size: tuple[int, int], halfway: str, workers: int = 0, **environment: str) -> Iterator[Session]:
    opened = Session(size, halfway, workers, environment)
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.wait()
        assert opened.process.stdin is not None
        opened.process.stdin.close()
        os.close(opened.master)


@pytest.mark.parametrize(("first", "second"), [(NARROW, WIDE), (WIDE, NARROW), ((200, 40), (100, 40))])
def test_the_picture_fits_the_terminal_also_after_a_resize(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    with session(first, "wait") as child:
        child.read_until(lambda text: "halfway there" in text and text.rstrip().endswith(bottom(first[0])))
        assert not child.terminal.cursor_shown
        check_picture(child.terminal, board=first[0] == 200)
        assert "102,400 of 409,600 moves" in child.terminal.text
        assert "─ strength at move 81,920 ─" in child.terminal.text
        assert "Elo 300 (240 to 360)  before 200" in child.terminal.text
        child.resize(second)
        assert child.process.stdin is not None
        child.process.stdin.write(b"\n")
        child.process.stdin.flush()
        assert child.finish() == 0
        check_picture(child.terminal, board=second[0] == 200)
        assert child.terminal.text.startswith("Keisei 形勢")
        assert "204,800 of 409,600 moves" in child.terminal.text
        assert "─ strength at move 204,800 ─" in child.terminal.text
        assert "Elo 600 (540 to 660)  before 500" in child.terminal.text
        assert child.terminal.cursor_shown
        assert "printed by someone else" in child.output


@pytest.mark.parametrize(("first", "second"), [(NARROW, WIDE), (WIDE, NARROW)])
def test_workers_are_in_the_picture_also_after_a_resize(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    with session(first, "wait", workers=2) as child:
        child.read_until(lambda text: "halfway there" in text and text.rstrip().endswith(bottom(first[0])))
        check_picture(child.terminal, board=first[0] == 200)
        check_workers(child.terminal, 25)
        child.resize(second)
        assert child.process.stdin is not None
        child.process.stdin.write(b"\n")
        child.process.stdin.flush()
        assert child.finish() == 0
        check_picture(child.terminal, board=second[0] == 200)
        check_workers(child.terminal, 50)


def check_workers(terminal: Terminal, updates: int) -> None:
    text = terminal.text
    assert text.count("─ workers 1/2, queue 1.5, lag 0.2 (max 1), discarded 384 ─") == 1, text
    assert text.count(f"─ weights v{updates}, sync 4.2 ms, 346 kB, inference 64 %") == 1, text
    assert len(re.findall(r"│ 0 playing    █+. +96 % ", text)) == 1, text
    assert len(re.findall(r"│ 1 restarting █+. +25 % ", text)) == 1, text


def check_picture(terminal: Terminal, board: bool) -> None:
    text = terminal.text
    for title in ("Keisei 形勢", "─ learning", "─ games of 20", "─ where the time goes", "─ strength"):
        assert text.count(title) == 1, f"{title} in\n{text}"
    for fact in ("entropy", "explained", "plies", "halfway there", "to go", FACTS.where):
        assert fact in text, text
    assert ("v玉" in text) == board
    assert text.rstrip().splitlines()[-1] == bottom(terminal.columns)


def bottom(columns: int) -> str:
    """The last row of a complete dashboard."""
    return f"╰─ {FACTS.how_to_stop} ".ljust(columns - 1, "─") + "╯"


@pytest.mark.parametrize(
    ("halfway", "code", "says"),
    [
        ("raise", 1, "RuntimeError: the trainer fell over"),
        ("interrupt", -2, "KeyboardInterrupt"),
        ("exit", 3, "halfway there"),
    ],
)
def test_the_terminal_is_given_back_however_the_process_ends(halfway: str, code: int, says: str) -> None:
    with session(NARROW, halfway) as child:
        assert child.finish() == code
        assert "\x1b[?25l" in child.output
        assert child.terminal.cursor_shown
        assert says in child.output


def test_no_color_is_respected() -> None:
    with session(NARROW, "none") as colored, session(NARROW, "none", NO_COLOR="1") as plain:
        assert (colored.finish(), plain.finish()) == (0, 0)
        assert COLOR.search(colored.output)
        assert not COLOR.search(plain.output)
        assert "─ learning" in plain.terminal.text


def test_a_dumb_terminal_gets_lines() -> None:
    with session(NARROW, "none", TERM="dumb") as child:
        assert child.finish() == 0
        assert "\x1b" not in child.output
        assert f"moves 0 to {FACTS.total_steps:,}" in child.output


class Watched(tuple[SavedGames, ...]):
    """Saved games that record when they are read."""

    asked: list[float]
    now: list[float]

    def __getitem__(self, index: Any) -> Any:
        self.asked.append(self.now[0])
        return super().__getitem__(index)


def watched(now: list[float]) -> Watched:
    games = Watched([GAMES])
    games.asked, games.now = [], now
    return games


def test_the_board_is_asked_for_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    games = watched(now)
    for name in ("COLUMNS", "LINES"):  # as it finds them now, it would keep them
        monkeypatch.delenv(name, raising=False)
    console = RichConsole(io.StringIO(), lambda: now[0])

    def play(seconds: float) -> None:
        for update in range(1, 9):
            console.update(Update(update * STEPS, fake_metrics(update), saved_games=games))
            now[0] += seconds

    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "40")
    console.start(FACTS)
    play(0.25)
    assert games.asked == [0.0, 1.0]
    play(2.0)
    assert len(games.asked) == 2 + 8
    monkeypatch.setenv("COLUMNS", "80")
    play(2.0)
    assert len(games.asked) == 2 + 8  # no room for it
    console.close()


def test_the_board_is_not_asked_for_where_workers_take_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    games = watched([0.0])
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "29")
    console = RichConsole(io.StringIO(), lambda: 0.0)
    console.start(FACTS)
    console.update(Update(STEPS, fake_metrics(1), tuple(fake_workers(1, 16)), saved_games=games))
    assert not games.asked
    console.update(Update(2 * STEPS, fake_metrics(2), tuple(fake_workers(2, 2)), saved_games=games))
    assert games.asked
    console.close()


def plain_lines(seconds: float, updates: int = UPDATES) -> list[str]:
    """The log lines of updates that take `seconds` each, without the time of day."""
    stream, now = io.StringIO(), [0.0]
    console = PlainConsole(stream, lambda: now[0])
    console.start(FACTS)
    for update in range(1, updates + 1):
        now[0] += seconds
        console.update(Update(update * STEPS, fake_metrics(update)))
    console.close()
    console.close()
    lines = stream.getvalue().splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d  \S", line) for line in lines)
    return [line[10:] for line in lines]


def test_a_log_begins_with_the_facts_and_how_to_stop() -> None:
    assert plain_lines(2.0)[:2] == [
        "run runs/2026-05-01_120000, seed 7, 84,321 parameters, cpu, 2 threads, float32, channels last; "
        "moves 0 to 409,600",
        "Ctrl-C saves; resume with: keisei train --resume runs/2026-05-01_120000",
    ]


def test_a_run_without_a_directory_does_not_promise_to_save() -> None:
    facts = replace(FACTS, run_path=None)
    assert str(facts).startswith("run without a directory, seed 7, ")
    assert facts.how_to_stop == "Ctrl-C stops; nothing is saved"


def test_a_log_has_a_line_each_ten_seconds_and_the_first_and_the_last_update() -> None:
    lines = [line for line in plain_lines(2.5)[2:] if not line.startswith("evaluation")]
    steps = [int(line.split()[0].replace(",", "")) // STEPS for line in lines]
    assert steps == [*range(1, 50, 4), 50]
    every = [line for line in plain_lines(12.0)[2:] if not line.startswith("evaluation")]
    assert len(every) == 50
    assert [line.split()[0] for line in plain_lines(12.0, updates=1)[2:]] == ["4,096"]


def test_a_line_tells_what_an_update_was_like() -> None:
    first, *_, last = (line for line in plain_lines(2.0) if line.startswith("evaluation"))
    assert first == (
        "evaluation at 40,960: Elo 200 (140 to 260); random 55 % (draws 46 %); greedy 8 % (draws 46 %); "
        "alphabeta-1 3 % (draws 46 %); best 55 % (draws 46 %)"
    )
    assert last == (
        "evaluation at 204,800: Elo 600 (540 to 660); random 74 % (draws 30 %, before 70 %); "
        "greedy 32 % (draws 30 %, before 26 %); alphabeta-1 15 % (draws 30 %, before 12 %); "
        "best 55 % (draws 30 %, before 55 %)"
    )
    line = plain_lines(2.0, updates=49)[-1]
    assert line.startswith("200,704 (49.0 %)  ")
    fields = [re.sub(r"^(.*) moves/s$", "moves/s", field) for field in line.split("  ")[1:]]
    assert fields[:2] == ["moves/s", "1:42 to go"]
    assert fields.pop(2) == "Elo 500 (440 to 560)"
    assert [field.split()[0] for field in fields[2:]] == [
        "policy",
        "value",
        "entropy",
        "KL",
        "draws",
        "length",
    ]
    window = [fake_metrics(update) for update in range(30, 50)]
    draws = sum(metrics["games/draws"] for metrics in window)
    finished = sum(metrics["games/finished"] for metrics in window)
    assert fields[5] == f"KL {window[-1]['policy/approx_kl']:.4f}"
    assert fields[6:] == [f"draws {100 * draws / finished:.0f} %", "length 188"]


def parallel_fields(workers: int, told: int, **changed: float) -> list[str]:
    """The end of a line after the games' length, with this many workers, `told` of them reported."""
    stream = io.StringIO()
    console = PlainConsole(stream, lambda: 0.0)
    console.start(FACTS)
    statuses = fake_workers(1, workers)
    metrics = {f"parallel/{name}": value for name, value in changed.items()}
    told_metrics = {**fake_parallel_metrics(1, statuses), **metrics}
    console.update(Update(STEPS, told_metrics, tuple(statuses[:told])))
    console.close()
    fields = stream.getvalue().splitlines()[-1].split("  ")
    (length,) = (index for index, field in enumerate(fields) if field.startswith("length"))
    return fields[length + 1 :]


def test_a_line_tells_of_workers_where_there_are_some() -> None:
    assert parallel_fields(2, 2) == ["workers 1/2, 60 % busy, inference 64 %", "lag 1"]
    assert parallel_fields(2, 2, active_workers=2.0, utilization=0.96, lag_max=0.0) == [
        "workers 2/2, 96 % busy, inference 64 %"
    ]
    idle = {f"seconds_{phase}": 0.0 for phase in ("env", "inference", "sampling", "transport", "learning")}
    assert parallel_fields(
        2, 2, active_workers=0.0, utilization=0.0, lag_max=0.0, serial_steps=4096.0, **idle
    ) == [
        "workers 0/2, 0 % busy",
        "learner played 4,096",
    ]
    assert parallel_fields(2, 0, lag_max=2.0) == ["workers 1, 60 % busy, inference 64 %", "lag 2"]


def test_notices_are_printed_at_once_and_matches_with_their_update() -> None:
    stream = io.StringIO()
    console: Listener = PlainConsole(stream)
    console.match("512 moves: first@512 vs random: 2 wins")
    console.notice("worker 1 died")
    assert stream.getvalue()[8:] == "  ! worker 1 died\n"


@pytest.mark.parametrize("mode", ["auto", "plain"])
def test_a_stream_that_is_no_terminal_gets_no_control_codes(mode: str) -> None:
    done = subprocess.run(
        [sys.executable, CHILD, mode, "none", "0"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "  ! halfway there\n" in done.stdout


def test_off_shows_nothing() -> None:
    stream = io.StringIO()
    console = make_console("off", stream)
    assert isinstance(console, SilentListener)
    console.start(FACTS)
    console.update(Update(STEPS, fake_metrics(1)))
    console.update(Update(2 * STEPS, fake_metrics(2), tuple(fake_workers(2, 2))))
    console.notice("unseen")
    console.close()
    assert stream.getvalue() == ""


def test_rich_can_be_asked_for_without_a_terminal() -> None:
    assert isinstance(make_console("rich", io.StringIO()), RichConsole)
    assert isinstance(make_console("auto", io.StringIO()), PlainConsole)

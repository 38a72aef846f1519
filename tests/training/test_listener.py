"""Listeners are called in order, from start to close, and the log keeps the notices."""

import re
from pathlib import Path

import pytest
from fake_run import FACTS

from keisei.training.listener import Listener, Listeners, RunFacts, SilentListener, Update
from keisei.training.log_file import LogFile

UPDATE = Update(1024, {"loss/policy": 0.5})


class Noting:
    """A listener that records its calls, with its name, in a shared list."""

    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard

    def start(self, facts: RunFacts) -> None:
        self.heard.append(f"{self.name} start {facts.seed}")

    def update(self, update: Update) -> None:
        self.heard.append(f"{self.name} update {update.step}")

    def notice(self, text: str) -> None:
        self.heard.append(f"{self.name} notice {text}")

    def match(self, text: str) -> None:
        self.heard.append(f"{self.name} match {text}")

    def sync(self) -> None:
        self.heard.append(f"{self.name} sync")

    def close(self) -> None:
        self.heard.append(f"{self.name} close")


class Failing(SilentListener):
    """A listener that cannot be closed."""

    def close(self) -> None:
        raise OSError("the disk is full")


def test_all_are_told_in_order_and_closed_in_the_reverse_one() -> None:
    heard: list[str] = []
    listeners: Listener = Listeners(Noting("a", heard), Noting("b", heard))
    listeners.start(FACTS)
    listeners.update(UPDATE)
    listeners.notice("hello")
    listeners.match("won")
    listeners.sync()
    listeners.close()
    listeners.close()
    listeners.notice("too late")
    assert heard == [
        *("a start 7", "b start 7", "a update 1024", "b update 1024", "a notice hello", "b notice hello"),
        *("a match won", "b match won"),
        *("a sync", "b sync", "b close", "a close"),
    ]


def test_a_notice_before_the_start_is_told_after_it_once() -> None:
    heard: list[str] = []
    listeners = Listeners(Noting("a", heard))
    listeners.notice("early")
    listeners.add(Noting("b", heard))
    assert heard == []
    listeners.start(FACTS)
    assert heard == ["a start 7", "b start 7", "a notice early", "b notice early"]


def test_one_that_cannot_be_closed_keeps_no_other_from_it() -> None:
    heard: list[str] = []
    listeners = Listeners(Noting("a", heard), Failing(), Noting("b", heard))
    with pytest.raises(OSError, match="the disk is full"):
        listeners.close()
    assert heard == ["b close", "a close"]


def test_the_log_is_appended_to_with_date_and_time(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("before\n", encoding="utf-8")
    log: Listener = LogFile(path)
    log.start(FACTS)
    log.update(UPDATE)
    log.match("512 moves: first@512 vs random: 2 wins")
    log.notice("Traceback:\n  line 1\nOSError\n")
    log.sync()
    log.close()
    log.notice("after the end")
    lines = path.read_text(encoding="utf-8").splitlines()
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "
    assert lines[0] == "before"
    assert re.fullmatch(stamp + re.escape(str(FACTS)), lines[1])
    assert re.fullmatch(stamp + "512 moves: first@512 vs random: 2 wins", lines[2])
    assert re.fullmatch(stamp + "Traceback:", lines[3])
    assert lines[4:6] == ["  line 1", "OSError"]
    assert re.fullmatch(stamp + "after the end", lines[6])
    assert len(lines) == 7

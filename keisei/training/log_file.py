"""RUN/train.log: a run's messages, and the tracebacks of its learner and workers."""

from datetime import datetime
from pathlib import Path

from keisei.runs.durable import naming
from keisei.training.listener import RunFacts, SilentListener


class LogFile(SilentListener):
    """A log of every notice and match with date and time; multi-line entries such as tracebacks stay whole.

    The file is opened for each entry: a signal handler may write one in the middle of another, and events
    after `close` can still be logged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self, facts: RunFacts) -> None:
        """Write the run's facts."""
        self.notice(str(facts))

    def notice(self, text: str) -> None:
        """Append an entry."""
        with naming(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {text.rstrip()}\n")

    def match(self, text: str) -> None:
        """Append a match."""
        self.notice(text)

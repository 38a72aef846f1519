"""RUN/train.log: what a run said, and the tracebacks of its learner and of its workers."""

from datetime import datetime
from pathlib import Path

from keisei.training.listener import RunFacts, SilentListener


class LogFile(SilentListener):
    """Appends every notice with its date and time; what has several lines, such as a traceback, stays whole.

    The file is opened for each entry, since a signal's handler may write one in the middle of another, and
    what happens after `close` can still be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self, facts: RunFacts) -> None:
        """Write what is known of the run."""
        self.notice(str(facts))

    def notice(self, text: str) -> None:
        """Append an entry."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {text.rstrip()}\n")

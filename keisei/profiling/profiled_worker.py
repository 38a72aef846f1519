"""ProfiledWorker: a SelfPlayWorker that records itself and leaves its files when it is told to stop."""

import os
from pathlib import Path
from typing import Any

from keisei.profiling.instruments import Instrument, recording, write_record
from keisei.profiling.profile_clock import ProfileClock
from keisei.training.parallel.self_play_worker import SelfPlayWorker


class ProfiledWorker(SelfPlayWorker):
    """A worker that plays as any other does. A process that is killed leaves no files."""

    def __init__(self, *arguments: Any) -> None:
        *usual, self._folder, self._instrument = arguments
        super().__init__(*usual)
        self._clock = self.policy.clock = ProfileClock()

    def run(self) -> None:
        """Play until the learner sends STOP, then write the files."""
        folder: Path = self._folder
        instrument: Instrument = self._instrument
        worker, process = self.end.worker, self.end.incarnation
        stem = f"worker_{worker:03}" + (f"_process_{process}" if process else "")
        name = f"worker {worker}" + (f", process {process}" if process else "")
        with recording(instrument, folder, stem):
            super().run()
        self._clock.lap()
        write_record(folder, stem, name, os.getpid(), self._clock)

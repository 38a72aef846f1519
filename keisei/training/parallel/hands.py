"""Hands: the processes that play what places owe, wherever they are. ParallelManager has one set of them.

Places are fixed in number and in the checkpoint; hands come and go. A segment is a pure function of weights,
games and number of steps, so it does not matter whose hands play it, or how often: the first one counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keisei.config.schema import AppConfig
from keisei.core.exchange import Exchange
from keisei.core.numerics import Numerics
from keisei.core.segment import SegmentShape
from keisei.training.parallel.communication import ChannelStatus
from keisei.training.parallel.model_sync import ModelSynchronizer
from keisei.training.parallel.parallel_statistics import ParallelStatistics
from keisei.training.parallel.places import Places
from keisei.training.parallel.supervised_worker import Supervision
from keisei.training.parallel.worker_status import WorkerStatus


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What hands are hired for.

    numerics: how they compute. places: what they play, and where segments go. synchronizer: has the weights.
    longest: the shape of the longest segment. notice, log: as for ParallelManager.
    """

    config: AppConfig
    numerics: Numerics
    places: Places
    synchronizer: ModelSynchronizer
    statistics: ParallelStatistics
    longest: SegmentShape
    supervision: Supervision
    notice: Callable[[str], None]
    log: Callable[[str], None]


class Hands(Protocol):
    """Processes that play. Nothing here waits for one of them, except `supervise` as long as it may."""

    def weights_published(self) -> None:
        """Take note of new weights in the synchronizer."""

    def grant(self) -> None:
        """Ask for what places owe, as far as there is room."""

    def supervise(self, timeout: float) -> None:
        """Receive what was played, waiting up to `timeout` seconds, and replace processes that are gone."""

    def games_changed(self) -> None:
        """Play the places' current games from now on; what is under way is void."""

    def pause(self) -> None:
        """Pause, in the middle of a segment if need be."""

    def resume(self) -> None:
        """Go on after a pause."""

    def dismiss(self) -> None:
        """End all processes, by force if necessary."""

    @property
    def paused(self) -> bool:
        """Whether the hands are paused."""
        ...

    @property
    def starting(self) -> bool:
        """Whether processes that can be relied on are not ready yet."""
        ...

    @property
    def ready(self) -> bool:
        """Whether somebody can play now."""
        ...

    @property
    def reliable(self) -> Sequence[int]:
        """The places whose segments are worth waiting for."""
        ...

    @property
    def exchange(self) -> Exchange | None:
        """Who computes shares of gradients; None if hands only play."""
        ...

    @property
    def shares_taken_over(self) -> int:
        """How many shares the learner computed for hands that were late or gone."""
        ...

    def asked_for(self) -> Mapping[int, int]:
        """Note in the ledger what every hand has played; return the moves that each was asked for."""
        ...

    def statuses(self) -> list[WorkerStatus]:
        """Return the current status of each hand."""
        ...

    def seconds(self) -> list[dict[str, float]]:
        """Return how each hand has spent its time so far, by phase."""
        ...

    def channels(self) -> list[ChannelStatus]:
        """Return the status of every open channel."""
        ...

    def mark_utilization(self) -> None:
        """Measure utilisation from now on."""

    def metrics(self) -> Mapping[str, float]:
        """Return what only these hands can tell."""
        ...


Hire = Callable[[Job], Hands]

"""Ranks: the learners of a run on several machines, joined by torch.distributed.

Each rank has its own workers. What they play is gathered, so all ranks have the same moves and the same
minibatches; each computes the gradients of its share, they are summed, and every rank takes every step. Only
rank 0 has a run's directory and console. Nothing is pickled, but nothing is authenticated either: see
docs/parallel.md.
"""

import ipaddress
import json
import os
import re
import socket
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor

# torch.distributed has these too, but mypy does not know.
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore
from torch.distributed.rendezvous import rendezvous

from keisei.config.config_errors import ConfigError
from keisei.config.schema import RanksConfig
from keisei.core.device import under_torchrun
from keisei.core.exchange import Exchange, Learner
from keisei.core.gradient_step import GradientStep
from keisei.core.learning_agent import LearningAgent
from keisei.core.segment import Segment, SegmentShape
from keisei.core.self_play import GameResult, Played, SavedGames
from keisei.runs.checkpoint import Checkpoint
from keisei.runs.checkpoint_format import parsed, serialized
from keisei.training.collector import Collector
from keisei.training.parallel.communication import RESULT_BYTES, pack_results, unpack_results
from keisei.training.parallel.worker_status import WorkerStatus

_LENGTH = struct.Struct("<Q")
_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"  # the interface


class RankError(RuntimeError):
    """Another rank has died or is silent, or has other weights."""


class Ranks:
    """All ranks of a run, as this one sees them; a context that leaves them."""

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank, self.world_size = rank, world_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.world_size > 1 and dist.is_initialized():
            with suppress(RuntimeError):  # the others may be gone
                dist.destroy_process_group()

    def sum(self, flat: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, which have the same bits then."""
        with _together():
            dist.all_reduce(flat)

    def gather(self, data: bytes) -> list[bytes]:
        """Return what every rank gives, in their order."""
        with _together():
            mine = torch.tensor([len(data)])
            sizes = [torch.empty_like(mine) for _ in range(self.world_size)]
            dist.all_gather(sizes, mine)
            longest = max(1, *(int(size) for size in sizes))  # torch cannot gather nothing
            padded = torch.frombuffer(bytearray(data.ljust(longest, b"\0")), dtype=torch.uint8)
            found = [torch.empty_like(padded) for _ in sizes]
            dist.all_gather(found, padded)
        return [one[: int(size)].numpy().tobytes() for one, size in zip(found, sizes, strict=True)]

    def any(self, flag: bool) -> bool:
        """Return whether any rank says so."""
        return any(self.gather(b"\1" if flag else b""))

    def from_first(self, data: bytes) -> bytes:
        """Return what rank 0 gives; the others give b""."""
        return self.gather(data)[0]


ALONE = Ranks()


@contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch's for a closed connection and for a time-out
        raise RankError(f"another rank has ended or is silent ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """Return torch's reason without the place in its source and without advice."""
    first_line = str(error).splitlines()[0]
    return re.sub(r"^\[[^\]]*:\d+\] ", "", first_line).partition(". ")[0]


def join_ranks(config: RanksConfig) -> Ranks:
    """Join the other ranks, as torchrun or the config says; ConfigError if that fails."""
    if config.address is None and not under_torchrun():
        return ALONE
    rank, world_size = config.rank, config.world_size
    if config.address is None:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world_size == 1:
        return ALONE
    store: Store
    timeout = timedelta(seconds=config.timeout)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    try:
        if config.address is not None:
            host, _, port = config.address.rpartition(":")
            if _is_loopback(host):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
            store = _store(host, int(port), rank, world_size, timeout)
        else:
            if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:  # all on this machine
                os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
            meeting, *_ = next(rendezvous("env://", rank, world_size, timeout=timeout))
            # Otherwise a restarted rank may find the addresses of the processes before.
            store = PrefixStore(f"attempt {_restarts()}", meeting)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)
    except (RuntimeError, OSError, ValueError) as error:  # torch raises all of them
        raise ConfigError(
            f"training.ranks: rank {rank} of {world_size} cannot join: {_reason(error)}"
        ) from error
    return Ranks(rank, world_size)


def _store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> TCPStore:
    """Return the store by which ranks find each other; rank 0 serves it, on that address alone."""
    if rank:
        return TCPStore(host, port, world_size, is_master=False, timeout=timeout)
    with socket.create_server((host, port), reuse_port=False) as server:
        return TCPStore(
            host,
            port,
            world_size,
            is_master=True,
            timeout=timeout,
            wait_for_workers=False,
            master_listen_fd=os.dup(server.fileno()),
            use_libuv=False,
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def was_restarted() -> bool:
    """Return whether torchrun has started this process again, after a rank was lost."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


# What rank 0 tells the others at the start.


def send_checkpoint(ranks: Ranks, checkpoint: Checkpoint) -> None:
    """Give all other ranks the state that a run begins or goes on with."""
    files = serialized(Path("rank 0"), checkpoint)
    header = {"step": checkpoint.step, "sizes": {name: len(data) for name, data in files.items()}}
    ranks.from_first(_with_header(header, *files.values()))


def receive_checkpoint(ranks: Ranks) -> Checkpoint:
    """Return what rank 0 has sent."""
    header, data = _header_of(ranks.from_first(b""))
    files = {}
    for name, size in header["sizes"].items():
        files[name], data = data[:size], data[size:]
    files = {name: content for name, content in files.items() if name != "manifest.json"}
    return parsed(Path("rank 0"), header["step"], files)


def _with_header(header: Mapping[str, Any], *parts: bytes) -> bytes:
    text = json.dumps(header).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *parts])


def _header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = _LENGTH.unpack_from(data)
    header: dict[str, Any] = json.loads(data[_LENGTH.size : _LENGTH.size + length])
    return header, data[_LENGTH.size + length :]


# Learning


@dataclass(frozen=True, slots=True)
class RanksExchange:
    """An exchange whose shares are the ranks'; `within` divides this rank's share further."""

    ranks: Ranks
    within: Exchange

    def total(self, learner: Learner, step: GradientStep) -> Tensor:
        """Return the sum over all ranks."""
        mine = step.share(self.ranks.rank, self.ranks.world_size)
        total = self.within.total(learner, mine)
        with learner.clock("exchange"):
            self.ranks.sum(total)
        return total


# Playing


@dataclass(frozen=True, slots=True, eq=False)
class RankPlayed:
    """A segment that some rank has played, the games that ended in it, and its vector of games among all."""

    segment: Segment
    results: list[GameResult]
    vector: int


class RanksCollector:
    """A collector whose moves are those of all ranks: each collects its part, and everybody gets them all."""

    def __init__(self, inner: Collector, agent: LearningAgent, ranks: Ranks) -> None:
        self._inner, self._agent, self._ranks = inner, agent, ranks
        self._saved: list[SavedGames] = self._gathered([])[1]
        # Moves of this rank and of all, now and before the last collection.
        self._own = self._all = self._own_before = 0

    def start_workers(self, *, before_wait: Callable[[], None] = lambda: None) -> bool:
        """Get ready to play."""
        return self._inner.start_workers(before_wait=before_wait)

    def collect_experiences(
        self, target_steps: int, *, before_wait: Callable[[], None] = lambda: None
    ) -> list[Played]:
        """Return at least target_steps moves of all ranks together, in the order of the ranks."""
        share = -(-target_steps // self._ranks.world_size)
        mine = self._inner.collect_experiences(share, before_wait=before_wait)
        with self._agent.clock("collect"):
            played, self._saved = self._gathered(mine)
        self._own_before, self._own = self._own, self._own + sum(len(one.segment) for one in mine)
        self._all += sum(len(one.segment) for one in played)
        return list(played)

    def _gathered(self, mine: Sequence[Played]) -> tuple[list[RankPlayed], list[SavedGames]]:
        played: list[RankPlayed] = []
        saved: list[SavedGames] = []
        for data in self._ranks.gather(_packed(mine, self._inner.save_games())):
            theirs, their_games = _unpacked(data, first_vector=len(saved))
            played += theirs
            saved += their_games
        return played, saved

    def synchronize_models(self) -> bool:
        """Publish the weights to this rank's workers; RankError if another rank has other weights."""
        own = struct.pack("<I", zlib.crc32(self._agent.flat_weights().tobytes()))
        for rank, other in enumerate(self._ranks.gather(own)):
            if other != own:
                raise RankError(
                    f"rank {rank} has other weights than rank {self._ranks.rank} after update "
                    f"{self._agent.version}: their machines round differently"
                )
        return self._inner.synchronize_models()

    @property
    def exchange(self) -> Exchange:
        """The ranks."""
        return RanksExchange(self._ranks, self._inner.exchange or self._agent.alone)

    def agree(self, flag: bool) -> bool:
        """Return whether any rank says so."""
        return self._ranks.any(flag)

    def supervise(self) -> None:
        """Supervise this rank's workers."""
        self._inner.supervise()

    def save_games(self) -> list[SavedGames]:
        """Return the games of all ranks as they were after the last collected moves."""
        return self._saved

    @property
    def workers(self) -> Sequence[WorkerStatus]:
        """This rank's workers."""
        return self._inner.workers

    def checked_metrics(self, trained: int) -> Mapping[str, float]:
        """Return the metrics of this rank's workers; ConservationError if the counts disagree."""
        return self._inner.checked_metrics(self._own_of(trained))

    def get_statistics(self) -> Mapping[str, Any]:
        """Return the counts and measurements of this rank's workers."""
        return self._inner.get_statistics()

    def close(self, trained: int) -> str | None:
        """Stop playing; return one line accounting for every move of this rank."""
        return self._inner.close(self._own_of(trained))

    def _own_of(self, trained: int) -> int:
        """Return how many of the moves trained on are this rank's; the last collection may not be."""
        return self._own if trained == self._all else self._own_before


def _packed(played: Sequence[Played], saved: Sequence[SavedGames]) -> bytes:
    header = {
        "shapes": [astuple(one.segment.shape) for one in played],
        "results": [len(one.results) for one in played],
        "vectors": [one.vector for one in played],
        "saved": [[len(one.games), one.state] for one in saved],
    }
    parts = []
    for one in played:
        parts += [getattr(one.segment, name).tobytes() for name, *_ in one.segment.shape.layout()]
    parts += [pack_results(one.results) for one in played]
    return _with_header(header, *parts, *(one.games for one in saved))


def _unpacked(data: bytes, first_vector: int) -> tuple[list[RankPlayed], list[SavedGames]]:
    """Return what a rank has packed; first_vector: how many vectors of games the ranks before it have."""
    header, data = _header_of(data)
    position = 0

    def take(size: int) -> bytes:
        nonlocal position
        position += size
        return data[position - size : position]

    shapes = [SegmentShape(*shape) for shape in header["shapes"]]
    segments = [Segment.over(bytearray(take(shape.nbytes)), shape) for shape in shapes]
    results = [unpack_results(take(count * RESULT_BYTES)) for count in header["results"]]
    saved = [SavedGames(take(size), state) for size, state in header["saved"]]
    vectors = [first_vector + vector for vector in header["vectors"]]
    return [RankPlayed(*one) for one in zip(segments, results, vectors, strict=True)], saved

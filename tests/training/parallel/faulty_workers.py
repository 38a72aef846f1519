"""Workers that go wrong on purpose, for the tests of supervision."""

import ctypes
import os
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.config.schema import AppConfig
from keisei.core.gradient_step import GradientStep, GradientWriter
from keisei.core.native_gradients import NativeGradients
from keisei.core.numerics import Numerics
from keisei.training.parallel.communication import PAGE_BYTES, Kind, WorkerEnd
from keisei.training.parallel.model_sync import WeightsReader
from keisei.training.parallel.self_play_worker import SelfPlayWorker
from keisei.training.parallel.wire import Wire

AT_START = -1


@dataclass(frozen=True)
class Fault:
    """What happens, before which move of which process: by default the first of worker 0.

    phase: of learning; then `move` is the number of the share, counted from 0.
    """

    what: str
    move: int = 5
    worker: int = 0
    incarnations: Sequence[int] = (0,)
    phase: str = ""


def always(what: str, move: int = AT_START, worker: int = 0) -> Fault:
    return Fault(what, move, worker, range(1000))


class TamperedWire(Wire[Kind]):
    """A wrapper that tampers with each segment sent; `last` is the last one as it should have been."""

    last = b""
    tamper: Callable[[bytes], bytes] = staticmethod(bytes)

    def send(self, kind: Kind, *parts: bytes | bytearray | memoryview) -> None:
        body = b"".join(parts)
        message = struct.pack("<IB", len(body), kind) + body
        if kind is Kind.SEGMENT:
            self.last, message = message, self.tamper(message)
        self.socket.sendall(message)


class FaultyWorker(SelfPlayWorker):
    """A worker that plays normally except for its faults, waiting `slow` seconds before each move."""

    def __init__(
        self,
        end: WorkerEnd,
        weights: WeightsReader,
        config: AppConfig,
        numerics: Numerics,
        faults: Sequence[Fault],
        slow: float,
    ) -> None:
        self.end = end
        mine = [fault for fault in faults if fault.worker == self.end.worker]
        self.faults = [fault for fault in mine if self.end.incarnation in fault.incarnations]
        self._made, self._slow = AT_START, slow
        self.wire = end._wire = TamperedWire(end._wire.socket, Kind)
        self._suffer()
        super().__init__(end, weights, config, numerics)

    def before_step(self) -> None:
        super().before_step()
        self._suffer()
        time.sleep(self._slow)

    def _suffer(self) -> None:
        """Trigger the faults that are due; moves are counted from 0."""
        for fault in self.faults:
            if fault.move == self._made and not fault.phase:
                happen(fault.what, self)
        self._made += 1

    def make_gradients(self) -> GradientWriter:
        gradients = super().make_gradients()
        return FaultyGradients(gradients, self) if isinstance(gradients, NativeGradients) else gradients


class FaultyGradients:
    """The gradients of a worker, with its faults before each phase of a share."""

    def __init__(self, gradients: NativeGradients, worker: FaultyWorker) -> None:
        self._gradients, self._worker = gradients, worker
        self._shares = -1
        for phase in ("decode", "forward", "loss", "backward"):
            setattr(gradients, f"_{phase}", self._at(phase, getattr(gradients, f"_{phase}")))
        worker.end.report_learned = self._at("exchange", worker.end.report_learned)  # type: ignore[method-assign]

    def _at(self, phase: str, then: Callable[..., Any]) -> Callable[..., Any]:
        def faulty(*arguments: Any) -> Any:
            for fault in self._worker.faults:
                if (fault.phase, fault.move) == (phase, self._shares):
                    happen(fault.what, self._worker)
            return then(*arguments)

        return faulty

    def load_flat(self, weights: npt.NDArray[np.float32]) -> None:
        self._shares += 1
        self._at("load", self._gradients.load_flat)(weights)

    def write_gradients(self, step: GradientStep, out: npt.NDArray[np.float32]) -> None:
        self._gradients.write_gradients(step, out)


def happen(what: str, worker: FaultyWorker) -> None:
    if what.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[what])
        time.sleep(60)  # until delivered
    elif what.startswith("raise "):
        raise RuntimeError(what.removeprefix("raise "))
    else:
        FAULTS[what](worker)


def _sleep(_: FaultyWorker) -> None:
    time.sleep(600)


def _spin(_: FaultyWorker) -> None:
    while True:
        pass


def _hold_the_interpreter(_: FaultyWorker) -> None:
    ctypes.PyDLL(None).sleep(600)


def _exit(_: FaultyWorker) -> None:
    os._exit(7)


def _close(worker: FaultyWorker) -> None:
    worker.wire.socket.close()
    time.sleep(600)


def _garbage(worker: FaultyWorker) -> None:
    worker.wire.socket.sendall(bytes(range(200, 256)))


def _truncated_frame(worker: FaultyWorker) -> None:
    """Announce 400 bytes, send 100 and carry on: the next message is taken for the rest."""
    worker.wire.socket.sendall(struct.pack("<IB", 400, Kind.SEGMENT) + bytes(100))


def _endless_frame(worker: FaultyWorker) -> None:
    """Announce more than will ever follow, and carry on."""
    worker.wire.socket.sendall(struct.pack("<IB", 1_000_000, Kind.SEGMENT) + bytes(100))


def _end_of_a_file(_: FaultyWorker) -> None:
    raise EOFError("of its own")


def _half_a_message(worker: FaultyWorker) -> None:
    worker.wire.socket.sendall(struct.pack("<IB", 100_000, Kind.SEGMENT) + bytes(50_000))
    os.kill(os.getpid(), signal.SIGSTOP)


def _short_header(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.SEGMENT, b"short")


def _flood(worker: FaultyWorker) -> None:
    """Send a message without an end."""
    worker.wire.socket.sendall(struct.pack("<IB", 2**31 - 1, Kind.SEGMENT))
    while True:
        worker.wire.socket.sendall(bytes(2**16))
        time.sleep(0.001)


def _unknown_order(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.PLAY, bytes(24))


def _broken_failure(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.FAILED, b"{not JSON")


def _ready_again(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.READY)


def _taken_again(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.GAMES_TAKEN)


def _learned_again(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.LEARNED, struct.pack("<q", 1))


def _learned_nothing(worker: FaultyWorker) -> None:
    worker.wire.send(Kind.LEARNED)


def _pause_a_second(_: FaultyWorker) -> None:
    time.sleep(1)


def _replay(worker: FaultyWorker) -> None:
    """Send the last segment again, now."""
    worker.wire.socket.sendall(worker.wire.last)


def _duplicate(worker: FaultyWorker) -> None:
    """Send the current segment twice."""
    worker.wire.tamper = lambda message: message + message


def _of_the_next_incarnation(worker: FaultyWorker) -> None:
    worker.end.incarnation += 1


def _another_byte(worker: FaultyWorker) -> None:
    """Change the segment after computing its checksum."""

    def tamper(message: bytes) -> bytes:
        view, size = worker.end._memory.view, worker.end._slot_bytes
        for start in range(PAGE_BYTES, len(view), size or 1):
            view[start + 7] ^= 1
        return message if size else message[:-1] + bytes([message[-1] ^ 1])

    worker.wire.tamper = tamper


def _cut_off(worker: FaultyWorker) -> None:
    """Die in the middle of the message about the current segment."""

    def tamper(message: bytes) -> bytes:
        worker.wire.socket.sendall(message[: len(message) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    worker.wire.tamper = tamper


FAULTS: dict[str, Callable[[FaultyWorker], None]] = {
    "sleep": _sleep,
    "spin": _spin,
    "hold the interpreter": _hold_the_interpreter,
    "exit": _exit,
    "close": _close,
    "garbage": _garbage,
    "truncated frame": _truncated_frame,
    "endless frame": _endless_frame,
    "end of a file": _end_of_a_file,
    "half a message": _half_a_message,
    "short header": _short_header,
    "flood": _flood,
    "unknown order": _unknown_order,
    "broken failure": _broken_failure,
    "ready again": _ready_again,
    "taken again": _taken_again,
    "learned again": _learned_again,
    "learned nothing": _learned_nothing,
    "pause a second": _pause_a_second,
    "replay": _replay,
    "duplicate": _duplicate,
    "of the next incarnation": _of_the_next_incarnation,
    "another byte": _another_byte,
    "cut off": _cut_off,
}

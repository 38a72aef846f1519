"""A network in torch's numeric formats, and which of them are the fastest: measured, not guessed."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from keisei.config.config_errors import ConfigError
from keisei.config.schema import RunConfig
from keisei.core.models import ActorCriticResTower
from keisei.core.native_tower import best_kernels, usable_kernels
from keisei.core.numerics import Numerics

Pass = tuple[Callable[[], None], Callable[[], None]]  # prepare the network, compute with it

NATIVE = "native"
NEON = "neon"
NATIVE_CHANNELS = 256  # the widest that was compared with torch

_GAIN = 1.05  # a format must be at least this much faster to be worth a change in rounding
_ROUNDS = 3
_ROWS = 128  # positions of a pass; more make the choice slower and no surer (measured on 2 cores)


class Evaluator:
    """A network in chosen formats: planes in, float32 logits and values out.

    sizes: the batch sizes to use the compiled network for, if there is one; any other size, as in a match or
    at the end of a run, would be compiled anew each time.
    """

    def __init__(
        self, network: nn.Module, numerics: Numerics, device: torch.device, sizes: Collection[int] = ()
    ) -> None:
        layout = torch.channels_last if numerics.channels_last else torch.contiguous_format
        self._module = network.to(device=device, memory_format=layout)  # type: ignore[call-overload]
        self._compiled = torch.compile(self._module, dynamic=False) if numerics.compiled else self._module
        self._sizes = frozenset(sizes)
        self._bfloat16 = numerics.bfloat16
        self._device = device

    def __call__(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, P], values [B]) for planes [B, 46, 9, 9]."""
        planes = planes.to(self._device, non_blocking=True)
        module = self._compiled if len(planes) in self._sizes else self._module
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bfloat16):
            logits, values = module(planes)
        return logits.float(), values.float()


def choose_numerics(network: nn.Module, config: RunConfig, device: torch.device, planes: Tensor) -> Numerics:
    """Return what run.numerics names; with `auto`, the fastest.

    `auto` is native where minibatches were never slower, see docs/network.md: on CPUs other than ARM's, up to
    NATIVE_CHANNELS. Elsewhere, and with `auto+…`, it times a forward and a backward pass of torch with
    bfloat16, with channels-last unless it is named, and with both: the gain of one depends on the other. Then
    with torch.compile, only if it is named.
    """
    precision, *extras = config.numerics.split("+")
    channels_last, compiled = "channels_last" in extras, "compile" in extras
    channels = network.stem.out_channels if isinstance(network, ActorCriticResTower) else 0
    can_be_native = channels > 0 and device.type == "cpu"
    if precision.startswith(NATIVE):
        if not can_be_native:
            raise ConfigError(
                f"run.numerics: given {precision}, expected another value for this network on {device}"
            )
        kernels = precision.removeprefix(NATIVE).removeprefix("-") or best_kernels()
        if kernels not in usable_kernels():
            raise ConfigError(
                f"run.numerics: given {precision}, but this CPU has no {kernels}, expected native or "
                f"{' or '.join(f'{NATIVE}-{name}' for name in usable_kernels())}"
            )
        return Numerics(native=kernels)
    if precision != "auto":
        return Numerics(channels_last, precision == "bfloat16", compiled)
    is_fast = best_kernels() != NEON and channels <= NATIVE_CHANNELS  # nobody has timed it on ARM
    if can_be_native and is_fast and not extras:
        return Numerics(native=best_kernels(), why="as always on such a CPU")
    plain = Numerics(channels_last=channels_last)
    options = {"bfloat16": replace(plain, bfloat16=True)}
    if not channels_last:
        both = Numerics(channels_last=True, bfloat16=True)
        options = {"channels-last": Numerics(channels_last=True), **options, "both": both}
    chosen, reasons = _fastest(network, plain, options, device, planes)
    if compiled:
        options = {"torch.compile": replace(chosen, compiled=True)}
        chosen, compiling = _fastest(network, chosen, options, device, planes)
        reasons += compiling
    return replace(chosen, why=", ".join(reasons))


def _fastest(
    network: nn.Module, plain: Numerics, options: Mapping[str, Numerics], device: torch.device, planes: Tensor
) -> tuple[Numerics, list[str]]:
    """Return the fastest of plain and the options, and each option's speed-up in words."""
    passes = {"plain": _pass(network, plain, device, planes[:_ROWS])}
    for name, numerics in options.items():
        prepare, work = _pass(network, numerics, device, planes[:_ROWS])
        try:
            prepare()
            work()
        except RuntimeError:  # this machine cannot do it: no compiler, no such type on the device
            continue
        passes[name] = prepare, work
    seconds = _best_seconds(passes, device)
    gains = {name: seconds["plain"] / own for name, own in seconds.items()}
    reasons = [
        f"{name} ×{gains[name]:.2f}" if name in gains else f"{name} does not work here" for name in options
    ]
    best = max(gains, key=lambda name: gains[name])
    return options[best] if gains[best] >= _GAIN else plain, reasons


def _best_seconds(passes: Mapping[str, Pass], device: torch.device) -> dict[str, float]:
    """Return the best time of each pass over several alternating rounds.

    On the CPU that is CPU time, of one thread: other programs on the machine hardly change it.
    """
    best = dict.fromkeys(passes, float("inf"))
    with threads_of_torch(1 if device.type == "cpu" else None):
        now = time.process_time if device.type == "cpu" else time.perf_counter
        for _ in range(_ROUNDS):
            for name, (prepare, work) in passes.items():
                prepare()
                work()
                start = now()
                work()
                best[name] = min(best[name], now() - start)
    return best


@contextmanager
def threads_of_torch(threads: int | None) -> Iterator[None]:
    """Let torch compute with this many threads inside; as many as before if None."""
    before = torch.get_num_threads()
    if threads is not None and threads != before:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def _pass(network: nn.Module, numerics: Numerics, device: torch.device, planes: Tensor) -> Pass:
    evaluators: list[Evaluator] = []

    def prepare() -> None:
        evaluators[:] = [Evaluator(network, numerics, device, [len(planes)])]

    def work() -> None:
        logits, values = evaluators[0](planes)
        (logits.square().mean() + values.square().mean()).backward()
        network.zero_grad(set_to_none=True)
        synchronize(device)

    return prepare, work


def synchronize(device: torch.device) -> None:
    """Wait until a device has computed everything it was given; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)

"""A network in torch's numeric formats, and which of them are the fastest: measured, not guessed."""

import math
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

NATIVE = "native"
NEON = "neon"
NATIVE_CHANNELS = 256  # the widest that was compared with torch

_PLAIN = "plain"
_GAIN = 1.05  # a format must be at least this much faster to be worth a change in rounding
_ROUNDS = 3
_ROWS = 128  # positions of a pass; more make the choice slower and no surer (measured on 2 cores)
_FEW_ROWS = 2  # positions of a first try
_HOPELESS = 3.0  # a format that is so many times slower there is given up; bfloat16 can be 20 times slower
_PASS_SECONDS = 0.05  # of the plain format: a large network gets fewer positions
_BUDGET_SECONDS = 1.0  # after which no further round begins


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
                f"run.numerics: given {precision}, expected auto, float32 or bfloat16 for this network "
                f"on {device}"
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
    """Return the fastest of plain and the options, and each option's speed-up in words.

    A few positions show which are hopeless, then more of them which is best, as far as there is time.
    """
    deadline = time.monotonic() + _BUDGET_SECONDS
    contenders = {_PLAIN: plain, **options}
    gains: dict[str, float] = {}
    if not any(numerics.compiled for numerics in options.values()):  # which compiles for each batch size
        seconds = _best_seconds(network, contenders, device, planes[:_FEW_ROWS], rounds=1)
        gains = {name: seconds[_PLAIN] / own for name, own in seconds.items()}
        contenders = {name: contenders[name] for name in gains if gains[name] * _HOPELESS > 1}
        rows = int(_FEW_ROWS * _PASS_SECONDS / max(seconds[_PLAIN], 1e-6))
        planes = planes[: max(_FEW_ROWS, rows)]
    if not gains or time.monotonic() < deadline:
        seconds = _best_seconds(network, contenders, device, planes[:_ROWS], _ROUNDS, deadline)
        gains |= {name: seconds[_PLAIN] / own for name, own in seconds.items()}
    reasons = [
        f"{name} ×{gains[name]:.2f}" if name in gains else f"{name} does not work here" for name in options
    ]
    best = max(gains, key=lambda name: gains[name])
    return contenders[best] if gains[best] >= _GAIN else plain, reasons


def _best_seconds(
    network: nn.Module,
    contenders: Mapping[str, Numerics],
    device: torch.device,
    planes: Tensor,
    rounds: int,
    deadline: float = math.inf,
) -> dict[str, float]:
    """Return the best time of those that work here, over alternating rounds; the last begins by the deadline.

    On the CPU that is CPU time, of one thread: other programs on the machine hardly change it.
    """
    best = dict.fromkeys(contenders, math.inf)
    on_cpu = device.type == "cpu"
    now = time.process_time if on_cpu else time.perf_counter
    with threads_of_torch(1 if on_cpu else None):
        for done in range(rounds):
            if done and time.monotonic() > deadline:
                break
            for name in list(best):
                try:
                    best[name] = min(best[name], _seconds(network, contenders[name], device, planes, now))
                except RuntimeError:  # this machine cannot do it: no compiler, no such type on the device
                    if name == _PLAIN:
                        raise
                    del best[name]
    return best


def _seconds(
    network: nn.Module, numerics: Numerics, device: torch.device, planes: Tensor, now: Callable[[], float]
) -> float:
    """Return how long a forward and a backward pass take, after one that is not timed."""
    evaluate = Evaluator(network, numerics, device, [len(planes)])
    for _ in range(2):
        began = now()
        logits, values = evaluate(planes)
        (logits.square().mean() + values.square().mean()).backward()
        network.zero_grad(set_to_none=True)
        synchronize(device)
    return now() - began


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


def synchronize(device: torch.device) -> None:
    """Wait until a device has computed everything it was given; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)

"""The fastest numeric formats for a network on a device: measured, not guessed.

A format changes the last bits of the results, so a run keeps its first choice, even when it is resumed.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn

from keisei.config.schema import RunConfig

_GAIN = 1.05  # a format must be at least this much faster to be worth a change in rounding
_ROUNDS = 3


@dataclass(frozen=True)
class Numerics:
    """The formats a network is computed in; `why` says what was measured."""

    channels_last: bool = False
    bfloat16: bool = False
    compiled: bool = False
    why: str = "as configured"

    def __str__(self) -> str:
        """Return a phrase such as "float32, channels-last (channels-last ×1.18, bfloat16 ×0.33)"."""
        words = [
            "bfloat16" if self.bfloat16 else "float32",
            "channels-last" if self.channels_last else "contiguous",
        ]
        words += ["compiled"] if self.compiled else []
        return f"{', '.join(words)} ({self.why})"


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
    """Return the formats that run.numerics names; with `auto` they are measured.

    `auto` times a forward and a backward pass with bfloat16, with channels-last unless it is named, and with
    torch.compile only if it is named.
    """
    precision, *extras = config.numerics.split("+")
    measured, channels_last, compiled = precision == "auto", "channels_last" in extras, "compile" in extras
    chosen = Numerics(
        channels_last=channels_last, bfloat16=precision == "bfloat16", compiled=compiled and not measured
    )
    reasons = []
    for name, field, is_asked in (
        ("channels-last", "channels_last", measured and not channels_last),
        ("bfloat16", "bfloat16", measured),
        ("torch.compile", "compiled", measured and compiled),
    ):
        if is_asked:
            other = Numerics(**{**asdict(chosen), field: True})
            try:
                gain = _speedup(network, chosen, other, device, planes)
            except RuntimeError:  # this machine cannot do it: no compiler, no such type on the device
                reasons.append(f"{name} does not work here")
                continue
            reasons.append(f"{name} ×{gain:.2f}")
            chosen = other if gain >= _GAIN else chosen
    return replace(chosen, why=", ".join(reasons) or "as configured")


def _speedup(network: nn.Module, old: Numerics, new: Numerics, device: torch.device, planes: Tensor) -> float:
    """Return the speed-up of the new formats: the best time of each over several alternating rounds."""
    passes = [_pass(network, numerics, device, planes) for numerics in (old, new)]
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for i, (prepare, work) in enumerate(passes):
            prepare()
            work()
            start = time.perf_counter()
            work()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[0] / best[1]


def _pass(
    network: nn.Module, numerics: Numerics, device: torch.device, planes: Tensor
) -> tuple[Callable[[], None], Callable[[], None]]:
    evaluators: list[Evaluator] = []

    def prepare() -> None:
        evaluators[:] = [Evaluator(network, numerics, device, [len(planes)])]

    def work() -> None:
        logits, values = evaluators[0](planes)
        (logits.square().mean() + values.square().mean()).backward()
        network.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return prepare, work

"""Numerics: how a network is computed. Needs no torch: workers and players are told, and may do without.

A change of it changes the last bits of the results, so a run keeps its first choice, even when it is resumed.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Numerics:
    """How a network is computed; `why` says how that was chosen.

    native: the name of our own kernels for the CPU (keisei.core.native_tower), in float32; "" is torch, in
    the formats that the other fields name.
    """

    channels_last: bool = False
    bfloat16: bool = False
    compiled: bool = False
    why: str = "as configured"
    native: str = ""

    def __str__(self) -> str:
        """Return a phrase such as "native avx2 (as configured)" or "float32, channels-last (…)"."""
        if self.native:
            return f"native {self.native} ({self.why})"
        words = [
            "bfloat16" if self.bfloat16 else "float32",
            "channels-last" if self.channels_last else "contiguous",
        ]
        words += ["compiled"] if self.compiled else []
        return f"{', '.join(words)} ({self.why})"

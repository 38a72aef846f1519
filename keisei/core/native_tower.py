"""NativeTower: the residual tower on the CPU by our own kernels, without torch.

Takes positions and the weights of an ActorCriticResTower; returns logits of the legal moves and values, and
gradients of the weights. docs/network.md explains the kernels. A position's result depends on that position,
the weights and the kernels alone: not on its batch, and not on the threads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from keisei._native import Tower, tower_kernels
from keisei.config.schema import ModelConfig
from keisei.core.policy_labels import ACTION_LABELS, LABELS
from keisei.shogi.encoding import ACTIONS, PLANES
from keisei.shogi.positions import Positions

Floats = npt.NDArray[np.float32]

LINEAR_HEAD_CHANNELS = 8
PIECE_PLANES = 42  # the first planes: pieces on the board and in hand


def usable_kernels() -> list[str]:
    """Return the names of the kernels that this machine can run, the fastest first."""
    return tower_kernels()


def best_kernels() -> str:
    """Return the name of the fastest kernels that this machine can run."""
    return usable_kernels()[0]


def excitation_width(config: ModelConfig) -> int:
    """Return the hidden width of squeeze-and-excitation, 0 if there is none."""
    return max(1, round(config.channels * config.se_ratio)) if config.se_ratio > 0 else 0


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an ActorCriticResTower's weights by name, in the order of its state_dict."""
    c, wide, hidden = config.channels, excitation_width(config), config.value_hidden
    shapes: dict[str, tuple[int, ...]] = {"stem.weight": (c, PLANES, 3, 3), "stem.bias": (c,)}
    for i in range(config.blocks):
        block: dict[str, tuple[int, ...]] = {}
        for half in ("1", "2"):
            block |= {
                f"norm{half}.weight": (c,),
                f"norm{half}.bias": (c,),
                f"conv{half}.weight": (c, c, 3, 3),
            }
        if wide:
            block |= {"excitation.squeeze.weight": (wide, c), "excitation.squeeze.bias": (wide,)}
            block |= {"excitation.excite.weight": (c, wide), "excitation.excite.bias": (c,)}
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    shapes |= {"norm.weight": (c,), "norm.bias": (c,)}
    if config.policy_head == "labels":
        shapes |= {"policy.conv.weight": (LABELS // 81, c, 1, 1), "policy.conv.bias": (LABELS // 81,)}
    else:
        narrow = LINEAR_HEAD_CHANNELS
        shapes |= {"policy.narrow.weight": (narrow, c, 1, 1), "policy.narrow.bias": (narrow,)}
        shapes |= {"policy.conv.weight": (ACTIONS, narrow * 81), "policy.conv.bias": (ACTIONS,)}
    shapes |= {"value.hidden.weight": (hidden, 2 * c), "value.hidden.bias": (hidden,)}
    shapes |= {"value.norm.weight": (hidden,), "value.norm.bias": (hidden,)}
    shapes |= {"value.out.weight": (1, hidden), "value.out.bias": (1,)}
    return shapes | ({} if config.piece_values == "none" else {"value.pieces.weight": (1, PIECE_PLANES)})


@dataclass(slots=True, eq=False)
class Evaluated:
    """Logits of the legal moves [M], in the order of positions.actions, and values [N].

    kept: what gradients need of this evaluation, once; empty if it was not kept.
    """

    logits: Floats
    values: Floats
    kept: Floats


class NativeTower:
    """An ActorCriticResTower without torch. kernels: one of usable_kernels(), the best if not given."""

    def __init__(self, config: ModelConfig, *, kernels: str = "", threads: int = 1) -> None:
        self.shapes = weight_shapes(config)
        labels = config.policy_head == "labels"
        self._move_of_action = (
            ACTION_LABELS.astype(np.int32) if labels else np.arange(ACTIONS, dtype=np.int32)
        )
        self._config = config
        self._tower = self._made(kernels or best_kernels(), threads)
        self._flat = np.zeros(self._tower.parameters, np.float32)
        self._learning = False  # whether the weights are loaded for gradients
        self._spare = np.empty(0, np.float32)  # memory of an evaluation whose gradients are known
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes.values())])
        self._slices = dict(zip(self.shapes, (slice(a, b) for a, b in pairwise(ends)), strict=True))

    def _made(self, kernels: str, threads: int) -> Tower:
        config = self._config
        return Tower(
            blocks=config.blocks,
            channels=config.channels,
            groups=config.norm_groups,
            excitation=excitation_width(config),
            value_hidden=config.value_hidden,
            pieces=config.piece_values != "none",
            linear_head=config.policy_head == "linear",
            kernels=kernels,
            threads=threads,
        )

    @property
    def kernels(self) -> str:
        """The name of the kernels."""
        return self._tower.kernels

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self._tower.threads

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return self._tower.parameters

    def use_threads(self, threads: int) -> None:
        """Compute with this many threads from now on."""
        if threads != self._tower.threads:
            self._tower = self._made(self.kernels, threads)
            self._tower._load(self._flat, self._learning)

    def load(self, weights: Mapping[str, npt.NDArray[np.floating]], *, learning: bool = False) -> None:
        """Load weights by name; ValueError if of another architecture. learning: for gradients too."""
        check_shapes(self.shapes, {name: array.shape for name, array in weights.items()})
        for name, where in self._slices.items():
            self._flat[where] = weights[name].reshape(-1)
        self._take(learning)

    def load_flat(self, weights: Floats, *, learning: bool = False) -> None:
        """Load weights [parameters], in the order of `shapes`. learning: for gradients too."""
        self._flat[:] = weights
        self._take(learning)

    def _take(self, learning: bool) -> None:
        self._tower._load(self._flat, learning)
        self._learning = learning

    def evaluate(self, positions: Positions, *, keep: bool = False) -> Evaluated:
        """Return logits and values; `keep` for gradients."""
        moves = self._move_of_action[positions.actions]
        logits = np.empty(len(moves), np.float32)
        values = np.empty(len(positions), np.float32)
        kept = self._memory(len(positions)) if keep else np.empty(0, np.float32)
        self._tower._evaluate(
            positions.planes, positions.offsets, moves, logits, values, kept if keep else None
        )
        return Evaluated(logits, values, kept)

    def gradients(
        self, positions: Positions, evaluated: Evaluated, d_logits: Floats, d_values: Floats
    ) -> dict[str, Floats]:
        """Return the gradients of all weights by name, given those of the logits [M] and values [N].

        evaluated: as for write_gradients.
        """
        flat = np.empty(self.parameters, np.float32)
        self.write_gradients(positions, evaluated, d_logits, d_values, flat)
        return {name: flat[where].reshape(self.shapes[name]) for name, where in self._slices.items()}

    def write_gradients(
        self, positions: Positions, evaluated: Evaluated, d_logits: Floats, d_values: Floats, flat: Floats
    ) -> None:
        """Write the gradients of all weights, in the order of `shapes`, to a flat array.

        evaluated: what `evaluate` returned for these positions with these weights; its memory is used again,
        so a second call is a ValueError.
        """
        if evaluated.kept.size != self._tower._memory_of(len(positions)):
            raise ValueError("this evaluation was not kept for gradients, or they were computed already")
        moves = self._move_of_action[positions.actions]
        self._tower._gradients(
            positions.planes, positions.offsets, moves, evaluated.kept, d_logits, d_values, flat
        )
        self._spare, evaluated.kept = evaluated.kept, np.empty(0, np.float32)

    def _memory(self, positions: int) -> Floats:
        """Return an array to keep an evaluation in: the last one if it fits, since new pages take time."""
        size = self._tower._memory_of(positions)
        spare, self._spare = self._spare, np.empty(0, np.float32)
        return spare if spare.size == size else np.empty(size, np.float32)


def check_shapes(expected: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError unless weights have these names and shapes."""
    odd = sorted(name for name in {*expected, *given} if expected.get(name) != given.get(name))
    if odd:
        raise ValueError(
            f"weights are of another architecture: {odd[0]} is {shape_text(given.get(odd[0]))}, "
            f"expected {shape_text(expected.get(odd[0]))} ({len(odd)} tensors differ)"
        )


def shape_text(shape: tuple[int, ...] | None) -> str:
    """Return a shape as text for errors: "[8, 8, 3, 3]", or "absent"."""
    return "absent" if shape is None else f"[{', '.join(map(str, shape))}]"

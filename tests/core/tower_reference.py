"""The network once more: in float64, by numpy, as its formulas say. Slow, and without torch."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from keisei.config.schema import ModelConfig
from keisei.core.native_tower import weight_shapes
from keisei.core.policy_labels import ACTION_LABELS
from keisei.shogi.positions import Positions

Array = npt.NDArray[np.float64]
Weights = Mapping[str, npt.NDArray[np.floating]]

_EPSILON = 1e-5


def random_weights(config: ModelConfig, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return weights that all matter, the same on every machine: multiples of 1/512."""
    bits = np.random.Philox(seed)
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for name, shape in weight_shapes(config).items():
        steps = (bits.random_raw(int(np.prod(shape))) % 1025).astype(np.float64).reshape(shape) / 512 - 1
        fan_in = float(np.prod(shape[1:])) if len(shape) > 1 else 4.0
        steps /= 2 ** np.round(np.log2(fan_in) / 2 - 0.5)
        centre = 1 if "norm" in name and name.endswith("weight") else 0
        weights[name] = (centre + steps).astype(np.float32)
    return weights


def evaluate(config: ModelConfig, weights: Weights, positions: Positions) -> tuple[Array, Array]:
    """Return the logits of the legal moves [M] and the values [N]."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    x = _convolved(positions.planes.astype(np.float64), w["stem.weight"]) + w["stem.bias"][:, None, None]
    for i in range(config.blocks):
        own = {name.removeprefix(f"blocks.{i}."): array for name, array in w.items()}
        y = x
        for half in ("1", "2"):
            y = _relu(_grouped(y, config.norm_groups, own[f"norm{half}.weight"], own[f"norm{half}.bias"]))
            y = _convolved(y, own[f"conv{half}.weight"])
        if config.se_ratio > 0:
            means = y.mean((2, 3)) @ own["excitation.squeeze.weight"].T + own["excitation.squeeze.bias"]
            scale = _relu(means) @ own["excitation.excite.weight"].T + own["excitation.excite.bias"]
            y = y * (2 / (1 + np.exp(-scale)))[:, :, None, None]
        x = x + y
    x = _relu(_grouped(x, config.norm_groups, w["norm.weight"], w["norm.bias"]))
    rows = np.repeat(np.arange(len(positions)), np.diff(positions.offsets))
    return _policy(config, w, x)[rows, _logits_of(config, positions)], _value(w, x, positions.planes)


def _convolved(x: Array, weight: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    convolved = np.zeros((len(x), len(weight), 9, 9))
    for r in range(3):
        for c in range(3):
            convolved += np.einsum(
                "nirc,oi->norc", padded[:, :, r : r + 9, c : c + 9], weight[:, :, r, c], optimize=True
            )
    return convolved


def _grouped(x: Array, groups: int, gamma: Array, beta: Array) -> Array:
    parts = x.reshape(len(x), groups, -1)
    normal = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + _EPSILON)
    normalized: Array = normal.reshape(x.shape)
    return normalized * gamma[:, None, None] + beta[:, None, None]


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _policy(config: ModelConfig, w: Mapping[str, Array], x: Array) -> Array:
    def narrowed(name: str) -> Array:
        planes = np.einsum("nirc,oi->norc", x, w[f"{name}.weight"][:, :, 0, 0])
        flat: Array = (planes + w[f"{name}.bias"][:, None, None]).reshape(len(x), -1)
        return flat

    if config.policy_head == "labels":
        return narrowed("policy.conv")
    return _relu(narrowed("policy.narrow")) @ w["policy.conv.weight"].T + w["policy.conv.bias"]


def _logits_of(config: ModelConfig, positions: Positions) -> npt.NDArray[np.int64]:
    labels = config.policy_head == "labels"
    return (ACTION_LABELS[positions.actions] if labels else positions.actions).astype(np.int64)


def _value(w: Mapping[str, Array], x: Array, planes: npt.NDArray[np.float32]) -> Array:
    pooled = np.concatenate([x.mean((2, 3)), x.max((2, 3))], 1)
    hidden = pooled @ w["value.hidden.weight"].T + w["value.hidden.bias"]
    normal = (hidden - hidden.mean(1, keepdims=True)) / np.sqrt(hidden.var(1, keepdims=True) + _EPSILON)
    active = _relu(normal * w["value.norm.weight"] + w["value.norm.bias"])
    out = active @ w["value.out.weight"].T + w["value.out.bias"]
    if "value.pieces.weight" in w:
        counts = planes[:, :42].astype(np.float64).sum((2, 3))  # of the pieces on the board
        counts[:, 28:] *= np.array([18, 4, 4, 4, 4, 2, 2] * 2) / 81  # of those in hand
        out = out + counts @ w["value.pieces.weight"].T
    values: Array = np.tanh(out)[:, 0]
    return values

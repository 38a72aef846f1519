"""A network of one's own, named by an import path such as `mypackage:Net`: imported, built and checked.

docs/training.md has the contract. Importing runs code, so the path must come from the user: from a config or
setting they gave (whoever builds the network), or from the environment variable KEISEI_OWN_NETWORK. A
checkpoint names a path too, but that alone imports nothing: `require_named`.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from keisei.config.config_errors import ConfigError
from keisei.config.schema import OWN_NETWORK_VARIABLE
from keisei.core.policy_labels import ACTION_LABELS, LABELS
from keisei.shogi import encoding
from keisei.shogi.encoding import ACTIONS
from keisei.shogi.vector import Batch, VectorGames

_POSITIONS = 5
_TOLERANCE = 1e-3  # of the largest result; rounding may depend on the size of a batch
_named: set[str] = set()  # the import paths that the user has named in this process


def require_named(name: str) -> None:
    """ConfigError unless the user has named this import path: for a path that a checkpoint names."""
    if name not in _named and name not in os.environ.get(OWN_NETWORK_VARIABLE, "").split(","):
        raise ConfigError(
            f"its network is {name}, which would be imported: if you trust that module, set "
            f"{OWN_NETWORK_VARIABLE}={name} in the environment"
        )


def build_own_network(name: str, options: Mapping[str, Any]) -> nn.Module:
    """Import a class as the user named it, and return a checked network; ConfigError says what is wrong.

    The network gets an attribute logit_of_action, int64 [13527]: the index of each action's logit.
    """
    _named.add(name)
    kind = _imported(name)
    try:
        network = kind(**options)
    except (Exception, SystemExit) as error:  # anything may go wrong in somebody's code
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise _breach(name, f"{name.partition(':')[2]}({given}) raised {_text(error)}") from error
    if not isinstance(network, nn.Module):
        raise _breach(name, f"it makes a {type(network).__name__}, expected a torch.nn.Module")
    breaches = [*_wrong_parameters(network)] or [*_wrong_results(network, name)]
    if breaches:
        raise ConfigError(*(f"model.name: {name}: {breach}" for breach in breaches))
    width = _results(network, _planes()[:1])[0].shape[1]
    table = ACTION_LABELS.astype(np.int64) if width == LABELS else np.arange(ACTIONS)
    network.logit_of_action = table  # type: ignore[assignment]  # an array, neither a tensor nor a module
    return network


def _imported(name: str) -> Any:
    """Return what an import path names; modules are found from the current directory, as by python -m."""
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _breach(name, f"importing {module} raised {_text(error)}") from error
        raise _breach(name, f"no module {error.name} in {here} or among the installed packages") from error
    except (Exception, SystemExit) as error:  # such as a script that reads the command line
        raise _breach(name, f"importing {module} raised {_text(error)}") from error
    try:
        return getattr(found, attribute)
    except AttributeError as error:
        where = getattr(found, "__file__", module)
        raise _breach(name, f"{where} has no {attribute}") from error


def _wrong_parameters(network: nn.Module) -> Iterator[str]:
    parameters = dict(network.named_parameters())
    if not parameters:
        yield "it has no parameters, so there is nothing to learn"
    for parameter, tensor in parameters.items():
        if tensor.dtype != torch.float32:
            yield f"parameter {parameter} is {_kind(tensor)}, expected float32"
        elif not tensor.requires_grad:
            yield f"parameter {parameter} has requires_grad=False; keep what is not learned in a buffer"


def _wrong_results(network: nn.Module, name: str) -> Iterator[str]:
    """Yield what is wrong with a network's results on positions of a game, together and one by one."""
    planes = _planes()
    try:
        together, again = _results(network, planes), _results(network, planes)
    except Exception as error:  # anything may go wrong in somebody's code
        raise _breach(name, f"forward raised {_text(error)}, given planes {_shape(planes)}") from error
    if not (
        isinstance(together, tuple) and len(together) == 2 and all(isinstance(t, Tensor) for t in together)
    ):
        yield f"forward returned {type(together).__name__}, expected a tuple of logits and values"
        return
    logits, values = together
    if tuple(logits.shape) not in ((_POSITIONS, LABELS), (_POSITIONS, ACTIONS)):
        expected = f"[{_POSITIONS}, {LABELS}] or [{_POSITIONS}, {ACTIONS}]"
        yield f"logits are {_shape(logits)} for {_POSITIONS} positions, expected {expected}"
    if tuple(values.shape) != (_POSITIONS,):
        yield f"values are {_shape(values)} for {_POSITIONS} positions, expected [{_POSITIONS}]"
    for what, tensor in (("logits", logits), ("values", values)):
        if tensor.dtype != torch.float32:
            yield f"{what} are {_kind(tensor)}, expected float32"
        elif not tensor.isfinite().all():
            yield f"{what} are NaN or infinite"
    if values.isfinite().all() and values.abs().max() > 1:
        yield f"values reach {float(values.abs().max()):.3g}, expected -1 to 1, as after tanh"
    if not (logits.isfinite().all() and values.isfinite().all()):
        return
    if any(_differ(first, second) for first, second in zip(together, again, strict=True)):
        yield "the same positions give other results the second time: expected no dropout, no state"
        return
    try:
        alone = [_results(network, planes[i : i + 1]) for i in range(_POSITIONS)]
    except Exception as error:  # as batch normalisation, which cannot compute a mean of one
        yield f"forward raised {_text(error)}, given planes {_shape(planes[:1])}"
        return
    if any(
        _differ(whole, torch.cat(parts))
        for whole, parts in zip(together, zip(*alone, strict=True), strict=True)
    ):
        yield (
            "a position's result depends on the rest of the batch: expected no batch normalisation "
            "(group or layer normalisation do)"
        )


def _results(network: nn.Module, planes: Tensor) -> Any:
    with torch.no_grad():
        return network(planes)


def _planes() -> Tensor:
    """Return the planes of positions from random games, [5, 46, 9, 9]."""
    batch = Batch.empty(_POSITIONS, planes=False)
    VectorGames(_POSITIONS, seed=1, random_plies=30).observe(batch)
    return torch.from_numpy(encoding.planes(batch.packed))


def _differ(one: Tensor, other: Tensor) -> bool:
    scale = max(1.0, float(one.abs().max()))
    return one.shape != other.shape or bool((one - other).abs().max() > _TOLERANCE * scale)


def _breach(name: str, what: str) -> ConfigError:
    return ConfigError(f"model.name: {name}: {what}")


def _text(error: BaseException) -> str:
    first_line = " ".join(str(error).split("\n", 1)[0].split())
    return f"{type(error).__name__}: {first_line}"


def _shape(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")

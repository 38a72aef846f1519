"""Players as a user writes them: "greedy", "alphabeta-3", "runs/first;visits=100", "usi:engine;depth=1"."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from keisei.core.device import keep_freed_memory
from keisei.evaluation.players.built_in import (
    AlphaBetaPlayer,
    GreedyPlayer,
    MaterialPlayer,
    NetworkPlayer,
    RandomPlayer,
)
from keisei.evaluation.players.player import Player, PlayerError
from keisei.evaluation.players.search_player import MANY_GAMES, SearchPlayer
from keisei.evaluation.players.usi_player import UsiPlayer, parse_spec
from keisei.runs.checkpoint_format import CheckpointError
from keisei.runs.find import find_checkpoint
from keisei.runs.load import load_network
from keisei.search.trees import NO_LIMIT

TEMPERATURE = 0.25  # also in evaluations during training: games vary, and the policy plays nearly its best

_BUILT_IN: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "greedy": GreedyPlayer,
    "material": MaterialPlayer,
}
_ALPHA_BETA = "alphabeta-"
# From the weakest to the strongest.
BUILT_IN_NAMES = (*_BUILT_IN, *(f"{_ALPHA_BETA}{depth}" for depth in range(1, 7)))


@dataclass(frozen=True, slots=True)
class Machine:
    """What players compute on: threads for native players, device for networks."""

    threads: int = 1
    device: str = "cpu"


ONE_THREAD = Machine()


def seed_of(seed: int, identity: str) -> int:
    """Return a player's seed in a match: different players draw different numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{identity}".encode()).digest()[:8], "little")


def network_identity(sha256: str, temperature: float) -> str:
    """Return the identity of a network that plays its policy: its weights and its temperature."""
    return f"{_weights(sha256)} temperature {temperature}"


def _weights(sha256: str) -> str:
    return f"network-{sha256[:16]}"


def make_player(text: str, seed: int, machine: Machine = ONE_THREAD) -> Player:
    """Return the player that a text names.

    random, greedy, material, alphabeta-1 to alphabeta-6; "usi:COMMAND;depth=1;Option=value" is an external
    engine; anything else is a checkpoint or a run, as for find_checkpoint, optionally followed by
    ;visits=N (search) or ;seconds=S (search) or ;temperature=T (the policy alone, T = 0.25 by default).
    A search also takes ;c_puct=, ;fpu=, ;candidates= and ;repetition_draws= (0 or 1), see SearchSettings.
    An unknown player or an incomplete checkpoint raises PlayerError.
    """
    if text in _BUILT_IN:
        return _BUILT_IN[text](seed_of(seed, text))
    if text.startswith(_ALPHA_BETA):
        if text not in BUILT_IN_NAMES:
            raise PlayerError(f"player {text!r}: expected alphabeta-1 to alphabeta-6")
        return AlphaBetaPlayer(int(text.removeprefix(_ALPHA_BETA)), seed_of(seed, text), machine.threads)
    if text.startswith("usi:"):
        try:
            return UsiPlayer(parse_spec(text))
        except ValueError as error:
            raise PlayerError(str(error)) from error
    where, *settings = text.split(";")
    try:
        path = find_checkpoint(where)
    except CheckpointError as error:
        known = f"not one of {', '.join(_BUILT_IN)}, alphabeta-N or usi:COMMAND;depth=N"
        raise PlayerError(f"player {text!r}: {known}; {error}") from error
    try:
        return checkpoint_player(path, seed, settings, machine)
    except CheckpointError as error:
        raise PlayerError(f"player {text!r}: {error}") from error


def checkpoint_player(
    path: Path, seed: int, settings: list[str] | None = None, machine: Machine = ONE_THREAD
) -> Player:
    """Return a checkpoint's network as a player, with settings such as "visits=100"."""
    given = _settings(settings or [])
    visits, seconds, temperature = given.visits, given.seconds, given.temperature
    keep_freed_memory()
    network = load_network(path, machine.device, threads=machine.threads)
    facts = {"checkpoint": str(path), "step": str(network.step), "weights sha256": network.sha256}
    if visits is None and seconds is None:
        identity = network_identity(network.sha256, temperature)
        name = network.name if temperature == TEMPERATURE else f"{network.name} temperature {temperature}"
        own_seed = seed_of(seed, identity)
        return NetworkPlayer(network.policy, name, own_seed, temperature, identity=identity, facts=facts)
    return SearchPlayer(
        network.policy.evaluate,
        " ".join(
            [
                network.name,
                f"{visits} visits" if visits is not None else f"{seconds:g} s",
                *(f"{name} {value:g}" for name, value in given.search.items()),
            ]
        ),
        _weights(network.sha256),
        visits=visits,
        seconds=seconds,
        settings=replace(MANY_GAMES, threads=machine.threads, **given.search),
        facts=facts,
    )


class _Settings(NamedTuple):
    """What follows a checkpoint; search: those of SearchSettings."""

    visits: int | None
    seconds: float | None
    temperature: float
    search: dict[str, Any]


_MOST = {"c_puct": 1e6, "fpu": 1e6, "candidates": 600, "repetition_draws": 1}
_WHOLE = ("visits", "candidates", "repetition_draws")


def _settings(settings: list[str]) -> _Settings:
    given: dict[str, float] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in ("visits", "seconds", "temperature", *_MOST) or name in given:
            raise PlayerError(
                f"{setting!r}: expected visits=N, seconds=S, temperature=T, c_puct=, fpu=, candidates= or "
                "repetition_draws=, each once"
            )
        try:
            given[name] = int(value) if name in _WHOLE else float(value)
        except ValueError:
            raise PlayerError(f"{setting!r}: expected a number after =") from None
    search = {name: given.pop(name) for name in _MOST if name in given}
    for name, number in search.items():
        if not 0 <= number <= _MOST[name]:
            raise PlayerError(f"{name} is {number:g}, expected 0 to {_MOST[name]:g}")
    if "repetition_draws" in search:
        search["repetition_draws"] = bool(search["repetition_draws"])
    if search and not {"visits", "seconds"} & set(given):
        raise PlayerError(
            f"{' and '.join(search)}: expected visits=N or seconds=S too, since it is for a search"
        )
    if "candidates" in search and "visits" not in given:
        raise PlayerError("candidates needs visits=N: halving plans all visits")
    if len(given) > 1:
        why = "a search has no temperature" if "temperature" in given else "a search has one limit"
        raise PlayerError(f"{' and '.join(given)} are given, expected only one: {why}")
    visits, seconds = given.get("visits"), given.get("seconds")
    temperature = given.get("temperature", TEMPERATURE)
    if visits is not None and not 1 <= visits < NO_LIMIT:
        raise PlayerError(f"visits is {visits}, expected 1 to {NO_LIMIT - 1}")
    if seconds is not None and not 0 < seconds < 86_400:
        raise PlayerError(f"seconds is {seconds:g}, expected more than 0 and less than a day")
    if not 0 <= temperature < math.inf:
        raise PlayerError(f"temperature is {temperature:g}, expected 0 or more")
    # abs turns -0 into 0.
    return _Settings(None if visits is None else int(visits), seconds, abs(temperature), search)

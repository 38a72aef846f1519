"""Players by what a user writes: "greedy", "alphabeta-3", "runs/first;visits=100", "usi:engine;depth=1"."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keisei.evaluation.checkpoints import find_checkpoint
from keisei.evaluation.player import Player, PlayerError
from keisei.evaluation.players import (
    AlphaBetaPlayer,
    GreedyPlayer,
    MaterialPlayer,
    NetworkPlayer,
    RandomPlayer,
)
from keisei.evaluation.usi_player import UsiPlayer, parse_spec
from keisei.training.device import choose_device, keep_freed_memory

TEMPERATURE = 0.25  # as in the evaluations during training: games differ, and the policy is nearly its best

_BUILT_IN: dict[str, Callable[[int], Player]] = {
    "random": RandomPlayer,
    "greedy": GreedyPlayer,
    "material": MaterialPlayer,
}
_ALPHA_BETA = "alphabeta-"
BUILT_IN_NAMES = (*_BUILT_IN, *(f"{_ALPHA_BETA}{depth}" for depth in range(1, 5)))


@dataclass(frozen=True, slots=True)
class Machine:
    """On what players compute: threads of native players, device of networks."""

    threads: int = 1
    device: str = "cpu"


ONE_THREAD = Machine()


def seed_of(seed: int, identity: str) -> int:
    """Return a player's own seed in a match: players that differ draw different numbers."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{identity}".encode()).digest()[:8], "little")


def network_identity(sha256: str, temperature: float) -> str:
    """Return what identifies a network that plays its policy: its weights, and how freely it chooses."""
    return f"network-{sha256[:16]} temperature {temperature:g}"


def make_player(text: str, seed: int, machine: Machine = ONE_THREAD) -> Player:
    """Return the player that a text means.

    random, greedy, material, alphabeta-1 to alphabeta-6; "usi:COMMAND;depth=1;Option=value" is an engine of
    another program; everything else is a checkpoint or a run, as for find_checkpoint, perhaps followed by
    ;visits=N (search) or ;seconds=S (search) or ;temperature=T (the policy alone, T = 0.25 if not given).
    """
    if text in _BUILT_IN:
        return _BUILT_IN[text](seed_of(seed, text))
    depth = text.removeprefix(_ALPHA_BETA)
    if depth != text:
        if depth not in ("1", "2", "3", "4", "5", "6"):
            raise PlayerError(f"player {text!r}: expected alphabeta-1 to alphabeta-6")
        return AlphaBetaPlayer(int(depth), seed_of(seed, text), machine.threads)
    if text.startswith("usi:"):
        try:
            return UsiPlayer(parse_spec(text))
        except ValueError as error:
            raise PlayerError(str(error)) from error
    where, *settings = text.split(";")
    return checkpoint_player(find_checkpoint(where), seed, settings, machine)


def checkpoint_player(
    path: Path, seed: int, settings: list[str] | None = None, machine: Machine = ONE_THREAD
) -> Player:
    """Return the player that a checkpoint's network is, with settings such as "visits=100"."""
    visits, seconds, temperature = _settings(settings or [])
    # Here, because it loads torch, which other players do without.
    import torch

    from keisei.evaluation.network import load_network

    torch.set_num_threads(machine.threads)
    keep_freed_memory()
    network = load_network(path, choose_device(machine.device))
    facts = {"checkpoint": str(path), "step": str(network.step), "weights sha256": network.sha256}
    if visits is None and seconds is None:
        identity = network_identity(network.sha256, temperature)
        name = network.name if temperature == TEMPERATURE else f"{network.name} temperature {temperature:g}"
        own_seed = seed_of(seed, identity)
        return NetworkPlayer(network.agent, name, own_seed, temperature, identity=identity, facts=facts)
    from keisei.evaluation.search_player import SearchPlayer

    effort = f"{visits} visits" if visits is not None else f"{seconds:g} s"
    return SearchPlayer(
        network.agent.evaluate,
        f"{network.name} {effort}",
        f"network-{network.sha256[:16]} {effort}",
        visits=visits,
        seconds=seconds,
        facts=facts,
    )


def _settings(settings: list[str]) -> tuple[int | None, float | None, float]:
    """Return visits, seconds and temperature."""
    given: dict[str, float] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in ("visits", "seconds", "temperature") or name in given:
            raise PlayerError(f"{setting!r}: expected visits=N, seconds=S or temperature=T, each once")
        try:
            given[name] = int(value) if name == "visits" else float(value)
        except ValueError:
            raise PlayerError(f"{setting!r}: expected a number after =") from None
    if len(given) > 1:
        raise PlayerError(f"{' and '.join(given)} are given, expected one: a search has no temperature")
    visits, seconds = given.get("visits"), given.get("seconds")
    if visits is not None and visits < 1:
        raise PlayerError(f"visits is {visits}, expected at least 1")
    if seconds is not None and not 0 < seconds < 86_400:
        raise PlayerError(f"seconds is {seconds:g}, expected more than 0 and less than a day")
    return None if visits is None else int(visits), seconds, given.get("temperature", TEMPERATURE)

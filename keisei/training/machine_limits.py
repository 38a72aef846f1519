"""What a config asks of the machine, before anything is made: memory, disk, and processes for each core.

Takes a resolved config; a ConfigError has one line for each thing that the machine does not have. Memory is
an estimate from the sizes of what a run keeps, with factors measured on runs of several sizes.
"""

from collections.abc import Iterator

from keisei.config.config_errors import ConfigError
from keisei.config.schema import AppConfig
from keisei.core.device import CPU, available_memory, cores
from keisei.core.evaluator import NATIVE_CHANNELS
from keisei.core.experience_buffer import Minibatch
from keisei.core.models import number_of_weights
from keisei.core.self_play import segment_shape
from keisei.runs.checkpoint import MARGIN_BYTES
from keisei.shogi.encoding import PACKED_BYTES, PLANES
from keisei.training.parallel.worker_setup import number_of_workers

# Beyond this, processes only wait for each other: each takes as long to start as a thousand moves to play.
PROCESSES_PER_CORE = 16

# Floats for each weight: the network, its gradient, Adam's two, and the copies in a checkpoint; natively also
# the filters as Winograd's method needs them, of both passes. Measured with 12 and 19 million weights.
_LEARNER_FLOATS = {"native": 20, "torch": 10}
_WORKER_FLOATS = {"native": 12, "torch": 4}
_DEVICE_LEARNER_FLOATS = 4  # where a GPU has the rest

_WORKER_BYTES = 48 << 20  # of a worker without its games and network
_GAME_BYTES = 40 << 10  # a game, its history and its network input
_NODE_BYTES = 3 << 10  # of a search's tree, with its edges
_ACTIVATIONS = 8  # boards that a residual block keeps of a position until its gradients are known
_CHECKPOINT_GAMES_BYTES = 16 << 10  # of a game in a checkpoint, with its share of the recent games
_BESIDE_BYTES = 1 << 20  # metrics and log
_COPIES = 3  # of the moves that a checkpoint or an update takes: old, new, and being written


def check_machine(config: AppConfig, device: str) -> None:
    """ConfigError if this machine cannot do what a resolved config asks for; device: the learner's."""
    problems = [*_too_many_processes(config)]
    if not problems:
        needs, available = memory_needs(config, device), available_memory()
        if sum(needs.values()) > available:
            largest = max(needs, key=lambda what: needs[what])
            problems = [
                f"this run needs about {_gigabytes(sum(needs.values()))} of memory, "
                f"{_gigabytes(available)} are available: {_gigabytes(needs[largest])} for {largest}"
            ]
    if problems:
        raise ConfigError(*problems)


def memory_needs(config: AppConfig, device: str) -> dict[str, int]:
    """Return roughly how many bytes of the machine's memory a run takes, by what takes them.

    The names say which settings to change.
    """
    training, model = config.training, config.model
    by = "native" if _is_native(config) else "torch"
    weights, games = _weights(config), _games(config)
    local = training.parallel.enabled and not training.parallel.cluster
    workers = number_of_workers(config) if local else 0
    searching = training.algorithm == "search"
    of_game = _GAME_BYTES + (_NODE_BYTES * (training.search.simulations + 1) if searching else 0)
    if by == "torch":
        of_game += _board_bytes(model.channels) * _ACTIVATIONS
    of_move = PLANES * 81 * 4 + _ACTIVATIONS * (model.blocks + 1) * _board_bytes(model.channels)
    candidates = training.search.candidates if searching else 0
    kept = training.search.window if searching else 0
    steps = -(-training.steps_per_epoch // games)
    longest = segment_shape(config, steps, games).nbytes
    slots = training.parallel.queue_maxsize if training.parallel.use_shared_memory else 1
    learner = _LEARNER_FLOATS[by] if device == CPU else _DEVICE_LEARNER_FLOATS
    return {
        f"{weights:,} weights (model.blocks, model.channels)": 4 * weights * learner
        + 4 * weights * _WORKER_FLOATS[by] * workers,
        f"minibatches of {training.minibatch_size:,} (training.minibatch_size)": of_move
        * (training.minibatch_size if device == CPU else 0),
        f"{games:,} games ({_games_setting(workers)})": of_game * games,
        f"{workers} workers (training.parallel.num_workers)": _WORKER_BYTES * workers,
        "segments in flight (training.parallel.queue_maxsize)": slots * longest if workers else 0,
        f"epochs of {steps * games:,} moves (training.steps_per_epoch)": _COPIES * longest,
        f"a window of {kept:,} moves (training.search.window)": _COPIES
        * Minibatch.nbytes(kept, PACKED_BYTES, candidates),
    }


def checkpoint_bytes(config: AppConfig) -> int:
    """Return how much of the disk a checkpoint takes at most, with what is written beside it."""
    search = config.training.search
    kept = search.window if config.training.algorithm == "search" else 0
    state = 3 * 4 * _weights(config) + Minibatch.nbytes(kept, PACKED_BYTES, search.candidates)
    return state + _CHECKPOINT_GAMES_BYTES * _games(config) + MARGIN_BYTES + _BESIDE_BYTES


def _weights(config: AppConfig) -> int:
    return number_of_weights(config.model)


def _games(config: AppConfig) -> int:
    """Return the number of games played at the same time."""
    training = config.training
    if training.parallel.enabled:
        return training.parallel.episodes_per_worker * number_of_workers(config)
    return training.games


def _too_many_processes(config: AppConfig) -> Iterator[str]:
    training, most = config.training, PROCESSES_PER_CORE * cores()
    asked = {"training.learners": training.learners}
    if training.parallel.enabled and not training.parallel.cluster:
        asked["training.parallel.num_workers"] = training.parallel.num_workers
    for name, given in asked.items():
        if given != "auto" and given > most:
            yield (
                f"{name}: given {given}, expected at most {most} on {cores()} cores "
                f"({PROCESSES_PER_CORE} each), or auto"
            )


def _is_native(config: AppConfig) -> bool:
    numerics = config.run.numerics
    if config.model.is_own:
        return False
    return numerics.startswith("native") or (numerics == "auto" and config.model.channels <= NATIVE_CHANNELS)


def _games_setting(workers: int) -> str:
    return "training.parallel.episodes_per_worker, num_workers" if workers else "training.games"


def _board_bytes(channels: int) -> int:
    return 4 * 81 * channels


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"

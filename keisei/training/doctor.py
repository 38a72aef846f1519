"""What `keisei doctor` reports: whether this machine can train, with what, and what is missing."""

import importlib.util
import os
import platform
import shutil
import statistics
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from keisei.config.schema import AppConfig
from keisei.core.agents import agent_of
from keisei.core.device import choose_device, cores, keep_freed_memory
from keisei.core.exchange import Alone, Exchange
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learning_agent import LearningAgent
from keisei.core.self_play import SelfPlay
from keisei.training.machine_limits import check_machine
from keisei.training.parallel.parallel_manager import ParallelManager
from keisei.training.parallel.worker_setup import number_of_workers, resolved, why_workers_cannot_learn

_NEEDED = ("torch", "numpy", "pydantic", "safetensors", "rich", "tensorboard", "matplotlib")
_OPTIONAL = {
    "gymnasium": "keisei.envs",
    "pettingzoo": "keisei.envs.shogi_v0",
    "wandb": "run.loggers",
}
_SHARED_MEMORY = Path("/dev/shm")  # nosec B108 # only its free space is read
_ROUNDS = 3


def diagnose(config: AppConfig) -> Iterator[tuple[str, str]]:
    """Yield (subject, finding) pairs; the measurements at the end take some seconds each."""
    # First: a report of a device that is not here, or of more than the machine has, ends at once.
    device = choose_device(config.run.device)
    check_machine(resolved(config, device), device.type)
    yield "keisei", f"{version('keisei')} on Python {platform.python_version()}, {platform.platform()}"
    yield "packages", ", ".join(f"{name} {version(name)}" for name in _NEEDED)
    for name, use in _OPTIONAL.items():
        yield f"  {name}", f"{_version_or_missing(name)} ({use})"
    yield "cores", f"{cores()} of {os.cpu_count()}, {cpu_name()}"
    yield "device", _device_text(device)
    yield "free disk", f"{_gigabytes(shutil.disk_usage('.').free)} here"
    if _SHARED_MEMORY.is_dir():
        yield "shared memory", f"{_gigabytes(shutil.disk_usage(_SHARED_MEMORY).free)} free"
    keep_freed_memory()
    torch.set_num_threads(config.run.threads or cores())
    agent = agent_of(config, device)
    yield "network", f"{config.model.described()}, {agent.parameters:,} parameters"
    yield "formats", str(agent.numerics)
    yield "collecting", _collecting(config, agent)
    yield "learning", _learning(config, agent)


def _in_turns(config: AppConfig, **changes: Any) -> AppConfig:
    """Return a config in which workers and learner take turns, with these changes of the training."""
    parallel = config.training.parallel.model_copy(update={"max_policy_lag": 0})
    training = config.training.model_copy(update={"parallel": parallel, **changes})
    return config.model_copy(update={"training": training})


def _learning(config: AppConfig, agent: LearningAgent) -> str:
    """Measure an update by this process alone and by several learners in turns, for each number of them."""
    chosen = resolved(config, agent.device).training.learners
    uses = f"training.learners: {config.training.learners} uses {chosen}"
    alone_because = why_workers_cannot_learn(_in_turns(config), agent.device.type)
    if alone_because:
        return f"the learner learns alone, since {alone_because}; {uses}"
    training = config.training
    self_play = SelfPlay.begin(config.env, games=training.games, seed=config.run.seed)
    buffer = ExperienceBuffer(gamma=training.gamma, gae_lambda=training.gae_lambda)
    buffer.add_batch(self_play.rollout(agent, -(-training.steps_per_epoch // training.games)).segment)

    uses_of_a_move = training.search.reuse if training.algorithm == "search" else training.ppo_epochs

    def speed(exchange: Exchange) -> float:
        start = time.perf_counter()
        agent.learn(buffer, exchange=exchange)
        return len(buffer) * uses_of_a_move / (time.perf_counter() - start)

    found = []
    for learners in sorted({2**n for n in range(1, cores().bit_length())} | {cores()} - {1}):
        changed = _in_turns(config, learners=learners)
        if number_of_workers(changed) < learners - 1:
            break
        with ParallelManager(changed, agent) as manager:
            assert manager.exchange is not None
            # The first round warms up.
            rounds = [(speed(manager.exchange), speed(Alone())) for _ in range(_ROUNDS + 1)][1:]
        several, alone = (statistics.median(figures) for figures in zip(*rounds, strict=True))
        found.append(
            f"{learners} learners {several:,.0f} moves/s, alone {alone:,.0f} with "
            f"{torch.get_num_threads()} threads, ×{several / alone:.2f}"
        )
    return "; ".join([*found, uses])


def _collecting(config: AppConfig, agent: LearningAgent) -> str:
    """Measure this process and workers in turns, and say which of them a run would use."""
    config = _in_turns(config)
    training = config.training
    workers = number_of_workers(config)
    alone = SelfPlay.begin(config.env, games=training.games, seed=config.run.seed)
    steps = -(-training.steps_per_epoch // training.games)
    speeds: dict[str, list[float]] = {"workers": [], "alone": []}
    with ParallelManager(config, agent) as manager:
        for _ in range(_ROUNDS + 1):
            start = time.perf_counter()
            played = sum(len(one.segment) for one in manager.collect_experiences(training.steps_per_epoch))
            middle = time.perf_counter()
            alone.rollout(agent, steps)
            speeds["workers"].append(played / (middle - start))
            speeds["alone"].append(steps * training.games / (time.perf_counter() - middle))
    by_workers, by_one = (statistics.median(figures[1:]) for figures in speeds.values())  # the first warms up
    taken = "workers" if resolved(config, agent.device).training.parallel.enabled else "this process"
    return (
        f"{workers} workers {by_workers:,.0f} moves/s, this process {by_one:,.0f} with "
        f"{torch.get_num_threads()} threads, ×{by_workers / by_one:.2f}; "
        f"training.parallel.enabled: {str(training.parallel.enabled).lower()} uses {taken}"
    )


def _version_or_missing(name: str) -> str:
    if importlib.util.find_spec(name) is None:
        return "missing"
    try:
        return version(name)
    except PackageNotFoundError:
        return "present"


def _device_text(device: torch.device) -> str:
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{device}: {properties.name}, {_gigabytes(properties.total_memory)}"
    return f"{device}, {torch.backends.cpu.get_cpu_capability()}" if device.type == "cpu" else str(device)


def cpu_name() -> str:
    """Return the name of this machine's processor."""
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"

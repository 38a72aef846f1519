"""What a machine does not have is told in a line before anything is made."""

import re
from pathlib import Path

import pytest
from training_runs import keisei

from keisei.config.config_errors import ConfigError
from keisei.config.files import load_config
from keisei.config.schema import AppConfig
from keisei.core.device import CPU, available_memory, choose_device, cores
from keisei.training.machine_limits import PROCESSES_PER_CORE, check_machine, memory_needs
from keisei.training.parallel.worker_setup import resolved

SERIAL = "training.parallel.enabled=false"


def config_of(*overrides: str) -> AppConfig:
    return resolved(load_config(None, overrides), choose_device(CPU))


@pytest.mark.parametrize(
    ("overrides", "megabytes"),
    [
        # Peaks of the resident memory of one update, less what the imported modules take.
        ([SERIAL, "training.steps_per_epoch=64"], 83),
        ([SERIAL, "training.games=2000", "training.steps_per_epoch=2000"], 268),
        ([SERIAL, "training.games=2000", "training.steps_per_epoch=2000", "training.algorithm=ppo"], 170),
        (
            [
                SERIAL,
                "model.channels=256",
                "model.blocks=10",
                "training.games=16",
                "training.steps_per_epoch=32",
                "training.minibatch_size=32",
            ],
            1066,
        ),
        (
            [
                SERIAL,
                "model.channels=512",
                "model.blocks=4",
                "training.games=8",
                "training.steps_per_epoch=16",
                "training.minibatch_size=16",
                "run.numerics=float32",
            ],
            697,
        ),
        ([SERIAL, "training.games=100000", "training.total_timesteps=100"], 9250),
    ],
)
def test_the_estimate_is_near_what_was_measured(overrides: list[str], megabytes: float) -> None:
    estimate = sum(memory_needs(config_of(*overrides), CPU).values()) / 1e6
    assert 0.7 * megabytes < estimate < 1.5 * megabytes


def test_the_presets_fit_into_a_gigabyte() -> None:
    for preset in ("default", "ppo", "tiny"):
        config = resolved(load_config(preset, ["training.parallel.num_workers=2"]), choose_device(CPU))
        assert sum(memory_needs(config, CPU).values()) < 1e9


def test_a_gpu_has_the_network_in_its_own_memory() -> None:
    large = config_of(SERIAL, "model.blocks=20", "model.channels=256")
    assert sum(memory_needs(large, "cuda").values()) < 0.3 * sum(memory_needs(large, CPU).values())


def test_as_many_processes_as_the_cores_have_work_for_are_allowed() -> None:
    most = PROCESSES_PER_CORE * cores()
    on = "training.parallel.enabled=true"
    check_machine(config_of(on, f"training.parallel.num_workers={most}"), CPU)
    check_machine(config_of(SERIAL, f"training.parallel.num_workers={most + 1}"), CPU)  # there are none
    with pytest.raises(ConfigError) as caught:
        check_machine(
            config_of(on, f"training.parallel.num_workers={most + 1}", f"training.learners={most + 2}"), CPU
        )
    assert len(caught.value.problems) == 2


def test_what_is_available_is_no_more_than_the_machine_has() -> None:
    (total,) = re.findall(r"MemTotal: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    assert 0 < available_memory() <= 1024 * int(total)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["training.parallel.num_workers=5000"], r"training\.parallel\.num_workers: given 5000, .* cores"),
        (
            ["model.blocks=100", "model.channels=2048"],
            r"needs about [\d,.]+ GB of memory, [\d,.]+ GB are available: .* for 7,551,738,182 weights",
        ),
        (
            [SERIAL, "training.games=100000", "training.search.simulations=100000"],
            r"needs about [\d,.]+ GB of memory, .* for 100,000 games \(training\.games\)",
        ),
        (["training.total_timesteps=1e20"], r"training\.total_timesteps: given 1e20, .* <= 10+"),
    ],
)
def test_too_much_is_refused_in_a_line_before_anything_is_made(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = keisei("train", "training.parallel.enabled=true", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.search(said, line)
    assert not list(tmp_path.iterdir())

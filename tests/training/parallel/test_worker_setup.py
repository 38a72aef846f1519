"""How many learners a run has: as many as pay, and one where workers cannot help."""

import pytest
import torch

from keisei.config.files import load_config
from keisei.core import device
from keisei.training.parallel import worker_setup
from keisei.training.parallel.worker_setup import number_of_learners, resolved, why_workers_cannot_learn

CPU, GPU = torch.device("cpu"), torch.device("cuda")
ON = "training.parallel.enabled=true"


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (device, worker_setup):
        monkeypatch.setattr(module, "cores", lambda: 16)


@pytest.mark.parametrize(
    ("settings", "where", "learners"),
    [
        ([ON], CPU, 8),  # as many workers, with 16 moves in each of 32 games
        ([ON, "training.steps_per_epoch=65536"], CPU, 8),  # as many shares of 32 moves
        ([ON, "training.steps_per_epoch=65536", "training.minibatch_size=512"], CPU, 16),  # as many cores
        ([ON, "training.steps_per_epoch=65536", "training.minibatch_size=2048"], CPU, 16),
        ([ON, "training.steps_per_epoch=65536", "training.minibatch_size=40"], CPU, 1),
        ([ON, "training.parallel.num_workers=40", "training.minibatch_size=4096"], CPU, 16),
        ([ON, "training.steps_per_epoch=65536", "training.parallel.max_policy_lag=1"], CPU, 1),
        ([ON, "training.steps_per_epoch=65536", "run.numerics=auto+compile"], CPU, 1),
        (["training.parallel.enabled=false"], CPU, 1),
        (["training.parallel.enabled=false", "training.learners=3"], CPU, 3),
        ([ON, "training.learners=1", "training.steps_per_epoch=65536"], CPU, 1),
        ([ON, "training.learners=5"], CPU, 5),
        ([], GPU, 1),
        ([ON], GPU, 1),
        (["training.learners=1"], GPU, 1),
    ],
)
def test_learners_are_as_many_as_pay(settings: list[str], where: torch.device, learners: int) -> None:
    assert resolved(load_config("default", settings), where).training.learners == learners


def test_ranks_divide_what_one_machine_would_do() -> None:
    config = load_config("default", [ON, "training.steps_per_epoch=65536"])
    assert [number_of_learners(config, "cpu", ranks) for ranks in (1, 2, 4, 8, 16)] == [8, 4, 2, 1, 1]
    assert [resolved(config, CPU, ranks).training.parallel.num_workers for ranks in (1, 16, 64)] == [16, 8, 2]
    met = load_config("default", ["training.ranks.address=127.0.0.1:9", "training.ranks.world_size=2"])
    assert resolved(met, CPU, 2).training.ranks == load_config().training.ranks, "no part of a run"


@pytest.mark.parametrize(
    ("settings", "where", "why"),
    [
        ([], "cpu", ""),
        ([], "cuda", "it computes on cuda"),
        (
            ["training.parallel.max_policy_lag=1"],
            "cpu",
            "workers play during an update (max_policy_lag 1)",
        ),
        (["run.numerics=float32+compile"], "cpu", "only it has the compiled network"),
    ],
)
def test_where_workers_cannot_help_the_number_of_learners_is_kept(
    settings: list[str], where: str, why: str
) -> None:
    """A run that was begun with several learners goes on with as many shares."""
    config = load_config("default", [ON, "training.learners=2", *settings])
    assert why_workers_cannot_learn(config, where) == why
    assert resolved(config, torch.device(where)).training.learners == 2

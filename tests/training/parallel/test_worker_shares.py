"""Workers that learn: the same bits whoever computes a share, whatever happens to the workers."""

import os
import re
import signal
import time
from functools import cache

import pytest
from faulty_workers import Fault
from learning import NATIVE
from learning import one_thread as one_thread
from parallel_play import (
    InProcess,
    Workers,
    begun,
    contents_of,
    kill,
    learn,
    small_config,
)

from keisei.core.learning_agent import LearningAgent
from keisei.core.numerics import Numerics
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import worker_shares
from keisei.training.parallel.supervised_worker import Supervision

pytestmark = pytest.mark.parallel

PHASES = ["load", "decode", "forward", "loss", "backward", "exchange"]
EPOCHS = 3


def weights(agent: LearningAgent) -> dict[str, bytes]:
    tensors = agent.tensors()
    return {
        f"{group}.{name}": tensor.numpy().tobytes()
        for group, named in tensors.items()
        for name, tensor in named.items()
    }


@cache
def alone(workers: int, learners: int, epochs: int = EPOCHS) -> dict[str, bytes]:
    """The weights after some epochs of one process that computes all shares itself."""
    config = small_config(workers, learners=learners)
    play = InProcess(config, begun(config))
    for _ in range(epochs):
        play.epoch()
    return weights(play.agent)


def trained(manager: Workers, epochs: int = EPOCHS) -> dict[str, bytes]:
    for _ in range(epochs):
        manager.epoch()
    return weights(manager.agent)


@pytest.mark.parametrize(("workers", "learners"), [(2, 2), (2, 3), (3, 3), (3, 2), (1, 2), (1, 4)])
def test_shares_of_workers_are_those_of_one_process(workers: int, learners: int) -> None:
    with Workers(small_config(workers, learners=learners)) as manager:
        assert trained(manager) == alone(workers, learners)
        seconds = [worker["learning"] for worker in manager.get_statistics()["worker_seconds"]]
        assert sum(spent > 0 for spent in seconds) == min(learners - 1, workers)
        assert manager.metrics()["parallel/seconds_learning"] == pytest.approx(sum(seconds))
        assert manager.metrics()["parallel/shares_taken_over"] == 0
    assert alone(2, 2) != alone(2, 1)


FAULTS_OF_SEARCHERS = [
    (),
    (Fault("SIGKILL"),),
    (Fault("SIGKILL", 0, phase="loss"),),
    (Fault("raise so", 7, 1), Fault("exit", 1, phase="decode")),
]


@pytest.mark.parametrize("faults", FAULTS_OF_SEARCHERS)
@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_workers_that_search_play_and_learn_as_one_process_does_whatever_happens_to_them(
    faults: tuple[Fault, ...], use_shared_memory: bool
) -> None:
    config = small_config(2, learners=2, searches=True, use_shared_memory=use_shared_memory)
    play = InProcess(config, begun(config))
    expected = [play.epoch() for _ in range(EPOCHS)]
    with Workers(config, *faults) as manager:
        assert [manager.epoch() for _ in range(EPOCHS)] == expected
        assert weights(manager.agent) == weights(play.agent)
        assert bool(manager.notices) == bool(faults)
    assert weights(manager.agent)["window.tried"].count(b"\xff\xff") > 0


def test_workers_do_not_learn_if_there_is_one_learner() -> None:
    with Workers(small_config(2)) as manager:
        assert manager.exchange is None
        assert trained(manager) == alone(2, 1)
        assert manager.metrics()["parallel/seconds_learning"] == 0


def test_torch_computes_shares_too() -> None:
    config = small_config(2, learners=2)
    numerics = Numerics()
    with Workers(config, numerics=numerics) as manager:
        segments = [one.segment for one in manager.collect_experiences(config.training.steps_per_epoch)]
        learn(manager.agent, segments, manager.exchange)
        expected: LearningAgent = PPOAgent(config, numerics=numerics)
        learn(expected, segments)
        assert weights(manager.agent) == weights(expected)
        assert manager.metrics()["parallel/seconds_learning"] > 0
        assert manager.metrics()["parallel/shares_taken_over"] == 0


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("what", ["SIGKILL", "raise so", "exit", "close"])
def test_a_worker_that_dies_while_it_learns_changes_nothing(phase: str, what: str) -> None:
    with Workers(small_config(2, learners=3), Fault(what, move=1, phase=phase)) as manager:
        assert trained(manager) == alone(2, 3)
        assert manager.workers[0].restarts == 1
        assert manager.metrics()["parallel/shares_taken_over"] == 1
        (notice,) = manager.notices
        assert re.match(
            r"worker 0 (died|failed) \(.*\) in game \d+ with weights version 1; restart 1", notice
        )
        manager.look_until(lambda: manager.workers[0].state == "waiting")
        manager.epoch()
        assert manager.metrics()["parallel/shares_taken_over"] == 1, "the replacement learns"


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_that_stops_while_it_learns_is_not_waited_for(
    phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_shares, "LATE_SECONDS", 0.2)
    config = small_config(2, learners=3, worker_timeout=1.0)
    with Workers(config, Fault("SIGSTOP", move=1, phase=phase)) as manager:
        assert trained(manager) == alone(2, 3)
        assert manager.metrics()["parallel/shares_taken_over"] >= 1
        assert [notice.split(" in game")[0] for notice in manager.notices] == [
            "worker 0 gave no sign of life for 1 s and was killed"
        ]


def test_steps_do_not_wait_for_a_worker_that_is_late_for_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_shares, "LATE_SECONDS", 5.0)
    with Workers(small_config(1, learners=2, worker_timeout=600.0)) as manager:
        played = manager.collect_experiences(manager.config.training.steps_per_epoch)
        segments = [one.segment for one in played]
        (pid,) = manager.pids()
        kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        for _ in range(20):
            learn(manager.agent, segments, manager.exchange)
        # The first step waits for five seconds, the others not at all.
        assert 5 < time.monotonic() - began < 50
        assert manager.metrics()["parallel/shares_taken_over"] == 1
        kill(pid, signal.SIGCONT)
        manager.look_until(lambda: manager.workers[0].state == "waiting")
        learn(manager.agent, segments, manager.exchange)
        assert manager.metrics()["parallel/shares_taken_over"] == 1
        expected: LearningAgent = PPOAgent(manager.config, numerics=NATIVE)
        for _ in range(21):
            learn(expected, segments)
        assert weights(manager.agent) == weights(expected)


def test_a_learner_whose_workers_cannot_help_computes_all_shares_and_says_so() -> None:
    with Workers(small_config(2, learners=2, max_policy_lag=1)) as manager:
        assert manager.exchange is None
        (notice,) = manager.notices
        assert "the learner computes all 2 shares of a minibatch itself, since workers play during" in notice


@pytest.mark.parametrize("learners", [2, 3])
def test_a_late_answer_is_not_taken_for_the_next_steps(
    learners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_shares, "LATE_SECONDS", 0.05)
    faults = [
        Fault("pause a second", move=share, phase=phase) for share, phase in [(0, "backward"), (1, "load")]
    ]
    with Workers(small_config(2, learners=learners), *faults) as manager:
        assert trained(manager, 1) == alone(2, learners, 1)
        pids = manager.pids()
        manager.look_until(lambda: manager.workers[0].state == "waiting")
        segments = [
            one.segment for one in manager.collect_experiences(manager.config.training.steps_per_epoch)
        ]
        for _ in range(3):
            learn(manager.agent, segments, manager.exchange)
        expected: LearningAgent = PPOAgent(manager.config, numerics=NATIVE)
        play = InProcess(manager.config, begun(manager.config))
        play.epoch()
        expected.load_tensors(play.agent.tensors())
        expected.version = 1
        for _ in range(3):
            learn(expected, segments)
        assert weights(manager.agent) == weights(expected)
        assert manager.pids() == pids, "nobody was replaced"
        assert manager.metrics()["parallel/shares_taken_over"] >= 1


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("learned again", "gradients of step 1, expected of 2"),
        ("learned nothing", "a sequence number of 0 bytes, expected 8"),
    ],
)
def test_a_worker_that_reports_what_it_was_not_asked_for_is_replaced(what: str, error: str) -> None:
    with Workers(small_config(2, learners=2), Fault(what, move=1, phase="forward")) as manager:
        assert trained(manager) == alone(2, 2)
        assert f"worker 0 sent damaged data ({error})" in manager.notices[0]


def test_gradients_from_a_worker_that_only_plays_are_damaged_data() -> None:
    with Workers(small_config(1), Fault("learned again")) as manager:
        assert trained(manager) == alone(1, 1)
        assert "worker 0 sent damaged data (LEARNED, but workers only play)" in manager.notices[0]


def test_without_workers_the_learner_computes_all_shares() -> None:
    slowly = Supervision(first_backoff_seconds=600.0, longest_backoff_seconds=600.0, start_seconds=600.0)
    with Workers(small_config(2, learners=3), supervision=slowly) as manager:
        segments = [
            one.segment for one in manager.collect_experiences(manager.config.training.steps_per_epoch)
        ]
        for pid in manager.pids():
            kill(pid, signal.SIGKILL)
        # Not once: the fork server may not have reported them yet.
        manager.look_until(lambda: not manager.pids())
        learn(manager.agent, segments, manager.exchange)
        assert manager.metrics()["parallel/seconds_learning"] == 0
        expected: LearningAgent = PPOAgent(manager.config, numerics=NATIVE)
        learn(expected, segments)
        assert weights(manager.agent) == weights(expected)


def test_paused_workers_learn_and_go_on() -> None:
    with Workers(small_config(2, learners=2)) as manager:
        played = manager.collect_experiences(manager.config.training.steps_per_epoch)
        manager.pause()
        learn(manager.agent, [one.segment for one in played], manager.exchange)
        assert manager.metrics()["parallel/seconds_learning"] > 0
        manager.resume()
        manager.synchronize_models()
        expected = InProcess(manager.config, begun(manager.config))
        assert contents_of(played) == expected.epoch()
        assert manager.epoch() == expected.epoch()
        assert weights(manager.agent) == weights(expected.agent)


def test_a_learner_needs_no_more_files_for_more_steps() -> None:
    with Workers(small_config(2, learners=3)) as manager:
        manager.epoch()
        before = len(os.listdir("/proc/self/fd"))
        trained(manager)
        assert len(os.listdir("/proc/self/fd")) == before

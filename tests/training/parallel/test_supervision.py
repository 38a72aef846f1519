"""Workers that really die, hang or fail: they are replaced, and the same moves are played as without."""

import multiprocessing
import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from faulty_workers import AT_START, Fault, always
from learning import one_thread as one_thread
from parallel_play import (
    GAMES,
    MOVES,
    PATIENCE,
    QUICK,
    SEGMENT,
    InProcess,
    Workers,
    begun,
    contents,
    contents_of,
    discarded,
    is_alive,
    kill,
    numbers_of,
    small_config,
    undisturbed,
    wait_until,
    worker_processes,
)

from keisei.training.parallel import supervisor
from keisei.training.parallel.supervised_worker import SupervisedWorker, Supervision
from keisei.training.parallel.supervisor import WorkerError

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

# ------------------------------------------------------------------------ a failing worker is replaced

SILENCE = 5.0  # seconds, longer than a busy machine keeps a worker waiting
HANGS = ["SIGSTOP", "sleep", "spin", "hold the interpreter"]
ENDS = [
    ("SIGKILL", "died", "died (SIGKILL, probably out of memory)"),
    ("SIGSEGV", "died", "died (SIGSEGV)"),
    ("exit", "died", "died (exit code 7)"),
    ("close", "died", "died (it closed its channel)"),
    ("raise boom", "failed", "failed (RuntimeError: boom)"),
    ("end of a file", "failed", "failed (EOFError: of its own)"),
    *((hang, "hung", f"gave no sign of life for {SILENCE:g} s and was killed") for hang in HANGS),
]


@pytest.mark.parametrize(("what", "reason", "cause"), ENDS, ids=[end[0] for end in ENDS])
def test_one_that_goes_wrong_in_the_middle_of_a_segment_is_replaced(
    what: str, reason: str, cause: str
) -> None:
    config = small_config(2, worker_timeout=SILENCE if reason == "hung" else 60.0)
    with Workers(config, Fault(what, MOVES + 5, worker=1)) as manager:
        epochs = [manager.epoch() for _ in range(3)]
        account = manager.account()
        first, second = manager.workers
        restarts = manager.metrics()["parallel/restarts"]
    assert epochs == undisturbed(2, 3)
    assert account.generated == 6 * SEGMENT + 5 * GAMES
    assert account.trained == 6 * SEGMENT
    assert discarded(account) == {reason: 5 * GAMES}
    play = InProcess(config, begun(config))
    play.epoch()
    play.vectors[1].rollout(play.agent, 5)
    game = play.vectors[1].games.numbers[0]
    assert manager.notices == [f"worker 1 {cause} in game {game} with weights version 1; restart 1 in 0.01 s"]
    assert (first.restarts, first.incarnation, second.restarts, second.incarnation) == (0, 0, 1, 1)
    assert restarts == 1
    assert (second.steps, second.weights_version) == (3 * SEGMENT + 5 * GAMES, 2)
    assert ("faulty_workers.py" in second.last_error) == (reason == "failed")
    assert manager.log == ([f"worker 1, process 0:\n{second.last_error}"] if reason == "failed" else [])


def test_one_killed_while_it_waits_is_replaced_and_nothing_is_discarded() -> None:
    with Workers(small_config(2)) as manager:
        epochs = [manager.epoch()]
        kill(manager.pids()[0], signal.SIGKILL)
        epochs += [manager.epoch() for _ in range(2)]
        assert epochs == undisturbed(2, 3)
        assert discarded(manager.account()) == {}
        assert [worker.restarts for worker in manager.workers] == [1, 0]


def test_one_killed_at_its_start_is_replaced() -> None:
    with Workers(small_config(2), Fault("SIGKILL", AT_START, 0, (0, 1)), Fault("SIGSEGV", 0, 1)) as manager:
        assert [manager.epoch() for _ in range(2)] == undisturbed(2, 2)
        assert [worker.restarts for worker in manager.workers] == [2, 1]


def test_one_that_has_made_no_move_is_not_blamed_for_a_game() -> None:
    with Workers(small_config(), Fault("raise boom", AT_START)) as manager:
        assert manager.notices == [
            "worker 0 failed (RuntimeError: boom) before its first move; restart 1 in 0.01 s"
        ]


def test_one_replaced_while_the_learner_learns_plays_on_at_once() -> None:
    with Workers(small_config(2, max_policy_lag=1), slow=0.02) as manager:
        manager.collect_experiences(2 * SEGMENT)
        kill(manager.pids()[1], signal.SIGKILL)
        # Nothing is collected meanwhile, as during a long update.
        manager.look_until(lambda: manager.queue_size() == 2 and manager.workers[1].incarnation == 1)


def test_a_fork_server_that_does_not_answer_is_replaced() -> None:
    from multiprocessing import forkserver

    # A start that takes longer than start_seconds is retried as often as necessary.
    patience = Supervision(restarts=1000, first_backoff_seconds=0.01, start_seconds=6.0)
    with Workers(small_config(2), supervision=patience) as manager:
        epochs = [manager.epoch()]
        kill(forkserver._forkserver._forkserver_pid, signal.SIGSTOP)  # type: ignore[attr-defined]
        kill(manager.pids()[0], signal.SIGKILL)
        epochs += [manager.epoch() for _ in range(2)]
        assert epochs == undisturbed(2, 3)


def test_one_that_fails_again_and_again_does_not_end_a_run_in_which_others_play() -> None:
    faults = [Fault("raise boom", MOVES + 2, worker=1), Fault("raise boom", AT_START, 1, range(1, 1000))]
    limits = replace(QUICK, restarts=4)
    with Workers(small_config(2), *faults, supervision=limits) as manager:
        for _ in range(3):
            manager.epoch()
        assert [worker.state for worker in manager.workers] == ["waiting", "given up"]
        assert "given up after 4 restarts" in manager.notices[-1]


def test_what_cannot_be_started_is_waited_for_ever_longer() -> None:
    limits = Supervision(restarts=3, first_backoff_seconds=1.0, window_seconds=100.0)
    now = [0.0]
    worker = SupervisedWorker(0, limits, lambda: now[0])
    worker.started(multiprocessing.Process())
    worker.is_ready()
    worker.has_delivered = True
    assert [worker.ended(), worker.ended(), worker.ended()] == [1.0, 1.0, 2.0]
    now[0] = 7.0
    worker.started(multiprocessing.Process())
    assert worker.is_ready() == 7.0
    assert worker.incarnation == 1


def test_a_reset_while_the_learner_plays_itself_discards_what_it_played() -> None:
    faults = [always("SIGKILL", worker=worker) for worker in (0, 1)]
    limits = replace(QUICK, restarts=0, retry_seconds=1000.0)
    with Workers(small_config(2), *faults, supervision=limits) as manager:
        before = numbers_of(manager.save_games())
        calls = []

        def reset_once() -> None:
            calls.append(0)
            if len(calls) == MOVES + 5:  # in the second segment
                manager.reset()

        played = manager.collect_experiences(2 * SEGMENT, before_wait=reset_once)
        assert sum(len(one.segment) for one in played) == 2 * SEGMENT
        assert not before & numbers_of([one.saved for one in played])
        assert discarded(manager.account()) == {"reset": SEGMENT}


def test_a_manager_starts_once() -> None:
    manager = Workers(small_config())
    assert manager.synchronize_models()  # before there is anyone to read them
    with manager:
        pids = manager.pids()
        assert manager.start_workers()  # they are running already
        assert manager.pids() == pids
        assert manager.epoch() == undisturbed(1, 1)[0]
    with pytest.raises(RuntimeError, match="the workers were shut down"):
        manager.start_workers()


def test_a_manager_that_is_never_started_keeps_no_file_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        Workers(small_config())
    assert len(os.listdir("/proc/self/fd")) == before


def test_one_that_hangs_at_its_start_is_replaced() -> None:
    patience = Supervision(restarts=1000, first_backoff_seconds=0.01, start_seconds=10.0)
    with Workers(small_config(), Fault("sleep", AT_START), supervision=patience) as manager:
        assert manager.epoch() == undisturbed(1, 1)[0]
        assert "worker 0 gave no sign of life for 10 s and was killed" in manager.notices[0]


def test_one_is_replaced_while_the_learner_does_something_else() -> None:
    with Workers(small_config(2)) as manager:
        old = manager.pids()
        kill(old[1], signal.SIGKILL)
        manager.look_until(
            lambda: (manager.workers[1].incarnation, manager.workers[1].state) == (1, "waiting")
        )
        assert manager.pids()[0] == old[0]
        assert manager.pids()[1] != old[1]
        assert len(manager.get_statistics()["replacement_seconds"]) == 1


def test_the_fork_server_killed_takes_its_workers_along_and_all_are_replaced() -> None:
    from multiprocessing import forkserver

    with Workers(small_config(2)) as manager:
        epochs = [manager.epoch()]
        old = manager.pids()
        kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)  # type: ignore[attr-defined]
        epochs += [manager.epoch() for _ in range(2)]
        assert epochs == undisturbed(2, 3)
        assert not set(old) & set(manager.pids())


def test_what_the_waiting_is_ended_by_loses_nothing() -> None:
    """As with Ctrl-C: the segments that had arrived are kept for the next call."""
    with Workers(small_config(2)) as manager:

        def interrupt() -> None:
            if manager.has_taken_one():
                raise KeyboardInterrupt

        stopped = manager.pids()[1]
        kill(stopped, signal.SIGSTOP)
        with pytest.raises(KeyboardInterrupt):
            manager.collect_experiences(2 * SEGMENT, before_wait=interrupt)
        kill(stopped, signal.SIGCONT)
        assert manager.account().trained == 0
        assert manager.queue_size() == 1
        assert [manager.epoch() for _ in range(2)] == undisturbed(2, 2)
        assert discarded(manager.account()) == {}


def test_more_can_be_asked_for_after_an_interrupted_waiting() -> None:
    with Workers(small_config()) as manager:

        def interrupt() -> None:
            if manager.get_statistics()["channels"][0]["tickets"]:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            manager.collect_experiences(GAMES, before_wait=interrupt)
        manager.look_until(lambda: manager.queue_size() == 1)
        played = manager.collect_experiences(SEGMENT)
        assert [len(one.segment) for one in played] == [GAMES, SEGMENT]


# ------------------------------------------------------------------------ exceptions on startup


@pytest.mark.parametrize("move", [AT_START, 0, 5])
def test_the_same_exception_three_times_before_anything_is_delivered_is_an_error(move: int) -> None:
    manager = Workers(small_config(), always("raise no such luck", move))
    expected = "^workers fail on startup: RuntimeError: no such luck"
    with pytest.raises(WorkerError, match=expected) as info, manager:
        manager.epoch()
    assert info.value.failure.error == "RuntimeError: no such luck"
    assert "faulty_workers.py" in info.value.failure.traceback
    assert info.value.__notes__ == [f"in the worker:\n{info.value.failure.traceback}"]
    assert len(manager.notices) == len(manager.log) == 3
    assert [text.splitlines()[0] for text in manager.log] == [f"worker 0, process {n}:" for n in range(3)]
    assert not manager.is_running
    wait_until(lambda: not worker_processes())
    assert manager.account().trained == 0


def test_different_exceptions_at_the_start_are_none() -> None:
    faults = [Fault("raise a", AT_START, 0, (0, 2)), Fault("raise b", AT_START, 0, (1, 3))]
    with Workers(small_config(), *faults) as manager:
        assert manager.epoch() == undisturbed(1, 1)[0]
        assert [worker.restarts for worker in manager.workers] == [4]


def test_ever_new_exceptions_at_the_start_end_in_serial_play() -> None:
    faults = [Fault(f"raise {number}", AT_START, 0, (number,)) for number in range(10)]
    with Workers(small_config(), *faults) as manager:
        assert [manager.epoch() for _ in range(2)] == undisturbed(1, 2)
        assert manager.notices[5].endswith("given up after 5 restarts in 10 minutes, retrying in 60 s")
        assert "no workers left" in manager.notices[6]


def test_a_segment_delivered_forgives_the_exceptions_before_it() -> None:
    faults = [Fault("raise a", AT_START, 0, (0, 1, 3, 4)), Fault("SIGKILL", MOVES + 1, 0, (2,))]
    with Workers(small_config(), *faults) as manager:
        assert [manager.epoch() for _ in range(2)] == undisturbed(1, 2)


def test_the_same_exception_after_a_segment_is_no_error_at_the_start() -> None:
    patience = replace(QUICK, restarts=100)
    with Workers(small_config(), always("raise late", MOVES + 3), supervision=patience) as manager:
        assert [manager.epoch() for _ in range(6)] == undisturbed(1, 6)
        assert manager.workers[0].restarts == 5
        assert discarded(manager.account()) == {"failed": 5 * 3 * GAMES}


# ------------------------------------------------------------------------ given up, serial, and back


def impatient(retry_seconds: float, restarts: int = 2) -> Supervision:
    return replace(QUICK, restarts=restarts, retry_seconds=retry_seconds)


def test_without_workers_the_learner_plays_the_same_serially_and_says_so_once() -> None:
    faults = [always("SIGKILL", 3, worker) for worker in (0, 1)]
    with Workers(small_config(2), *faults, supervision=impatient(600)) as manager:
        epochs = [manager.epoch()]
        metrics = manager.metrics()
        epochs += [manager.epoch() for _ in range(3)]
        account = manager.account()
        assert epochs == undisturbed(2, 4)
        assert manager.get_statistics()["is_serial"]
        assert manager.get_statistics()["active_workers"] == 0
        assert [worker.state for worker in manager.workers] == ["given up"] * 2
    assert [line for line in manager.notices if "serially" in line] == [
        "no workers left: the learner plays serially; retrying workers every 600 s"
    ]
    assert sum("given up after 2 restarts" in line for line in manager.notices) == 2
    assert account.generated == 8 * SEGMENT + 6 * 3 * GAMES
    assert discarded(account) == {"died": 6 * 3 * GAMES}
    assert metrics["parallel/serial_steps"] == 2 * SEGMENT
    assert metrics["parallel/restarts"] == 4
    assert metrics["parallel/active_workers"] == 0


def test_workers_come_back_after_a_while() -> None:
    faults = [Fault("SIGKILL", 3, worker, range(3)) for worker in (0, 1)]
    with Workers(small_config(2), *faults, supervision=impatient(0.3)) as manager:
        deadline = time.monotonic() + PATIENCE
        while not any("playing again" in line for line in manager.notices):
            played = manager.epoch()
            assert sum(len(saved.games) > 0 for _, _, saved in played) == 2
            assert time.monotonic() < deadline
        assert not manager.get_statistics()["is_serial"]
        manager.look_until(lambda: manager.get_statistics()["active_workers"] == 2)
        played_by = [(one.worker, one.incarnation) for one in manager.collect_experiences(2 * SEGMENT)]
        assert played_by == [(0, 3), (1, 3)]
    assert sum("no workers left" in line for line in manager.notices) == 1
    assert sum("workers are playing again after" in line for line in manager.notices) == 1
    assert {f"worker {worker} is back" for worker in (0, 1)} <= set(manager.notices)


def test_one_that_never_comes_back_is_tried_again_and_again_meanwhile_serially() -> None:
    with Workers(small_config(), always("SIGKILL", AT_START), supervision=impatient(0.2)) as manager:
        deadline = time.monotonic() + PATIENCE
        epochs = []
        while sum("given up" in line for line in manager.notices) < 4:
            epochs.append(manager.epoch())
            assert time.monotonic() < deadline
        assert sum("no workers left" in line for line in manager.notices) == 1
        assert not any("playing again" in line for line in manager.notices)
        assert manager.workers[0].incarnation >= 5
        assert manager.workers[0].restarts == manager.workers[0].incarnation
    assert epochs[:6] == undisturbed(1, 6)


@pytest.mark.parametrize("queue_maxsize", [1, 4])
def test_while_one_is_given_up_the_other_plays_more(queue_maxsize: int) -> None:
    config = small_config(2, queue_maxsize=queue_maxsize)
    with Workers(config, always("SIGKILL", 3), supervision=impatient(600, restarts=1)) as manager:
        play = InProcess(config, begun(config))
        for epoch in range(3):
            played = manager.collect_experiences(2 * SEGMENT)
            if epoch:
                assert [one.worker for one in played] == [1, 1]
            mine = [one for one in played if one.worker == 1]
            for one in mine:
                other = play.vectors[1].rollout(play.agent, MOVES)
                assert contents_of([one]) == [contents(other, play.vectors[1].save())]
            assert sum(len(one.segment) for one in played) == 2 * SEGMENT
            manager.account()
        assert [worker.state for worker in manager.workers] == ["given up", "waiting"]
        assert not manager.get_statistics()["is_serial"]
        assert manager.metrics()["parallel/serial_steps"] == 0


# ------------------------------------------------------------------------ a busy learner


def both_live(manager: Workers) -> bool:
    """Whether both workers have a process that has not been killed yet."""
    return len(manager.pids()) == 2 and all(map(is_alive, manager.pids()))


def test_workers_killed_while_the_learner_is_busy_never_hang_it() -> None:
    choose = random.Random(1)
    patience = replace(QUICK, restarts=1000, longest_backoff_seconds=0.01)
    with Workers(small_config(2, max_policy_lag=1), slow=0.005, supervision=patience) as manager:
        for attempt in range(30):
            played = manager.collect_experiences(2 * SEGMENT)
            assert sum(len(one.segment) for one in played) == 2 * SEGMENT
            assert all(manager.agent.version - one.version <= 1 for one in played)
            manager.account()
            manager.look_until(lambda: both_live(manager))
            victims = manager.pids() if attempt % 2 else [choose.choice(manager.pids())]
            number = signal.SIGSEGV if attempt % 3 == 2 else signal.SIGKILL
            kills = [threading.Timer(choose.random() * 0.3, kill, (pid, number)) for pid in victims]
            for timer in kills:
                timer.start()
            for timer in kills:  # the learner is busy meanwhile
                timer.join()
            manager.agent.version += 1
            manager.synchronize_models()
        assert manager.account().trained == 30 * 2 * SEGMENT
        assert sum(worker.restarts for worker in manager.workers) >= 30
    wait_until(lambda: not worker_processes())


@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_workers_killed_at_any_moment_of_the_collecting_change_nothing(use_shared_memory: bool) -> None:
    choose = random.Random(2)
    patience = replace(QUICK, restarts=1000, longest_backoff_seconds=0.01)
    config = small_config(2, use_shared_memory=use_shared_memory)
    with Workers(config, slow=0.005, supervision=patience) as manager:
        epochs = []
        for _ in range(8):
            manager.look_until(lambda: both_live(manager))
            kills = [
                threading.Timer(choose.random() * 0.12, kill, (pid, signal.SIGKILL)) for pid in manager.pids()
            ]
            for timer in kills:
                timer.start()
            epochs.append(manager.epoch())
            for timer in kills:
                timer.join()
        assert epochs == undisturbed(2, 8)
        assert sum(worker.restarts for worker in manager.workers) >= 8


# ------------------------------------------------------------------------ nothing is left behind


def mappings() -> int:
    """How many pieces of our shared memory this process holds."""
    return Path("/proc/self/maps").read_text(encoding="utf-8").count("memfd:keisei")


def test_restarts_leave_nothing_behind() -> None:
    patience = replace(QUICK, restarts=1000, longest_backoff_seconds=0.01)
    shm = set(os.listdir("/dev/shm"))
    with Workers(small_config(2), supervision=patience) as manager:
        counts = []
        for _ in range(20):
            for pid in manager.pids():
                kill(pid, signal.SIGKILL)
            manager.epoch()
            counts.append((len(os.listdir("/proc/self/fd")), threading.active_count(), mappings()))
        assert sum(worker.restarts for worker in manager.workers) == 40
        assert counts == [counts[0]] * 20
        assert set(os.listdir("/dev/shm")) <= shm
        wait_until(lambda: len(worker_processes()) == 2)
    wait_until(lambda: not worker_processes())


def test_a_manager_that_is_shut_down_leaves_nothing_behind() -> None:
    def once() -> tuple[int, int, int]:
        with Workers(small_config(2)) as manager:
            manager.epoch()
        del manager
        return len(os.listdir("/proc/self/fd")), threading.active_count(), mappings()

    before = mappings()
    first = once()
    assert first[2] == before
    assert [once() for _ in range(3)] == [first] * 3
    wait_until(lambda: not worker_processes())


def test_shutdown_waits_for_all_stopped_workers_together(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_seconds = 10.0
    monkeypatch.setattr(supervisor, "_LEAVE_SECONDS", leave_seconds)
    with Workers(small_config(3)) as manager:
        for pid in manager.pids():
            kill(pid, signal.SIGSTOP)
        start = time.monotonic()
        manager.shutdown()
        assert time.monotonic() - start < 3 * leave_seconds
        assert not manager.is_running
        assert [worker.state for worker in manager.workers] == ["stopped"] * 3
        wait_until(lambda: not worker_processes())


def test_what_was_under_way_at_the_shutdown_is_accounted_for() -> None:
    with Workers(small_config(2, max_policy_lag=1), slow=0.01) as manager:
        manager.collect_experiences(2 * SEGMENT)
        manager.look_until(lambda: manager.queue_size() > 0)
        manager.shutdown()
        account = manager.account()
        assert account.trained == 2 * SEGMENT
        assert account.in_flight == 0
        assert discarded(account) == {"shutdown": account.generated - account.trained}
        assert account.generated >= 3 * SEGMENT
        manager.shutdown()
        assert manager.account() == account


def test_many_workers_start_in_waves_with_a_look_for_signals_in_between() -> None:
    class Enough(Exception):  # noqa: N818  (not an error)
        """Raised by a look, as a signal would be."""

    looks: list[int] = []

    def look() -> None:
        looks.append(sum(status.pid is not None for status in manager.workers))
        if len(looks) == 2:
            raise Enough

    manager = Workers(small_config(3 * supervisor.processes_at_once()))
    with pytest.raises(Enough):
        manager.start_workers(before_wait=look)
    assert looks == [0, supervisor.processes_at_once()]
    assert not worker_processes()

    with Workers(small_config(2 * supervisor.processes_at_once())) as all_of_them:
        assert all(status.pid is not None for status in all_of_them.workers)

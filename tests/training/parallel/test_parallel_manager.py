"""ParallelManager: workers collect what serial play does; pause, reset, lag, statistics, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
import torch
from faulty_workers import Fault
from learning import NATIVE
from learning import one_thread as one_thread
from parallel_play import (
    GAMES,
    MOVES,
    SEGMENT,
    InProcess,
    Workers,
    begun,
    contents,
    contents_of,
    discarded,
    kill,
    learn,
    new_agent,
    numbers_of,
    small_config,
    undisturbed,
    wait_until,
)

from keisei.config.schema import AppConfig
from keisei.core.native_tower import best_kernels
from keisei.core.numerics import Numerics
from keisei.core.self_play import SavedGames, SelfPlay
from keisei.shogi import Color
from keisei.shogi.vector import VectorGames
from keisei.training.metrics import explain
from keisei.training.parallel import worker_setup
from keisei.training.parallel.communication import WorkerSegment
from keisei.training.parallel.parallel_manager import ParallelManager, workers_numerics
from keisei.training.parallel.worker_setup import begin_games, number_of_workers, resolved

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(900)]

# ------------------------------------------------------------------------ the same as in one process


@pytest.mark.parametrize(
    ("use_shared_memory", "numerics"), [(True, NATIVE), (False, NATIVE), (True, Numerics(channels_last=True))]
)
def test_one_worker_plays_what_serial_self_play_does(use_shared_memory: bool, numerics: Numerics) -> None:
    config = small_config(use_shared_memory=use_shared_memory)
    agent, serial_agent = new_agent(config, numerics), new_agent(config, numerics)
    serial = SelfPlay.begin(config.env, games=GAMES, seed=config.run.seed)
    finished = 0
    with ParallelManager(config, agent) as manager:
        for epoch in range(5):
            (one,) = manager.collect_experiences(SEGMENT)
            other = serial.rollout(serial_agent, MOVES)
            assert contents(one, one.saved) == contents(other, serial.save())
            assert (one.worker, one.incarnation, one.sequence, one.version) == (0, 0, epoch, epoch)
            assert manager.save_games() == [serial.save()]
            finished += len(one.results)
            learn(agent, [one.segment])
            learn(serial_agent, [other.segment])
            assert manager.synchronize_models()
        account = manager.account()
    assert finished >= 8
    assert (account.generated, account.trained, account.in_flight) == (5 * SEGMENT, 5 * SEGMENT, 0)
    assert not any(account.discarded.values())


@pytest.mark.parametrize("use_shared_memory", [True, False])
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_play_what_vectors_in_one_process_do(workers: int, use_shared_memory: bool) -> None:
    with Workers(small_config(workers, use_shared_memory=use_shared_memory)) as manager:
        epochs = [manager.epoch() for _ in range(4)]
        assert manager.notices == []
    assert epochs == undisturbed(workers, 4)
    results = [result for epoch in epochs for _, results, _ in epoch for result in results]
    assert len(results) >= 6 * workers
    assert {result.late_start for result in results} == {True, False}
    assert {result.outcome.winner for result in results} == {None, Color.BLACK, Color.WHITE}


def test_games_of_workers_are_numbered_in_one_sequence() -> None:
    config = small_config(2)
    manager = ParallelManager(config, new_agent(config))
    assert manager.save_games() == begin_games(config, 2)
    vectors = [VectorGames.restore(saved.games) for saved in manager.save_games()]
    assert [number for vector in vectors for number in vector.numbers] == list(range(2 * GAMES))
    assert [vector.seed for vector in vectors] == [config.run.seed] * 2
    manager.shutdown()


def test_an_epoch_longer_than_a_segment_is_played_in_several() -> None:
    config = small_config(2)
    play = InProcess(config, begun(config))
    with Workers(config) as manager:
        for _ in range(2):
            played = manager.epoch(2 * 2 * SEGMENT)
            first = [vector.rollout(play.agent, MOVES) for vector in play.vectors]
            saved = [vector.save() for vector in play.vectors]
            second = [vector.rollout(play.agent, MOVES) for vector in play.vectors]
            expected = []
            for worker, vector in enumerate(play.vectors):
                expected += [contents(first[worker], saved[worker]), contents(second[worker], vector.save())]
            assert played == expected
            learn(play.agent, [one.segment for pair in zip(first, second, strict=True) for one in pair])


def test_saved_games_go_on_exactly_with_other_workers() -> None:
    config = small_config(2)
    with Workers(config) as manager:
        epochs = [manager.epoch() for _ in range(2)]
        saved, agent = manager.save_games(), manager.agent
    again = Workers(config, games=saved)
    again.agent.load_tensors(agent.tensors())
    again.agent.version = agent.version
    with again:
        epochs += [again.epoch() for _ in range(2)]
    assert epochs == undisturbed(2, 4)


# ------------------------------------------------------------------------ pause and resume


def in_the_middle(manager: Workers) -> bool:
    """Whether every worker has made some moves of a segment."""
    return all(worker.steps % SEGMENT for worker in manager.workers)


def expect(played: Sequence[WorkerSegment], play: InProcess) -> None:
    """These segments continue, worker by worker, what was played so far; faster workers played more."""
    for one in played:
        vector = play.vectors[one.worker]
        expected = contents(vector.rollout(play.agent, MOVES), vector.save())
        assert contents_of([one]) == [expected]


def pause_in_the_middle(manager: Workers) -> tuple[list[int], InProcess]:
    """Pause while all are in the middle of a segment; return each worker's move count, and what was played.

    On a busy machine all may finish before the learner looks: then they play some more.
    """
    play = InProcess(manager.config, begun(manager.config))
    for _ in range(100):
        expect(manager.collect_experiences(2 * SEGMENT), play)
        wait_until(lambda: in_the_middle(manager) or {w.state for w in manager.workers} == {"waiting"})
        manager.pause()
        wait_until(lambda: {worker.state for worker in manager.workers} == {"paused"})
        if in_the_middle(manager):
            return [worker.steps for worker in manager.workers], play
        manager.resume()
    raise AssertionError("the workers are never in the middle of a segment together")


def expect_two_more_epochs(manager: Workers, play: InProcess) -> None:
    for _ in range(2):
        expect(manager.collect_experiences(2 * SEGMENT), play)


def test_paused_workers_rest_in_the_middle_of_a_segment_and_then_go_on_exactly() -> None:
    with Workers(small_config(2, max_policy_lag=1, worker_timeout=4.0), slow=0.08) as manager:
        steps, play = pause_in_the_middle(manager)
        deadline = time.monotonic() + 4.5  # longer than the timeout: a pause is not a hang
        while time.monotonic() < deadline:
            manager.supervise(0.05)
        assert [worker.steps for worker in manager.workers] == steps
        assert [worker.state for worker in manager.workers] == ["paused"] * 2
        account = manager.account()
        assert account.in_flight == sum(steps) - account.trained
        with pytest.raises(RuntimeError, match=r"^the workers are paused; call resume\(\) first$"):
            manager.collect_experiences(2 * SEGMENT)
        manager.resume()
        expect_two_more_epochs(manager, play)
        assert manager.notices == []
        assert discarded(manager.account()) == {}


def test_one_that_replaces_a_paused_worker_is_paused_too() -> None:
    with Workers(small_config(2, max_policy_lag=1), slow=0.08) as manager:
        steps, play = pause_in_the_middle(manager)
        kill(manager.pids()[0], signal.SIGKILL)
        manager.look_until(
            lambda: (manager.workers[0].incarnation, manager.workers[0].state) == (1, "paused")
        )
        time.sleep(0.2)
        assert [worker.steps for worker in manager.workers] == steps
        manager.resume()
        expect_two_more_epochs(manager, play)
        assert discarded(manager.account()) == {"died": steps[0] % SEGMENT}


# ------------------------------------------------------------------------ reset


@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_reset_begins_new_games_and_nothing_of_the_old_ones_arrives(use_shared_memory: bool) -> None:
    config = small_config(2, max_policy_lag=3, use_shared_memory=use_shared_memory)
    with Workers(config, slow=0.02) as manager:
        known = numbers_of(manager.save_games())
        for times in (1, 2, 3):
            played = manager.collect_experiences(2 * SEGMENT)
            known |= {result.number for one in played for result in one.results}
            known |= numbers_of(manager.save_games())
            manager.look_until(lambda: manager.queue_size() > 0 and manager.account().in_flight > SEGMENT)
            for _ in range(times):
                before = manager.account()
                manager.reset()
                assert manager.queue_size() == 0
                assert not numbers_of(manager.save_games()) & known
                known |= numbers_of(manager.save_games())
            assert before.generated <= manager.account().generated
            play = InProcess(config, manager.save_games())
            expect(manager.collect_experiences(2 * SEGMENT), play)
        account = manager.account()
        assert account.trained == 6 * 2 * SEGMENT
        assert discarded(account).keys() == {"reset"}
        assert account.discarded["reset"] >= 3 * SEGMENT
        assert manager.notices == []


def test_reset_while_the_learner_waits_counts_for_what_it_has_already() -> None:
    with Workers(small_config(2)) as manager:
        stopped = manager.pids()[1]
        kill(stopped, signal.SIGSTOP)
        games: list[SavedGames] = []

        def reset() -> None:
            if not games and manager.has_taken_one():
                manager.reset()
                games.extend(manager.save_games())
                kill(stopped, signal.SIGCONT)

        played = manager.collect_experiences(2 * SEGMENT, before_wait=reset)
        play = InProcess(manager.config, games)
        expected = [contents(vector.rollout(play.agent, MOVES), vector.save()) for vector in play.vectors]
        assert contents_of(played) == expected
        assert discarded(manager.account()) == {"reset": SEGMENT}


def test_reset_reaches_workers_that_are_paused_or_dead_or_start() -> None:
    with Workers(small_config(2, max_policy_lag=1), slow=0.02) as manager:
        pause_in_the_middle(manager)
        kill(manager.pids()[0], signal.SIGKILL)
        manager.reset()
        play = InProcess(manager.config, manager.save_games())
        manager.look_until(lambda: manager.workers[0].incarnation == 1)
        manager.resume()
        expect(manager.collect_experiences(2 * SEGMENT), play)
        assert discarded(manager.account()).keys() == {"reset", "died"}


# ------------------------------------------------------------------------ lag


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_workers_play_while_the_learner_does_not_look_and_the_lag_is_limited(
    lag: int, use_shared_memory: bool
) -> None:
    config = small_config(2, max_policy_lag=lag, use_shared_memory=use_shared_memory)
    with Workers(config) as manager:
        versions: dict[int, list[int]] = {0: [], 1: []}
        lags = []
        for _ in range(6):
            played = manager.collect_experiences(2 * SEGMENT)
            for one in played:
                versions[one.worker].append(one.version)
                lags.append(manager.agent.version - one.version)
            if len(lags) == 2:
                wait_until(lambda: sum(worker.steps for worker in manager.workers) > 2 * SEGMENT)
            manager.look_until(lambda: manager.queue_size() == 2 * lag)
            learn(manager.agent, [one.segment for one in played])
            assert manager.synchronize_models()
        assert lags == [min(epoch, lag) for epoch in range(6) for _ in range(2)]
        assert all(seen == sorted(seen) for seen in versions.values())
        statistics = manager.get_statistics()
        assert statistics["policy_lag"] == {number: lags.count(number) for number in set(lags)}
        metrics = manager.metrics()
        assert metrics["parallel/lag_max"] == lag
        assert metrics["parallel/lag_mean"] == sum(lags) / len(lags)
        assert discarded(manager.account()) == {}


def test_never_more_of_a_worker_is_under_way_than_the_queue_holds() -> None:
    config = small_config(2, max_policy_lag=3, queue_maxsize=1)
    with Workers(config) as manager:
        for _ in range(4):
            manager.collect_experiences(GAMES)  # one segment, so that one from the other worker remains
            manager.look_until(lambda: manager.queue_size() == 2)
            time.sleep(0.1)
            manager.supervise()
            assert manager.queue_size() == 2
            assert manager.account().in_flight == 2 * GAMES


@pytest.mark.parametrize("interval", [2 * 2 * SEGMENT + 1, 3 * 2 * SEGMENT])  # the third update reaches both
def test_between_two_broadcasts_workers_play_with_the_older_weights(interval: int) -> None:
    with Workers(small_config(2, model_sync_interval=interval)) as manager:
        published, lags = [], []
        for _ in range(7):
            played = manager.collect_experiences(2 * SEGMENT)
            lags.append([manager.agent.version - one.version for one in played])
            learn(manager.agent, [one.segment for one in played])
            published.append(manager.synchronize_models())
            assert manager.sync_model_if_needed() is published[-1]  # nothing more to send
        assert published == [False, False, True, False, False, True, False]
        assert lags == [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1], [2, 2], [0, 0]]
        assert manager.get_statistics()["synchronization"]["count"] == 3
        assert discarded(manager.account()) == {}


def test_what_is_older_than_the_limit_is_dropped_and_counted() -> None:
    with Workers(small_config(2, max_policy_lag=1)) as manager:
        first = manager.collect_experiences(2 * SEGMENT)
        manager.look_until(lambda: manager.queue_size() == 2)
        for _ in range(2):
            learn(manager.agent, [one.segment for one in first])
            manager.synchronize_models()
        played = manager.collect_experiences(2 * SEGMENT)
        assert [one.version for one in played] == [2, 2]
        account = manager.account()
        assert discarded(account) == {"stale": 2 * SEGMENT}
        assert account.trained == 4 * SEGMENT
        assert manager.metrics()["parallel/discarded_stale"] == 2 * SEGMENT


def test_segments_of_the_limit_itself_are_used() -> None:
    """A lag of 1 allows segments played with the weights the workers had one update ago."""
    with Workers(small_config(2, max_policy_lag=1, model_sync_interval=3 * 2 * SEGMENT)) as manager:
        versions = []
        for update in range(1, 8):
            versions += [{one.version for one in manager.collect_experiences(2 * SEGMENT)}]
            manager.look_until(lambda: manager.queue_size() == 2)
            manager.agent.version = update
            assert manager.synchronize_models() is (update % 3 == 0)
        assert versions == [{0}, {0}, {0}, {0}, {3}, {3}, {3}]
        assert discarded(manager.account()) == {}
        manager.agent.version = 9
        for _ in range(2):  # 6 was published 3 updates ago, but nothing since
            assert {one.version for one in manager.collect_experiences(2 * SEGMENT)} == {6}
            manager.look_until(lambda: manager.queue_size() == 2)
        assert manager.synchronize_models()
        manager.agent.version = 10  # now 9 was the newest one an update ago
        assert {one.version for one in manager.collect_experiences(2 * SEGMENT)} == {9}
        assert discarded(manager.account()) == {"stale": 2 * SEGMENT}


def test_small_collections_are_published_by_moves_and_never_refused() -> None:
    """A custom loop that collects a quarter of steps_per_epoch per update."""
    steps = SEGMENT // 2
    with Workers(small_config(2, model_sync_interval=6 * steps)) as manager:
        published, lags = [], []
        for _ in range(13):
            played = manager.collect_experiences(steps)
            lags += [manager.agent.version - one.version for one in played]
            learn(manager.agent, [one.segment for one in played])
            published.append(manager.synchronize_models())
        assert [update for update, done in enumerate(published, 1) if done] == [6, 12]
        assert max(lags) == 5
        assert discarded(manager.account()) == {}


@pytest.mark.parametrize("interval", [5, 10, 100])
def test_intervals_below_an_update_are_after_every_update(interval: int) -> None:
    config = small_config(2, model_sync_interval=interval)
    assert interval < config.training.steps_per_epoch
    with Workers(config) as manager:
        assert [manager.epoch() for _ in range(3)] == undisturbed(2, 3)
        assert manager.get_statistics()["policy_lag"] == {0: 6}


# ------------------------------------------------------------------------ what is refused


def test_zero_workers_assigned_after_loading_are_refused() -> None:
    config = small_config()
    config.training.parallel.num_workers = 0
    with pytest.raises(ValueError, match=r"training\.parallel\.num_workers: given 0"):
        ParallelManager(config, new_agent(small_config()))


def test_the_agent_decides_the_algorithm() -> None:
    config = small_config(searches=True)
    with ParallelManager(config, new_agent(small_config())) as manager:
        played = manager.collect_experiences(64)
        assert all(one.segment.tried.shape[-1] == 0 for one in played)
    assert config.training.algorithm == "search", "the caller's config is left as it is"


def test_games_of_another_number_of_workers_are_refused() -> None:
    config = small_config(2)
    with pytest.raises(ValueError, match=r"^got games for 3 workers, expected 2$"):
        ParallelManager(config, new_agent(config), games=begin_games(config, 3))


def test_a_manager_that_does_not_run_says_so() -> None:
    manager = Workers(small_config())
    nothing: list[Callable[[], object]] = [
        lambda: manager.collect_experiences(1),
        manager.pause,
        manager.resume,
        manager.reset,
        manager.supervise,
    ]
    for _ in range(2):
        assert not manager.is_running
        for call in nothing:
            with pytest.raises(RuntimeError, match=r"^the workers are not running; call start_workers\(\)"):
                call()
        manager.shutdown()
    with manager:
        assert manager.is_running
        assert manager.start_workers() is True
        with pytest.raises(ValueError, match=r"^target_steps is 0, expected at least 1$"):
            manager.collect_experiences(0)
        assert manager.epoch() == undisturbed(1, 1)[0]
    for call in nothing:
        with pytest.raises(RuntimeError, match=r"^the workers are not running"):
            call()


@pytest.mark.parametrize("lag", [0, 2])
def test_weights_that_were_not_published_are_missed(lag: int) -> None:
    with Workers(small_config(max_policy_lag=lag)) as manager:
        manager.agent.version = lag
        manager.collect_experiences(1)
        manager.agent.version = lag + 1
        expected = rf"^the workers have the weights of update 0, the agent is at {lag + 1}; call synchron"
        with pytest.raises(RuntimeError, match=expected):
            manager.collect_experiences(1)
        assert manager.synchronize_models()
        manager.collect_experiences(1)


def test_weights_are_missed_only_when_their_moves_are_played() -> None:
    with Workers(small_config(model_sync_interval=3 * SEGMENT)) as manager:
        for update in (1, 2, 3):
            manager.collect_experiences(SEGMENT)
            manager.agent.version = update
        with pytest.raises(
            RuntimeError, match=r"^the workers have the weights of update 0, the agent is at 3"
        ):
            manager.collect_experiences(SEGMENT)
        assert manager.synchronize_models()
        manager.collect_experiences(SEGMENT)


def test_fewer_moves_than_there_are_games_are_a_move_in_each() -> None:
    with Workers(small_config(2)) as manager:
        assert [len(one.segment) for one in manager.collect_experiences(1)] == [GAMES]
        assert [len(one.segment) for one in manager.collect_experiences(GAMES + 1)] == [GAMES, GAMES]
        played = manager.collect_experiences(2 * SEGMENT + 1)
        assert sorted(len(one.segment) for one in played) == [SEGMENT] * 3


# ------------------------------------------------------------------------ config


@pytest.mark.parametrize(
    ("steps", "games", "expected"), [(4096, 64, 3), (2048, 64, 2), (1024, 64, 1), (64, 64, 1)]
)
def test_auto_takes_a_worker_for_each_core_while_segments_are_long(
    monkeypatch: pytest.MonkeyPatch, steps: int, games: int, expected: int
) -> None:
    monkeypatch.setattr(worker_setup, "cores", lambda: 3)
    config = AppConfig.model_validate(
        {
            "training": {
                "steps_per_epoch": steps,
                "minibatch_size": 64,
                "parallel": {"num_workers": "auto", "episodes_per_worker": games},
            }
        }
    )
    assert number_of_workers(config) == expected
    assert resolved(config, torch.device("cpu")).training.parallel.num_workers == expected
    config.training.parallel.num_workers = 7
    assert number_of_workers(config) == 7


@pytest.mark.parametrize(
    ("enabled", "device", "machine", "expected"),
    [
        ("auto", "cpu", 2, True),
        ("auto", "cpu", 1, False),
        ("auto", "cuda", 8, False),
        (True, "cuda", 1, True),
        (False, "cpu", 8, False),
    ],
)
def test_auto_is_decided_for_the_machine(
    monkeypatch: pytest.MonkeyPatch, enabled: bool | str, device: str, machine: int, expected: bool
) -> None:
    monkeypatch.setattr(worker_setup, "cores", lambda: machine)
    config = AppConfig.model_validate({"training": {"parallel": {"enabled": enabled}}})
    decided = resolved(config, torch.device(device)).training.parallel
    assert decided.enabled is expected
    assert decided.num_workers == (machine if expected else "auto")
    assert config.training.parallel.enabled == enabled
    others = decided.model_copy(update={"enabled": enabled, "num_workers": "auto"})
    assert others == config.training.parallel


def test_costly_settings_are_told_once_at_the_start() -> None:
    steps = small_config().training.steps_per_epoch
    config = small_config(max_policy_lag=2, model_sync_interval=3 * steps + 1, episodes_per_worker=7)
    with Workers(config, games=begin_games(config, 1)) as manager:
        manager.start_workers()
        assert manager.notices == [
            "workers play with weights up to 5 updates old (training.parallel.model_sync_interval is "
            f"{3 * steps + 1}, max_policy_lag 2); lower either for newer weights",
            "workers are slow with batches of 7 (training.parallel.episodes_per_worker); 8 games or more "
            "make better use of a core",
        ]


@pytest.mark.parametrize(("lag", "updates", "games"), [(4, 1, 8), (0, 5, 8), (2, 3, 32)])
def test_settings_within_the_limits_are_not_told(lag: int, updates: int, games: int) -> None:
    config = AppConfig()
    config.training.parallel.max_policy_lag = lag
    config.training.parallel.model_sync_interval = updates * config.training.steps_per_epoch
    config.training.parallel.episodes_per_worker = games
    assert worker_setup.costly_settings(config) == []


@pytest.mark.parametrize("compression_enabled", [False, True])
def test_half_precision_changes_what_is_played_only_by_rounding(compression_enabled: bool) -> None:
    config = small_config(compression_enabled=compression_enabled)
    with Workers(config) as manager:
        (one,) = manager.collect_experiences(SEGMENT)
    play = InProcess(config, begun(config))
    if compression_enabled:
        with torch.no_grad():
            for tensor in play.agent.network.state_dict().values():
                tensor.copy_(tensor.half())
    other = play.vectors[0].rollout(play.agent, MOVES)
    assert contents_of([one]) == [contents(other, play.vectors[0].save())]


# ------------------------------------------------------------------------ status


def test_workers_of_a_learner_on_a_gpu_are_native() -> None:
    learners = Numerics(bfloat16=True, compiled=True)
    assert workers_numerics("cuda", learners) == Numerics(native=best_kernels(), why="on the CPU")
    assert workers_numerics("cpu", learners) == Numerics(bfloat16=True)


@pytest.mark.parametrize("numerics", [NATIVE, Numerics()], ids=str)
def test_a_worker_loads_torch_only_to_compute_with_it(numerics: Numerics) -> None:
    # In a process of its own: here the server that forks workers may have torch already.
    code = f"""if True:
        from pathlib import Path
        from parallel_play import SEGMENT, ParallelManager, new_agent, small_config
        from keisei.core.numerics import Numerics

        config = small_config()
        with ParallelManager(config, new_agent(config, {numerics!r})) as manager:
            manager.collect_experiences(SEGMENT)
            libraries = Path(f"/proc/{{manager.get_statistics()['worker_stats'][0]['pid']}}/maps").read_text()
            print("_native" in libraries, "libtorch" in libraries)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == (f"True {not numerics.native}\n", "")


def test_statistics_have_all_that_is_promised() -> None:
    with Workers(small_config(2)) as manager:
        assert manager.get_statistics()["total_steps_collected"] == 0
        games = sum(len(results) for _ in range(3) for _, results, _ in manager.epoch())
        statistics = manager.get_statistics()
        assert statistics["is_running"]
        assert not statistics["is_serial"]
        assert statistics["active_workers"] == 2
        assert statistics["total_steps_collected"] == 6 * SEGMENT
        assert statistics["total_episodes_collected"] == games > 0
        assert statistics["queue_size"] == 0
        assert statistics["steps"]["generated"] == statistics["steps"]["trained"] == 6 * SEGMENT
        assert statistics["steps"]["in_flight"] == sum(statistics["steps"]["discarded"].values()) == 0
        assert statistics["policy_lag"] == {0: 6}
        depths = statistics["queue_depth"]
        assert all(0 <= depth <= 2 for _, depth in depths)
        assert [second for second, _ in depths] == sorted(second for second, _ in depths)
        assert max(depth for _, depth in depths) > 0
        sync = statistics["synchronization"]
        assert (sync["count"], sync["version"]) == (4, 3)
        assert sync["bytes"] >= 4 * manager.agent.parameters
        assert 0 < sync["milliseconds"] <= sync["total_milliseconds"]
        assert [channel["worker"] for channel in statistics["channels"]] == [0, 1]
        assert all(channel["tickets"] == channel["unsent_bytes"] == 0 for channel in statistics["channels"])
        for number, worker in enumerate(statistics["worker_stats"]):
            assert (worker["worker"], worker["steps"], worker["weights_version"]) == (number, 3 * SEGMENT, 2)
            assert worker["state"] == "waiting"
            assert 0 < worker["utilization"] <= 1
            assert worker["memory_bytes"] > 10_000_000
            assert worker["pid"] == manager.pids()[number]
        assert sum(worker["games"] for worker in statistics["worker_stats"]) == games
        assert json.loads(json.dumps(statistics))["is_running"]
    statistics = manager.get_statistics()
    assert not statistics["is_running"]
    assert statistics["active_workers"] == 0
    assert statistics["channels"] == []
    assert [worker["steps"] for worker in statistics["worker_stats"]] == [3 * SEGMENT] * 2


def test_metrics_have_the_names_that_are_explained_and_begin_anew_each_time() -> None:
    with Workers(small_config(2), Fault("SIGKILL", 5)) as manager:
        manager.epoch()
        metrics = manager.metrics()
        of_a_cluster = {"nodes", "node_workers", "nodes_behind", "broadcast_milliseconds"}
        names = {name for name in explain if name.startswith("parallel/")}
        assert metrics.keys() == names - {f"parallel/{name}" for name in of_a_cluster}
        assert metrics["parallel/restarts"] == 1
        assert metrics["parallel/active_workers"] == 2
        assert metrics["parallel/steps_generated"] == 2 * SEGMENT + 5 * GAMES
        assert metrics["parallel/steps_trained"] == 2 * SEGMENT
        assert metrics["parallel/steps_discarded"] == metrics["parallel/discarded_died"] == 5 * GAMES
        assert (metrics["parallel/sync_count"], metrics["parallel/weights_version"]) == (2, 1)
        assert 0 < metrics["parallel/utilization"] <= 1
        assert metrics["parallel/memory_bytes"] > 20_000_000
        manager.epoch()
        again = manager.metrics()
        assert again["parallel/restarts"] == 0
        assert again["parallel/steps_trained"] == 4 * SEGMENT
        assert again["parallel/serial_steps"] == 0


def test_the_workers_seconds_are_those_of_the_update_also_if_one_was_replaced() -> None:
    names = [f"parallel/seconds_{phase}" for phase in ("env", "inference", "sampling", "transport")]
    with Workers(small_config(2), Fault("SIGKILL", MOVES + 5)) as manager:
        before = dict.fromkeys(names, 0.0)
        for _ in range(3):
            manager.epoch()
            metrics = manager.metrics()
            assert all(metrics[name] > 0 for name in names)
            seconds = manager.get_statistics()["worker_seconds"]
            total = {name: sum(one[name.rpartition("_")[2]] for one in seconds) for name in names}
            # A replaced process keeps its time.
            assert metrics["parallel/seconds_env"] == total[names[0]] - before[names[0]]
            assert all(total[name] > before[name] for name in names)
            before = total
        assert manager.workers[0].restarts == 1
        manager.epoch()
    # Ended processes count too, and nothing is counted twice.
    ended = manager.metrics()
    assert all(ended[name] > 0 for name in names)
    assert all(manager.metrics()[name] == 0 for name in names)


def test_collecting_and_publishing_are_phases_of_the_agents_clock() -> None:
    with Workers(small_config()) as manager:
        manager.agent.clock.lap()
        manager.epoch()
        phases = manager.agent.clock.lap()
    assert phases["collect"] > 0
    assert phases["synchronize"] > 0
    assert "env" not in phases


def test_stop_workers_is_shutdown() -> None:
    manager = Workers(small_config())
    assert manager.start_workers() is True
    manager.stop_workers()
    assert not manager.is_running
    with pytest.raises(RuntimeError, match=r"^the workers were shut down$"):
        manager.start_workers()


def test_what_the_learner_gives_back_is_counted_as_interrupted() -> None:
    with Workers(small_config()) as manager:
        manager.collect_experiences(SEGMENT)
        manager.give_back(SEGMENT)
        account = manager.account()
    assert (account.trained, discarded(account)) == (0, {"interrupted": SEGMENT})

"""ParallelManager: workers bring what serial play brings; pause, reset, lag, statistics, what is refused."""

import pytest
from parallel_play import (
    GAMES,
    MOVES,
    SEGMENT,
    InProcess,
    Workers,
    begun,
    contents,
    learn,
    new_agent,
    one_thread,  # noqa: F401  (a fixture)
    small_config,
    undisturbed,
)

from keisei.shogi import Color
from keisei.shogi.vector import VectorGames
from keisei.training.parallel.parallel_manager import ParallelManager, begin_games
from keisei.training.rollout import SelfPlay

# ------------------------------------------------------------------------ the same as in one process


@pytest.mark.parametrize("use_shared_memory", [True, False])
def test_one_worker_plays_what_serial_self_play_does(use_shared_memory: bool) -> None:
    config = small_config(use_shared_memory=use_shared_memory)
    agent, serial_agent = new_agent(config), new_agent(config)
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

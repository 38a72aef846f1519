"""The search of self-play against a plain one in Python, and everything random by key."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from gumbel_reference import GumbelReference, KeyedRandom, rounds
from search_reference import greedy_play, hashed, uniform

from keisei.core.keyed_random import uniforms
from keisei.search.puct import Evaluate
from keisei.search.self_play_search import Decided, SelfPlaySearch, SelfPlaySettings
from keisei.search.trees import Halving, SearchTrees
from keisei.shogi import Color, Move, ShogiGame, encoding
from keisei.shogi.positions import Positions
from keisei.shogi.vector import Batch, VectorGames

MATE = "8k/9/7GG/9/9/9/9/9/K8 b - 1"
SEED = 11


def decided(
    games: VectorGames, settings: SelfPlaySettings, evaluate: Evaluate = hashed, threads: int = 1
) -> Decided:
    search = SelfPlaySearch(len(games), settings, threads=threads)
    found = Decided.empty(len(games), settings.candidates)
    decide(search, games, evaluate, found)
    return found


def decide(search: SelfPlaySearch, games: VectorGames, evaluate: Evaluate, found: Decided) -> int:
    """Search and return the number of positions evaluated."""
    rows = 0
    search.begin(games)
    while (positions := search.select()) is not None:
        rows += len(positions)
        search.expand(*evaluate(positions))
    search.decide(games, found)
    return rows


def middle_games(count: int, plies: int = 60) -> VectorGames:
    return VectorGames(count, seed=SEED, random_plies=plies, max_moves=plies + 40)


def move_of(game: ShogiGame, action: int) -> Move:
    return encoding.move_of(action, game.turn)


@pytest.mark.parametrize(
    ("candidates", "simulations", "expected"),
    [
        (8, 16, [0] * 8 + [1] * 4 + [2, 2, 3, 3]),
        (4, 4, [0, 0, 0, 0]),
        (1, 3, [0, 1, 2]),
        (2, 5, [0, 0, 1, 1, 2]),
        (5, 12, [0] * 5 + [1, 1, 2, 2, 3, 3, 4]),
    ],
)
def test_rounds_by_hand(candidates: int, simulations: int, expected: list[int]) -> None:
    """The reference's own plan, worked out on paper."""
    assert rounds(candidates, simulations) == expected


@pytest.mark.parametrize(
    ("candidates", "simulations"), [(8, 16), (4, 7), (16, 40), (1, 5), (3, 2), (2, 30), (5, 12)]
)
def test_every_visit_is_that_of_the_plain_search(candidates: int, simulations: int) -> None:
    proven = 0
    for seed in range(6):
        played = [game.copy() for game in greedy_play(seed)]
        for back in (40, 8, 4, 3, 2):
            game = played[-back]
            if game.outcome() is not None:
                continue
            reference = GumbelReference(
                game, hashed, candidates=candidates, simulations=simulations, repetition_draws=True
            )
            reference.search()
            plan = Halving(candidates, 1 + simulations)
            trees = SearchTrees([game], c_puct=1.5, fpu=0.25, leaves=1, max_nodes=10_000, halving=plan)
            while not trees.finished():
                leaves = trees.select()
                if len(leaves):
                    trees.expand(*hashed(leaves))
            lines, visits, nodes = trees.result(0, 600)
            assert visits == reference.root.visits
            assert nodes == reference.nodes
            proven += reference.root.result is not None
            for line in lines:
                child = reference.root.children.get(line.move)
                assert line.visits == (child.visits if child else 0)
            if reference.root.result is None:
                assert lines[0].move == chosen_by(reference)
    assert proven


def chosen_by(reference: GumbelReference) -> Move:
    """Return the best of the most visited moves that are not proven to lose, or else of the others."""
    alive = [move for move in reference.root.priors if not proven(reference, move)]
    most = max(reference.visits(move) for move in alive)
    return max([move for move in alive if reference.visits(move) == most], key=reference.score)


def proven(reference: GumbelReference, move: Move) -> bool:
    child = reference.root.children.get(move)
    return child is not None and child.result == "win"


@pytest.mark.parametrize(("candidates", "simulations"), [(8, 16), (3, 9)])
def test_noise_values_and_gains_are_those_of_the_plain_search(candidates: int, simulations: int) -> None:
    settings = SelfPlaySettings(share=1.0, candidates=candidates, simulations=simulations)
    games = middle_games(12)
    batch = Batch.empty(12)
    for _ in range(4):
        found = decided(games, settings)
        for i, number in enumerate(games.numbers):
            game = games.game(i)
            random = KeyedRandom(SEED, number, game.ply)
            random.uniform()  # whether to search
            noise = {move: np.float32(random.gumbel()) for move in game.legal_moves()}
            reference = GumbelReference(
                game,
                hashed,
                candidates=candidates,
                simulations=simulations,
                noise={move: float(value) for move, value in noise.items()},
            )
            reference.search()
            tried = {
                move_of(game, int(action)): float(gain)
                for action, gain in zip(found.tried[i], found.gains[i], strict=True)
                if action >= 0
            }
            if reference.root.result == "win":
                assert found.values[i] == 1
                assert tried[move_of(game, int(found.actions[i]))] == 6
                continue
            assert move_of(game, int(found.actions[i])) == chosen_by(reference)
            assert found.values[i] == pytest.approx(
                reference.root.value_sum / reference.root.visits, abs=1e-6
            )
            assert tried == pytest.approx(reference.gains(), abs=1e-4)
            assert found.surprise[i] == pytest.approx(divergence(reference), abs=1e-4)
            prior = reference.root.priors[move_of(game, int(found.actions[i]))]
            assert found.log_probs[i] == pytest.approx(math.log(prior), abs=1e-5)
        games.step(found.actions, batch)


def divergence(reference: GumbelReference) -> float:
    """Return KL(softmax(log priors + gains), priors), term by term."""
    gains, priors = reference.gains(), reference.root.priors
    weights = {move: prior * math.exp(gains.get(move, 0.0)) for move, prior in priors.items()}
    total, prior_total = sum(weights.values()), sum(priors.values())
    return sum(
        weight / total * math.log((weight / total) / (priors[move] / prior_total))
        for move, weight in weights.items()
        if weight > 0
    )


def test_without_a_search_the_policy_is_sampled_by_the_same_number_as_ever() -> None:
    games = middle_games(40)
    found = decided(games, SelfPlaySettings(share=0.0))
    plies = np.array([games.game(i).ply for i in range(40)])
    chances = uniforms(SEED, np.array(games.numbers, np.uint64), plies)
    sampled = 0
    for i in range(40):
        game = games.game(i)
        if found.tried[i, 0] >= 0:  # a win at once
            continue
        positions = Positions.of_games([game])
        priors, values = hashed(positions)
        ends = np.cumsum(priors.astype(np.float64))
        column = int(np.searchsorted(ends, chances[i] * ends[-1], side="right"))
        assert found.actions[i] == positions.actions[column]
        assert found.values[i] == values[0]
        assert (found.tried[i] == -1).all()
        assert not found.gains[i].any()
        assert found.surprise[i] == 0
        sampled += 1
    assert sampled > 30


def test_a_temperature_sharpens_or_blurs_the_choice() -> None:
    start = ShogiGame()
    positions = Positions.of_games([start])
    priors = hashed(positions)[0].astype(np.float64)
    for temperature in (0.5, 3.0):
        games = VectorGames(3000, seed=SEED)
        found = decided(games, SelfPlaySettings(share=0.0, temperature=temperature))
        powers = priors ** (1 / temperature)
        expected = dict(zip(positions.actions.tolist(), powers / powers.sum(), strict=True))
        for action, probability in expected.items():
            deviation = math.sqrt(probability * (1 - probability) / 3000)
            assert abs(float((found.actions == action).mean()) - probability) < 5 * deviation + 1e-9


def test_the_share_of_searched_moves_is_what_was_asked_for() -> None:
    games = middle_games(600, plies=20)
    found = decided(games, SelfPlaySettings(share=0.3, simulations=2, candidates=2), uniform)
    searched = float((found.tried[:, 0] >= 0).mean())
    assert abs(searched - 0.3) < 0.08  # 4 deviations


def test_a_win_at_once_is_played_and_taught_without_an_evaluation() -> None:
    games = VectorGames(3, seed=1, starts=[MATE])
    search = SelfPlaySearch(3, SelfPlaySettings(share=0.0))
    found = Decided.empty(3, 8)
    assert decide(search, games, hashed, found) == 0
    batch = Batch.empty(3)
    finished = games.step(found.actions, batch)
    assert [game.outcome.winner for game in finished] == [Color.BLACK] * 3
    assert (found.values == 1).all()
    assert (found.log_probs == 0).all()
    assert (found.gains[:, 0] == 6).all()
    assert ((found.tried == found.actions[:, None]) & (found.gains == 6)).any(1).all()


def test_what_is_decided_does_not_depend_on_neighbours_or_threads() -> None:
    settings = SelfPlaySettings(share=0.5)
    together = decided(middle_games(12), settings)
    threaded = decided(middle_games(12), settings, threads=3)
    for name in Decided.__slots__:
        assert np.array_equal(getattr(together, name), getattr(threaded, name)), name
    half = VectorGames(6, seed=SEED, random_plies=60, max_moves=100, first_number=6, stride=6)
    alone = decided(half, settings)
    for name in Decided.__slots__:
        assert np.array_equal(getattr(together, name)[6:], getattr(alone, name)), name


def test_the_network_is_asked_once_about_a_position() -> None:
    """The evaluation of the played move is used at the next move: same results, fewer evaluations."""
    settings = SelfPlaySettings(share=1.0)
    results: list[list[npt.NDArray[np.int32]]] = []
    asked = []
    for forgets in (False, True):
        games, search, batch = middle_games(8), SelfPlaySearch(8, settings), Batch.empty(8)
        found, rows, moves = Decided.empty(8, 8), 0, []
        for _ in range(10):
            if forgets:
                search = SelfPlaySearch(8, settings)
            rows += decide(search, games, hashed, found)
            moves.append(found.actions.copy())
            games.step(found.actions, batch)
        results.append(moves)
        asked.append(rows)
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    assert asked[0] <= asked[1] - 50


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"share": 1.5}, "share is 1.5"),
        ({"share": math.nan}, "share is nan"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"simulations": 0}, "simulations is 0, expected 1"),
        ({"candidates": 0}, "candidates is 0, expected 1"),
        ({"c_scale": -1.0}, "c_scale is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, float], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        SelfPlaySearch(2, SelfPlaySettings(**changes))  # type: ignore[arg-type]


def test_calls_in_the_wrong_order_or_of_other_games_are_refused() -> None:
    search, found = SelfPlaySearch(2, SelfPlaySettings()), Decided.empty(2, 8)
    with pytest.raises(ValueError, match="expected begin"):
        search.select()
    with pytest.raises(ValueError, match="expected begin"):
        search.expand(np.empty(0, np.float32), np.empty(0, np.float32))
    with pytest.raises(ValueError, match="3 games, expected 2"):
        search.begin(VectorGames(3, seed=1))
    games = VectorGames(2, seed=1)
    search.begin(games)
    with pytest.raises(ValueError, match="not finished"):
        search.decide(games, found)
    positions = search.select()
    assert positions is not None
    priors, values = hashed(positions)
    with pytest.raises(ValueError, match="values"):
        search.expand(priors, values + 3)


@pytest.mark.parametrize(("turn", "sign"), [("b", 1), ("w", -1)])
def test_a_game_of_maximum_length_is_worth_what_learning_says(turn: str, sign: int) -> None:
    """Black is a rook up, and every move is the last: all simulations end there."""
    start = f"4k4/9/9/9/9/9/9/9/4K3R {turn} - 30"
    for reward in (0.0, 0.5):
        games = VectorGames(2, seed=1, starts=[start], max_moves=30)
        settings = SelfPlaySettings(share=1.0, simulations=8, candidates=4, length_reward=reward)
        found = decided(games, settings, uniform)
        expected = sign * reward * math.tanh(1.0)  # and 0 by the network, once in nine visits
        assert found.values == pytest.approx(np.full(2, expected * 8 / 9), abs=1e-5)

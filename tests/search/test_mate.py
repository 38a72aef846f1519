"""The mate search against brute force, and every mate that it claims against all replies."""

import random
import threading

import pytest
from conftest import random_play
from reference import flip_sfen, flip_usi

from keisei.search.mate import MateAnswer, find_mate
from keisei.shogi import START_SFEN, Move, RulesError, ShogiGame

ROOK_ALONE = "k8/9/9/9/9/9/9/8R/8K b - 1"
HARD = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"  # no mate, but 100,000 nodes
MATE_IN_THREE = "6R2/8k/6P1n/8p/9/9/9/9/K8 b GS 1"


def mates_within(game: ShogiGame, plies: int) -> bool:
    """Return whether the side to move can force mate in this many plies by checks only; tries everything."""
    mates = False
    for move in game.legal_moves() if plies > 0 else []:
        game.push(move)
        mates = game.is_check() and all_replies_mated(game, plies - 1)
        game.pop()
        if mates:
            break
    return mates


def all_replies_mated(game: ShogiGame, plies: int) -> bool:
    replies = game.legal_moves()
    if not replies:
        return True
    if plies < 2:
        return False
    for reply in replies:
        game.push(reply)
        mated = mates_within(game, plies - 1)
        game.pop()
        if not mated:
            return False
    return True


def is_forced(game: ShogiGame, line: tuple[Move, ...]) -> bool:
    """Play the line; after each of its checks, every reply must be mated as soon as the line promises."""
    here = game.copy()
    for index, move in enumerate(line):
        left = len(line) - index - 1
        here.push(move)
        if index % 2 == 0 and not (here.is_check() and all_replies_mated(here, left)):
            return False
    end = here.outcome()
    return end is not None and end.winner is game.turn and str(end.reason) == "checkmate"


def few_pieces(seed: int, count: int = 4, in_hand: int = 3, kings: str = "both") -> ShogiGame:
    """Return a mate problem: a king near its corner, `count` other pieces, up to `in_hand` in hand.

    Black's king is far away or missing.
    """
    draw = random.Random(seed)
    while True:
        pieces = draw.sample(["G", "S", "N", "L", "P", "R", "B", "+P", "+R", "+B", "g", "s", "p", "n"], count)
        squares = draw.sample([(rank, file) for rank in range(4) for file in range(4)], count + 1)
        grid = [["1"] * 9 for _ in range(9)]
        for (rank, file), piece in zip(squares, ["k", *pieces], strict=True):
            grid[rank][8 - file] = piece
        grid[8][0] = "K" if kings == "both" else "1"
        hand = "".join(sorted(draw.sample("GSNLPRB", draw.randrange(in_hand + 1)))) or "-"
        sfen = "/".join("".join(row) for row in grid) + f" b {hand}"
        try:
            return ShogiGame(f"{sfen} 1", max_moves=None, declaration="off", kings=kings)
        except ValueError:
            continue


@pytest.mark.parametrize(("count", "in_hand", "kings"), [(4, 3, "both"), (6, 1, "both"), (5, 2, "defender")])
def test_mates_in_one_and_three_are_found_exactly_where_brute_force_finds_them(
    count: int, in_hand: int, kings: str
) -> None:
    found: dict[tuple[str, int | None], int] = {}
    for seed in range(200):
        game = few_pieces(seed, count, in_hand, kings)
        answer = find_mate(game, max_nodes=1000)
        shortest = next((plies for plies in (1, 3) if mates_within(game, plies)), None)
        found[answer.kind, shortest] = found.get((answer.kind, shortest), 0) + 1
        assert answer.kind == "mate" if shortest else len(answer.line) not in (1, 3), game.sfen()
    assert min(found[key] for key in [("mate", 1), ("mate", 3), ("mate", None), ("nomate", None)]) > 8


def test_no_mate_is_denied_where_brute_force_finds_one_in_five() -> None:
    denied = 0
    for seed in range(60):
        game = few_pieces(seed, 6, 1)
        if find_mate(game, max_nodes=1000).kind == "nomate":
            assert not mates_within(game, 5), game.sfen()
            denied += 1
    assert denied > 20


@pytest.mark.parametrize("kings", ["both", "defender"])
def test_every_claimed_mate_is_forced(kings: str) -> None:
    lengths = set()
    for seed in range(300, 500):
        game = few_pieces(seed, kings=kings)
        answer = find_mate(game, max_nodes=1000)
        if answer.kind == "mate" and len(answer.line) <= 7:
            assert is_forced(game, answer.line), game.sfen()
            lengths.add(len(answer.line))
    assert lengths == {1, 3, 5, 7}


def test_mates_of_real_games_are_found() -> None:
    found = 0
    for seed in range(12):
        for game in random_play(seed, 250):
            if game.legal_moves() and game.ply > 100 and mates_within(game, 1):
                answer = find_mate(game, max_nodes=100)
                assert answer.kind == "mate"
                assert is_forced(game, answer.line)
                found += 1
    assert found > 20


def test_mate_with_a_dropped_pawn_is_none_but_with_a_moved_pawn_it_is() -> None:
    dropped = ShogiGame("7nk/9/7G1/9/9/9/9/9/K8 b P 1")
    moved = ShogiGame("7nk/9/7GP/9/9/9/9/9/K8 b - 1")
    assert find_mate(dropped).kind == "nomate"
    assert find_mate(moved).line in {
        (Move.from_usi("1c1b"),),
        (Move.from_usi("1c1b+"),),
        (Move.from_usi("2c2b"),),
    }


@pytest.mark.parametrize(
    ("sfen", "line"),
    [
        ("4k4/9/4P4/9/9/9/9/9/9 b G 1", "G*5b"),
        # The rook would give check to a king on 5i.
        ("4k4/9/4P4/9/9/9/9/4r4/9 b G 1", "G*5b"),
        # A knight, with the king shut in by its own pieces.
        ("7lk/7np/9/9/9/9/9/9/9 b N 1", "N*2c"),
        ("7nk/9/7G1/9/9/9/9/9/9 b P 1", None),  # P*1b would be mate, but is illegal
        ("4k4/9/9/9/9/9/9/9/9 b G 1", None),
        ("4k4/9/9/9/9/9/9/9/9 b P 1", None),
        ("k8/9/9/9/9/9/9/8R/9 b - 1", None),  # checks for ever
    ],
)
@pytest.mark.parametrize("flip", [False, True])
def test_mate_problems_without_the_attackers_king(sfen: str, line: str | None, flip: bool) -> None:
    answer = find_mate(ShogiGame(flip_sfen(sfen) if flip else sfen, kings="defender"))
    if line is None:
        assert answer == MateAnswer("nomate")
    else:
        assert answer == MateAnswer("mate", (Move.from_usi(flip_usi(line) if flip else line),))


@pytest.mark.parametrize("sfen", [MATE_IN_THREE.replace("K8", "9"), "9/5p+R2/9/5n1k1/9/9/9/9/9 b LP 1"])
def test_a_longer_mate_without_the_attackers_king_is_forced(sfen: str) -> None:
    game = ShogiGame(sfen, kings="defender")
    assert not mates_within(game, 1)
    answer = find_mate(game)
    assert answer.kind == "mate"
    assert len(answer.line) == 3
    assert is_forced(game, answer.line)


def test_without_a_king_there_are_no_counter_checks() -> None:
    """The knight takes the lance with check: a king on 2e must move; without one, G*1b mates."""
    counter_check = "6Gnk/9/7Sg/8L/7K1/9/9/9/9 b - 1"
    assert find_mate(ShogiGame(counter_check)).kind == "nomate"
    problem = ShogiGame(counter_check.replace("7K1", "9"), kings="defender")
    answer = find_mate(problem)
    assert [str(move) for move in answer.line] == ["1d1c", "2a1c", "G*1b"]
    assert is_forced(problem, answer.line)


def test_the_defender_to_move_cannot_mate_who_has_no_king() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/9 b G2r 1", kings="defender")
    game.push("G*1i")
    assert find_mate(game) == MateAnswer("nomate")


def test_perpetual_check_is_no_mate() -> None:
    assert find_mate(ShogiGame(ROOK_ALONE, max_moves=None, declaration="off")).kind == "nomate"


def test_the_attacker_must_give_check_with_every_move() -> None:
    game = ShogiGame("7k1/9/5N2B/7G1/9/9/9/9/K8 b - 1", declaration="off")
    assert find_mate(game).kind == "nomate"
    for move in ("2d2c", "2a1a"):  # a quiet move, and then there is a mate
        game.push(move)
    assert find_mate(game).line == (Move.from_usi("2c2b"),)


def test_a_position_that_stood_three_times_is_no_way_to_mate() -> None:
    """The only mate starts with 1a1b, to a position whose fourth occurrence would end the game."""
    game = ShogiGame("9/6nP+P/8k/5SB2/9/9/9/9/K8 w G 2", max_moves=None, declaration="off")
    for move in ["1c1d", "1b1a", "1d1c", *["1a1b", "1c1d", "1b1a", "1d1c"] * 2]:
        game.push(move)
    fresh = ShogiGame(game.sfen(), max_moves=None, declaration="off")
    assert find_mate(fresh).line[0] == Move.from_usi("1a1b")
    assert find_mate(game).kind == "nomate"


def test_a_kings_try_saves_it_from_mate() -> None:
    sfen = "K8/9/9/9/9/9/4Bg3/2+B6/3S1k3 b G 1"
    assert list(map(str, find_mate(ShogiGame(sfen)).line)) == ["G*3i", "4i5i", "5g6h"]
    assert find_mate(ShogiGame(sfen, declaration="try")).kind == "nomate"


def test_a_position_with_many_checks_and_no_mate_comes_to_an_end() -> None:
    assert find_mate(ShogiGame(HARD), max_nodes=500_000).kind == "nomate"


def test_a_mate_after_the_maximum_length_is_not_promised() -> None:
    length = len(find_mate(ShogiGame(MATE_IN_THREE)).line)
    board = MATE_IN_THREE.removesuffix(" 1")
    assert find_mate(ShogiGame(f"{board} {512 - length + 1}")).kind == "mate"
    assert find_mate(ShogiGame(f"{board} {512 - length + 2}")).kind == "unknown"


def test_limits_are_kept() -> None:
    hard = ShogiGame(HARD, max_moves=None, declaration="off")
    assert find_mate(hard, max_nodes=1).kind == "unknown"
    assert find_mate(hard, max_nodes=10**12, seconds=0.05).kind == "unknown"
    asked: list[bool] = []

    def third_time() -> bool:
        asked.append(True)
        return len(asked) == 3

    assert find_mate(hard, max_nodes=10**12, should_stop=third_time).kind == "unknown"
    assert len(asked) == 3


def test_the_largest_limit_is_none() -> None:
    for sfen, kind in [(START_SFEN, "nomate"), (MATE_IN_THREE, "mate")]:
        assert find_mate(ShogiGame(sfen), max_nodes=2**63 - 1, seconds=60).kind == kind


def test_an_exception_of_should_stop_comes_out() -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_mate(ShogiGame(HARD), max_nodes=10**12, should_stop=interrupted)


def test_other_threads_go_on_meanwhile() -> None:
    hard = ShogiGame(HARD, max_moves=None)
    answers: list[MateAnswer] = []
    stop = threading.Event()
    search = threading.Thread(
        target=lambda: answers.append(find_mate(hard, max_nodes=10**12, should_stop=stop.is_set))
    )
    search.start()
    stop.set()
    search.join(timeout=20)
    assert answers == [MateAnswer("unknown")]


def test_what_cannot_be_searched_is_refused() -> None:
    over = ShogiGame(MATE_IN_THREE)
    for move in find_mate(over).line:
        over.push(move)
    with pytest.raises(RulesError, match="game: the game is over, checkmate"):
        find_mate(over)
    with pytest.raises(ValueError, match="max_nodes is 0, expected at least 1"):
        find_mate(ShogiGame(), max_nodes=0)
    with pytest.raises(ValueError, match="seconds is -1"):
        find_mate(ShogiGame(), seconds=-1)
    with pytest.raises(TypeError, match="game: expected a ShogiGame"):
        find_mate("startpos")  # type: ignore[arg-type]

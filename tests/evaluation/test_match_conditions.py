"""Openings: equal for equal seeds and for both games of a pair; mistakes are reported with file and line."""

from pathlib import Path

import pytest

from keisei.evaluation import (
    GreedyPlayer,
    MatchConditions,
    PlayedGame,
    RandomPlayer,
    play_match,
    read_openings,
)
from keisei.shogi import START_SFEN, NotationError, RulesError, ShogiGame

BARE_KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
CLOSE = "sfen k8/2G6/1G7/9/9/9/9/9/8K b G 1"  # one in five of Black's moves gives mate
ROOK_HANDICAP = "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"


def history(game: ShogiGame) -> list[str]:
    return [str(move) for move in game.history]


def pairs_of(conditions: MatchConditions, games: int, seed: int = 1) -> list[tuple[PlayedGame, PlayedGame]]:
    pairs: list[tuple[PlayedGame, PlayedGame]] = []
    play_match(
        GreedyPlayer(1),
        RandomPlayer(2),
        games=games,
        conditions=conditions,
        seed=seed,
        on_pair=lambda *pair: pairs.append(pair),
    )
    return sorted(pairs, key=lambda pair: pair[0].pair)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "openings.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_same_seed_gives_the_same_opening_and_another_seed_or_pair_another() -> None:
    conditions = MatchConditions(random_plies=6)
    first = [history(conditions.begin(pair, seed=7)) for pair in range(20)]
    assert [history(conditions.begin(pair, seed=7)) for pair in range(20)] == first
    assert all(len(opening) == 6 for opening in first)
    assert len({tuple(opening) for opening in first}) == 20
    assert [history(conditions.begin(pair, seed=8)) for pair in range(20)] != first
    # A longer opening begins with the shorter one: the number drawn depends on the ply alone.
    assert history(MatchConditions(random_plies=3).begin(5, seed=7)) == first[5][:3]


def test_random_moves_never_end_the_game() -> None:
    conditions = MatchConditions(random_plies=9, max_moves=30, openings=(CLOSE,))
    openings = [conditions.begin(pair, seed=3) for pair in range(300)]
    assert all(game.outcome() is None and not game.can_declare() for game in openings)
    lengths = [len(game.history) for game in openings]
    assert min(lengths) == 0  # the very first move would have been mate
    assert max(lengths) == 9
    assert len(MatchConditions(random_plies=200, max_moves=10).begin(0, seed=1).history) == 9


def test_a_declaration_is_an_end_that_random_moves_do_not_reach() -> None:
    # Whatever Black plays, White may declare: ten pieces and the king in the camp, and 29 points.
    ready = ("sfen 4K4/9/9/9/9/9/+p+p+p+p+p+p+p+p+p/+b8/4k4 b 2rb 1",)
    assert not MatchConditions(random_plies=5, openings=ready).begin(0, seed=1).history
    assert (
        len(MatchConditions(random_plies=5, declaration="off", openings=ready).begin(0, seed=1).history) == 5
    )


def test_positions_of_a_file_are_taken_in_turn_and_played_with_both_colours(tmp_path: Path) -> None:
    path = written(
        tmp_path, f"# openings\n\n{START_SFEN}\n  sfen {ROOK_HANDICAP}\nposition sfen {BARE_KINGS}\n"
    )
    openings = read_openings(path)
    assert openings == (f"sfen {START_SFEN}", f"sfen {ROOK_HANDICAP}", f"sfen {BARE_KINGS}")
    pairs = pairs_of(MatchConditions(0, 40, openings=openings), games=14)
    for number, (first, second) in enumerate(pairs):
        expected = [START_SFEN, ROOK_HANDICAP, BARE_KINGS][number % 3]
        assert first.game.start_sfen == second.game.start_sfen == expected
        assert (first.black, first.white) == ("greedy", "random")
        assert (second.black, second.white) == ("random", "greedy")
        assert first.opening == second.opening == 0


def test_a_line_with_moves_keeps_its_history(tmp_path: Path) -> None:
    # The same position three times in the line: the fourth time is a draw.
    there_and_back = "2h3h 8b7b 3h2h 7b8b"
    path = written(tmp_path, f"startpos moves {there_and_back} {there_and_back}\n")
    game = MatchConditions(0, openings=read_openings(path)).begin(0, seed=1)
    assert history(game) == f"{there_and_back} {there_and_back}".split()
    for move in there_and_back.split():
        game.push(move)
    assert str(game.outcome()) == "draw by repetition"
    record = pairs_of(MatchConditions(2, 40, openings=read_openings(path)), games=2)[0][0]
    assert record.opening == 10
    assert [str(move) for move in record.record().moves[:8]] == f"{there_and_back} {there_and_back}".split()


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfposition startpos moves 7g7f\r\n\r\nstartpos\r\n")
    assert read_openings(path) == ("startpos moves 7g7f", "startpos")


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("startpos\n\nnonsense\n", NotationError, "line 3: bad sfen 'nonsense'"),
        ("# first\nsfen 9/9 b - 1\n", NotationError, "line 2: bad sfen"),
        ("startpos moves 7g7e\n", RulesError, "line 1: move 1: illegal move 7g7e in position"),
        ("startpos moves 7g\n", NotationError, "line 1: "),
        ("9/9/9/9/9/9/9/9/4K4 b - 1\n", (NotationError, RulesError), "line 1: "),
        (
            "\n8k/8G/8G/9/9/9/9/9/K8 w - 1\n",
            RulesError,
            "line 2: the game is already over, expected a position",
        ),
        ("# nothing\n\n", NotationError, "has no positions: expected an SFEN on each line"),
        (b"\xff\xfe\x00", NotationError, "is not a text file: expected an SFEN on each line, in UTF-8"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_file_and_line(
    tmp_path: Path, text: str | bytes, kind: type[Exception], says: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(kind) as caught:
        read_openings(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"random_plies": -1}, "random_plies is -1, expected 0 or more"),
        ({"max_moves": 0}, "max_moves is 0"),
        ({"declaration": "28"}, "declaration is '28', expected"),
        ({"openings": ()}, "openings is empty, expected at least one position"),
        ({"max_moves": 2, "openings": ("startpos moves 7g7f 3c3d 2g2f",)}, "opening 1, startpos moves 7g7f"),
        (
            {"max_moves": 3, "openings": ("startpos", "startpos moves 7g7f 3c3d 2g2f")},
            "opening 2, startpos moves 7g7f 3c3d 2g2f: the game is already over (at most 3 moves,",
        ),
    ],
)
def test_conditions_under_which_nobody_can_play_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises((ValueError, RulesError)) as caught:
        MatchConditions(**settings)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_conditions_are_told_apart_by_everything_that_they_say(tmp_path: Path) -> None:
    other = read_openings(written(tmp_path, f"{BARE_KINGS}\n"))
    different = [
        MatchConditions(),
        MatchConditions(random_plies=5),
        MatchConditions(max_moves=511),
        MatchConditions(declaration="24"),
        MatchConditions(openings=other),
        MatchConditions(openings=(*other, "startpos")),
        MatchConditions(openings=("startpos", *other)),
    ]
    assert len({str(one) for one in different}) == len(different)
    assert str(MatchConditions()) == "startpos, 4 random plies, at most 512 moves, declaration 27"
    assert str(MatchConditions(openings=other)).startswith("1 opening ")

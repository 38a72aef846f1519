"""A tournament: matches resume where they stopped; results and files hold every game once."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from keisei.evaluation import Answer, Lost, MatchConditions, MatchResult, Player, RandomPlayer, Turn
from keisei.evaluation.matches import game_files as game_files_module
from keisei.evaluation.matches.game_files import GameFiles
from keisei.evaluation.matches.match import PlayedGame, play_match
from keisei.evaluation.matches.results_store import ResultsStore, StoredGame
from keisei.evaluation.matches.tournament import ANCHOR, Tournament, neighbours, scale
from keisei.evaluation.players.player_specs import ONE_THREAD, make_player
from keisei.evaluation.ratings.sprt import Sprt
from keisei.shogi import (
    GameRecord,
    Outcome,
    Reason,
    ShogiGame,
    read_csa_games,
    read_kif,
    read_usi,
    write_csa,
    write_kif,
)

SHORT = MatchConditions(2, 80)
HANDICAP = "sfen lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"


class Watched(RandomPlayer):
    """A random player that counts its requests, and does something on one of them."""

    def __init__(self, at: int | None = None, then: Callable[[], None] | None = None) -> None:
        super().__init__(5)
        self.asked = 0
        self._at, self._then = at, then

    def choose(self, turns: Sequence[Turn]) -> list[Answer]:  # type: ignore[override]
        self.asked += 1
        if self.asked == self._at and self._then is not None:
            self._then()
        return [*super().choose(turns)]


class Unreliable(Player):
    """A player that loses each game at its third move, in one of four ways."""

    name = identity = "unreliable"
    WAYS = (Reason.RESIGNATION, Reason.TIME, Reason.ILLEGAL_MOVE, Reason.FORFEIT)

    def choose(self, turns: Sequence[Turn]) -> list[Answer]:
        return [
            Lost(self.WAYS[turn.number // 2 % 4], "words\nof two lines")
            if len(turn.game.history) >= 6
            else turn.game.legal_moves()[0]
            for turn in turns
        ]


def greedy() -> Player:
    return make_player("greedy", 1)


def play(
    folder: Path,
    player: Player,
    opponent: Player,
    games: int = 16,
    *,
    conditions: MatchConditions = SHORT,
    seed: int = 1,
    should_stop: Callable[[], bool] | None = None,
) -> MatchResult:
    """Play a match, six games at a time: some end long before others begin."""
    with Tournament(folder, conditions, seed) as tournament:
        return tournament.play(player, opponent, games, side_by_side=6, should_stop=should_stop)


def stored(folder: Path) -> list[StoredGame]:
    with ResultsStore.open(folder / "results.sqlite") as results:
        return results.games()


def written(folder: Path) -> list[tuple[str, str, str, Outcome | None]]:
    """Return every game in the files, in the same order in both formats: names, moves, outcome."""
    found = []
    for path in sorted((folder / "games").glob("*.csa")):
        games = read_csa_games(path.read_bytes())
        lines = path.with_suffix(".usi").read_text(encoding="utf-8").splitlines()
        assert [read_usi(line).moves for line in lines] == [game.moves for game in games]
        found += [(game.black, game.white, " ".join(map(str, game.moves)), game.outcome) for game in games]
    return found


def assert_files_have(folder: Path, games: Sequence[StoredGame]) -> None:
    """The files hold these games and no others."""
    there = written(folder)
    assert len({moves for _, _, moves, _ in there}) == len(there)
    facts = [
        (black, white, len(moves.split()), None if outcome is None else outcome.winner)
        for black, white, moves, outcome in there
    ]
    assert Counter(facts) == Counter((game.black, game.white, game.plies, game.winner) for game in games)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MatchResult]:
    """A match of 16 games in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return folder, play(folder, greedy(), Watched())


def assert_same(folder: Path, result: MatchResult, undisturbed: tuple[Path, MatchResult]) -> None:
    expected_folder, expected = undisturbed
    assert result == expected
    assert stored(folder) == stored(expected_folder)
    assert Counter(written(folder)) == Counter(written(expected_folder))


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_match_leaves_every_game_once(undisturbed: tuple[Path, MatchResult]) -> None:
    folder, result = undisturbed
    assert result.games == 16
    assert len(result.reasons) > 1
    games = stored(folder)
    assert len(games) == 16
    assert {(game.conditions, game.seed) for game in games} == {(str(SHORT), 1)}
    assert_files_have(folder, games)


@pytest.mark.parametrize("rounds", [0, 1, 40, 100])
def test_a_match_that_is_stopped_goes_on_where_it_was(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult], rounds: int
) -> None:
    left = iter(range(rounds))
    stopped = play(tmp_path, greedy(), Watched(), should_stop=lambda: next(left, None) is None)
    assert stopped.stopped
    known = stored(tmp_path)
    assert len(known) == stopped.games < 16
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)
    if rounds == 100:
        assert len(known) >= 6


@pytest.mark.parametrize("at", [1, 40, 80])
def test_ctrl_c_in_the_middle_of_a_move_loses_no_game_and_repeats_none(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult], at: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, greedy(), Watched(at, interrupt))
    before = stored(tmp_path)
    assert_files_have(tmp_path, before)
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)


@pytest.mark.parametrize("at", [1, 2, 8])
def test_ctrl_c_while_games_are_written_loses_no_game_and_repeats_none(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    write, calls = game_files_module._append, iter(range(1, 100))

    def interrupted(path: Path, text: str) -> None:
        if next(calls) == at:
            write(path, text[: len(text) // 2])
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(game_files_module, "_append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            play(tmp_path, greedy(), Watched())
    assert len(stored(tmp_path)) == 2 * ((at - 1) // 2)
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)


def test_a_match_that_was_played_is_not_played_again(undisturbed: tuple[Path, MatchResult]) -> None:
    folder, result = undisturbed
    files = {path: path.read_bytes() for path in (folder / "games").iterdir()}
    again = Watched()
    assert play(folder, greedy(), again) == result
    assert again.asked == 0
    assert {path: path.read_bytes() for path in (folder / "games").iterdir()} == files
    assert play(folder, greedy(), again, 6).games == 6
    assert again.asked == 0


def test_more_games_are_added_to_those_that_there_are(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult]
) -> None:
    first = play(tmp_path, greedy(), Watched(), 8)
    before = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "games").iterdir()}
    assert first.games == 8
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)
    for name, text in before.items():
        assert (tmp_path / "games" / name).read_text(encoding="utf-8").startswith(text)


def test_it_makes_no_difference_who_is_called_the_player(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult]
) -> None:
    folder, result = undisturbed
    play(tmp_path, Watched(), greedy(), 10)
    turned = play(tmp_path, Watched(), greedy())
    assert (turned.wins, turned.draws, turned.losses) == (result.losses, result.draws, result.wins)
    assert turned.pairs == result.pairs[::-1]
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)
    assert {path.name for path in (tmp_path / "games").iterdir()} == {
        path.name for path in (folder / "games").iterdir()
    }


def test_other_conditions_and_seeds_are_other_games_and_do_not_count(tmp_path: Path) -> None:
    longer = MatchConditions(2, 60)
    play(tmp_path, greedy(), Watched(), 10)
    play(tmp_path, greedy(), Watched(), 12, seed=2)
    play(tmp_path, greedy(), Watched(), 14, conditions=longer)
    assert len(stored(tmp_path)) == 36
    for conditions, seed, games in ((SHORT, 1, 10), (SHORT, 2, 12), (longer, 1, 14), (longer, 2, 0)):
        with Tournament(tmp_path, conditions, seed) as tournament:
            ratings = tournament.ratings()
            if games:
                assert ratings is not None
                assert ratings["greedy"].games == games
            else:
                assert ratings is None
    assert len(list((tmp_path / "games").glob("*.csa"))) == 3
    assert len(written(tmp_path)) == 36


def test_two_who_play_the_same_match_at_once_count_it_once(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult]
) -> None:
    def other() -> None:
        play(tmp_path, greedy(), Watched(), 14)

    result = play(tmp_path, greedy(), Watched(30, other))
    assert_same(tmp_path, result, undisturbed)


def test_a_pair_of_which_only_one_game_is_known_is_played(
    tmp_path: Path, undisturbed: tuple[Path, MatchResult]
) -> None:
    with ResultsStore.open(tmp_path / "results.sqlite") as results:
        results.add([game for game in stored(undisturbed[0]) if game.pair == 0 and game.black == "greedy"])
    assert_same(tmp_path, play(tmp_path, greedy(), Watched()), undisturbed)


def test_a_test_decides_by_games_that_were_played_before(tmp_path: Path) -> None:
    result = play(tmp_path, greedy(), Watched(), 30, conditions=MatchConditions(2, 110))
    test, again = Sprt(0, 100), Watched()
    with Tournament(tmp_path, MatchConditions(2, 110), 1) as tournament:
        decided = tournament.play(greedy(), again, 30, sprt=test)
        longer = tournament.play(greedy(), again, 60, sprt=test)
    assert result.games == 30
    assert decided.test == longer.test == "SPRT 0 to 100 Elo: H1"
    assert decided.games == longer.games < 30
    assert again.asked == 0


def test_a_player_does_not_play_itself(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^greedy cannot play against itself, expected two different players$"
    ):
        play(tmp_path, greedy(), make_player("greedy", 2))
    assert stored(tmp_path) == []


def renamed(name: str, identity: str) -> Player:
    player = RandomPlayer(int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big"))
    player.name, player.identity = name, identity
    return player


def test_any_name_is_a_file_and_players_of_one_name_have_files_of_their_own(tmp_path: Path) -> None:
    strange = ["../../etc/x", "a b;c=d", "形勢" * 60, "x" * 300, "", "."]
    for number, name in enumerate(strange):
        play(tmp_path, renamed(name, f"identity {number}"), Watched(), 2)
    play(tmp_path, renamed("twin", "one"), renamed("twin", "other"), 2)
    play(tmp_path, renamed("twin", "one"), renamed("twin", "third"), 2)
    files = list(tmp_path.rglob("*.csa"))
    assert len(files) == len(strange) + 2
    assert {path.parent for path in files} == {tmp_path / "games"}
    assert len(written(tmp_path)) == 2 * len(files)


def test_whatever_a_dead_process_left_the_files_are_whole(tmp_path: Path) -> None:
    games: list[PlayedGame] = []
    play_match(
        greedy(), Watched(), games=6, conditions=MatchConditions(1, 2), on_pair=lambda *two: games.extend(two)
    )
    whole = GameFiles(tmp_path, ("a", "b"), "whole")
    whole.add(games[:4], lambda: 0)
    kept = [path.read_bytes() for path in (whole.csa, whole.usi)]
    whole.add(games[4:], lambda: 4)
    complete = [path.read_bytes() for path in (whole.csa, whole.usi)]
    for kind in (0, 1):
        for size in range(len(kept[kind]), len(complete[kind]) + 1):
            files = GameFiles(tmp_path, ("a", "b"), "torn")
            # CSA is written first: if it is partial, there is no USI yet; if USI is partial, CSA is complete.
            files.csa.write_bytes(complete[0][:size] if kind == 0 else complete[0])
            files.usi.write_bytes(kept[1] if kind == 0 else complete[1][:size])
            files.add(games[4:], lambda: 4)
            assert [path.read_bytes() for path in (files.csa, files.usi)] == complete, (kind, size)
    files = GameFiles(tmp_path, ("a", "b"), "first")
    files.csa.write_bytes(complete[0][:50])
    files.add(games, lambda: 0)
    assert [path.read_bytes() for path in (files.csa, files.usi)] == complete


def test_files_that_somebody_has_removed_begin_anew(tmp_path: Path) -> None:
    play(tmp_path, greedy(), Watched(), 8)
    for path in (tmp_path / "games").iterdir():
        path.unlink()
    assert play(tmp_path, greedy(), Watched(), 12).games == 12
    assert len(stored(tmp_path)) == 12
    assert len(written(tmp_path)) == 4


def test_another_program_reads_every_game_as_it_was(tmp_path: Path) -> None:
    rsshogi = pytest.importorskip("rsshogi.record", reason="rsshogi has no build for this Python")
    conditions = MatchConditions(1, 150, openings=("startpos moves 7g7f 3c3d", HANDICAP))
    play(tmp_path, greedy(), Watched(), 12, conditions=conditions)
    play(tmp_path, make_player("material", 1), Unreliable(), 8, conditions=conditions)
    ways = {Reason.TIME: "_BY_TIMEOUT", Reason.ILLEGAL_MOVE: "_BY_ILLEGAL_MOVE"}
    reasons = Counter(game.reason for game in stored(tmp_path))
    assert reasons.keys() >= {"checkmate", "resignation", "time", "illegal move", "forfeit"}
    seen = 0
    for path in (tmp_path / "games").glob("*.csa"):
        parts = path.read_text(encoding="utf-8").split("\n/\n")
        lines = path.with_suffix(".usi").read_text(encoding="utf-8").splitlines()
        ours = read_csa_games(path.read_bytes())
        for record, text, line in zip(ours, parts, lines, strict=True):
            seen += 1
            moves = [str(move) for move in record.moves]
            outcome = record.outcome
            assert outcome is not None
            result = rsshogi.GameResult.DRAW_BY_MAX_PLIES
            if outcome.winner is not None:
                word = f"{outcome.winner.name}_WIN{ways.get(outcome.reason, '')}"
                result = rsshogi.GameResult.from_str(word)
            for theirs in (rsshogi.Record.from_csa_str(text), rsshogi.Record.from_kif_str(write_kif(record))):
                assert [entry.move.to_usi() for entry in theirs.moves] == moves
                assert theirs.result == result
                assert (theirs.metadata.black_player, theirs.metadata.white_player) == (
                    record.black,
                    record.white,
                )
                assert ShogiGame(theirs.init_position_sfen).sfen() == record.sfen
            position = rsshogi.Record.from_usi_position(line)
            assert [entry.move.to_usi() for entry in position.moves] == moves
            assert read_kif(write_kif(record)).moves == record.moves
            assert text.strip() == write_csa(record).strip()
    assert seen == 20
    assert_files_have(tmp_path, stored(tmp_path))


def test_records_tell_a_fault_in_words(tmp_path: Path) -> None:
    play(tmp_path, make_player("material", 1), Unreliable(), 2)
    (path,) = (tmp_path / "games").glob("*.csa")
    records: list[GameRecord] = read_csa_games(path.read_bytes())
    for record in records:
        assert record.comments[len(record.moves)] == "words\nof two lines"


def test_built_in_players_make_a_scale_from_the_anchor_up(tmp_path: Path) -> None:
    assert scale(["best", "alphabeta-6", "greedy", "runs/first"]) == ["random", "greedy", "alphabeta-6"]
    assert scale([]) == [ANCHOR]
    names = [[one.name for one in two] for two in neighbours(["material", "greedy"], 1, ONE_THREAD)]
    assert names == [["greedy", "random"], ["material", "greedy"]]
    with Tournament(tmp_path, SHORT, 1) as tournament:
        tournament.link([], 10)
        assert tournament.ratings() is None
        tournament.link(["material"], 10)
        assert [tuple(row)[:2] for row in tournament.totals()] == [("material", "random")]
        tournament.link(["material", "greedy"], 10, should_stop=lambda: True)
        assert len(stored(tmp_path)) == 10
        tournament.link(["material", "greedy"], 10)
        ratings = tournament.ratings()
    assert ratings is not None
    assert len(stored(tmp_path)) == 30
    assert ratings["random"].elo == 0
    assert ratings["material"].games == 20


def test_later_networks_do_not_count_in_an_earlier_rating(tmp_path: Path) -> None:
    class Step(RandomPlayer):
        def __init__(self, step: int) -> None:
            super().__init__(step)
            self.name = self.identity = f"run@{step}"
            self.step = step

        def describe(self) -> dict[str, str]:
            return {"step": str(self.step)}

    with Tournament(tmp_path, SHORT, 1) as tournament:
        for step in (100, 200, 300):
            tournament.play(Step(step), Watched(), 4)
            tournament.play(Step(step), greedy(), 4)
        tournament.play(Step(300), Step(100), 4)
        counted = {}
        for step in (50, 100, 200, 300):
            ratings = tournament.ratings(up_to=step)
            counted[step] = None if ratings is None else {one.player: one.games for one in ratings.table}
        everything = tournament.ratings()
        players = tournament.results.players()
    assert counted[50] is None
    assert counted[100] == {"run@100": 8, "random": 4, "greedy": 4}
    assert counted[200] == {"run@100": 8, "run@200": 8, "random": 8, "greedy": 8}
    assert counted[300] == {"run@100": 12, "run@200": 8, "run@300": 12, "random": 12, "greedy": 12}
    assert everything is not None
    assert {one.player: one.games for one in everything.table} == counted[300]
    assert players["run@200"].step == 200

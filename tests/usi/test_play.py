import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from usi_talk import PATIENCE

from keisei.errors import UserError
from keisei.language import ENGLISH, JAPANESE
from keisei.shogi import Color, Move, Outcome, Reason, ShogiGame, read_record
from keisei.usi.board_text import board_text
from keisei.usi.network_opponent import NetworkOpponent
from keisei.usi.opponent import Advice, Opponent, Resignation
from keisei.usi.play import Play, main
from keisei.usi.play_setup import PlayError, start_sfen

pytest_plugins = ["usi_fixtures"]

COMMAND = Path(sys.executable).with_name("keisei")
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
DECLARABLE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b 6P 1"
VISITS = 16
HELP = ENGLISH("play.help")

Run = Callable[..., tuple[int, list[str], ShogiGame]]


class FirstMove:
    """An opponent without values that plays the first legal move, or what it is told to answer."""

    name = "first"

    def __init__(self, *answers: Resignation | UserError) -> None:
        self.answers = list(answers)
        self.ended = 0

    def decide(self, game: ShogiGame) -> Move | Resignation:
        if not self.answers:
            return game.legal_moves()[0]
        answer = self.answers.pop(0)
        if isinstance(answer, UserError):
            raise answer
        return answer

    def advise(self, game: ShogiGame) -> None:
        assert game.outcome() is None

    def end(self, game: ShogiGame) -> None:
        self.ended += len(game.history) + 1


@pytest.fixture(scope="module")
def network(checkpoint: Path) -> NetworkOpponent:
    return NetworkOpponent.load(checkpoint, VISITS)


@pytest.fixture
def run(network: NetworkOpponent) -> Run:
    def run(
        *typed: str | BaseException,
        sfen: str | None = None,
        color: Color = Color.BLACK,
        save: Path | None = None,
        max_moves: int = 512,
        opponent: Opponent = network,
    ) -> tuple[int, list[str], ShogiGame]:
        """Play a game from typed lines; return the exit code, what was shown, and the game."""
        waiting, shown = list(typed), []

        def ask(prompt: str) -> str:
            shown.append(prompt)
            if not waiting:
                raise EOFError
            text = waiting.pop(0)
            if isinstance(text, BaseException):
                raise text
            return text

        game = ShogiGame(sfen, max_moves=max_moves)
        code = Play(game, color, opponent, save, ask=ask, show=shown.append).run()
        assert not waiting, f"nobody asked for {waiting}"
        return code, shown, game

    return run


def test_moves_are_answered_by_the_engine_and_shown(run: Run) -> None:
    code, shown, game = run("7g7f", "2g2f")
    assert code == 0
    assert len(game.history) == 4
    assert str(game.history[0]) == "7g7f"
    assert str(game.history[2]) == "2g2f"
    assert f"\n{board_text(game, colors=False)}" in shown
    assert "black, move 1: " in shown
    assert "black, move 3: " in shown


def test_the_engine_begins_when_the_person_is_white(run: Run) -> None:
    _, shown, game = run(color=Color.WHITE)
    assert len(game.history) == 1
    assert "white, move 2: " in shown


def test_mistakes_are_explained_and_the_person_asked_again(run: Run) -> None:
    _, shown, game = run(
        "7g7e", "hello", "", "P*5e", "declare", "58金", "undo", "save nowhere/game.kif", "save a.txt"
    )
    assert game.history == []
    for text in (
        "7g7e is illegal: a P on 7g cannot go to 7e; legal with the piece on 7g: 7g7f",
        "unknown command hello: type help for the list, or a move such as 7g7f",
        "P*5e is illegal: you have no P in hand",
        "58金 may be any of 4i5h 6i5h: expected one of them",
        "you have no move to take back",
        "cannot save to a.txt: expected .csa, .kif, .kifu, .usi",
    ):
        assert text in shown
    assert any("cannot declare" in text for text in shown)
    assert any("no directory nowhere" in text for text in shown)
    assert shown.count("black, move 1: ") == 10


def test_moves_are_typed_in_any_notation(run: Run) -> None:
    _, _, game = run("76歩", "P-2f", "9796FU", "１六歩", opponent=FirstMove())
    assert [str(move) for move in game.history[::2]] == ["7g7f", "2g2f", "9g9f", "1g1f"]


def test_help_moves_hint_and_undo(run: Run) -> None:
    _, shown, game = run("help", "moves", "Hint", "7g7f", "UNDO", "board")
    assert HELP in shown
    listed = " ".join(shown[shown.index(HELP) + 2 :]).split()
    moves = [str(move) for move in game.legal_moves()]
    assert listed[: len(moves)] == sorted(moves)
    hint = shown[shown.index("black, move 1: ", shown.index(HELP) + 4) + 1]
    found = re.fullmatch(r"(\S+), win rate \d+ %; line: (\S+) \S+( \S+)+", hint)
    assert found is not None
    assert found[1] == found[2]
    assert found[1] in moves
    assert game.history == []


def test_a_mate_is_a_hint(run: Run) -> None:
    _, shown, _ = run("hint", sfen=MATE_IN_ONE)
    assert "G*5b, mate in 1; line: G*5b" in shown
    lost = Advice(0.0, -2, (Move.from_usi("7g7f"),))
    assert lost.told(ENGLISH, ShogiGame()) == "7g7f, mated in 2; line: 7g7f"
    assert lost.told(JAPANESE, ShogiGame()) == "▲７六歩  2手で詰まされます  読み筋: ▲７六歩"


def test_an_opponent_without_values_gives_no_hint(run: Run) -> None:
    assert (
        "no hint: first has no values; a trained network gives hints" in run("hint", opponent=FirstMove())[1]
    )


def test_an_opponent_that_resigns_or_fails_does_not_lose_the_game(run: Run, tmp_path: Path) -> None:
    opponent = FirstMove(Resignation("first crashed"))
    _, shown, game = run("7g7f", "", opponent=opponent)
    assert "first crashed" in shown
    assert "black wins by resignation, after 1 moves" in shown
    assert opponent.ended == 2
    path = tmp_path / "game.kif"
    code, shown, game = run("7g7f", save=path, opponent=FirstMove(UserError("first is gone")))
    assert (code, shown[-2:]) == (2, ["first is gone", f"saved {path}"])
    assert list(read_record(path).moves) == game.history


def test_the_person_can_mate_and_is_told(run: Run) -> None:
    code, shown, game = run("G*5b", "", sfen=MATE_IN_ONE)
    assert code == 0
    assert "black wins by checkmate, after 1 moves" in shown
    assert game.outcome() == Outcome(Color.BLACK, Reason.CHECKMATE)


def test_the_engine_mates_and_declares(run: Run) -> None:
    _, shown, game = run("", sfen=MATE_IN_ONE, color=Color.WHITE)
    assert "black wins by checkmate, after 1 moves" in shown
    _, shown, game = run(sfen=DECLARABLE, color=Color.WHITE)
    assert "black wins by declaration, after 0 moves" in shown
    _, shown, game = run("hint", "declare", sfen=DECLARABLE)
    assert "declare" in shown
    assert game.outcome() == Outcome(Color.BLACK, Reason.DECLARATION)


def test_a_handicap_game_is_told_in_its_words_in_japanese() -> None:
    shown: list[str] = []
    waiting = ["76歩", "resign", ""]

    def ask(prompt: str) -> str:
        shown.append(prompt)
        return waiting.pop(0)

    game = ShogiGame(start_sfen(None, "2-piece"))
    Play(game, Color.BLACK, FirstMove(), None, speaker=JAPANESE, ask=ask, show=shown.append).run()
    told = "\n".join(shown)
    assert "あなたは下手、相手は first です" in told
    assert "下手の持駒：なし\n上手番" in told
    assert "下手 2手目: " in shown
    assert "まで3手で上手の勝ち（投了）" in shown
    assert "先手" not in told
    assert "後手" not in told


def test_why_a_game_is_not_saved_is_told_in_japanese(tmp_path: Path) -> None:
    (tmp_path / "old.kif").touch()
    for path, why in (
        (tmp_path / "a.txt", "拡張子は .csa, .kif, .kifu, .usi のどれかにしてください"),
        (tmp_path / "old.kif", "同じ名前のファイルがあります"),
        (tmp_path / "new" / "a.kif", f"{tmp_path / 'new'} というフォルダーがありません"),
    ):
        shown: list[str] = []
        Play(
            ShogiGame(),
            Color.BLACK,
            FirstMove(),
            path,
            speaker=JAPANESE,
            ask=lambda _: "resign",
            show=shown.append,
        ).run()
        assert f"保存できませんでした: {path} には保存できません: {why}" in shown


def test_a_game_ends_by_its_length(run: Run) -> None:
    _, shown, _ = run("7g7f", "", max_moves=2)
    assert "draw by maximum length, after 2 moves" in shown


def test_a_game_is_saved_with_its_end(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    code, shown, game = run("7g7f", "resign", save=path)
    assert (code, shown[-1]) == (0, f"saved {path}")
    record = read_record(path)
    assert list(record.moves) == game.history
    assert record.outcome == Outcome(Color.WHITE, Reason.RESIGNATION)
    assert record.black == "you"
    assert "@512" in record.white


def test_a_file_that_was_saved_on_the_way_gets_the_rest_of_the_game(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "game.csa"
    _, _, game = run("7g7f", f"save {path}", "2g2f", "quit")
    assert len(game.history) == 4
    assert list(read_record(path).moves) == game.history


def test_save_always_saves_and_never_overwrites(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, shown, game = run("save", "7g7f", "save", "quit", opponent=FirstMove())
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"keisei_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.kif", path.name)
    assert shown.count(f"saved {path.name}") == 2
    assert list(read_record(path).moves) == game.history
    for _ in range(2):
        run("2g2f", "save my game", "quit", opponent=FirstMove())
    assert {one.name for one in tmp_path.iterdir()} == {path.name, "my game.kif", "my game-2.kif"}


def test_at_the_end_the_person_is_asked_where_to_save(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    _, _, game = run("7g7f", "quit", str(path))
    assert list(read_record(path).moves) == game.history
    _, shown, _ = run("7g7f", "quit", "")
    assert not any("moves:" in text for text in shown)
    code, shown, _ = run("7g7f", "quit", str(path))
    assert (code, shown[-1]) == (0, f"saved {path.with_stem('game-2')}")
    code, shown, game = run("7g7f", "quit", "nowhere/game.kif")
    assert code == 2
    assert "not saved: cannot save to nowhere/game.kif: no directory nowhere" in shown
    assert shown[-1].endswith(f"position startpos moves 7g7f {game.history[1]}")


@pytest.mark.parametrize(("end", "code"), [(EOFError(), 0), (KeyboardInterrupt(), 130)])
def test_no_game_is_lost_when_the_person_leaves(
    run: Run, tmp_path: Path, end: BaseException, code: int
) -> None:
    path = tmp_path / "game.kif"
    assert run("7g7f", end, save=path)[0] == code
    assert len(read_record(path).moves) == 2
    found, shown, game = run("7g7f", end)
    assert found == code
    assert shown[-1] == (f"the game is not saved; its moves: position startpos moves 7g7f {game.history[1]}")
    assert run(end)[1][-1] == ""  # nothing to save


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"color": "red"}, "color is red, expected black, white or random"),
        ({"save": Path("game.txt")}, "cannot save to game.txt: expected .csa, .kif, .kifu, .usi"),
        ({"save": Path("nowhere/game.kif")}, "cannot save to nowhere/game.kif: no directory"),
    ],
)
def test_a_mistake_in_the_settings_is_reported_before_anything_is_loaded(
    settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PlayError, match=f"^{complaint}"):
        main(lambda: pytest.fail("it was loaded"), ShogiGame(), **settings)


def test_ctrl_c_saves_the_game_and_leaves_without_a_traceback(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    process = subprocess.Popen(
        [COMMAND, "play", checkpoint, "--visits", "0", "--save", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The process that started the tests may have set its children to ignore it.
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("7g7f\n")
        process.stdin.flush()
        while "last move: " not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, "")
    assert len(read_record(path).moves) == 2

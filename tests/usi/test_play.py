import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from usi_talk import PATIENCE

from keisei.shogi import Color, Outcome, Reason, ShogiGame, read_record
from keisei.usi.options import Options
from keisei.usi.play import HANDICAP_NAMES, HELP, Play, PlayError, main, start_sfen
from keisei.usi.thinking import Thinker

pytest_plugins = ["usi_fixtures"]

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
DECLARABLE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b 6P 1"
OPTIONS = Options(visits=16)

Run = Callable[..., tuple[int, list[str], ShogiGame]]


@pytest.fixture(scope="module")
def thinker(checkpoint: Path) -> Thinker:
    return Thinker.load(checkpoint, OPTIONS)


@pytest.fixture
def run(thinker: Thinker) -> Run:
    def run(
        *typed: str | BaseException,
        sfen: str | None = None,
        color: Color = Color.BLACK,
        save: Path | None = None,
        max_moves: int = 512,
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
        code = Play(game, color, thinker, OPTIONS, save, ask=ask, show=shown.append).run()
        assert not waiting, f"nobody asked for {waiting}"
        return code, shown, game

    return run


def test_moves_are_answered_by_the_engine_and_shown(run: Run) -> None:
    code, shown, game = run("7g7f", "2g2f")
    assert code == 0
    assert len(game.history) == 4
    assert str(game.history[0]) == "7g7f"
    assert str(game.history[2]) == "2g2f"
    assert f"\n{game}\nlast move: {game.history[-1]}" in shown
    assert "black, move 1: " in shown
    assert "black, move 3: " in shown


def test_the_engine_begins_when_the_person_is_white(run: Run) -> None:
    _, shown, game = run(color=Color.WHITE)
    assert len(game.history) == 1
    assert "white, move 2: " in shown


def test_mistakes_are_explained_and_the_person_asked_again(run: Run) -> None:
    _, shown, game = run(
        "7g7e", "hello", "", "P*5e", "declare", "save", "undo", "save nowhere/game.kif", "save a.txt"
    )
    assert game.history == []
    for text in (
        "7g7e is illegal: a P on 7g cannot go to 7e",
        "expected a move such as 7g7f or P*5e, or help; given 'hello'",
        "P*5e is illegal: you have no P in hand",
        "expected save FILE, a .kif, .csa or .usi",
        "you have no move to take back",
        "cannot save to a.txt: expected .kif, .kifu, .csa, .usi",
    ):
        assert text in shown
    assert any("cannot declare" in text for text in shown)
    assert any("no directory nowhere" in text for text in shown)
    assert shown.count("black, move 1: ") == 10


def test_help_moves_hint_and_undo(run: Run) -> None:
    _, shown, game = run("help", "moves", "hint", "7g7f", "undo", "board")
    assert HELP in shown
    listed = " ".join(shown[shown.index(HELP) + 2 :]).split()
    moves = [str(move) for move in game.legal_moves()]
    assert listed[: len(moves)] == sorted(moves)
    hint = shown[shown.index("black, move 1: ", shown.index(HELP) + 4) + 1]
    assert hint in moves
    assert game.history == []


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


def test_at_the_end_the_person_is_asked_where_to_save(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    _, _, game = run("7g7f", "quit", str(path))
    assert list(read_record(path).moves) == game.history
    _, shown, _ = run("7g7f", "quit", "")
    assert not any("moves:" in text for text in shown)
    code, shown, game = run("7g7f", "quit", str(path))
    assert code == 2
    assert f"not saved: cannot save to {path}: it already exists" in shown
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


def test_handicaps_and_positions() -> None:
    for name in HANDICAP_NAMES:
        assert str(ShogiGame(start_sfen(None, name)).turn) == "white"
    assert start_sfen(None, None) == ShogiGame().sfen()
    assert start_sfen(MATE_IN_ONE, None) == MATE_IN_ONE
    with pytest.raises(PlayError, match="given both"):
        start_sfen(MATE_IN_ONE, "rook")
    with pytest.raises(PlayError, match="handicap is queen, expected one of lance"):
        start_sfen(None, "queen")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"color": "red"}, "color is red, expected black, white or random"),
        ({"visits": -1}, "visits is -1, expected 0 or more"),
        ({"sfen": "nonsense"}, "bad sfen 'nonsense'"),
        ({"save": Path("game.txt")}, "cannot save to game.txt: expected .kif"),
        ({"save": Path("nowhere/game.kif")}, "cannot save to nowhere/game.kif: no directory"),
        ({"declaration": "99"}, "declaration is '99', expected '27', '24', 'try' or 'off'"),
        ({}, "no checkpoint at nowhere"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(
    settings: dict[str, object], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("nowhere", **settings) == 2  # type: ignore[arg-type]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"keisei: {complaint}")
    assert told.err.count("\n") == 1


def test_ctrl_c_saves_the_game_and_leaves_without_a_traceback(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    code = "import sys; from keisei.usi.play import main, Path; path, save = sys.argv[1:]; "
    code += "sys.exit(main(path, visits=0, save=Path(save)))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(checkpoint), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The process that started the tests may have set its children to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
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

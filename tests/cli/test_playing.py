"""`keisei play` as a person uses it: a real process that is typed to."""

import os
import pty
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ki2_writer import ki2_move

from keisei.cli.arguments import PLAYERS
from keisei.cli.player_opponent import PlayerOpponent, load_player
from keisei.evaluation.players.player import Lost, Player
from keisei.evaluation.players.player_specs import BUILT_IN_NAMES
from keisei.search.alpha_beta import alpha_beta
from keisei.shogi import Color, Move, Outcome, Reason, ShogiGame, read_record
from keisei.shogi.records.csa import csa_move
from keisei.usi.opponent import Resignation

COMMAND = Path(sys.executable).with_name("keisei")
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def keisei(
    *arguments: str | Path, typed: str = "", cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *arguments], input=typed, capture_output=True, text=True, timeout=60, cwd=cwd
    )


class Screen:
    """What a process shows, up to its next question."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout

    def until_asked(self) -> str:
        """Return what is shown until a prompt, or the end."""
        shown = ""
        while not re.search(r", move \d+: $", shown) and (letter := self.stdout.read(1)):
            shown += letter
        return shown

    def type(self, text: str) -> str:
        self.stdin.write(f"{text}\n")
        self.stdin.flush()
        return self.until_asked()


@contextmanager
def playing(*arguments: str | Path) -> Iterator[Screen]:
    with subprocess.Popen(
        [COMMAND, "play", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        screen = Screen(process)
        yield screen
        screen.stdin.close()
        assert (screen.stdout.read(), process.wait(60)) == ("", 0)


def typed(game: ShogiGame, move: Move, notation: int) -> str:
    last = game.history[-1].to_square if game.history else ""
    return [str(move), csa_move(game, move)[1:], ki2_move(game, move, last)][notation % 3]


def test_a_closed_input_is_at_its_end() -> None:
    closed: list[str | Path] = ["sh", "-c", 'exec "$@" <&-', "sh", COMMAND, "play", "random"]
    done = subprocess.run(closed, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("you are black, against random")


def test_a_game_is_played_to_its_end_in_three_notations(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    game = ShogiGame()
    with playing("random", "--save", path) as screen:
        shown = screen.until_asked()
        assert "you are black, against random" in shown
        while game.outcome() is None:
            assert len(game.history) < 300
            ((move, _),) = alpha_beta([game], 2, [random.getrandbits(50)])
            text = typed(game, move, len(game.history) // 2)
            game.push(move)
            shown = screen.type(text)
            if game.outcome() is None:
                reply = re.findall(r"^last move: (\S+) ", shown, re.MULTILINE)
                assert len(reply) == 1, shown
                game.push(reply[0])
        assert f"{game.outcome()}, after {game.ply} moves\nsaved {path}" in shown
    record = read_record(path)
    assert (list(record.moves), record.outcome) == (game.history, game.outcome())
    assert record.outcome == Outcome(Color.BLACK, Reason.CHECKMATE)
    assert (record.black, record.white) == ("you", "random")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("game.sfen", f"{MATE_IN_ONE}\n"),
        ("game.usi", f"position sfen {MATE_IN_ONE}\n"),
        ("game.csa", "P-51OU\nP+59OU53FU00KI\n+\n%TORYO\n"),
    ],
)
def test_a_position_is_loaded_and_played_on(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = keisei("play", "alphabeta-1", "--from", path, typed="52金打\n\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "black wins by checkmate, after 1 moves" in done.stdout


@pytest.mark.parametrize("how", [("--lang", "ja"), "ja_JP.UTF-8"])
def test_a_game_is_played_in_japanese(
    how: tuple[str, str] | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "game.kif"
    options = how if isinstance(how, tuple) else ()
    if isinstance(how, str):
        monkeypatch.setenv("LC_ALL", how)
    else:
        monkeypatch.setenv("LC_ALL", "C.UTF-8")
    typed = "hint\nmoves\n55玉\nnonsense\nhelp\n52金打\n"
    done = keisei("play", "random", "--sfen", MATE_IN_ONE, "--save", path, *options, typed=typed)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "あなたは先手、相手は random です",
        "先手 1手目: ",
        "random は評価値を持たないため、ヒントを出せません",
        "▲５二金",
        "▲６九玉",
        "55玉 は指せません: ５九の玉は５五に動けません。指せる手: ▲",
        "nonsense というコマンドはありません",
        "入玉宣言",
        "直前の手: ▲５二金  G*5b",
        "王手！",
        f"まで1手で先手の勝ち（詰み）\n{path} に保存しました",
    ):
        assert text in done.stdout, text
    record = read_record(path)
    assert (record.black, record.outcome) == ("あなた", Outcome(Color.BLACK, Reason.CHECKMATE))


@pytest.mark.parametrize("name", ["game.kif", "game.ki2"])
def test_a_game_is_loaded_and_the_person_takes_the_side_to_move(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    kif = "1 ７六歩(77)\n2 ３四歩(33)\n3 ２六歩(27)\n4 投了\n"
    path.write_text(kif if name.endswith("kif") else "▲７六歩 △３四歩 ▲２六歩\n", encoding="utf-8")
    done = keisei("play", "greedy", "--from", path, typed="hint\n")
    assert "you are white, against greedy" in done.stdout
    assert "last move: 2g2f  ２六歩(27)" in done.stdout
    assert "no hint: greedy has no values" in done.stdout
    done = keisei("play", "greedy", "--from", path, "--move", "2", typed="undo\n")
    assert "you are black, against greedy" in done.stdout
    assert "white, move" not in done.stdout
    assert "last move: 3c3d" in done.stdout
    assert "move 1: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("missing",), "no checkpoint at missing: expected latest, a run, RUN@best, a checkpoint in "),
        (("alphabeta-9",), "player 'alphabeta-9': expected alphabeta-1 to alphabeta-6"),
        (("random", "--visits", "5"), "--visits is for a run or checkpoint, the opponent is random"),
        (("usi:no-such-program;depth=1",), "no-such-program"),
        (("random;visits=3",), "player 'random;visits=3': not one of random, greedy, material, alphabeta-N"),
        (("random", "--from", "missing.kif"), "missing.kif: No such file or directory"),
        (("random", "--move", "3"), "--move and --game choose from a file: expected --from FILE too"),
        (("random", "--color", "red"), "color is red, expected black, white or random"),
        (("random", "--save", "game.txt"), "cannot save to game.txt: expected .csa"),
        (("random", "--handicap", "queen"), "handicap is queen, expected one of lance"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = keisei("play", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("keisei: ")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def on_a_terminal(environ: dict[str, str]) -> str:
    """Return what `keisei play` shows on a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "play", "random", "--sfen", MATE_IN_ONE],
        stdin=subprocess.PIPE,
        stdout=slave,
        env=os.environ | {"TERM": "xterm", "NO_COLOR": ""} | environ,
    ) as process:
        os.close(slave)
        shown = b""
        while b"move 1: " not in shown:
            shown += os.read(master, 1024)
        process.kill()
    os.close(master)
    return shown.decode()


def test_a_terminal_gets_colors_unless_it_does_not_want_them() -> None:
    assert "\x1b[" in on_a_terminal({})
    assert "\x1b[" not in on_a_terminal({"NO_COLOR": "1"})


def test_the_players_without_a_sign_in_their_names_are_known() -> None:
    assert {name for name in BUILT_IN_NAMES if not name.startswith("alphabeta-")} == set(PLAYERS)


def test_what_is_no_move_is_refused_in_japanese() -> None:
    said = keisei("play", "random", "--lang", "ja", typed="手\n同\n58金\ndeclare\nquit\n\n").stdout
    assert "手 は指し手として読めません" in said
    assert "同 は指し手として読めません" in said
    assert "58金 はどの手か決まりません。次のどれかを入力してください: ▲５八金右 ▲５八金左\n" in said
    assert "できません: " in said


def test_any_player_is_an_engine_for_a_gui() -> None:
    position = f"position sfen {MATE_IN_ONE}"
    done = keisei("usi", "alphabeta-2", typed=f"usi\nisready\n{position}\ngo byoyomi 1000\n")
    assert (done.returncode, done.stderr) == (0, "")
    name, *_, answer = done.stdout.splitlines()
    assert re.fullmatch(r"id name Keisei \S+ alphabeta-2", name)
    assert {line.split()[2] for line in done.stdout.splitlines() if line.startswith("option")} == {
        "MaxMoves",
        "EnteringKingRule",
    }
    assert answer == "bestmove G*5b"


class Crashing(Player):
    name = identity = "crashing"
    closed = False

    def choose(self, turns: object) -> list[Lost]:
        assert turns
        return [Lost(Reason.FORFEIT, "crashing crashed")]

    def close(self) -> None:
        self.closed = True


def test_a_fault_of_a_player_is_a_resignation_that_is_explained() -> None:
    player = Crashing()
    opponent = PlayerOpponent(player)
    assert opponent.decide(ShogiGame()) == Resignation("crashing crashed")
    opponent.end(ShogiGame())
    assert player.closed


def test_a_player_answers_and_has_no_advice() -> None:
    opponent = load_player("alphabeta-1")
    game = ShogiGame(MATE_IN_ONE)
    assert (opponent.name, str(opponent.decide(game)), game.history) == ("alphabeta-1", "G*5b", [])
    assert opponent.advise(game) is None  # type: ignore[func-returns-value]

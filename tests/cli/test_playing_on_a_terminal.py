"""`keisei play` on a pseudo-terminal, to the end of a game: what a person sees and types goes through it."""

import os
import pty
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keisei.search.alpha_beta import alpha_beta
from keisei.shogi import Color, Outcome, Reason, ShogiGame, read_record

COMMAND = Path(sys.executable).with_name("keisei")
NEAR_MATE = "4k4/9/9/4P4/9/9/9/9/4K4 b 2G2S 1"
ASKED = re.compile(r"(, move \d+|手目|discard it\)|保存しません）): $")


class Terminal:
    """The other end of a pseudo-terminal on which a program runs."""

    def __init__(self, master: int) -> None:
        self._master = master

    def until_asked(self) -> str:
        """Return what is shown until the next question, or the end of the program."""
        shown = b""
        while not ASKED.search(shown.decode(errors="ignore")):
            try:
                shown += os.read(self._master, 4096)
            except OSError:  # how Linux tells that nobody holds the other end
                break
        return shown.decode()

    def type(self, text: str) -> str:
        """Type a line, and return what is shown until the next question."""
        os.write(self._master, f"{text}\n".encode())
        return self.until_asked()


@contextmanager
def terminal(*arguments: str | Path, cwd: Path) -> Iterator[Terminal]:
    """Run `keisei play` on a terminal; it must have ended well when the block does."""
    master, slave = pty.openpty()
    environ = os.environ | {"TERM": "xterm", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        [COMMAND, "play", *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=environ
    ) as process:
        os.close(slave)
        try:
            yield Terminal(master)
            assert process.wait(60) == 0
        finally:
            process.kill()
            os.close(master)


def test_a_game_is_played_to_mate_and_saved_when_asked(tmp_path: Path) -> None:
    game = ShogiGame(NEAR_MATE)
    with terminal("random", "--sfen", NEAR_MATE, cwd=tmp_path) as screen:
        assert "you are black, against random" in screen.until_asked()
        assert "5i5e is illegal" in screen.type("5i5e")
        while game.outcome() is None:
            assert len(game.history) < 200
            ((move, _),) = alpha_beta([game], 3, [random.getrandbits(50)])
            game.push(move)
            shown = screen.type(str(move))
            if game.outcome() is None:
                (reply,) = re.findall(r"^last move: (\S+) ", shown, re.MULTILINE)
                game.push(reply)
        assert f"{game.outcome()}, after {game.ply} moves" in shown
        assert "save the game as" in shown
        assert "saved mate.kif" in screen.type("mate.kif")
    record = read_record(tmp_path / "mate.kif")
    assert (record.sfen, list(record.moves), record.outcome) == (NEAR_MATE, game.history, game.outcome())
    # A lone king may also be left without a move.
    assert record.outcome in [Outcome(Color.BLACK, why) for why in (Reason.CHECKMATE, Reason.NO_LEGAL_MOVE)]


def test_a_game_is_resigned_in_japanese_and_saved(tmp_path: Path) -> None:
    with terminal("random", "--lang", "ja", "--save", "lost.csa", cwd=tmp_path) as screen:
        assert "あなたは先手" in screen.until_asked()
        reply = screen.type("▲７六歩")
        assert re.search(r"直前の手: △\S+", reply)
        shown = screen.type("resign")
        assert "まで2手で後手の勝ち（投了）" in shown
        assert "lost.csa に保存しました" in shown
    record = read_record(tmp_path / "lost.csa")
    assert (str(record.moves[0]), record.outcome) == ("7g7f", Outcome(Color.WHITE, Reason.RESIGNATION))

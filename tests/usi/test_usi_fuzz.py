"""Thousands of valid, invalid and broken lines to one engine, which must answer as the model says."""

import random
from pathlib import Path

import pytest
from reference import ReferenceGame
from usi_model import DEFAULTS, START, Model
from usi_talk import Conversation, quick_talk

pytest_plugins = ["usi_fixtures"]

STARTS = [
    START,
    "4k4/9/4P4/9/9/9/9/9/4K4 b G 1",
    "4k4/9/4P4/9/9/9/9/9/9 b GS 1",
    "8k/6R2/9/9/9/9/9/9/K8 w - 1",
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
]
GO = [
    "go",
    "go infinite",
    "go ponder",
    "go nodes 3",
    "go depth 1",
    "go movetime 20",
    "go btime 100 wtime 100 byoyomi 30",
    "go ponder btime 50 wtime 60 binc 10 winc 10",
    "go btime 0 wtime -5",
    "go mate 20",
    "go mate infinite",
]
PLAIN = ["usi", "isready", "usinewgame", "stop", "ponderhit", "gameover win", "gameover draw", "d x", ""]
VALUES = [
    "true",
    "false",
    "0",
    "1",
    "7",
    "30",
    "-1",
    "27",
    "24",
    "try",
    "off",
    "0.5",
    "1e9",
    "",
    "x y",
    "9" * 400,
]
JUNK = [
    b"\0",
    b"\xff\xfe",
    b"\xc3",
    b"\xe3\x81",
    "７g７f".encode(),
    b"9" * 5000,
    b"\r",
    b"\t",
    b" ",
    b"\x1b[2J",
    b"%s%n",
]


class Fuzzer:
    """A generator of lines: valid ones, nearly valid ones, and noise."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._games = [self._game(sfen) for sfen in STARTS]

    def _game(self, sfen: str) -> tuple[str, list[str]]:
        game = ReferenceGame(sfen, max_moves=None)
        moves: list[str] = []
        while len(moves) < 25 and (legal := sorted(game.legal_moves())):
            moves.append(self._random.choice(legal))
            game.push(moves[-1])
        return sfen, moves

    def line(self) -> bytes:
        """Return a line without its end."""
        pick = self._random.random()
        line = self._valid().encode()
        if pick < 0.45:
            return line
        if pick < 0.6:
            words = line.split() + self._valid().encode().split()
            self._random.shuffle(words)
            return b" ".join(words[: self._random.randrange(1, 8)])
        if pick < 0.65:
            return bytes(self._random.randrange(256) for _ in range(self._random.randrange(40))).replace(
                b"\n", b""
            )
        return self._broken(line)

    def _valid(self) -> str:
        choose = self._random.choice
        kind = self._random.randrange(10)
        if kind < 4:
            sfen, moves = choose(self._games)
            start = choose(["startpos", f"sfen {sfen}"]) if sfen == START else f"sfen {sfen}"
            played = moves[: self._random.randrange(len(moves) + 1)]
            if played and self._random.random() < 0.3:
                played[self._random.randrange(len(played))] = choose(
                    ["7g7f", "5i5h", "P*5e", "1a1a", "8h2b+"]
                )
            return f"position {start} moves {' '.join(played)}"
        if kind < 7:
            return f"setoption name {choose([*DEFAULTS, 'Nothing'])} value {choose(VALUES)}"
        return choose(GO if kind == 7 else PLAIN)

    def _broken(self, line: bytes) -> bytes:
        data = bytearray(line)
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(data) + 1)
            match self._random.randrange(5):
                case 0:
                    del data[at : at + self._random.randrange(1, 6)]
                case 1:
                    data[at:at] = self._random.choice(JUNK)
                case 2:
                    data[at:at] = data[: self._random.randrange(20)]
                case 3:
                    del data[at:]
                case 4 if at < len(data):
                    data[at] = self._random.choice(b"0123456789abcdefghiPLNSGBRK*+- ")
        return bytes(data)


ANSWERS = ("error", "usiok", "readyok", "bestmove", "checkmate")


def hear(engine: Conversation, expected: list[str]) -> None:
    """Read as many answers as are expected, and compare them."""
    heard: list[str] = []
    while len(heard) < len(expected):
        line, _ = engine.hear()
        assert line, "the engine has ended"
        word = "error" if line.startswith("info string error ") else line.split()[0]
        assert word in ("info", "id", "option", *ANSWERS), line
        if word in ANSWERS:
            heard.append(word)
    assert heard == expected
    expected.clear()


def converse(engine: Conversation, fuzzer: Fuzzer, lines: int) -> None:
    """Send this many lines, comparing answers and state with the model's all along."""
    answers = dict.fromkeys(ANSWERS, 0)
    model = Model(STARTS)
    expected: list[str] = []
    waiting: list[bytes] = []
    for number in range(lines):
        line = fuzzer.line()
        text = line.decode("utf-8", "replace")
        if not model.judges(text) or text.split()[:1] == ["d"]:
            continue
        waiting.append(line)
        answer = model.hear(text)
        if answer:
            expected.append(answer)
            answers[answer] += 1
        if answer in ("bestmove", "checkmate"):
            # It would end at an unknown time; what comes next must find the engine idle.
            engine.say(*waiting, "stop")
            waiting.clear()
            hear(engine, expected)
        elif number % 20 == 0:
            engine.say(*waiting, "isready")
            waiting.clear()
            hear(engine, [*expected, "readyok"])
            expected.clear()
            assert engine.state() == (model.sfen, model.options)
    engine.say(*waiting, "isready")
    hear(engine, [*expected, "readyok"])
    assert engine.state() == (model.sfen, model.options)
    assert min(answers.values()) > lines / 200, f"the lines are too one-sided: {answers}"


def test_any_lines_are_answered_as_the_model_says(checkpoint: Path) -> None:
    with quick_talk(checkpoint) as engine:
        engine.ready()
        converse(engine, Fuzzer(1), 2500)
        engine.say("quit")
        assert engine.end(close=False) == (0, [], "")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_more_lines_are_answered_as_the_model_says(checkpoint: Path, seed: int) -> None:
    with quick_talk(checkpoint) as engine:
        engine.ready()
        converse(engine, Fuzzer(seed), 20_000)
        engine.say("quit")
        assert engine.end(close=False) == (0, [], "")


def test_a_line_may_be_long_but_not_endless(engine: Conversation) -> None:
    shuffle = "2h3h 8b7b 3h2h 7b8b "
    engine.say("position startpos moves " + shuffle * 5000)
    assert engine.ready() == []
    assert engine.state()[0].endswith(" b - 20001")
    engine.say(b"x" * 3_000_000, b"position startpos moves 7g7f" + b" " * 2_000_000, b"\0" * 1_000_000)
    too_long, blank, unknown = engine.ready()
    assert too_long == "info string error expected lines of at most 1048576 bytes, given a longer one"
    assert blank == too_long
    assert unknown.startswith("info string error unknown command '\\x00")
    assert engine.state()[0].endswith(" b - 20001")

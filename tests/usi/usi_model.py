"""A model of how the engine should treat any line, written independently of it.

It knows position and options after each line, and whether the line is an error. Moves are judged by the
reference rules, not by the engine's own.
"""

import re
from dataclasses import dataclass, field
from functools import cache

from reference import Position, after_move, format_sfen, legal_moves, parse_sfen

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
DEFAULTS = {
    "USI_Ponder": "false",
    "USI_Hash": "256",
    "MultiPV": "1",
    "Visits": "0",
    "Policy": "false",
    "Temperature": "0",
    "Threads": "1",
    "Batch": "8",
    "NetworkDelay": "120",
    "MaxMoves": "0",
    "EnteringKingRule": "27",
    "ResignValue": "0",
}
RANGES = {
    "USI_Hash": (1, 65536),
    "MultiPV": (1, 600),
    "Visits": (0, 10**9),
    "Threads": (1, 256),
    "Batch": (1, 1024),
    "NetworkDelay": (0, 10_000),
    "MaxMoves": (0, 100_000),
    "ResignValue": (0, 100),
}
LEAST = {"btime": -(10**12), "wtime": -(10**12), "nodes": 1, "depth": 1}
NUMBERS = ("btime", "wtime", "binc", "winc", "byoyomi", "movetime", "nodes", "depth")


class Wrong(Exception):  # noqa: N818  (a verdict, not a test error)
    """The line is an error."""


@cache
def _legal(position: str) -> frozenset[str]:
    return frozenset(legal_moves(parse_sfen(position)[0]))


@cache
def _after(position: str, move: str) -> str:
    before, number = parse_sfen(position)
    return _text(after_move(before, move), number + 1)


def _text(position: Position, number: int) -> str:
    return format_sfen(position, number)


@dataclass
class Model:
    """The state of an engine. held: why it holds back its answer: infinite, ponder or nothing.

    starts: the SFENs known to be valid; others are not judged, see `judges`.
    """

    starts: list[str]
    sfen: str = START
    options: dict[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    held: str = ""

    def judges(self, text: str) -> bool:
        """Return whether the model knows what to expect: not for every SFEN, and not after quit."""
        words = text.split()
        if words[:2] == ["position", "sfen"]:
            cut = words.index("moves") if "moves" in words else len(words)
            return cut == 2 or " ".join(words[2:cut]) in self.starts
        return words != ["quit"]

    def hear(self, text: str) -> str:
        """Take a line and return its answer: error, usiok, readyok, bestmove, checkmate or nothing."""
        words = text.split()
        try:
            return self._obey(words) if words else ""
        except Wrong:
            return "error"

    def _obey(self, words: list[str]) -> str:
        head, rest = words[0], words[1:]
        if head in ("usi", "isready", "usinewgame", "stop"):
            _expect(not rest)
            return getattr(self, f"_{head}")()  # type: ignore[no-any-return]
        if head == "gameover":
            _expect(rest in ([], ["win"], ["lose"], ["draw"]))
            return self._stop()
        if head == "ponderhit":
            if rest:
                _limits(rest)
            _expect(self.held == "ponder")
            self.held = ""
            return "bestmove"
        _expect(head in ("setoption", "position", "go") and not self.held)
        return getattr(self, f"_{head}")(rest)  # type: ignore[no-any-return]

    def _usi(self) -> str:
        return "usiok"

    def _isready(self) -> str:
        return "readyok"

    def _usinewgame(self) -> str:
        return self._stop()

    def _stop(self) -> str:
        held, self.held = self.held, ""
        return "bestmove" if held else ""

    def _setoption(self, words: list[str]) -> str:
        _expect(words[:1] == ["name"] and "value" in words[2:])
        cut = words.index("value", 2)
        name, value = " ".join(words[1:cut]), " ".join(words[cut + 1 :])
        if name in RANGES:
            least, most = RANGES[name]
            self.options[name] = str(_number(value, least, most))
        elif name in ("USI_Ponder", "Policy"):
            _expect(value in ("true", "false"))
            self.options[name] = value
        elif name == "EnteringKingRule":
            _expect(value in ("27", "24", "try", "off"))
            self.options[name] = value
        elif name == "Temperature":
            _expect(value.isascii() and len(value) <= 20)
            try:
                number = float(value)
            except ValueError:
                raise Wrong from None
            _expect(0 <= number <= 100)
            self.options[name] = f"{number:g}"
        else:
            raise Wrong
        return ""

    def _position(self, words: list[str]) -> str:
        cut = words.index("moves") if "moves" in words else len(words)
        if words[:cut] == ["startpos"]:
            sfen = START
        else:
            _expect(words[:1] == ["sfen"] and cut > 1)
            sfen = " ".join(words[1:cut])
        for move in words[cut + 1 :]:
            _expect(move in _legal(sfen))
            sfen = _after(sfen, move)
        self.sfen = sfen
        return ""

    def _go(self, words: list[str]) -> str:
        if words[:1] == ["mate"]:
            _expect(len(words) == 2)
            if words[1] != "infinite":
                _number(words[1], 0, 10**12)
            return "checkmate"
        _expect(words.count("ponder") <= 1)
        _expect({"K", "k"} <= set(self.sfen))  # but for mate, both kings are needed
        infinite = _limits([word for word in words if word != "ponder"])
        self.held = "infinite" if infinite else "ponder" if "ponder" in words else ""
        return "" if self.held else "bestmove"


def _expect(condition: bool) -> None:
    if not condition:
        raise Wrong


def _number(text: str, least: int, most: int) -> int:
    _expect(re.fullmatch("[+-]?[0-9]{1,20}", text) is not None)
    _expect(least <= int(text) <= most)
    return int(text)


def _limits(words: list[str]) -> bool:
    """Return whether it is infinite."""
    seen: set[str] = set()
    while words:
        word, *words = words
        _expect(word not in seen and word in (*NUMBERS, "infinite"))
        seen.add(word)
        if word != "infinite":
            _expect(bool(words))
            number, *words = words
            _number(number, LEAST.get(word, 0), 10**12)
    return "infinite" in seen

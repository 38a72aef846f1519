"""python scripts/fuzz_readers.py --seconds 120 --seed 1

Throws broken SFEN, USI moves, CSA, KIF and USI position lines at the readers. The corpus is generated from
seeded random games. Output: a line of figures per target and exit code 0, or the first failure with its
shrunk input and exit code 1. A reader may raise only NotationError or RulesError, and what it accepts must be
sound: it can be written and read again, and a refused move leaves the game unchanged.

An input depends only on seed, target and iteration; the clock only decides when to stop. The fuzzing runs in
a child process, so that a crash or an endless loop in native code is reported with its input too.
"""

import argparse
import ctypes
import faulthandler
import multiprocessing
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

from keisei.shogi import START_SFEN, Move, NotationError, RulesError, ShogiGame, records
from keisei.shogi.outcome import Color, Outcome, Reason

INPUT_SECONDS = 2.0  # for reading one input, and again for checking what was read
NATIVE_SECONDS = 6.0  # native code that does not return is killed after this
SHRINK_SECONDS = 5.0
MAX_LENGTH = 100_000
SHOWN_LENGTH = 3000
FOUND = 3  # exit code of a child that has reported a failure itself
ROUND = {"sfen": 10, "move": 3, "csa": 2, "kif": 2, "usi": 4}  # inputs per round, for about equal times

HANDICAPS = (
    "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
)
DECIDED = (  # games that the position ends: checkmate, no legal move, repetition, perpetual check
    "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 77 moves G*5b",
    "sfen 6G1k/9/7G1/9/9/9/9/9/4K4 w - 1",
    "startpos moves" + " 5i5h 5a5b 5h5i 5b5a" * 3,
    "sfen 8k/9/9/9/9/9/9/9/4K2R1 b - 1 moves" + " 2i1i 1a2a 1i2i 2a1a" * 3,
)
CLAIMED = [None] + [Outcome(winner, reason) for winner in (None, *Color) for reason in list(Reason)[4:]]

ODD = ["", " ", "　", "\t", "\r", "\n", "\0", "\x1c", "\x7f", "\x85", "\u2028", "\ufeff", "\ud800",
       "\udc81", "é", "①", "１", "٣", "十", "歩", "🀄", "e\u0301", "+", "-", "*", "0",
       "00", "-1", "1e9", "256", "2147483648", "18446744073709551616", "9" * 5000]  # fmt: skip
GRAMMAR = {
    "sfen": "P L N S G B R K p l n s g b r k +P +l +R +G 9 0 10 / // b w - 18P 19p 2G 2147483647 1000000",
    "move": "7g 7f 8h 2b 5e 1a 9i 0a 1j P* K* +P* p* + = resign win pass 7g7f P*5e 8h2b+",
    "csa": """V2.2 V3 N+ N- N $EVENT:x $変化:1 $ PI PI82HI P1 P9 P0 P+ P- P+00AL P-00FU 00AL 55OU + - +7776FU
        -3334FU +0055KA T T5 T999999999 ' '* , / % %TORYO %CHUDAN %TIME_UP %+ILLEGAL_ACTION %TSUMI OU""",
    "kif": """手合割：平手 手合割：その他 手合割：二枚落ち 先手：あ 上手： 棋戦：x 先手の持駒：なし
        後手の持駒：歩十八 後手番 手数＝7 手数----指手 |v香v桂v銀v金v玉v金v銀v桂v香|一 | ・ +---- １
        ７六歩(77) 同　歩(77) 同 ５五角打 成 不成 打 投了 詰み 千日手 中断 反則勝ち 切れ負け まで 変化：3手
        * # & ( ) (77) (00) (0:00/ (0:00) (1:02:03/) (999999:99:99) ： : 成銀 竜 王""",
    "usi": "position startpos sfen moves 7g7f 3c3d P*5e resign b w - 1 / 9 +P K k 2G",
}
TOKENS = {name: words.split() for name, words in GRAMMAR.items()}
LONG = [c * MAX_LENGTH for c in "a9 \n"]
NASTY = [*LONG, "", "\0" * 50, "\ufeff\ufeff", "\ud800", "\udcff\udc81", "+", "-", "１２３", "将棋" * 300]
NASTY_OF = {
    "csa": ["PI\n+\n/\nPI\n+\n", "V2.2\nPI82HI22KA\n-\n-3334FU,T12,%TORYO\n", "PI\n+\n" + "'*\n" * 30_000,
            "P-51OU\nP+59OU00AL\n+\n", "P+59OU00FU\nP-51OU00AL\n-\n%CHUDAN", "PI,+,+7776FU" + ",T1" * 20_000],
    "kif": ["手合割：その他\n", " 変化：x\n1 ７六歩(77)\n", " 先手の持駒：なし\n1 ７六歩(77)\n",
            "*\n" * 40_000, "1 ７六歩(77) ( 0:01/00:00:01)\n2 投了\n変化：1手\n1 ２六歩(27)\n",
            "1 ７六歩(77) (999999:99:99)",
            "1 ７六歩(77) " + "(0:00/" * 10_000, "1 ７六歩(77) (0:00)" + " " * 50_000 + "x",
            "1 ７六歩(77)+\n2 ３四歩(33) (1:2:3)+\n3 ２二角成(88)\n4 同　銀(31)\n5 ４五角打\n6 中断"],
    "usi": ["position", "sfen", "moves", f"sfen {START_SFEN} moves", "startpos moves" + " 7g7f" * 20_000],
}  # fmt: skip


class Input(NamedTuple):
    """What a reader is given: a text, or bytes kept as the Latin-1 text of the same numbers."""

    text: str
    is_bytes: bool

    @property
    def data(self) -> str | bytes:
        """The value passed to the reader."""
        return self.text.encode("latin-1", "replace") if self.is_bytes else self.text


@dataclass
class Target:
    """A reader with its checks and its inputs, and the figures so far."""

    name: str
    check: Callable[[Any], None]
    corpus: list[str]
    nasty: list[str]
    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # accepted, NotationError, RulesError
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)  # seconds, iteration

    def figures(self) -> str:
        """Return the summary line."""
        share = self.counts["accepted"] / max(self.tried, 1)
        errors = f"notation errors {self.counts['NotationError']}, rules errors {self.counts['RulesError']}"
        slowest = f"slowest {1000 * self.slowest[0]:.1f} ms (iteration {self.slowest[1]})"
        rate = f"{self.tried} inputs ({self.tried / max(self.seconds, 1e-9):.0f}/s)"
        return f"{self.name:4} {rate}, accepted {share:.2%}, {errors}, {slowest}"


# Checks: they return if the input is accepted and raise NotationError or RulesError if it is refused.


def expect(truth: bool, what: str) -> None:
    """Raise AssertionError unless truth holds, even under python -O."""
    if not truth:
        raise AssertionError(what)


@contextmanager
def once_accepted() -> Iterator[None]:
    """Fail if something accepted is refused later; the checks have their own time limit."""
    signal.setitimer(signal.ITIMER_REAL, INPUT_SECONDS)
    try:
        yield
    except (NotationError, RulesError) as error:
        raise AssertionError(f"accepted, then refused: {error}") from error


def check_sfen(text: str) -> None:
    """Check that a game's SFEN gives the same game; a mate problem may lack a king and is played a bit."""
    problem = ShogiGame(text, kings="defender")
    with once_accepted():
        expect(ShogiGame(problem.sfen(), kings="defender").sfen() == problem.sfen(), "another problem")
        for choice in (0, -1, 0, -1):
            if moves := problem.legal_moves():
                problem.push(moves[choice])
    game = ShogiGame(text)
    with once_accepted():
        again = ShogiGame(game.sfen())
        expect(state(again) == state(game), f"sfen became {again.sfen()}")
        expect(game.key == game.computed_key(), "the key is wrong")
        expect(bool(str(game)) and bool(repr(game)), "no drawing")


def check_move(games: list[tuple[ShogiGame, tuple[object, ...]]], text: str) -> None:
    """Check that a move is played where it is legal, and that trying it elsewhere changes nothing."""
    refusal: NotationError | None = None
    try:
        expect(str(Move.from_usi(text)) == text, "the move has another text")
    except NotationError as error:
        refusal = error
    played = False
    for original, before in games:
        game = original.copy()  # a failure must not spoil the attempts to shrink it
        is_legal = text in map(str, game.legal_moves())
        try:
            game.push(text)
        except NotationError:
            expect(refusal is not None, "push cannot read what from_usi can")
        except RulesError:
            expect(refusal is None and not is_legal, "not a breach of the rules: unreadable or legal")
        else:
            expect(is_legal, "an illegal move was played")
            expect(str(game.pop()) == text, "another move was taken back")
            played = True
        expect(state(game) == before, f"the game changed to {game!r}")
    if refusal is not None:
        raise refusal
    if not played:
        raise RulesError(f"illegal move {text} in all games")


def state(game: ShogiGame) -> tuple[object, ...]:
    """Return everything that a refused move must not change."""
    return game.sfen(), game.key, game.history, game.outcome(), game.legal_moves()


FORMATS: dict[str, tuple[Callable[[records.GameRecord], str], Callable[[Any], records.GameRecord]]] = {
    "csa": (records.write_csa, records.read_csa),
    "kif": (records.write_kif, records.read_kif),
    "usi": (records.write_usi, records.read_usi),
}
KEPT = ("moves", "sfen", "outcome", "seconds", "comments")


def check_records(name: str, data: str | bytes) -> None:
    """Check that a record survives its own format, and its moves every format."""
    for record in records.read_csa_games(data) if name == "csa" else [FORMATS[name][1](data)]:
        with once_accepted():
            expect(tuple(record.game().history) == record.moves, "the game has other moves")
            for other, (write, read) in FORMATS.items():
                text = write(record)
                again = read(text.encode() if isinstance(data, bytes) and other != "usi" else text)
                for kept in KEPT if other == name else KEPT[:1]:
                    same = getattr(again, kept) == getattr(record, kept)
                    expect(same, f"other {kept} in {other}:\n{text[:SHOWN_LENGTH]}")


# The corpus.


def random_game(rng: random.Random, sfen: str, moves: int) -> ShogiGame:
    """Play random moves; one that would end the game is taken back."""
    game = ShogiGame(sfen, max_moves=None, declaration="off")
    for _ in range(moves):
        game.push(rng.choice(game.legal_moves()))
        if game.outcome():
            game.pop()
    return game


def make_records(rng: random.Random) -> list[records.GameRecord]:
    """Make records with all endings, from even games, handicaps and middle-game positions."""
    starts = [START_SFEN, *HANDICAPS, *(random_game(rng, START_SFEN, n).sfen() for n in (20, 60, 150))]
    games = [random_game(rng, start, rng.choice((0, 1, 5, 20, 60))) for start in starts * 6]
    words = ["短評", "good, / move", "", "'*", "+7776FU", "1 投了"]
    headers = [{}, {"EVENT": "test, 1", "START_TIME": "2024/01/02"}, {"棋戦": "順位戦：A", "開始日時": "x"}]
    made = [records.read_usi(line) for line in DECIDED]
    for number, game in enumerate(games):
        commented = [n for n in range(len(game.history) + 1) if rng.random() < 0.1]
        is_timed = rng.random() < 0.5
        made.append(
            records.GameRecord(
                moves=tuple(game.history),
                sfen=game.start_sfen,
                black=rng.choice(["", "先手 甲", "engine, 2"]),
                white=rng.choice(["乙：丙", "a/b"]),
                outcome=CLAIMED[number % len(CLAIMED)],
                comments={n: "\n".join(rng.choices(words, k=rng.randrange(1, 4))) for n in commented},
                seconds=tuple(rng.choice((0, 7, 59, 60, 3601)) for _ in game.history) if is_timed else (),
                headers=rng.choice(headers),
            )
        )
    return made


def make_targets(seed: int) -> list[Target]:
    """Make the five targets; the same seed gives the same corpus."""
    rng = random.Random(seed)
    made = make_records(rng)
    games = [random_game(rng, START_SFEN, n) for n in (0, 1, 30, 80, 200)] + [r.game() for r in made[:8]]
    games[1].resign()
    sfens = [START_SFEN, *HANDICAPS, *(random_game(rng, START_SFEN, n).sfen() for n in range(5, 300, 5))]
    moves = [str(move) for game in games for move in [*game.legal_moves()[:40], *game.history[-5:]]]
    long_game = random_game(rng, START_SFEN, 4500)
    long = records.GameRecord(tuple(long_game.history), comments={len(long_game.history): "\n" * 20_000})
    return [
        Target("sfen", check_sfen, sfens, NASTY),
        Target("move", partial(check_move, [(game, state(game)) for game in games]), moves, NASTY),
        *(
            Target(n, partial(check_records, n), list(map(write, made)), [*NASTY, *NASTY_OF[n], write(long)])
            for n, (write, _) in FORMATS.items()
        ),
    ]


# Mutations.


def change_number(rng: random.Random, text: str) -> str:
    """Replace a number by a near, a huge, a negative or a full-width one."""
    if not (found := list(re.finditer(r"\d+", text))):
        return text
    match = rng.choice(found)
    number = int(match[0][:20])
    wide = str(number).translate({ord("0") + digit: ord("０") + digit for digit in range(10)})
    huge = 10 ** rng.randrange(25)
    new = rng.choice((number - 1, number + 1, 0, -number, huge, f"0{number}", f"{number}.5", wide))
    return f"{text[: match.start()]}{new}{text[match.end() :]}"


def edit_lines(rng: random.Random, text: str, token: str) -> str:
    """Drop, repeat, swap or replace lines, more often near the end; in a single line, words."""
    separator = "\n" if "\n" in text else " "
    lines = text.split(separator)
    start = rng.randrange(len(lines)) if rng.random() < 0.8 else max(0, len(lines) - 2)
    end = rng.choice((start + 1, start + 2, rng.randrange(start, len(lines)), len(lines)))
    part = lines[start:end]
    lines[start:end] = rng.choice(([], part * 2, part[::-1], [lines[0], *part], [token]))
    return separator.join(lines)


def mutate(rng: random.Random, text: str, tokens: list[str], other: str) -> str:
    """Change a text in one random way."""
    start = rng.randrange(len(text) + 1)
    end = min(len(text), start + rng.choice((1, 1, 2, 3, 8, 100)))
    token = rng.choice(tokens if rng.random() < 0.8 else ODD)
    match rng.choices(range(8), (20, 15, 15, 20, 5, 25, 1, 15))[0]:
        case 0:  # another character: one bit flipped, one from this text, or an odd one
            flipped = chr(ord(text[start]) ^ 1 << rng.randrange(7)) if start < len(text) else ""
            new = rng.choice((flipped, rng.choice(text or " "), rng.choice(ODD)))
            return text[:start] + new + text[start + 1 :]
        case 1:
            return text[:start] + text[end:]
        case 2:
            return text[:end] + text[start:]
        case 3:
            return edit_lines(rng, text, token)
        case 4:
            cut = rng.randrange(len(other) + 1)
            return text[:start] + other[cut : cut + rng.choice((10, 100, MAX_LENGTH))]
        case 5:
            gap = rng.choice(("", "", "\n", " "))
            return text[:start] + gap + token + gap + text[rng.choice((start, end)) :]
        case 6:
            part = text[start:end] or token or " "
            return text[:start] + part * (rng.choice((100, 10_000, MAX_LENGTH)) // len(part)) + text[start:]
        case _:
            return change_number(rng, text)


def as_bytes(rng: random.Random, text: str) -> str:
    """Return a text in some encoding, its bytes as Latin-1."""
    encoding = rng.choice(("utf-8", "utf-8", "utf-8-sig", "cp932", "cp932", "euc_jp", "utf-16"))
    return text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "replace").decode("latin-1")


def make_input(target: Target, seed: int, iteration: int) -> Input:
    """Make an input from the corpus with up to six changes, for bytes before or after encoding."""
    rng = random.Random(f"{seed} {target.name} {iteration}")
    text = rng.choice(target.nasty if rng.random() < 0.03 else target.corpus)
    is_bytes = target.name in ("csa", "kif") and rng.random() < 0.5
    changes = rng.choice((0, 1, 1, 1, 2, 3, 6))
    encode_at = rng.randrange(changes + 1)
    for change in range(changes):
        if is_bytes and change == encode_at:
            text = as_bytes(rng, text)
        text = mutate(rng, text, TOKENS[target.name], rng.choice(target.corpus))[:MAX_LENGTH]
    return Input(as_bytes(rng, text) if is_bytes and encode_at == changes else text, is_bytes)


# Running.


def too_slow(_signal: int, _frame: FrameType | None) -> None:
    """Abort an input that takes too long."""
    raise TimeoutError(f"no answer within {INPUT_SECONDS} s")


def attempt(target: Target, given: Input) -> Exception | None:
    """Try one input under the clock and return what it raised."""
    data = given.data
    try:
        signal.setitimer(signal.ITIMER_REAL, INPUT_SECONDS)
        target.check(data)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Exception as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return error
    return None


def shrink(target: Target, given: Input, failure: Exception) -> Input:
    """Delete what the failure does not need, largest parts first, within a few seconds."""
    deadline = time.monotonic() + SHRINK_SECONDS
    size = len(given.text)
    while size := size // 2:
        start = 0
        while start < len(given.text) and time.monotonic() < deadline:
            faulthandler.dump_traceback_later(NATIVE_SECONDS, exit=True)
            shorter = given._replace(text=given.text[:start] + given.text[start + size :])
            error = attempt(target, shorter)
            if type(error) is type(failure) and str(error)[:16] == str(failure)[:16]:
                given = shorter
            else:
                start += size
    return given


def report(target: Target, seed: int, iteration: int, given: Input, why: str) -> None:
    """Print a failure with all that is needed to reproduce it."""
    text = repr(given.data)
    if len(text) > SHOWN_LENGTH:
        text = f"{text[: SHOWN_LENGTH // 2]} … {text[-SHOWN_LENGTH // 2 :]} (length {len(given.text)})"
    print(f"failure: target {target.name}, seed {seed}, iteration {iteration}")
    print(f"input: {text}\n{why}", flush=True)


def try_next(target: Target, seed: int) -> None:
    """Try the target's next input and count it; a failure is reported and ends the child."""
    iteration, begun = target.tried, time.perf_counter()
    given = make_input(target, seed, iteration)
    made = time.perf_counter()
    error = attempt(target, given)
    done = time.perf_counter()
    target.tried += 1
    target.seconds += done - begun
    target.slowest = max(target.slowest, (done - made, iteration))
    if error is None or isinstance(error, NotationError | RulesError):
        target.counts[type(error).__name__ if error else "accepted"] += 1
        return
    why = "".join(traceback.format_exception(error))  # from the whole input, not the shrunk one
    report(target, seed, iteration, shrink(target, given, error), why)
    sys.exit(FOUND)


def fuzz(targets: list[Target], seed: int, seconds: float, current: Any) -> None:
    """Try inputs in a fixed order until the time is up, noting each in `current`; runs in the child."""
    signal.signal(signal.SIGALRM, too_slow)
    faulthandler.enable()
    begun = told = time.monotonic()
    armed = 0.0
    while (now := time.monotonic()) < begun + seconds:
        if now > told + 10:
            told = now
            tried = ", ".join(f"{target.name} {target.tried}" for target in targets)
            print(f"{now - begun:.0f} s: {tried}", file=sys.stderr, flush=True)
        for index, target in enumerate(targets):
            for _ in range(ROUND[target.name]):
                if time.monotonic() > armed + 1:  # arming starts a thread: too costly for every input
                    armed = time.monotonic()
                    faulthandler.dump_traceback_later(NATIVE_SECONDS, exit=True)
                current[:] = index, target.tried
                try_next(target, seed)
    faulthandler.cancel_dump_traceback_later()
    print("\n".join(target.figures() for target in targets))


def main() -> int:
    """Fuzz in a child and report how it ended."""
    parser = argparse.ArgumentParser(description="Fuzz the readers of SFEN, moves and records.")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=list(ROUND), help="fuzz only this one")
    options = parser.parse_args()
    if not options.seconds > 0:
        parser.error(f"--seconds is {options.seconds}, expected a number above 0")
    targets = [t for t in make_targets(options.seed) if options.target in (None, t.name)]
    processes = multiprocessing.get_context("fork")  # so that the games are not made twice
    current = processes.RawArray(ctypes.c_int64, 2)  # index of the target, iteration
    child = processes.Process(target=fuzz, args=(targets, options.seed, options.seconds, current))
    child.start()
    child.join()
    if child.exitcode not in (0, FOUND):
        target, iteration = targets[current[0]], current[1]
        why = f"the child ended with code {child.exitcode}: a crash, or native code that did not return"
        report(target, options.seed, iteration, make_input(target, options.seed, iteration), why)
    return 0 if child.exitcode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())

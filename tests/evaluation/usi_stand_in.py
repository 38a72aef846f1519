"""A USI engine that plays given moves and misbehaves on demand; a stand-in for other people's programs.

    python -S -E usi_stand_in.py --moves 7g7f,2g2f --at go:2=crash --log said.txt

--moves: what it plays in each game, in this order. --at COMMAND:N=WHAT: what it does instead of answering
that command for the Nth time; without :N every time. --log: where it writes what it was sent, after its
process id.
"""

import fcntl
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable

OPTIONS = """\
option name Level type spin default 3 min -20 max 20
option name Style type combo default calm var calm var very wild
option name Own Book type check default false
option name Clear type button
option name Eval File type string default <empty>
"""


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def flood() -> None:
    while True:
        os.write(1, b"info string " + b"x" * 1000 + b"\n")


def endless_line() -> None:
    while True:
        os.write(1, b"x" * 4096)


def many_options() -> None:
    while True:
        os.write(1, b"option name x type string default " + b"x" * 1000 + b"\n")


def garbage() -> None:
    os.write(1, b"\xff\xfe\x00 bestmove\n\n   \nbestmovement 1a1b\nbestmove \xe3\x81\xff\n")


def crash() -> None:
    os.write(2, b"first words\nlast words: out of cheese\n")
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os.write(2, b"no evaluation file")
    os._exit(3)


def close_output() -> None:
    os.close(1)
    time.sleep(60)


def close_input() -> None:
    os.close(0)
    say("closed")
    time.sleep(60)


def answer_and_crash() -> None:
    say("bestmove 7g7f")
    crash()


def leave_much_and_crash() -> None:
    """Exit before this many lines can have been read; the last one is the answer."""
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(1, b"info x\n" * 100_000 + b"bestmove 7g7f\n")
    os.kill(os.getpid(), signal.SIGKILL)


def fork_and_crash() -> None:
    """Leave a child that keeps all pipes open, and print its id."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
    os.write(2, f"child {child}".encode())
    os.kill(os.getpid(), signal.SIGABRT)


def fork_and_hang() -> None:
    child = os.fork()
    if child:
        os.write(2, f"child {child}".encode())
    time.sleep(60)


def take_memory() -> None:
    """Reserve a gibibyte, without using it."""
    try:
        with mmap.mmap(-1, 1 << 30) as block:
            say(f"bestmove {len(block)}")
    except OSError as error:
        say(f"bestmove {error.strerror}")


def chatter_on_stderr() -> None:
    for _ in range(100):
        os.write(2, b"y" * 10000 + b"\n")
    say("bestmove 7g7f")


def talk_much() -> None:
    for _ in range(1000):
        say("info string " + "x" * 1000)
    say("bestmove 7g7f")


def ignore_everything() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


WHAT: dict[str, Callable[[], object]] = {
    "flood": flood,
    "endless-line": endless_line,
    "many-options": many_options,
    "garbage": garbage,
    "crash": crash,
    "leave": leave,
    "close-output": close_output,
    "close-input": close_input,
    "answer-and-crash": answer_and_crash,
    "leave-much-and-crash": leave_much_and_crash,
    "fork-and-crash": fork_and_crash,
    "fork-and-hang": fork_and_hang,
    "take-memory": take_memory,
    "chatter": chatter_on_stderr,
    "talk-much": talk_much,
    "hang": lambda: time.sleep(60),
    "ignore": ignore_everything,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "none": lambda: None,
    "half-a-line-more": lambda: os.write(1, b"readyok\ninfo string and"),
}


def behave(what: str) -> None:
    if what.startswith("say-"):
        say(what.removeprefix("say-"))
    elif what.startswith("late-"):
        time.sleep(float(what.removeprefix("late-")))
        say("bestmove 7g7f")
    else:
        WHAT[what]()


def main(arguments: list[str]) -> None:
    given = list(zip(arguments[::2], arguments[1::2], strict=True))
    moves = [move for key, value in given if key == "--moves" for move in value.split(",")]
    faults = dict(value.split("=", 1) for key, value in given if key == "--at")
    log = next((value for key, value in given if key == "--log"), os.devnull)
    counts: dict[str, int] = {}
    upcoming = iter(moves)
    for line in iter(sys.stdin.readline, ""):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {line}")
        command = line.split()[0]
        counts[command] = counts.get(command, 0) + 1
        what = faults.get(f"{command}:{counts[command]}", faults.get(command))
        if what is not None:
            behave(what)
        elif command == "usi":
            say(f"id name Stand-in 1.0\nid author nobody\n{OPTIONS}usiok")
        elif command == "isready":
            say("readyok")
        elif command == "usinewgame":
            upcoming = iter(moves)
        elif command == "go":
            say(f"info depth 1 score cp 0\nbestmove {next(upcoming, 'resign')}")
        elif command == "quit":
            return


if __name__ == "__main__":
    main(sys.argv[1:])

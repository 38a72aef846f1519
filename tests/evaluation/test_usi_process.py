import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import usi_stand_in

from keisei.evaluation.engines.usi_process import (
    EngineError,
    Fault,
    Reply,
    Request,
    UsiProcess,
    close_all,
    exchange,
)

PYTHON = [sys.executable, "-S", "-E"]
PLENTY = 20.0  # on a busy machine a Python may need a second to start
SHORT = 0.3

Launch = Callable[..., UsiProcess]


def stand_in(*arguments: str) -> list[str]:
    return [*PYTHON, usi_stand_in.__file__, *arguments]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Start stand-ins; afterwards none of their processes and descriptors is left."""
    before = set(os.listdir("/proc/self/fd"))
    launched: list[UsiProcess] = []

    def start(*faults: str, memory_bytes: int | None = None) -> UsiProcess:
        arguments = [text for fault in faults for text in ("--at", fault)]
        launched.append(UsiProcess("stand-in", stand_in(*arguments), memory_bytes))
        return launched[-1]

    yield start
    for process in launched:
        process.kill()
        assert process.closed
        assert not Path(f"/proc/{process.pid}").exists()
    assert set(os.listdir("/proc/self/fd")) == before


def ask(process: UsiProcess, line: str = "go", until: str = "bestmove", seconds: float = PLENTY) -> str:
    """Return the answer of an engine, or raise its failure."""
    (result,) = exchange([Request(process, [line], until, seconds)])
    if isinstance(result, EngineError):
        raise result
    return result.line


def failure(
    process: UsiProcess, line: str = "go", until: str = "bestmove", seconds: float = PLENTY
) -> EngineError:
    with pytest.raises(EngineError) as info:
        ask(process, line, until, seconds)
    assert process.closed
    assert not Path(f"/proc/{process.pid}").exists()
    return info.value


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PLENTY
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return done()


def test_an_engine_answers_what_it_is_asked(launch: Launch) -> None:
    process = launch("go=say-bestmove 7g7f")
    (hello,) = exchange([Request(process, ["usi"], "usiok", PLENTY, keep=("id", "option"))])
    assert isinstance(hello, Reply)
    assert hello.line == "usiok"
    assert hello.kept[0] == "id name Stand-in 1.0"
    assert len(hello.kept) == 2 + len(usi_stand_in.OPTIONS.splitlines())
    assert 0 < hello.seconds < PLENTY
    assert ask(process, "isready", "readyok") == "readyok"
    assert ask(process) == "bestmove 7g7f"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-engine-anywhere"], "No such file"),
        (["/"], "Permission denied"),
        ([__file__], "Permission denied|Exec format"),
    ],
)
def test_a_program_that_cannot_be_run_is_named(command: list[str], words: str) -> None:
    with pytest.raises(EngineError, match=f"ghost did not start: {command[0]}: ({words})") as info:
        UsiProcess("ghost", command)
    assert info.value.fault is Fault.START


@pytest.mark.parametrize(
    ("what", "fault", "words"),
    [
        ("crash", Fault.CRASH, "stand-in crashed: SIGSEGV; it last said: last words: out of cheese"),
        ("leave", Fault.CRASH, "stand-in crashed: exit code 3; it last said: no evaluation file"),
        ("endless-line", Fault.PROTOCOL, "stand-in sent a line of more than 65536 bytes"),
        ("close-output", Fault.PROTOCOL, "stand-in closed its output"),
    ],
)
def test_a_failure_is_told_at_once(launch: Launch, what: str, fault: Fault, words: str) -> None:
    begin = time.monotonic()
    error = failure(launch(f"go={what}"), seconds=50)
    assert (error.fault, str(error)) == (fault, words)
    assert time.monotonic() - begin < 40


@pytest.mark.parametrize("what", ["flood", "hang", "stop", "late-1"])
def test_silence_ends_with_its_time(launch: Launch, what: str) -> None:
    process = launch(f"go={what}")
    ask(process, "isready", "readyok")
    begin = time.monotonic()
    error = failure(process, seconds=SHORT)
    assert (error.fault, str(error)) == (Fault.SILENCE, "stand-in sent no bestmove within 0.3 s")
    assert SHORT <= time.monotonic() - begin < 10


def test_a_flood_does_not_fill_the_memory(launch: Launch) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert failure(launch("go=flood"), seconds=0.5).fault is Fault.SILENCE
    (result,) = exchange([Request(launch("usi=many-options"), ["usi"], "usiok", 50, keep=("option",))])
    assert isinstance(result, EngineError)
    assert (result.fault, str(result)) == (
        Fault.PROTOCOL,
        "stand-in sent more than 1048576 bytes before usiok",
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_bytes_that_are_no_text_do_no_harm(launch: Launch) -> None:
    assert ask(launch("go=garbage")) == "bestmove " + 2 * "\N{REPLACEMENT CHARACTER}"


def test_a_last_answer_before_a_crash_counts(launch: Launch) -> None:
    process = launch("go=answer-and-crash")
    assert ask(process) == "bestmove 7g7f"
    assert str(failure(process)).startswith("stand-in crashed: SIGSEGV")
    assert str(failure(process)) == "stand-in is no longer running"


def test_what_an_engine_left_unread_in_its_pipe_counts(launch: Launch) -> None:
    assert ask(launch("go=leave-much-and-crash")) == "bestmove 7g7f"


def test_stderr_is_read_and_little_of_it_kept(launch: Launch) -> None:
    process = launch("go:1=chatter", "go:2=leave")
    assert ask(process) == "bestmove 7g7f"
    assert ask(process, "isready", "readyok") == "readyok"
    assert str(failure(process)) == "stand-in crashed: exit code 3; it last said: no evaluation file"


def test_what_was_said_unasked_is_no_answer(launch: Launch) -> None:
    process = launch(
        "isready=say-readyok\nbestmove 1a1b\nbestmove 1", "gameover=say-bestmove 2a2b", "go=say-bestmove 7g7f"
    )
    ask(process, "isready", "readyok")
    assert ask(process) == "bestmove 7g7f"
    process.tell("gameover win")
    select.select([process._streams()[1]], [], [], PLENTY)
    assert ask(process) == "bestmove 7g7f"


def test_half_a_line_said_unasked_does_not_hide_an_answer(launch: Launch) -> None:
    process = launch("isready=half-a-line-more", "go=say-bestmove 7g7f")
    ask(process, "isready", "readyok")
    assert ask(process, seconds=2.0) == "bestmove 7g7f"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_in_the_middle_of_a_thought_is_told(launch: Launch, number: signal.Signals) -> None:
    process = launch("go=hang")
    ask(process, "isready", "readyok")
    killer = threading.Timer(SHORT, os.kill, (process.pid, number))
    killer.start()
    error = failure(process)
    killer.join()
    assert (error.fault, str(error)) == (Fault.CRASH, f"stand-in crashed: {number.name}")


def test_a_stop_in_the_middle_of_a_thought_is_silence(launch: Launch) -> None:
    process = launch("go=flood")
    ask(process, "isready", "readyok")
    stopper = threading.Timer(SHORT, os.kill, (process.pid, signal.SIGSTOP))
    stopper.start()
    error = failure(process, seconds=2 * SHORT)
    stopper.join()
    assert error.fault is Fault.SILENCE


def test_a_crash_is_noticed_though_a_child_keeps_the_pipes_open(launch: Launch) -> None:
    error = failure(launch("go=fork-and-crash"), seconds=50)
    assert error.fault is Fault.CRASH
    assert str(error).startswith("stand-in crashed: SIGABRT; it last said: child ")
    assert wait_until(lambda: not is_running(int(str(error).split()[-1])))


def test_children_of_an_engine_end_with_it(launch: Launch) -> None:
    process = launch("go=fork-and-hang")
    ask(process, "isready", "readyok")
    error = failure(process, seconds=1.0)
    assert str(error).startswith("stand-in sent no bestmove within 1 s; it last said: child ")
    assert wait_until(lambda: not is_running(int(str(error).split()[-1])))


def test_an_engine_gets_no_more_memory_than_it_may(launch: Launch) -> None:
    assert ask(launch("go=take-memory", memory_bytes=1 << 29)) == "bestmove Cannot allocate memory"
    assert ask(launch("go=take-memory", memory_bytes=2 << 30)) == f"bestmove {1 << 30}"
    assert ask(launch("go=take-memory")) == f"bestmove {1 << 30}"


def test_a_line_longer_than_a_pipe_arrives(launch: Launch) -> None:
    process = launch()
    (result,) = exchange([Request(process, ["position " + "x" * 300_000, "isready"], "readyok", PLENTY)])
    assert isinstance(result, Reply)


def test_an_engine_that_does_not_listen_is_not_waited_for(launch: Launch) -> None:
    error = failure(launch("usinewgame=hang"), "usinewgame\n" + "x" * 300_000, seconds=SHORT)
    assert error.fault is Fault.SILENCE


def test_an_engine_that_closes_its_input_is_told(launch: Launch) -> None:
    process = launch("usinewgame=close-input")
    ask(process, "usinewgame", "closed")
    error = failure(process, seconds=50)
    assert (error.fault, str(error)) == (Fault.PROTOCOL, "stand-in closed its input")


def test_no_engine_is_held_up_by_another(launch: Launch) -> None:
    # It writes more than a pipe holds, and would block until the slow one is done.
    processes = [launch("go=late-0.7"), launch("go=talk-much"), launch("go=crash"), launch("go=hang")]
    for process in processes:
        ask(process, "isready", "readyok")
    requests = [Request(process, ["go"], "bestmove", 1.5) for process in processes]
    slow, talkative, crashed, hanging = exchange(requests)
    assert isinstance(slow, Reply)
    assert isinstance(talkative, Reply)
    assert talkative.seconds < slow.seconds
    assert isinstance(crashed, EngineError)
    assert isinstance(hanging, EngineError)
    assert [process.closed for process in processes] == [False, False, True, True]


def test_an_interrupted_exchange_leaves_no_engine_thinking(launch: Launch) -> None:
    processes = [launch("go=hang"), launch("go=hang")]
    timer = threading.Timer(SHORT, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        exchange([Request(process, ["go"], "bestmove", PLENTY) for process in processes])
    timer.join()
    assert all(process.closed for process in processes)


def test_an_engine_has_a_session_of_its_own(launch: Launch) -> None:
    process = launch()
    assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid


def test_an_engine_is_asked_to_quit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = UsiProcess("stand-in", stand_in("--log", str(log)))
    ask(process, "isready", "readyok")
    process.close()
    process.close()
    assert process.closed
    assert log.read_text(encoding="utf-8") == f"{process.pid} isready\n{process.pid} quit\n"


@pytest.mark.parametrize("what", ["hang", "ignore"])
def test_an_engine_that_does_not_quit_is_killed(launch: Launch, what: str) -> None:
    others = [launch() for _ in range(2)]
    process = launch(f"gameover={what}")
    ask(process, "isready", "readyok")
    process.tell("gameover win")
    close_all([process, *others])
    assert process.closed
    assert all(other.closed for other in others)
    assert not is_running(process.pid)


def test_an_engine_ends_when_we_are_killed() -> None:
    code = f"""
import time
from keisei.evaluation.engines.usi_process import *
process = UsiProcess("stand-in", {stand_in()})
print(process.pid, exchange([Request(process, ["isready"], "readyok", 20)])[0].line, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, answer = parent.stdout.readline().split()
        assert answer == "readyok"
        assert is_running(int(pid))
        parent.kill()
    assert wait_until(lambda: not is_running(int(pid)))

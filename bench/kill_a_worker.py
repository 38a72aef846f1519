"""python bench/kill_a_worker.py [--seconds 20]: what each of them does when one of its processes is killed.

Every subject collects moves in a process of its own, printing a line after each batch of moves. When it is
under way, one of its worker processes gets SIGKILL. What follows is observed from outside, for a limited
time: it goes on (after how long), it ends with an exception, or nothing happens any more.
"""

import argparse
import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import vectorizers
from contest import Contender, TakeTurn, Turn, descendants
from settings import Peers, Scale

START_SECONDS = 90  # until the first moves
BATCHES = 3  # before the kill


def subjects(scale: Scale, peers: Peers) -> dict[str, str]:
    """Return the installed subjects, each with its peer's name."""
    found = {f"keisei, {scale.workers} workers": ""}
    found |= {name: peer for name, (peer, _, _) in vectorizers.kinds(scale).items() if peers.has(peer)}
    if peers.has("torchrl"):
        found[f"TorchRL MultiSyncCollector, {scale.workers} workers"] = "torchrl"
    return found


def contenders(scale: Scale, peers: Peers, seconds: float) -> list[Contender]:
    """Return the subjects as contenders: seconds from the kill to the next moves."""
    return [
        Contender(name, functools.partial(_open, name, scale, seconds), peer=peer)
        for name, peer in subjects(scale, peers).items()
    ]


def _open(name: str, scale: Scale, seconds: float, _stack: ExitStack) -> TakeTurn:
    return lambda: observe(name, scale, seconds)


def observe(name: str, scale: Scale, seconds: float) -> Turn:
    """Run a subject, kill one of its processes, and watch it for up to this many seconds."""
    arguments = json.dumps([name, scale.share, scale.is_tiny, scale.workers, list(scale.network)])
    command = [sys.executable, "-W", "ignore", str(Path(__file__)), "--collect", arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            return _observed(child, seconds)
        finally:
            orphans = descendants(child.pid)  # once it is dead they are nobody's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _observed(child: "subprocess.Popen[str]", seconds: float) -> Turn:
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    threading.Thread(target=lambda: errors.extend(child.stderr or []), daemon=True).start()
    begun = None
    for _ in range(BATCHES):
        begun = _next(lines, START_SECONDS)
    if begun is None:
        why = "".join(errors).strip().splitlines()
        raise RuntimeError(f"it did not start: {why[-1] if why else 'no word'}")
    workers = begun["workers"]
    os.kill(workers[0], signal.SIGKILL)
    start = time.perf_counter()
    while not lines.empty():  # printed before the kill
        lines.get()
    after: list[float] = []
    line: dict[str, Any] | None = None
    while len(after) < 3 and (left := start + seconds - time.perf_counter()) > 0:
        line = _next(lines, left)
        if line is None:
            break
        after.append(time.perf_counter() - start)
    watched = time.perf_counter() - start
    if line is not None and len(after) == 3:
        replaced = set(line["workers"]) - set(workers)
        what = "goes on with a new process" if replaced else "goes on with one process fewer"
        return _seen(after[0], watched, what, line["lost"])
    if watched < seconds:
        with contextlib.suppress(subprocess.TimeoutExpired):  # its output has ended, so it should end soon
            child.wait(timeout=30)
    if child.poll() is None:
        return _seen(None, watched, f"hangs: nothing in {seconds:.0f} s", "all games in progress")
    time.sleep(0.2)  # for the reader of its errors
    last = next((text.strip() for text in reversed(errors) if "rror" in text), "no message")
    return _seen(None, watched, f"ends after {watched:.1f} s: {last[:100]}", "all games in progress")


def _seen(value: float | None, watched: float, what: str, lost: str) -> Turn:
    return Turn(value, watched, None, {}, {"what happens": what, "lost": lost})


def _read(stream: Any, lines: "queue.Queue[str | None]") -> None:
    for line in stream:
        if line.startswith("{"):  # not what a library prints
            lines.put(line)
    lines.put(None)


def _next(lines: "queue.Queue[str | None]", seconds: float) -> dict[str, Any] | None:
    """Return the next line's content, or None if there is none in time or the output has ended."""
    try:
        line = lines.get(timeout=seconds)
    except queue.Empty:
        return None
    return None if line is None else dict(json.loads(line))


def collect(name: str, scale: Scale) -> None:
    """Collect for ever, with a line for each batch; the name says how."""
    with ExitStack() as stack:
        before = set(descendants(os.getpid()))
        if name.startswith("keisei"):
            batches = _keisei(scale, stack)
        elif name.startswith("TorchRL"):
            batches = _torchrl(scale, stack)
        else:
            batches = _stepper(name, scale, stack)
        try:
            for lost in batches:
                workers = sorted(set(descendants(os.getpid())) - before)
                print(json.dumps({"workers": workers[-scale.workers :], "lost": lost}), flush=True)
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # whether closing hangs is another question


def _keisei(scale: Scale, stack: ExitStack) -> Iterator[str]:
    from settings import config_of

    from keisei.core.agents import agent_of
    from keisei.training.parallel import ParallelManager

    config = config_of(scale, games=64, workers=scale.workers)
    manager = stack.enter_context(ParallelManager(config, agent_of(config)))
    while True:
        manager.collect_experiences(config.training.steps_per_epoch)
        account = manager.account()
        yield f"{sum(account.discarded.values())} of {account.generated:,} moves"


def _torchrl(scale: Scale, stack: ExitStack) -> Iterator[str]:
    import peer_torchrl

    for _ in peer_torchrl.batches(scale, scale.workers, stack):
        yield "unknown"


def _stepper(name: str, scale: Scale, stack: ExitStack) -> Iterator[str]:
    _, _, make = vectorizers.kinds(scale)[name]
    stepper = stack.enter_context(contextlib.closing(make()))
    choose = vectorizers.random_chooser()
    planes, mask = stepper.reset()
    while True:
        for _ in range(20):
            planes, mask, _, _ = stepper.step(choose(planes, mask))
        yield "unknown"


def main() -> None:
    """Print what happens to each subject."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20, help="how long to watch (default 20)")
    parser.add_argument("--collect", help=argparse.SUPPRESS)  # the subject's own process
    arguments = parser.parse_args()
    if arguments.collect:
        name, share, tiny, workers, (blocks, channels) = json.loads(arguments.collect)
        collect(name, Scale(share, tiny, workers, (blocks, channels)))
        return
    scale, peers = Scale(), Peers()
    for name in subjects(scale, peers):
        try:
            turn = observe(name, scale, arguments.seconds)
        except RuntimeError as error:
            print(f"{name}: {error}", flush=True)
            continue
        when = "" if turn.value is None else f" after {turn.value:.2f} s"
        print(f"{name}: {turn.facts['what happens']}{when}; lost: {turn.facts['lost']}", flush=True)
    for name, install in peers.missing.items():
        print(f"{name} is not installed: skipped ({install})")


if __name__ == "__main__":
    main()

"""What the page costs: `python bench/web.py [--rounds 20] [--seconds 5]`.

A training runs all the time, beside a server. By turns nobody watches and ten viewers do; the training's pace
is measured in CPU seconds of its process for each move, since other programs may share the machine. Then: the
server's CPU with ten viewers, and how long a click takes until the table's answer has arrived.
"""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEISEI = str(Path(sys.executable).with_name("keisei"))
VIEWERS = 10
CLICKS = 200
SETTINGS = ["run.name=first", "run.console=off", "training.total_timesteps=1000000000", "evaluation.every=0"]
SETTINGS += ["training.parallel.enabled=false", "training.steps_per_epoch=512", "training.minibatch_size=128"]
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def moves(run: Path) -> int:
    """Return how many moves a run has learned from."""
    text = (run / "metrics.jsonl").read_text(encoding="utf-8")
    return int(json.loads(text[: text.rfind("\n")].rpartition("\n")[2])["step"])


class Client:
    """A client of the server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer, over one connection that stays open as a browser's does."""
        data = None if body is None else json.dumps(body)
        self._kept.request(method, path, data, {"content-type": "application/json"} if data else {})
        return json.loads(self._kept.getresponse().read())

    @contextmanager
    def viewers(self, count: int) -> Iterator[None]:
        """Follow the newest run's page as so many browsers do."""
        run = Client(self._port).ask("GET", "/api/site")["runs"][0]["id"]  # an idle connection is closed
        names = "loss/policy,loss/value,policy/entropy,games/length,games/draws,speed/steps_per_second"
        opened = []
        for _ in range(count):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            connection.request("GET", f"/api/runs/{run}/events?names={names},evaluation/rating")
            response = connection.getresponse()
            threading.Thread(target=_drain, args=(response,), daemon=True).start()
            opened.append(connection)
        try:
            yield
        finally:
            for connection in opened:
                if connection.sock is not None:
                    connection.sock.shutdown(2)
                connection.close()


def _drain(response: http.client.HTTPResponse) -> None:
    try:
        while response.readline():
            pass
    except (OSError, ValueError, AttributeError):
        return  # it was closed


@contextmanager
def started(*command: str, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a command and end it with Ctrl-C."""
    with subprocess.Popen([KEISEI, *command], cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


def pace(process: "subprocess.Popen[str]", run: Path, seconds: float) -> float:
    """Return CPU seconds for each move over a stretch of whole updates."""
    begun, cpu, end = moves(run), cpu_seconds(process.pid), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
    last = moves(run)
    while moves(run) == last:  # to the end of an update, as at the beginning
        time.sleep(0.01)
    return (cpu_seconds(process.pid) - cpu) / (moves(run) - begun)


def measure(folder: Path, rounds: int, seconds: float) -> None:
    """Measure and print."""
    run = folder / "runs" / "first"
    with started("train", *SETTINGS, cwd=folder) as training, started("web", cwd=folder) as web:
        assert web.stdout is not None
        address = web.stdout.readline()
        client = Client(int(re.findall(r":(\d+)/", address)[0]))
        while not (run / "metrics.jsonl").exists() or (run / "metrics.jsonl").stat().st_size < 10_000:
            time.sleep(0.1)
        ratios, server = [], []
        for number in range(rounds):
            alone = pace(training, run, seconds)
            with client.viewers(VIEWERS):
                time.sleep(2)  # the training looks once a second whether somebody watches
                cpu, began = cpu_seconds(web.pid), time.monotonic()
                watched = pace(training, run, seconds)
                server.append((cpu_seconds(web.pid) - cpu) / (time.monotonic() - began))
            ratios.append(watched / alone)
            time.sleep(2)  # the server says that nobody watches any more
            print(
                f"round {number + 1}: CPU seconds a move with viewers / without: {ratios[-1]:.3f}", flush=True
            )
        first, _, third = statistics.quantiles(ratios, n=4)
        spread = f"(half of the rounds: {first:.3f} to {third:.3f})"
        print(f"training, {VIEWERS} viewers / none: median {statistics.median(ratios):.3f} {spread}")
        print(f"server with {VIEWERS} viewers: {100 * statistics.median(server):.1f} % of a core")
    with started("web", cwd=folder) as web:
        assert web.stdout is not None
        client = Client(int(re.findall(r":(\d+)/", web.stdout.readline())[0]))
        opponent = next(
            one["id"] for one in client.ask("GET", "/api/site")["players"] if one["name"] == "random"
        )
        opened = client.ask("POST", "/api/tables", {"opponent": opponent, "side": "black"})
        times = []
        for _ in range(CLICKS):
            began = time.perf_counter()
            client.ask("POST", f"/api/tables/{opened['id']}", {"do": "move", "move": "7g7f", "ply": 0})
            times.append(1000 * (time.perf_counter() - began))
            client.ask("POST", f"/api/tables/{opened['id']}", {"do": "undo"})
        middle, slowest = statistics.median(times), max(times)
        print(f"click to answer: median {middle:.1f} ms, the slowest of {CLICKS} {slowest:.0f} ms")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="What the page costs a training.")
    parser.add_argument("--rounds", type=int, default=20, help="turns of watched and unwatched (default: 20)")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each (default: 5)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()

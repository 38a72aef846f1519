"""`keisei web` as a real process, and a client for it: plain HTTP, JSON and event streams."""

import http.client
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

KEISEI = str(Path(sys.executable).with_name("keisei"))
PATIENCE = 120.0  # seconds, for a busy machine


class Answer(NamedTuple):
    """An answer: status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Event(NamedTuple):
    """A server-sent event, its data parsed."""

    name: str
    number: str | None
    data: Any


class Web:
    """A server; address: as it was printed."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process, self.address = process, address
        parts = urlsplit(address)
        assert parts.port is not None
        self.port, self.query = parts.port, parts.query
        self.base = f"http://127.0.0.1:{self.port}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request as it is; a Host in headers replaces the usual one."""
        connection = self.connection()
        try:
            given = {name.lower() for name in headers or {}}
            connection.putrequest(method, path, skip_host="host" in given, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None and "content-length" not in given:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.headers.items()},
                response.read(),
            )
        finally:
            connection.close()

    def get(self, path: str, status: int = 200) -> Any:
        """Return the JSON at a path."""
        answer = self.ask("GET", path)
        assert answer.status == status, answer
        return answer.json()

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        """Send JSON and return the answer's."""
        answer = self.ask("POST", path, json.dumps(body).encode(), {"content-type": "application/json"})
        assert answer.status == status, answer
        return answer.json()

    @contextmanager
    def events(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[Iterator[Event]]:
        """Open a stream of events."""
        connection = self.connection()
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield read_events(response)
        finally:
            connection.close()

    def run(self, name: str | None = None) -> str:
        """Return the id of a run, or of the only one."""
        return str(next(run["id"] for run in self.get("/api/site")["runs"] if name in (None, run["name"])))

    def player(self, name: str) -> str:
        """Return the id of a player."""
        return str(next(one["id"] for one in self.get("/api/site")["players"] if one["name"] == name))


def read_events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """Yield the events of a stream, without heartbeats."""
    name, number, data = "", None, b""
    while text := response.readline():
        field, _, value = text.rstrip(b"\n").partition(b": ")
        match field:
            case b"event":
                name = value.decode()
            case b"id":
                number = value.decode()
            case b"data":
                data = value
            case b"" if name:
                yield Event(name, number, json.loads(data))
                name, number, data = "", None, b""


def next_event(events: Iterator[Event], name: str, wanted: Callable[[Any], bool] = lambda _: True) -> Event:
    """Return the next event of a name whose data is as wanted."""
    deadline = time.monotonic() + PATIENCE
    for event in events:
        if event.name == name and wanted(event.data):
            return event
        assert time.monotonic() < deadline, f"no {name} as wanted, the last event is {event}"
    raise AssertionError(f"the stream ended without {name}")


@contextmanager
def web(folder: Path, *arguments: str, port: int | None = None) -> Iterator[Web]:
    """Start `keisei web` in a folder; at the end it is killed if it has not ended."""
    chosen = ["--port", str(port or free_port())]
    with (folder / "web-errors.txt").open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [KEISEI, "web", *chosen, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, (folder / "web-errors.txt").read_text(encoding="utf-8")
        yield Web(process, address)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        if process.stdout is not None:
            process.stdout.close()


def free_port() -> int:
    """Return a free port, below those that the system gives to others before the server starts."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {PATIENCE:g} seconds"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and is not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(path.parent.name))
    return found

"""How the server ends: at once on Ctrl-C, without a trace when killed, and engines with it in any case."""

import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from made_runs import made_run
from web_server import Web, children_of, is_alive, next_event, wait_until, web

PATIENT_END = 30.0  # seconds, on a busy machine; docs/web.md says two


def thinking_table(server: Web) -> str:
    """Begin a game in which the engine thinks for long, and return the path of the table."""
    opponent = server.player("shipped")
    opened = server.post(
        "/api/tables", {"opponent": opponent, "side": "white", "visits": 20_000, "thinking": True}, 201
    )
    path = f"/api/tables/{opened['id']}"
    with server.events(f"{path}/events") as events:
        next_event(events, "thinking")
    return path


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_server_streams_and_engines(tmp_path: Path, signum: signal.Signals, code: int) -> None:
    run = made_run(tmp_path / "runs" / "first")
    with web(tmp_path) as server, ExitStack() as stack:
        path = thinking_table(server)
        streams = [
            stack.enter_context(server.events(f"/api/runs/{server.run()}/events?names=loss/policy"))
            for _ in range(10)
        ]
        streams.append(stack.enter_context(server.events(f"{path}/events")))
        for events in streams:
            next(events)
        slow = stack.enter_context(socket.socket())  # asks and does not read
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"GET /api/games?limit=200 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        engines = children_of(server.process.pid)
        assert len(engines) == 1
        server.process.send_signal(signum)
        assert server.process.wait(PATIENT_END) == code
        for events in streams:
            list(events)  # they end
        wait_until(lambda: not any(map(is_alive, engines)), "the engines' end")
    assert (tmp_path / "web-errors.txt").read_text(encoding="utf-8") == ""
    assert not (run / "watching").exists()


def test_a_killed_server_leaves_no_engine_in_the_middle_of_a_search(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with web(tmp_path) as server:
        thinking_table(server)
        game = server.get("/api/games?kind=training")["games"][0]["id"]
        asked = {"network": server.player("shipped"), "visits": 20_000}
        server.post(f"/api/games/{game}/analysis", asked, 201)
        server.post("/api/tables", {"opponent": server.player("alphabeta-6"), "side": "white"}, 201)
        wait_until(lambda: len(children_of(server.process.pid)) == 3, "three engines")
        engines = children_of(server.process.pid)
        server.process.kill()
        server.process.wait(PATIENT_END)
        wait_until(lambda: not any(map(is_alive, engines)), "the engines' end")
    assert (tmp_path / "web-errors.txt").read_text(encoding="utf-8") == ""


def test_ctrl_c_reaches_the_engines_through_the_server_alone(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to the whole process group."""
    with web(tmp_path) as server:
        thinking_table(server)
        (engine,) = children_of(server.process.pid)
        assert os.getpgid(engine) != os.getpgid(server.process.pid)
        os.killpg(os.getpgid(server.process.pid), signal.SIGINT)
        assert server.process.wait(PATIENT_END) == 130
        wait_until(lambda: not is_alive(engine), "the engine's end")
    assert (tmp_path / "web-errors.txt").read_text(encoding="utf-8") == ""


def test_engines_run_at_a_low_priority(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        thinking_table(server)
        (engine,) = children_of(server.process.pid)
        own = os.getpriority(os.PRIO_PROCESS, server.process.pid)
        assert os.getpriority(os.PRIO_PROCESS, engine) == min(own + 10, 19)


def test_a_signal_while_a_long_file_is_read_ends_it_too(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / "first")
    lines = (run / "metrics.jsonl").read_bytes()
    with (run / "metrics.jsonl").open("wb") as file:
        for _ in range(800):
            file.write(lines)
    with web(tmp_path) as server:
        connection = server.connection()
        connection.request("GET", f"/api/runs/{server.run()}/curves?names=loss/policy")
        time.sleep(0.05)  # so that the reading has begun, most likely
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENT_END) == 130
        connection.close()

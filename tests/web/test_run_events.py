"""What a stream tells of a run: state, curves, rows since, and all of it to many viewers at once."""

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_run import fake_metrics
from made_runs import STEPS, UPDATES, line, made_run
from web_server import Event, Web, next_event, wait_until, web

NAMES = "names=loss/policy,policy/entropy,evaluation/rating"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Web, Path]]:
    """A server and its only run."""
    run = made_run(tmp_path / "runs" / "first")
    with web(tmp_path) as server:
        yield server, run


def append(run: Path, *updates: int) -> None:
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(map(line, updates)))


def stream(server: Web) -> str:
    return f"/api/runs/{server.run()}/events?{NAMES}"


def test_a_stream_begins_with_state_and_curves(site: Web) -> None:
    with site.events(stream(site)) as events:
        state = next_event(events, "state").data
        curves = next_event(events, "curves").data
    run = state["run"]
    assert (run["name"], run["state"]) == ("first", "stopped")
    assert (run["step"], run["total_steps"]) == (STEPS * UPDATES, STEPS * 100)
    facts = state["facts"]
    assert (facts["seed"], facts["parameters"], facts["device"]) == (7, 84_321, "cpu, 2 threads, float32")
    assert facts["network"] == "1 blocks of 8 channels"
    assert state["rating"] == {"elo": 600.0, "low": 540.0, "high": 660.0, "step": STEPS * UPDATES}
    assert {one["opponent"]: one["score"] for one in state["scores"]}["random"] == pytest.approx(0.745)
    rows = [fake_metrics(update) for update in range(UPDATES - 19, UPDATES + 1)]
    wins = [
        round(sum(row[f"games/{side}"] for row in rows)) for side in ("black_wins", "white_wins", "draws")
    ]
    assert [state["results"][side] for side in ("black", "white", "draws")] == wins
    assert state["results"]["by"]["declaration"] == 20
    assert sum(state["phases"].values()) == pytest.approx(1, abs=1e-4)
    assert next(iter(state["phases"])) == "update"
    seconds = sum(sum(value for name, value in row.items() if name.startswith("time/")) for row in rows)
    assert state["moves_per_second"] == pytest.approx(20 * STEPS / seconds, rel=1e-4)
    assert (state["workers"], state["seconds_left"]) == ([], None)
    assert [notice["text"].split()[0] for notice in state["notices"]] == ["run", "worker", "40,960"]
    assert curves["x"]["step"] == [STEPS * update for update in range(1, UPDATES + 1)]
    entropy = [fake_metrics(update)["policy/entropy"] for update in range(1, UPDATES + 1)]
    assert curves["curves"]["policy/entropy"]["mean"] == pytest.approx(entropy, rel=1e-5)
    assert [point[0] for point in curves["points"]["evaluation/rating"]] == [
        STEPS * n for n in (10, 20, 30, 40, 50)
    ]
    assert "evaluation/rating" not in curves["curves"]


def test_new_rows_follow_and_a_stream_resumes_by_its_last_event(own: tuple[Web, Path]) -> None:
    server, run = own
    with server.events(stream(server)) as events:
        first = next_event(events, "curves")
        append(run, UPDATES + 1, UPDATES + 2)
        rows = next_event(events, "rows")
        assert rows.data["step"] == [STEPS * (UPDATES + 1), STEPS * (UPDATES + 2)]
        assert rows.data["values"]["loss/policy"] == pytest.approx(
            [fake_metrics(UPDATES + number)["loss/policy"] for number in (1, 2)], rel=1e-4
        )
        assert set(rows.data["values"]) == set(NAMES.removeprefix("names=").split(","))
    append(run, UPDATES + 3)

    def resumed(mark: str | None, *, by_query: bool = False) -> Event:
        path = f"{stream(server)}&after={mark}" if by_query else stream(server)
        with server.events(path, {} if by_query else {"last-event-id": str(mark)}) as again:
            return next(event for event in again if event.name in ("rows", "curves"))

    for by_query in (False, True):
        assert resumed(rows.number, by_query=by_query).data["step"] == [STEPS * (UPDATES + 3)]
        assert len(resumed(first.number, by_query=by_query).data["step"]) == 3
        assert resumed("123-00000000", by_query=by_query).name == "curves"
    append(run, *range(UPDATES + 4, UPDATES + 700))
    with server.events(f"{stream(server)}&after={rows.number}") as events:  # too much was missed
        assert next_event(events, "curves").data["x"]["step"][-1] == STEPS * (UPDATES + 699)


def test_a_stream_resumes_at_a_server_that_was_started_anew(own: tuple[Web, Path], tmp_path: Path) -> None:
    server, run = own
    with server.events(stream(server)) as events:
        mark = next_event(events, "curves").number
    server.process.kill()
    append(run, UPDATES + 1)
    with web(tmp_path) as anew, anew.events(f"{stream(anew)}&after={mark}") as events:
        assert next_event(events, "rows").data["step"] == [STEPS * (UPDATES + 1)]


def test_a_file_that_is_cut_replaced_or_torn_is_read_right(own: tuple[Web, Path]) -> None:
    server, run = own
    metrics = run / "metrics.jsonl"
    with server.events(stream(server)) as events:
        next_event(events, "curves")
        lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        with metrics.open("r+") as file:  # as a resumed run does
            file.truncate(sum(map(len, lines[:20])))
        assert len(next_event(events, "curves").data["x"]["step"]) == 20
        with metrics.open("a", encoding="utf-8") as file:
            file.write(lines[20] + lines[21][:100])
            file.flush()
            assert next_event(events, "rows").data["step"] == [STEPS * 21]
            file.write(lines[21][100:])
            file.flush()
            assert next_event(events, "rows").data["step"] == [STEPS * 22]
        other = run / "other"
        other.write_text("".join(line(update) for update in (1, 2, 3)), encoding="utf-8")
        other.replace(metrics)
        assert next_event(events, "curves").data["x"]["step"] == [STEPS, 2 * STEPS, 3 * STEPS]
        metrics.unlink()
        assert next_event(events, "curves").data["x"]["step"] == []
        metrics.write_text(line(1), encoding="utf-8")
        told = next(event for event in events if event.name in ("rows", "curves"))
        assert (told.data["x"]["step"] if told.name == "curves" else told.data["step"]) == [STEPS]


def test_a_hundred_viewers_see_every_row_once(own: tuple[Web, Path]) -> None:
    server, run = own
    with ExitStack() as stack:
        viewers = [stack.enter_context(server.events(stream(server))) for _ in range(100)]
        for events in viewers:
            next_event(events, "curves")
        steps: list[list[int]] = [[] for _ in viewers]
        for update in range(UPDATES + 1, UPDATES + 6):
            append(run, update)
            for seen, events in zip(steps, viewers, strict=True):
                while STEPS * update not in seen:
                    seen += next_event(events, "rows").data["step"]
        assert all(seen == [STEPS * (UPDATES + number) for number in range(1, 6)] for seen in steps)
    assert server.get("/api/site")["runs"]


def test_a_viewer_that_does_not_read_costs_no_memory_and_delays_nobody(own: tuple[Web, Path]) -> None:
    server, run = own
    memory = Path(f"/proc/{server.process.pid}/statm")

    def resident() -> int:
        return int(memory.read_text().split()[1]) * resource.getpagesize()

    with socket.socket() as slow, server.events(stream(server)) as quick:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        every = ",".join(fake_metrics(UPDATES))
        path = f"/api/runs/{server.run()}/events?names={every}"
        slow.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        next_event(quick, "curves")
        before = resident()
        for start in range(UPDATES + 1, UPDATES + 4000, 400):
            append(run, *range(start, start + 400))
            next_event(quick, "rows", lambda data, last=start + 399: STEPS * last in data["step"])  # type: ignore[misc]
        assert resident() - before < 60e6  # queued, all of it would be some ten times as much
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        slow.settimeout(60)
        received = b""
        while f"{STEPS * (start + 399)}]".encode() not in received:
            received += slow.recv(1 << 16)
        assert received.count(b"event: curves") <= 3


def test_ten_million_moves_are_at_most_a_thousand_buckets(own: tuple[Web, Path]) -> None:
    server, run = own
    updates = 2442
    (run / "metrics.jsonl").write_text("".join(map(line, range(1, updates + 1))), encoding="utf-8")
    with server.events(stream(server)) as events:
        curves = next_event(events, "curves").data
    assert curves["x"]["step"][-1] == STEPS * updates > 10_000_000
    assert 500 < len(curves["x"]["step"]) <= 1000
    low = curves["curves"]["loss/policy"]["low"]
    wanted = min(fake_metrics(update)["loss/policy"] for update in range(1, updates + 1))
    assert min(low) == pytest.approx(wanted, rel=1e-4)
    inside = server.get(
        f"/api/runs/{server.run()}/curves?names=loss/policy&from={STEPS * 100}&to={STEPS * 299}"
    )
    assert inside["x"]["step"] == [STEPS * update for update in range(100, 300)]


def test_a_huge_file_does_not_hold_up_other_requests(own: tuple[Web, Path]) -> None:
    server, run = own
    text = "".join(map(line, range(1, 1001)))
    with (run / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(30):  # 30,000 rows, 65 MB; the steps begin again, which does no harm
            file.write(text)
    with server.events(stream(server)) as events:
        answered = 0
        while answered < 5:  # while the file is read
            assert server.get("/api/texts?lang=ja")
            answered += 1
        assert len(next_event(events, "curves").data["x"]["step"]) <= 1000


def test_names_are_limited(site: Web) -> None:
    run = site.run()
    assert "names" in site.get(f"/api/runs/{run}/events?names={','.join(map(str, range(200)))}", 400)["error"]
    assert "names" in site.get(f"/api/runs/{run}/curves?names={'x' * 101}", 400)["error"]
    assert "from" in site.get(f"/api/runs/{run}/curves?names=a&from=-1", 400)["error"]
    assert "to" in site.get(f"/api/runs/{run}/curves?names=a&from=5&to=4", 400)["error"]


def test_an_unknown_run_is_refused(site: Web) -> None:
    for wanted in ("0" * 12, "first", "..", "%2e%2e", "..%2f..%2fetc", "%00", "runs%2ffirst"):
        for path in ("events", "curves"):
            assert site.ask("GET", f"/api/runs/{wanted}/{path}?names=a").status == 404, wanted


def test_a_run_without_anything_but_a_name_can_be_followed(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "<img src=x onerror=alert(1)>"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}", encoding="utf-8")
    with web(tmp_path) as server:
        assert server.get("/api/site")["runs"][0]["name"] == "<img src=x onerror=alert(1)>"
        with server.events(stream(server)) as events:
            state = next_event(events, "state").data
            assert state["run"]["state"] == "stopped"
            assert (state["rating"], state["moves_per_second"], state["scores"], state["notices"]) == (
                None,
                None,
                [],
                [],
            )
            assert next_event(events, "curves").data["x"] == {"step": [], "time": []}
            (run / "metrics.jsonl").write_text(line(1), encoding="utf-8")
            next(event for event in events if event.name in ("rows", "curves"))
            (run / "train.log").write_text(
                "2026-01-02 03:04:05  something\nTraceback\n  deep\nError: x\n", "utf-8"
            )
            state = next_event(events, "state", lambda data: bool(data["notices"])).data
            assert state["notices"] == [{"time": "2026-01-02 03:04:05", "text": "something … Error: x"}]


def test_the_listing_says_where_each_run_stands(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "half")
    whole = made_run(tmp_path / "runs" / "whole", updates=100)
    with (whole / "metrics.jsonl").open("a") as file:
        file.write('{"step": 99')  # torn
    damaged = made_run(tmp_path / "runs" / "damaged")
    (damaged / "config.yaml").write_text("training: [", encoding="utf-8")
    (damaged / "run.json").write_text("[", encoding="utf-8")
    (damaged / "checkpoints" / "best.json").write_text("{}", encoding="utf-8")
    with web(tmp_path) as server:
        runs = {run["name"]: run for run in server.get("/api/site")["runs"]}
        assert {name: (run["state"], run["step"]) for name, run in runs.items()} == {
            "half": ("stopped", STEPS * 50),
            "whole": ("finished", STEPS * 100),
            "damaged": ("stopped", STEPS * 50),
        }
        assert runs["damaged"]["total_steps"] == 0
        with server.events(f"/api/runs/{runs['damaged']['id']}/events?names=a") as events:
            assert next_event(events, "state").data["seconds_left"] is None
        players = server.get("/api/site")["players"]
        assert [one["name"] for one in players if one["group"] == "whole"] == [
            f"whole@{STEPS * 100} (latest)"
        ]
        (tmp_path / "runs" / "half").rename(tmp_path / "gone")
        wait_until(lambda: "half" not in {run["name"] for run in server.get("/api/site")["runs"]})
        assert server.get(f"/api/runs/{runs['half']['id']}/curves?names=a", 404)["error"] == "no such run"
    assert json.loads((tmp_path / "gone" / "run.json").read_text())["seed"] == 7


@pytest.mark.parametrize("file", ["metrics.jsonl", "config.yaml", "run.json", "train.log"])
def test_a_run_whose_files_cannot_be_read_hides_no_other(tmp_path: Path, file: str) -> None:
    made_run(tmp_path / "runs" / "first")
    other = made_run(tmp_path / "runs" / "other")
    (other / file).unlink()
    (other / file).mkdir()  # which nobody can read, not even root
    with web(tmp_path) as server:
        assert {run["name"] for run in server.get("/api/site")["runs"]} == {"first", "other"}
        assert server.get("/api/games")["total"] == 24
        with server.events(f"/api/runs/{server.run('first')}/events?{NAMES}") as events:
            assert next_event(events, "state").data["run"]["name"] == "first"

"""The page beside a real training: it shows its games, ends with it, and changes nothing in it."""

import re
import signal
import threading
from pathlib import Path

import pytest
from sessions import PATIENCE, Learner, learner, members, wait_for
from short_games import GAMES_END_SOON, WORKERS
from training_runs import assert_same, keisei, last, metrics
from web_server import Web, children_of, is_alive, next_event, wait_until, web

from keisei.shogi import ShogiGame

pytestmark = pytest.mark.timeout(600)
ENDLESS = [
    *GAMES_END_SOON,
    *WORKERS,
    "training.total_timesteps=1000000000",
    "run.console=plain",
    "run.name=first",
]


def begun(process: Learner, cwd: Path) -> Web:
    """Wait until a training with a page learns, and return a client for the page."""
    wait_for("moves/s", process, cwd)
    (address,) = re.findall(r"page: (http://\S+)", (cwd / "output.txt").read_text(encoding="utf-8"))
    return Web(process, address)


def test_train_with_a_page_shows_its_games_and_ends_the_page(tmp_path: Path) -> None:
    with learner("train", "--web", "--config", "tiny", *ENDLESS, cwd=tmp_path) as process:
        server = begun(process, tmp_path)
        with server.events(f"/api/runs/{server.run()}/events?names=loss/policy") as events:
            state = next_event(events, "state", lambda data: len(data["workers"]) == 2).data
            assert state["run"]["state"] == "training"
            assert state["seconds_left"] > 0
            live = next_event(events, "games", lambda data: bool(data["games"])).data
            for one in live["games"]:
                game = ShogiGame(one["sfen"], max_moves=None, declaration="off")
                for move in one["moves"]:
                    game.push(move)
                assert len(one["moves"]) == len(one["black_percent"])
            working = next_event(
                events, "state", lambda data: all(one["state"] for one in data["workers"])
            ).data
            assert [one["number"] for one in working["workers"]] == [0, 1]
            assert {one["state"] for one in working["workers"]} <= {
                "playing",
                "learning",
                "waiting",
                "starting",
                "restarting",
            }
            ended = next_event(
                events, "games", lambda data: any(one["outcome"] for one in data["games"])
            ).data
            assert next(one["outcome"]["text"]["ja"] for one in ended["games"] if one["outcome"])
            assert (tmp_path / "runs" / "first" / "watching").exists()
        (page,) = (pid for pid in children_of(process.pid) if "keisei.web.beside" in command_of(pid))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        wait_until(lambda: not is_alive(page), "the page's end")
    assert "Traceback" not in (tmp_path / "errors.txt").read_text(encoding="utf-8")


def test_a_training_that_is_killed_leaves_no_page(tmp_path: Path) -> None:
    with learner("train", "--web", "--config", "tiny", *ENDLESS, cwd=tmp_path) as process:
        server = begun(process, tmp_path)
        opponent = server.player("shipped")
        server.post("/api/tables", {"opponent": opponent, "side": "white", "visits": 20_000}, 201)
        (page,) = (pid for pid in children_of(process.pid) if "keisei.web.beside" in command_of(pid))
        wait_until(lambda: bool(children_of(page)), "an engine")
        (engine,) = children_of(page)
        process.kill()
        wait_until(lambda: not is_alive(page) and not is_alive(engine), "the end of page and engine")
        wait_until(lambda: not members(process.pid), "the workers' end")


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def test_the_weights_are_to_the_bit_the_same_with_viewers(tmp_path: Path) -> None:
    settings = [*GAMES_END_SOON, "run.name=first", "training.total_timesteps=8192", "run.keep_checkpoints=3"]
    (tmp_path / "alone").mkdir()
    (tmp_path / "watched").mkdir()
    assert keisei("train", "--config", "tiny", *settings, cwd=tmp_path / "alone").returncode == 0
    watched = tmp_path / "watched" / "runs" / "first"
    seen = threading.Event()
    with web(tmp_path / "watched") as server:
        with learner("train", "--config", "tiny", *settings, cwd=tmp_path / "watched") as process:
            wait_until(lambda: (watched / "run.json").exists(), "the run's beginning")
            path = f"/api/runs/{server.run()}/events?names=loss/policy,policy/entropy"

            def view() -> None:
                with server.events(path) as events:
                    for event in events:
                        if event.name == "games" and event.data["games"]:
                            seen.set()

            for _ in range(5):
                threading.Thread(target=view, daemon=True).start()
            assert process.wait(PATIENCE) == 0
        server.process.kill()
    assert seen.wait(10), "nobody saw a game"
    alone = tmp_path / "alone" / "runs" / "first"
    assert_same(last(alone), last(watched))
    assert metrics(alone) == metrics(watched)


def test_a_run_that_ends_is_told(tmp_path: Path) -> None:
    with learner("train", "--config", "tiny", *ENDLESS, cwd=tmp_path) as process:
        wait_for("moves/s", process, tmp_path)
        with web(tmp_path) as server, server.events(f"/api/runs/{server.run()}/events?names=a") as events:
            next_event(events, "games", lambda data: bool(data["games"]))
            process.kill()
            assert (
                next_event(events, "state", lambda data: data["run"]["state"] == "stopped").data["workers"]
                == []
            )

"""What a network thinks of a stored game: candidates of a position, and the analysis of all of it."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from made_runs import MATE_IN_SEVEN, STEPS, made_run, shipped_checkpoint
from web_server import Web, children_of, next_event, wait_until, web


def a_game(site: Web, plies: int = 7) -> str:
    games = site.get("/api/games?limit=200")["games"]
    return str(next(one["id"] for one in games if one["plies"] == plies))


def test_candidates_are_the_best_lines_of_a_position(site: Web) -> None:
    path, network = f"/api/games/{a_game(site)}/candidates", site.player("shipped")
    before_mate = site.post(path, {"ply": 6, "network": network, "visits": 200})
    best = before_mate["lines"][0]
    assert (best["move"], best["mate"], best["black_percent"]) == (MATE_IN_SEVEN[6], 1, 100.0)
    assert best["pv_texts"]["ja"] == ["▲５二金"]
    first = site.post(path, {"ply": 0, "network": network, "visits": 50})
    assert len(first["lines"]) == 5
    assert 30 < first["black_percent"] < 70
    assert sum(one["visits"] for one in first["lines"]) <= 50
    assert site.post(path, {"ply": 0, "network": network, "visits": 0})["lines"][0]["visits"] == 0
    assert (
        site.post(path, {"ply": 7, "network": network, "visits": 5}, 409)["error"]
        == "the game is over after 7 moves"
    )


@pytest.mark.parametrize(
    "changed", [{"ply": 8}, {"ply": -1}, {"ply": "1"}, {"visits": 10**9}, {"visits": -1}]
)
def test_a_wrong_question_is_refused(site: Web, changed: dict[str, Any]) -> None:
    asked = {"ply": 0, "network": site.player("shipped"), "visits": 5} | changed
    assert site.post(f"/api/games/{a_game(site)}/candidates", asked, 400)["error"].startswith(
        next(iter(changed))
    )


def test_a_player_without_values_analyzes_nothing(site: Web) -> None:
    for what in ("candidates", "analysis"):
        path = f"/api/games/{a_game(site)}/{what}"
        asked = {"ply": 0, "network": site.player("greedy"), "visits": 5}
        assert site.post(path, asked, 400)["error"] == "network: greedy has no values, expected a network"
        assert site.post(path, {**asked, "network": "0" * 12}, 404)["error"] == "no such player"


def test_an_analysis_tells_its_progress_and_who_asks_again_gets_the_same(site: Web) -> None:
    path = f"/api/games/{a_game(site, 60)}/analysis"
    asked = {"network": site.player("shipped"), "visits": 20}
    wanted = site.post(path, asked, 201)["analysis"]
    with site.events(f"/api/analyses/{wanted}/events") as events:
        seen = list(events)
    assert {event.name for event in seen[:-1]} <= {"progress"}
    assert seen[-1].name == "done"
    result = seen[-1].data
    assert len(result["black_percent"]) == 61
    assert {60, *range(1, 61)} >= {one["ply"] for one in result["losses"]}
    assert all(one["loss"] > 0 and one["better"] for one in result["losses"])
    told = [event.data for event in seen if event.name == "progress"]
    assert all(len(one["black_percent"]) == one["done"] <= 61 for one in told)
    assert site.post(path, asked, 201)["analysis"] == wanted
    with site.events(f"/api/analyses/{wanted}/events") as events:
        assert [event.data for event in events] == [result]
    assert site.post(path, {**asked, "visits": 21}, 201)["analysis"] != wanted
    assert site.get("/api/analyses/x/events", 404)["error"] == "no such analysis"


def test_a_network_that_cannot_be_loaded_fails_in_one_line(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / "first")
    weights = next((run / "checkpoints").glob("step_*")) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with web(tmp_path) as server:
        network = next(one["id"] for one in server.get("/api/site")["players"] if one["group"] == "first")
        path = f"/api/games/{a_game(server)}"
        error = server.post(f"{path}/candidates", {"ply": 0, "network": network, "visits": 5}, 503)["error"]
        assert "weights.safetensors" in error
        wanted = server.post(f"{path}/analysis", {"network": network, "visits": 5}, 201)["analysis"]
        with server.events(f"/api/analyses/{wanted}/events") as events:
            assert next_event(events, "failed").data["error"] == error
        opened = server.post("/api/tables", {"opponent": network, "side": "white"}, 201)
        with server.events(f"/api/tables/{opened['id']}/events") as events:
            view = next_event(events, "table", lambda table: table["state"] == "failed").data
        assert view["error"] == error
        assert str(tmp_path) in error  # it is the user's own machine


def test_only_two_engines_analyze_and_a_killed_one_is_started_again(tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    with web(tmp_path) as server:
        network, game = server.player("shipped"), a_game(server, 60)
        wanted = [
            server.post(f"/api/games/{game}/analysis", {"network": network, "visits": visits}, 201)[
                "analysis"
            ]
            for visits in (300, 301, 302)
        ]
        with ExitStack() as followed:  # all the time: one that nobody follows ends after a while
            streams = [followed.enter_context(server.events(f"/api/analyses/{one}/events")) for one in wanted]
            wait_until(lambda: len(children_of(server.process.pid)) == 2, "two engines")
            os.kill(children_of(server.process.pid)[0], signal.SIGKILL)
            for events in streams:
                assert next_event(events, "done")
                assert len(children_of(server.process.pid)) <= 2


def test_an_engine_at_rest_makes_room_for_another_networks(tmp_path: Path) -> None:
    shipped_checkpoint(made_run(tmp_path / "runs" / "first"), STEPS)
    with web(tmp_path) as server:
        networks = [one["id"] for one in server.get("/api/site")["players"] if one["kind"] == "network"]
        assert len(networks) == 3
        for network in networks:
            path, asked = f"/api/games/{a_game(server)}/candidates", {"ply": 0, "visits": 5}
            assert server.post(path, {**asked, "network": network})["lines"]
        wait_until(lambda: len(children_of(server.process.pid)) <= 2, "room")

"""The games of runs over the API: listing, filters, one game, downloads; ids name listed games only."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from made_runs import MATE_IN_SEVEN, STEPS, UPDATES, game, made_run
from web_server import Web, web

from keisei.shogi import GameRecord, read_csa, read_kif, read_usi, write_csa_games, write_kif

OWN = f"first@{STEPS * UPDATES}"


def listed(site: Web, **query: Any) -> list[dict[str, Any]]:
    text = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
    return list(site.get(f"/api/games?{text}")["games"])


def test_evaluation_games_and_kept_games_are_listed(site: Web) -> None:
    answer = site.get(f"/api/games?run={site.run()}")
    assert answer["total"] == 12
    kinds = [one["kind"] for one in answer["games"]]
    assert kinds == ["evaluation"] * 6 + ["training"] * 6
    mate = next(one for one in answer["games"] if one["plies"] == 7)
    assert (mate["black"], mate["white"], mate["winner"], mate["reason"]) == (OWN, "greedy", 0, "checkmate")
    assert mate["text"] == {"en": "black wins by checkmate", "ja": "先手の勝ち（詰み）"}
    assert (mate["step"], mate["opening"]) == (STEPS * UPDATES, MATE_IN_SEVEN[:4])
    assert mate["opening_texts"]["ja"] == ["▲７六歩", "△７二金", "▲３三角成", "△４二金"]
    assert [one["step"] for one in answer["games"] if one["kind"] == "training"] == [
        STEPS * number for number in range(6, 0, -1)
    ]
    assert answer["players"] == [OWN, "greedy"]
    assert answer["reasons"] == ["checkmate", "maximum length", "resignation"]
    assert sum(one["games"] for one in answer["openings"]) == 12
    assert all(len(one["id"]) == 12 for one in answer["games"])


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 12),
        ({"kind": "training"}, 6),
        ({"kind": "other"}, 0),
        ({"winner": "black", "kind": "training"}, 3),
        ({"winner": "draw"}, 5),
        ({"player": "greedy"}, 6),
        ({"player": "greedy", "result": "lost"}, 1),
        ({"player": "greedy", "result": "won"}, 0),
        ({"player": "greedy", "result": "drawn"}, 5),
        ({"player": OWN, "result": "won", "kind": "evaluation"}, 1),
        ({"player": "nobody"}, 0),
        ({"reason": "checkmate"}, 1),
        ({"shortest": 7, "longest": 20}, 6),
        ({"longest": 7}, 1),
        ({"opening": "7g7f,6a7b"}, 1),
        ({"opening": "1a1b"}, 0),
    ],
)
def test_filters_narrow_the_listing(site: Web, query: dict[str, Any], count: int) -> None:
    run = site.run()
    assert len(listed(site, run=run, limit=200, **query)) == count
    archive = site.ask(
        "GET", f"/api/games.zip?run={run}&" + "&".join(f"{n}={quote(str(v))}" for n, v in query.items())
    )
    assert len(zipfile.ZipFile(io.BytesIO(archive.body)).namelist()) == count


def test_a_listing_has_pages(site: Web) -> None:
    run, whole = site.run(), listed(site, run=site.run(), limit=200)
    assert [one for start in range(0, 15, 5) for one in listed(site, run=run, offset=start, limit=5)] == whole
    assert listed(site, run=run, limit=0) == []


@pytest.mark.parametrize(
    "query",
    [
        "winner=nobody",
        "result=maybe",
        "shortest=x",
        "longest=-1",
        "limit=201",
        "offset=1e9",
        "limit=९",
        "format=exe",
    ],
)
def test_a_wrong_filter_is_refused(site: Web, query: str) -> None:
    path = "/api/games.zip" if query.startswith("format") else "/api/games"
    assert site.get(f"{path}?{quote(query, safe='=')}", 400)["error"].startswith(query.partition("=")[0])


def test_a_game_has_moves_and_texts_and_is_downloaded_in_each_format(site: Web) -> None:
    mate = next(one for one in listed(site) if one["plies"] == 7)
    whole = site.get(f"/api/games/{mate['id']}")
    assert (whole["moves"], whole["black_percent"]) == (MATE_IN_SEVEN, None)
    assert whole["texts"]["en"] == MATE_IN_SEVEN
    assert whole["texts"]["ja"][-1] == "▲５二金"
    for kind, read in {"kif": read_kif, "csa": read_csa, "usi": read_usi}.items():
        answer = site.ask("GET", f"/api/games/{mate['id']}/record?format={kind}")
        assert answer.headers["content-disposition"].startswith('attachment; filename="first@')
        assert [str(move) for move in read(answer.body.decode()).moves] == MATE_IN_SEVEN


def test_the_zip_has_records_that_can_be_read(site: Web) -> None:
    for kind, read in {"kif": read_kif, "csa": read_csa}.items():
        answer = site.ask("GET", f"/api/games.zip?run={site.run()}&format={kind}")
        archive = zipfile.ZipFile(io.BytesIO(answer.body))
        assert len(archive.namelist()) == 12
        for name in archive.namelist():
            assert name.endswith(f".{kind}")
            assert "/" not in name
            assert read(archive.read(name).decode()).moves


@pytest.mark.parametrize(
    "wanted", ["x", "0" * 12, "..", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "%00", "games%2f1.kif"]
)
def test_an_unknown_game_is_refused(site: Web, wanted: str) -> None:
    for path in (f"/api/games/{wanted}", f"/api/games/{wanted}/record"):
        answer = site.ask("GET", path)
        assert answer.status == 404, path
        assert b"root:" not in answer.body
    assert site.get("/api/games?run=..%2f..", 404)["error"] == "no such run"
    assert site.get("/api/ladder?run=..", 404)["error"] == "no such run"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/",
        "/../x",
        "/static/..%5capp.py",
        "/static/%00",
    ],
)
def test_static_files_are_only_those(site: Web, path: str) -> None:
    answer = site.ask("GET", path)
    assert answer.status == 404
    assert b"Starlette" not in answer.body


def test_links_and_damaged_records_are_left_out(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / "first", games=2)
    secret = tmp_path / "secret.kif"
    secret.write_text(write_kif(GameRecord(tuple(game(77).history), black="secret")), encoding="utf-8")
    (run / "games" / "000000000009-9.kif").symlink_to(secret)
    (run / "evaluation" / "games" / "linked.csa").symlink_to(tmp_path / "nowhere")
    (run / "games" / "000000000008-8.kif").write_text(
        "手数----指手---------消費時間--\n   1 １一玉\n", "utf-8"
    )
    (run / "games" / "000000000007-7.kif").mkdir()
    whole = write_csa_games(
        [GameRecord(tuple(game(number).history), black="a", white="b") for number in (1, 2)]
    )
    (run / "evaluation" / "games" / "torn.csa").write_text(whole[: len(whole) * 3 // 4], encoding="utf-8")
    with web(tmp_path) as server:
        games = listed(server)
        assert {one["black"] for one in games} == {OWN, "greedy", "a"}
        assert len([one for one in games if one["black"] == "a"]) >= 1
        assert len([one for one in games if one["kind"] == "training"]) == 2


def test_a_listing_follows_the_files(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / "first", games=2)
    with web(tmp_path) as server:
        assert server.get("/api/games")["total"] == 4
        csa = next((run / "evaluation" / "games").glob("*.csa"))
        with csa.open("a", encoding="utf-8") as file:
            file.write("/\n" + write_csa_games([GameRecord(tuple(game(5).history), black="x", white="y")]))
        assert server.get("/api/games?player=x")["total"] == 1
        kept = sorted((run / "games").glob("*.kif"))
        gone = listed(server, kind="training")[-1]["id"]
        assert server.get(f"/api/games/{gone}")["plies"] == 59
        os.remove(kept[0])
        assert server.get("/api/games")["total"] == 4
        assert server.get(f"/api/games/{gone}", 404)["error"] == "no such game"


def test_the_ladder_has_elo_intervals_and_superiority(site: Web) -> None:
    (table,) = site.get(f"/api/ladder?run={site.run()}")["tables"]
    assert (table["conditions"], table["seed"]) == ("4 random moves, 512 moves at most", "7")
    own, greedy, random = table["players"]
    assert (own["name"], greedy["name"], random["name"]) == (OWN, "greedy", "random")
    assert (random["elo"], random["los"], random["games"]) == (0, None, 20)
    assert own["elo"] > greedy["elo"] > 0
    assert own["low"] < own["elo"] < own["high"]
    assert 0.9 < greedy["los"] <= 1
    assert own["score"] == 0.65


def test_a_run_without_results_has_no_ladder(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / "first")
    os.remove(run / "evaluation" / "results.sqlite")
    with web(tmp_path) as server:
        assert server.get(f"/api/ladder?run={server.run()}") == {"tables": []}
        assert not (run / "evaluation" / "results.sqlite").exists()
        (run / "evaluation" / "results.sqlite").write_text("no database", encoding="utf-8")
        assert "results.sqlite" in server.get(f"/api/ladder?run={server.run()}", 400)["error"]

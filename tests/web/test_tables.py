"""Games at a table over the API: to mate, with clock, handicap, take backs; engines that are killed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from made_runs import MATE_IN_SEVEN
from web_server import Event, Web, children_of, is_alive, next_event, wait_until, web

from keisei.evaluation.players.player import Turn
from keisei.evaluation.players.player_specs import make_player
from keisei.shogi import Color, Move, Reason, ShogiGame, read_csa, read_kif, read_usi
from keisei.web.tables import MOST_TABLES

LONG = 20_000  # visits that take a while
KING_IN_CAMP = "K+R+R+B+BGGGG/SS7/9/9/9/9/9/9/8k b 2S4N4L18P 1"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server for tables, without runs."""
    with web(tmp_path_factory.mktemp("room")) as server:
        yield server


class Table:
    """A person's view of a table."""

    def __init__(self, server: Web, **settings: Any) -> None:
        self.server = server
        opponent = server.player(settings.pop("opponent", "random"))
        self.now = server.post("/api/tables", {"opponent": opponent, **settings}, 201)
        self.path = f"/api/tables/{self.now['id']}"

    def do(self, what: str, status: int = 200, **values: Any) -> Any:
        """Do something and return the table, or what else is answered."""
        answer = self.server.post(self.path, {"do": what, **values}, status)
        self.now = answer if "legal" in answer else self.now
        return answer

    def move(self, move: str, status: int = 200) -> Any:
        return self.do("move", status, move=move, ply=len(self.now["moves"]))

    def wait(self, *states: str) -> Any:
        """Wait until the table is in one of these states."""
        with self.server.events(f"{self.path}/events") as events:
            self.now = next_event(events, "table", lambda table: table["state"] in states).data
        return self.now


@contextmanager
def table(server: Web, **settings: Any) -> Iterator[Table]:
    """A table that is closed at the end."""
    opened = Table(server, **settings)
    try:
        yield opened
    finally:
        server.ask("POST", opened.path, b'{"do": "close"}', {"content-type": "application/json"})


def check(view: Any) -> ShogiGame:
    """Check everything that a view says of the position against a game of our own; return that."""
    game = ShogiGame(view["start_sfen"], max_moves=512, declaration="27")
    for move in view["moves"]:
        game.push(move)
    assert view["sfen"] == game.sfen()
    assert view["check"] == game.is_check()
    yours = view["state"] == "yours"
    assert sorted(view["legal"]) == (sorted(map(str, game.legal_moves())) if yours else [])
    assert view["may_declare"] == (yours and game.can_declare())
    assert len(view["black_percent"]) == len(view["moves"]) + 1
    assert len(view["texts"]["en"]) == len(view["texts"]["ja"]) == len(view["moves"])
    return game


@pytest.mark.parametrize("side", ["black", "white"])
def test_a_game_is_played_to_mate(room: Web, side: str) -> None:
    person, color = make_player("alphabeta-2", seed=5), Color[side.upper()]
    with table(room, side=side) as seat, room.events(f"{seat.path}/events") as events:
        ply = -1
        for event in events:
            game, view = check(event.data), event.data
            assert event.name == "table"
            assert len(view["moves"]) >= ply  # in order
            ply = len(view["moves"])
            if view["state"] == "over":
                break
            if view["state"] == "yours":
                (move,) = person.choose([Turn(game, 0)])
                assert isinstance(move, Move)
                answered = room.post(seat.path, {"do": "move", "move": str(move), "ply": ply})
                check(answered)
                assert answered["moves"][:-1] == view["moves"] or len(answered["moves"]) == ply + 2
        assert view["outcome"]["winner"] == int(color)
        how = {"checkmate": "詰み", "no legal move": "指し手なし"}[view["outcome"]["reason"]]
        assert view["outcome"]["text"]["ja"] == f"{'先手後手'[2 * color : 2 * color + 2]}の勝ち（{how}）"
        for kind, read in {"kif": read_kif, "csa": read_csa, "usi": read_usi}.items():
            answer = room.ask("GET", f"{seat.path}/record?format={kind}")
            assert f'.{kind}"' in answer.headers["content-disposition"]
            record = read(answer.body.decode())
            assert [str(move) for move in record.moves] == view["moves"]
        listed = room.get("/api/games?kind=table&limit=200")["games"]
        assert view["game"] in {one["id"] for one in listed}
        whole = room.get(f"/api/games/{view['game']}")
        assert (whole["moves"], whole["winner"]) == (view["moves"], int(color))


def test_what_is_not_legal_changes_nothing(room: Web) -> None:
    with table(room, opponent="greedy", side="black") as seat:
        before = seat.wait("yours")
        for move in ("7g7e", "7g7f+", "P*5e", "resign", "", "7g", "x" * 10, "７六歩"):
            answer = seat.move(move, 409)
            assert answer["error"]
            assert (answer["sfen"], answer["moves"], answer["state"]) == (before["sfen"], [], "yours")
        assert "2 moves" not in seat.do("move", 409, move="7g7f", ply=2)["error"]
        assert seat.do("declare", 409)["error"]
        assert seat.do("undo", 409)["error"] == "there is no move to take back"
        assert seat.do("hint", 409)["error"].startswith("greedy has no values")
        for body in (
            {"do": "fly"},
            {},
            {"do": "move"},
            {"do": "move", "move": 3, "ply": 0},
            {"do": "set", "visits": -1},
            {"do": "move", "move": "7g7f", "ply": True},
            {"do": "set", "thinking": "yes"},
        ):
            assert room.post(seat.path, body, 400)["error"]
        assert room.get(seat.path)["moves"] == []
        seat.move("7g7f")
        view = seat.wait("yours")
        assert len(view["moves"]) == 2
        assert (
            seat.do("move", 409, move="2g2f", ply=0)["error"] == "2 moves are played, not 0"
        )  # a second click


def test_a_move_is_taken_back_while_the_engine_thinks(room: Web) -> None:
    with table(room, opponent="shipped", side="black", visits=LONG, thinking=True) as seat:
        start = seat.wait("yours")["sfen"]
        with room.events(f"{seat.path}/events") as events:
            seat.move("7g7f")
            thinking = next_event(events, "thinking").data
            assert thinking["ply"] == 1
            assert 1 <= len(thinking["lines"]) <= 5
            for one in thinking["lines"]:
                assert one["pv"][0] == one["move"]
                assert len(one["pv_texts"]["ja"]) == len(one["pv"])
                assert one["text"]["en"] == one["move"]
                assert 0 <= one["black_percent"] <= 100
            assert seat.move("2g2f", 409)["error"] == "it is the turn of shipped"
            back = seat.do("undo")
            assert (back["state"], back["sfen"], back["moves"]) == ("yours", start, [])
            seat.do("set", visits=8)
            seat.move("2g2f")
            view = next_event(events, "table", lambda table: len(table["moves"]) == 2).data
        check(view)
        assert view["moves"][0] == "2g2f"
        assert view["black_percent"][0] is None
        assert view["black_percent"][1] is not None
        back = seat.do("undo")
        assert (back["moves"], back["state"]) == ([], "yours")


def test_a_built_in_player_that_thinks_is_interrupted(room: Web) -> None:
    with table(room, opponent="alphabeta-6", side="black") as seat:
        seat.wait("yours")
        for _ in range(3):
            seat.move("7g7f")
            assert seat.do("undo")["moves"] == []
        seat.do("resign")
        assert (seat.now["state"], seat.now["outcome"]["reason"]) == ("over", "resignation")


def test_the_thinking_is_only_shown_if_wanted(room: Web) -> None:
    with table(room, opponent="shipped", side="black", visits=3000) as seat:
        with room.events(f"{seat.path}/events") as events:
            seat.move("7g7f")
            seen: list[Event] = []
            for event in events:
                seen.append(event)
                if event.name == "table" and len(event.data["moves"]) == 2:
                    break
        assert {event.name for event in seen} == {"table"}
        lines = seat.do("hint")["lines"]
        assert lines[0]["move"] in room.get(seat.path)["legal"]
        assert seat.do("set", thinking=True)["thinking"] is True


def test_policy_alone_answers(room: Web) -> None:
    with table(room, opponent="shipped", side="white", visits=0) as seat:
        view = seat.wait("yours")
        assert len(view["moves"]) == 1
        assert view["black_percent"][0] == view["black_percent"][1]


def test_in_a_handicap_game_white_begins(room: Web) -> None:
    with table(room, side="black", handicap="2-piece") as seat:
        view = seat.wait("yours")
        assert (len(view["moves"]), view["handicap"]) == (1, True)
        assert view["texts"]["ja"][0].startswith("△")
        check(view)
        assert "手合割：二枚落ち" in room.ask("GET", f"{seat.path}/record").body.decode()


def test_a_game_goes_on_from_a_ply_of_another(site: Web) -> None:
    game = next(one for one in site.get("/api/games?kind=evaluation")["games"] if one["plies"] == 7)
    with table(site, side="black", game=game["id"], ply=4) as seat:
        view = seat.wait("yours")
        assert view["moves"] == MATE_IN_SEVEN[:4]
        check(view)
        assert seat.do("undo", 409)["error"] == "there is no move to take back"  # those before are given
        assert seat.move("3c4b")["moves"][:5] == MATE_IN_SEVEN[:5]
        seat.wait("yours", "over")
        assert seat.do("undo")["moves"] == MATE_IN_SEVEN[:4]
    opponent = site.player("random")
    for wrong in (
        {"game": "0" * 12},
        {"game": game["id"], "ply": 8},
        {"game": game["id"], "ply": -1},
        {"game": 7},
        {"game": game["id"], "ply": 7},
    ):
        answer = site.ask(
            "POST",
            "/api/tables",
            _json({"opponent": opponent, **wrong}),
            {"content-type": "application/json"},
        )
        assert answer.status in (400, 404), wrong
        assert answer.json()["error"]


def test_a_win_is_declared(room: Web) -> None:
    with table(room, side="black", sfen=KING_IN_CAMP) as seat:
        assert seat.wait("yours")["may_declare"]
        seat.do("declare")
        assert (seat.now["outcome"]["winner"], seat.now["outcome"]["reason"]) == (0, "declaration")
        back = seat.do("undo", 409)
        assert back["state"] == "over"
    with table(room, side="white", sfen=KING_IN_CAMP) as seat:  # and the engine declares too
        assert seat.wait("over")["outcome"]["reason"] == "declaration"


def test_time_runs_out_for_who_does_not_move(room: Web) -> None:
    with table(room, side="black", clock={"minutes": 0, "byoyomi": 0.3}) as seat:
        assert seat.now["clock"]["running"] == "black"
        assert seat.now["clock"]["byoyomi_ms"] == 300
        view = seat.wait("over")
        assert view["outcome"] == {
            "winner": 1,
            "reason": str(Reason.TIME),
            "text": {"en": "white wins by time", "ja": "後手の勝ち（時間切れ）"},
        }
        assert view["clock"]["running"] is None
        assert seat.move("7g7f", 409)["error"] == "the game is over"


def test_the_engine_moves_within_its_time(room: Web) -> None:
    with table(
        room, opponent="shipped", side="white", visits=LONG, clock={"minutes": 1, "byoyomi": 2}
    ) as seat:
        view = seat.wait("yours", "over")
        assert view["state"] == "yours"
        clock = view["clock"]
        assert clock["running"] == "white"
        assert 0 < clock["black_ms"] < 60_000


@pytest.mark.parametrize(
    "settings",
    [
        {"sfen": "nonsense"},
        {"sfen": "4k4/9/9/9/9/9/9/9/4K4 b - 1", "handicap": "lance"},
        {"handicap": "everything"},
        {"visits": LONG + 1},
        {"visits": 1.5},
        {"visits": "many"},
        {"side": "red"},
        {"thinking": 1},
        {"clock": {"minutes": 0, "byoyomi": 0}},
        {"clock": {"minutes": -1, "byoyomi": 1}},
        {"clock": 5},
        {"clock": {"minutes": "1", "byoyomi": 1}},
        {"sfen": "x" * 1000},
        {"sfen": "4k4/9/9/9/9/9/9/9/9 b - 1"},
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(room: Web, settings: dict[str, Any]) -> None:
    error = room.post("/api/tables", {"opponent": room.player("random"), **settings}, 400)["error"]
    assert error
    assert "\n" not in error


@pytest.mark.parametrize(
    "opponent", ["shipped", "/etc/passwd", "usi:/bin/sh;depth=1", "random;visits=3", "..", ""]
)
def test_an_opponent_is_named_by_an_id_of_the_listing(room: Web, opponent: str) -> None:
    assert room.post("/api/tables", {"opponent": opponent}, 404)["error"] == "no such player"


def test_unknown_tables_are_refused(room: Web) -> None:
    for wanted in ("x", "..", "%2e%2e%2f", "0" * 16):
        assert room.ask("GET", f"/api/tables/{wanted}").status == 404
        assert room.ask("GET", f"/api/tables/{wanted}/events").status == 404
    with table(room) as seat:
        assert room.get(f"{seat.path}/record?format=exe", 400)["error"] == "format: expected kif, csa, usi"


def test_there_are_only_so_many_tables(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        tables = [Table(server, side="black") for _ in range(MOST_TABLES)]
        error = server.post("/api/tables", {"opponent": server.player("random")}, 429)["error"]
        assert error == f"{MOST_TABLES} games are in progress: end one of them first"
        tables[3].wait("yours")
        tables[3].do("resign")
        last = Table(server, side="black")
        assert server.get(tables[3].path, 404)["error"].startswith("no such table")
        assert server.get(last.path)["id"]
        assert len(children_of(server.process.pid)) <= MOST_TABLES
        for one in tables[:3]:
            one.do("close")


def test_an_engine_that_is_killed_is_started_again_once(tmp_path: Path) -> None:
    with web(tmp_path) as server, table(server, opponent="shipped", side="black", visits=LONG) as seat:
        seat.wait("yours")
        seat.move("7g7f")
        wait_until(lambda: bool(children_of(server.process.pid)), "an engine")
        (first,) = children_of(server.process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: any(pid != first for pid in children_of(server.process.pid)), "another engine")
        (second,) = children_of(server.process.pid)
        os.kill(second, signal.SIGKILL)
        view = seat.wait("failed", "yours")
        assert (view["state"], view["error"]) == ("failed", "the engine of shipped has ended twice")
        assert "７六歩" in server.ask("GET", f"{seat.path}/record").body.decode()  # it can be saved
        assert seat.do("undo")["state"] == "yours"
        seat.do("set", visits=4)
        seat.move("2g2f")
        assert len(seat.wait("yours")["moves"]) == 2  # and goes on


def test_a_closed_table_ends_its_engine_and_its_streams(room: Web) -> None:
    with table(room, opponent="shipped", side="black", visits=LONG) as seat:
        before = set(children_of(room.process.pid))
        with room.events(f"{seat.path}/events") as events:
            seat.move("7g7f")
            wait_until(lambda: bool(set(children_of(room.process.pid)) - before), "an engine")
            engines = set(children_of(room.process.pid)) - before
            seat.do("close")
            assert [event.name for event in events][-1] == "table"  # to the end
        wait_until(lambda: not any(map(is_alive, engines)), "the engine's end")


def _json(body: Any) -> bytes:
    import json

    return json.dumps(body).encode()

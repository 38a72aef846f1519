import os
import random
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import usi_stand_in

from keisei.evaluation.engines.usi_process import Fault
from keisei.evaluation.players.player import Answer, Lost, Turn
from keisei.evaluation.players.usi_player import (
    EngineError,
    Limit,
    LimitKind,
    UsiEngineSpec,
    UsiPlayer,
    parse_spec,
)
from keisei.shogi import Move, Reason, ShogiGame

PLENTY = 20.0
MOVES = "7g7f,2g2f,2f2e,1g1f"
BYOYOMI = Limit(LimitKind.BYOYOMI, 100)
DEPTH = Limit(LimitKind.DEPTH, 3)

MakePlayer = Callable[..., UsiPlayer]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakePlayer]:
    """Make players of stand-ins that log what they are sent; all are closed, and nothing is left."""
    before = set(os.listdir("/proc/self/fd"))
    made = []

    def player(
        *faults: str,
        limit: Limit = DEPTH,
        options: dict[str, str] | None = None,
        processes: int = 1,
        move_seconds: float | None = PLENTY,
    ) -> UsiPlayer:
        arguments = [text for fault in faults for text in ("--at", fault)]
        command = (sys.executable, "-S", "-E", usi_stand_in.__file__, "--moves", MOVES, *arguments)
        spec = UsiEngineSpec(
            "stand-in",
            (*command, "--log", str(tmp_path / "log")),
            limit,
            options or {},
            start_seconds=PLENTY,
            move_seconds=move_seconds,
            processes=processes,
        )
        made.append(UsiPlayer(spec))
        return made[-1]

    yield player
    for each in made:
        each.close()
    said = (tmp_path / "log").read_text(encoding="utf-8") if (tmp_path / "log").exists() else ""
    assert not {line.split()[0] for line in said.splitlines()} & set(os.listdir("/proc"))
    assert set(os.listdir("/proc/self/fd")) == before


def conversation(tmp_path: Path) -> list[str]:
    """Return what the stand-ins were sent, without the process ids."""
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    return [line.partition(" ")[2] for line in lines]


def processes(tmp_path: Path) -> list[int]:
    """Return the stand-ins, in the order in which they were started."""
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(int(line.split()[0]) for line in lines))


def only(answers: list[Answer]) -> Answer:
    (answer,) = answers
    return answer


def lost(player: UsiPlayer, number: int = 0) -> Lost:
    turn = Turn(ShogiGame(), number)
    answer = only(player.choose([turn]))
    assert isinstance(answer, Lost)
    player.end_game(turn)
    return answer


def test_a_game_is_played_in_the_words_of_the_protocol(make: MakePlayer, tmp_path: Path) -> None:
    player = make(
        options={"Level": "-20", "Clear": "", "Style": "very wild", "USI_Hash": "64", "Eval File": ""}
    )
    game = ShogiGame()
    turn = Turn(game, 5)
    for reply in ("3c3d", "8c8d"):
        move = only(player.choose([turn]))
        assert isinstance(move, Move)
        game.push(move)
        game.push(reply)
    game.resign()
    player.end_game(turn)
    other = Turn(ShogiGame("4k4/9/9/9/9/9/7P1/9/4K4 b - 1"), 6)
    other.game.push("2g2f")
    other.game.push("5a5b")
    assert isinstance(only(player.choose([other])), Lost)  # there is no piece on 7g
    player.close()
    assert conversation(tmp_path) == [
        "usi",
        "setoption name Level value -20",
        "setoption name Clear",
        "setoption name Style value very wild",
        "setoption name USI_Hash value 64",
        "setoption name Eval File value <empty>",
        "isready",
        "usinewgame",
        "position startpos",
        "go depth 3",
        "position startpos moves 7g7f 3c3d",
        "go depth 3",
        "gameover lose",
        "isready",
        "usinewgame",
        "position sfen 4k4/9/9/9/9/9/7P1/9/4K4 b - 1 moves 2g2f 5a5b",
        "go depth 3",
    ]
    assert len(processes(tmp_path)) == 1
    assert player.describe() == {
        "engine": "Stand-in 1.0",
        "command": " ".join(player._spec.command),
        "limit": "depth 3",
        "options": "Level=-20, Clear=, Style=very wild, USI_Hash=64, Eval File=",
    }


@pytest.mark.parametrize(
    ("limit", "go"),
    [
        (Limit(LimitKind.NODES, 500), "go nodes 500"),
        (Limit(LimitKind.DEPTH, 2), "go depth 2"),
        (Limit(LimitKind.BYOYOMI, 100), "go btime 0 wtime 0 byoyomi 100"),
        (Limit(LimitKind.MOVETIME, 100), "go movetime 100"),
    ],
)
def test_an_engine_thinks_as_much_as_its_limit_says(
    make: MakePlayer, tmp_path: Path, limit: Limit, go: str
) -> None:
    assert str(only(make(limit=limit).choose([Turn(ShogiGame(), 0)]))) == "7g7f"
    assert conversation(tmp_path)[-1] == go


def test_games_at_once_have_a_process_each(make: MakePlayer, tmp_path: Path) -> None:
    player = make(processes=3)
    turns = [Turn(ShogiGame(), number) for number in (4, 9, 2)]
    assert [str(answer) for answer in player.choose(turns)] == ["7g7f"] * 3
    for turn in turns:
        turn.game.push("7g7f")
        turn.game.push("3c3d")
    assert str(only(player.choose(turns[:1]))) == "2g2f"
    turns[0].game.push("2g2f")
    turns[0].game.push("8c8d")
    assert [str(answer) for answer in player.choose(turns[::-1])] == ["2g2f", "2g2f", "2f2e"]
    with pytest.raises(ValueError, match="stand-in has 4 games at once, expected at most 3"):
        player.choose([Turn(ShogiGame(), 5)])
    player.end_game(turns[0])
    assert str(only(player.choose([Turn(ShogiGame(), 5)]))) == "7g7f"
    assert len(processes(tmp_path)) == 3
    assert player.capacity == 3


def test_another_game_of_the_same_number_is_a_new_game(make: MakePlayer, tmp_path: Path) -> None:
    player = make()
    game = ShogiGame()
    game.push("9g9f")
    game.push("9c9d")
    player.choose([Turn(game, 0)])  # and the match is abandoned here
    assert str(only(player.choose([Turn(ShogiGame(), 0)]))) == "7g7f"
    assert conversation(tmp_path).count("usinewgame") == 2
    assert len(processes(tmp_path)) == 1


@pytest.mark.parametrize(
    ("end", "word"),
    [("resign", "lose"), ("opponent resigns", "win"), ("length", "draw"), ("opponent's fault", "win")],
)
def test_an_engine_is_told_how_a_game_ended(make: MakePlayer, tmp_path: Path, end: str, word: str) -> None:
    player = make(*(["go=say-bestmove resign"] if end == "resign" else []))
    game = ShogiGame(max_moves=2)
    answer = only(player.choose([Turn(game, 0)]))
    if end == "resign":
        assert answer == Lost(Reason.RESIGNATION, "stand-in resigned")
    else:
        assert isinstance(answer, Move)
        game.push(answer)
    if end == "opponent resigns":
        game.resign()
    if end == "length":
        game.push("3c3d")
    player.end_game(Turn(game, 0))
    player.end_game(Turn(game, 0))
    player.choose([Turn(ShogiGame(), 1)])
    told = [line for line in conversation(tmp_path) if line.startswith("gameover")]
    assert told == [f"gameover {word}"]
    assert len(processes(tmp_path)) == 1


START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"


@pytest.mark.parametrize(
    ("what", "reason", "detail"),
    [
        ("say-bestmove 7g7e", Reason.ILLEGAL_MOVE, f"stand-in played 7g7e, illegal in position {START}"),
        ("say-bestmove 3c3d", Reason.ILLEGAL_MOVE, f"stand-in played 3c3d, illegal in position {START}"),
        ("say-bestmove (none)", Reason.ILLEGAL_MOVE, "stand-in answered 'bestmove (none)', expected a move"),
        ("say-bestmove", Reason.ILLEGAL_MOVE, "stand-in answered 'bestmove', expected a move"),
        ("say-bestmove win", Reason.ILLEGAL_MOVE, f"stand-in declared a win it does not have: {START}"),
        ("crash", Reason.FORFEIT, "stand-in crashed: SIGSEGV; it last said: last words: out of cheese"),
    ],
)
def test_a_fault_loses_the_game_and_the_next_has_a_fresh_process(
    make: MakePlayer, tmp_path: Path, what: str, reason: Reason, detail: str
) -> None:
    player = make(f"go:2={what}")
    game = ShogiGame()
    for number in range(2):
        assert str(only(player.choose([Turn(game, number)]))) == "7g7f"
        answer = only(player.choose([Turn(game, number)]))
        assert answer == Lost(reason, detail)
        player.end_game(Turn(game, number))
    assert len(processes(tmp_path)) == 2


def test_silence_loses_on_time(make: MakePlayer, tmp_path: Path) -> None:
    player = make("go=hang", limit=BYOYOMI, move_seconds=0.3)
    assert lost(player) == Lost(Reason.TIME, "stand-in sent no bestmove within 0.3 s")
    assert lost(player).reason is Reason.TIME
    assert len(processes(tmp_path)) == 2


def test_byoyomi_has_a_margin(make: MakePlayer) -> None:
    assert UsiEngineSpec("x", ("x",), BYOYOMI).answer_seconds == pytest.approx(1.1)
    assert UsiEngineSpec("x", ("x",), Limit(LimitKind.MOVETIME, 500)).answer_seconds == pytest.approx(1.5)
    assert UsiEngineSpec("x", ("x",), DEPTH).answer_seconds == 60
    assert UsiEngineSpec("x", ("x",), DEPTH, move_seconds=7).answer_seconds == 7
    late = make("go=late-0.2", limit=BYOYOMI, move_seconds=None)
    assert str(only(late.choose([Turn(ShogiGame(), 0)]))) == "7g7f"
    too_late = make("go=late-30", limit=BYOYOMI, move_seconds=None)
    assert lost(too_late) == Lost(Reason.TIME, "stand-in sent no bestmove within 1.1 s")


@pytest.mark.parametrize(
    ("number", "reason"), [(signal.SIGKILL, Reason.FORFEIT), (signal.SIGSTOP, Reason.TIME)]
)
def test_other_games_go_on_beside_a_fault(
    make: MakePlayer, tmp_path: Path, number: signal.Signals, reason: Reason
) -> None:
    player = make("go:2=late-0.6", processes=3, move_seconds=1.5)
    turns = [Turn(ShogiGame(), each) for each in range(3)]
    player.choose(turns)
    victim = processes(tmp_path)[1]
    timer = threading.Timer(0.2, os.kill, (victim, number))
    timer.start()
    answers = player.choose(turns)
    timer.join()
    assert sorted(isinstance(answer, Lost) for answer in answers) == [False, False, True]
    (fault,) = [answer for answer in answers if isinstance(answer, Lost)]
    assert fault.reason is reason
    for turn in turns:
        player.end_game(turn)
    again = player.choose([Turn(ShogiGame(), each) for each in range(3, 6)])
    assert [str(answer) for answer in again] == ["7g7f"] * 3
    assert len(processes(tmp_path)) == 4


def test_an_engine_that_ended_between_games_is_replaced(make: MakePlayer, tmp_path: Path) -> None:
    player = make("gameover:1=crash")
    for number in range(2):
        assert str(only(player.choose([Turn(ShogiGame(), number)]))) == "7g7f"
        player.end_game(Turn(ShogiGame(), number))
    assert len(processes(tmp_path)) == 2


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (["usi=leave"], "stand-in crashed: exit code 3; it last said: no evaluation file"),
        (["isready=crash"], "stand-in crashed: SIGSEGV"),
        (["usi=endless-line"], "stand-in sent a line of more than 65536 bytes"),
    ],
)
def test_an_engine_that_never_starts_is_the_users_mistake(
    make: MakePlayer, faults: list[str], words: str
) -> None:
    player = make(*faults, processes=2)
    with pytest.raises(EngineError, match=words) as info:
        player.start()
    assert info.value.fault is Fault.START
    with pytest.raises(EngineError, match=words):
        player.choose([Turn(ShogiGame(), 0), Turn(ShogiGame(), 1)])


@pytest.mark.parametrize(("command", "words"), [("usi", "usiok"), ("isready", "readyok")])
def test_an_engine_has_a_limited_time_to_start(make: MakePlayer, command: str, words: str) -> None:
    spec = replace(make(f"{command}=none")._spec, start_seconds=0.5)
    with pytest.raises(EngineError, match=f"stand-in sent no {words} within 0.5 s") as info:
        UsiPlayer(spec).start()
    assert info.value.fault is Fault.START


def test_a_program_that_is_not_there_is_the_users_mistake() -> None:
    with pytest.raises(EngineError, match="x did not start: no-such-engine: No such file"):
        UsiPlayer(UsiEngineSpec("x", ("no-such-engine",), DEPTH)).start()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"Levle": "3"}, "unknown option 'Levle'; the closest is 'Level'"),
        ({"Level": "21"}, "option 'Level' is '21', expected a whole number, at least -20, at most 20"),
        ({"Level": "-21"}, "option 'Level' is '-21', expected a whole number, at least -20, at most 20"),
        ({"Level": "low"}, "option 'Level' is 'low', expected a whole number, at least -20, at most 20"),
        ({"Style": "wild"}, "option 'Style' is 'wild', expected one of calm, very wild"),
        ({"Own Book": "yes"}, "option 'Own Book' is 'yes', expected true or false"),
        ({"Clear": "all"}, "option 'Clear' is 'all', expected no value: it is a button"),
    ],
)
def test_an_option_that_the_engine_lacks_is_told_at_the_start(
    make: MakePlayer, options: dict[str, str], words: str
) -> None:
    with pytest.raises(EngineError) as info:
        make(options=options).start()
    assert str(info.value) == f"stand-in: {words}"


def test_later_starts_that_fail_lose_their_games_and_the_third_in_a_row_raises(
    make: MakePlayer, tmp_path: Path
) -> None:
    """A process that finds the mark of an earlier one refuses to start."""
    command = make("go=crash")._spec.command
    mark, script = tmp_path / "mark", tmp_path / "engine.sh"
    script.write_text(f'#!/bin/sh\nif [ -e {mark} ]; then exit 4; fi\nexec "$@"\n', encoding="utf-8")
    spec = UsiEngineSpec("stand-in", ("/bin/sh", str(script), *command), DEPTH)
    player = UsiPlayer(spec)
    failed = Lost(Reason.FORFEIT, "stand-in crashed: exit code 4")
    assert "SIGSEGV" in lost(player).detail
    mark.touch()
    assert [lost(player), lost(player)] == [failed, failed]
    mark.unlink()
    assert "SIGSEGV" in lost(player).detail
    mark.touch()
    assert [lost(player), lost(player)] == [failed, failed]
    with pytest.raises(EngineError, match="exit code 4"):
        lost(player)
    player.close()


def engine(name: str) -> str:
    """Return the path of an installed engine, or skip the test."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/games")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def play_against_chance(player: UsiPlayer, games: int, plies: int) -> list[ShogiGame]:
    """Play games against random moves, with each colour in turn; every answer must be a move."""
    chance = random.Random(7)
    turns = [Turn(ShogiGame(), number) for number in range(games)]
    for ply in range(plies):
        going = [turn for turn in turns if turn.game.outcome() is None]
        own = [turn for turn in going if (turn.number + ply) % 2 == 0]
        for turn, answer in zip(own, player.choose(own), strict=True):
            assert isinstance(answer, Move), answer
            turn.game.push(answer)  # refuses what is illegal
        for turn in going:
            if turn not in own:
                turn.game.push(chance.choice(turn.game.legal_moves()))
        for turn in going:
            if turn.game.outcome() is not None:
                player.end_game(turn)
    return [turn.game for turn in turns]


@pytest.mark.parametrize("rest", ["depth=1;Skill Level=-20", "nodes=100;Hash=1", "byoyomi=20;move=20"])
def test_fairy_stockfish_plays(rest: str) -> None:
    with closing(UsiPlayer(parse_spec(f"usi:{engine('fairy-stockfish')};{rest};processes=2"))) as player:
        games = play_against_chance(player, 2, 36)
        assert all(game.ply == 36 or game.outcome() for game in games)
        assert player.describe()["engine"].startswith("Fairy-Stockfish")


def test_fairy_stockfish_mates() -> None:
    with closing(UsiPlayer(parse_spec(f"usi:{engine('fairy-stockfish')};depth=3"))) as player:
        assert str(only(player.choose([Turn(ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1"), 0)]))) == "G*5b"


@pytest.mark.slow
def test_gpsusi_plays() -> None:
    # It needs two seconds of a core to start, and takes one for a move unless its depth is limited.
    text = f"usi:{engine('gpsusi')};byoyomi=1000;LimitDepth=4;BookDepth=0;start=120;move=60"
    with closing(UsiPlayer(parse_spec(text))) as player:
        (game,) = play_against_chance(player, 1, 24)
        assert game.ply == 24 or game.outcome()
        assert player.describe()["engine"].startswith("gpsshogi")

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.shogi import START_SFEN
from keisei.usi import protocol
from keisei.usi.protocol import (
    Debug,
    GameOver,
    Go,
    GoMate,
    Info,
    IsReady,
    Limits,
    NewGame,
    PonderHit,
    ProtocolError,
    Quit,
    SetOption,
    SetPosition,
    Stop,
    Usi,
    parse,
)

WORDS = [
    *(
        "usi",
        "isready",
        "setoption",
        "name",
        "value",
        "position",
        "startpos",
        "sfen",
        "moves",
        "go",
        "ponder",
    ),
    *("btime", "wtime", "byoyomi", "binc", "winc", "nodes", "depth", "movetime", "infinite", "mate", "stop"),
    *("ponderhit", "gameover", "win", "quit", "7g7f", "0", "1", "-1", "9" * 30, "+5", "٣", "b", "-", "\0"),
]

MEANINGS = {
    "usi": Usi(),
    "  isready \t": IsReady(),
    "usinewgame": NewGame(),
    "stop": Stop(),
    "quit\r": Quit(),
    "d": Debug(),
    "": None,
    " \t": None,
    "ponderhit": PonderHit(),
    "ponderhit btime 5 wtime 6": PonderHit(Limits(clocks=(5, 6))),
    "gameover win": GameOver("win"),
    "gameover lose": GameOver("lose"),
    "gameover draw": GameOver("draw"),
    "gameover": GameOver(None),
    "setoption name USI_Hash value 32": SetOption("USI_Hash", "32"),
    "setoption name Clear Hash": SetOption("Clear Hash", None),
    "setoption name A b value c  d": SetOption("A b", "c  d"),
    "setoption name Text value": SetOption("Text", ""),
    "setoption name X value value": SetOption("X", "value"),
    "position startpos": SetPosition(START_SFEN, ()),
    "position startpos moves": SetPosition(START_SFEN, ()),
    "position startpos moves 7g7f 3c3d": SetPosition(START_SFEN, ("7g7f", "3c3d")),
    "position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 1": SetPosition("4k4/9/9/9/9/9/9/9/4K4 b - 1", ()),
    "position sfen 8k/9/9/9/9/9/9/9/K8 w P 7 moves 1a1b": SetPosition("8k/9/9/9/9/9/9/9/K8 w P 7", ("1a1b",)),
    "go": Go(Limits()),
    "go infinite": Go(Limits(infinite=True)),
    "go ponder": Go(Limits(), ponder=True),
    "go btime 1000 wtime 2000 byoyomi 3000": Go(Limits(clocks=(1000, 2000), byoyomi=3000)),
    "go ponder btime 1 wtime 2 binc 3 winc 4": Go(Limits(clocks=(1, 2), increments=(3, 4)), ponder=True),
    "go btime 1 ponder wtime 2": Go(Limits(clocks=(1, 2)), ponder=True),
    "go btime -20 wtime 0": Go(Limits(clocks=(-20, 0))),
    "go nodes 7 depth 3 movetime 50": Go(Limits(nodes=7, depth=3, movetime=50)),
    "go mate 5000": GoMate(5000),
    "go mate infinite": GoMate(None),
}

MALFORMED = [
    "usi now",
    "isready isready",
    "quit quit",
    "hello",
    "USI",
    "\0",
    "setoption",
    "setoption name",
    "setoption name value 3",
    "setoption USI_Hash value 32",
    "position",
    "position start",
    "position sfen",
    "position sfen moves 7g7f",
    "position startpos 7g7f",
    "position startpos b - 1",
    "go now",
    "go byoyomi",
    "go byoyomi ten",
    "go byoyomi 1.5",
    "go byoyomi ٣",
    "go byoyomi 1_000",
    "go byoyomi -1",
    "go byoyomi 9999999999999",
    f"go byoyomi {'9' * 10000}",
    "go nodes 0",
    "go nodes -5",
    "go depth 0",
    "go nodes 5 nodes 5",
    "go infinite infinite",
    "go ponder ponder",
    "go searchmoves 7g7f",
    "go mate",
    "go mate soon",
    "go mate 5 6",
    "go mate -1",
    "go mate 100 nodes 5",
    "ponderhit now",
    "gameover won",
    "gameover win lose",
]


@pytest.mark.parametrize("line", MEANINGS)
def test_a_line_has_its_meaning(line: str) -> None:
    assert parse(line) == MEANINGS[line]


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: ascii(line[:40]))
def test_a_malformed_line_is_told(line: str) -> None:
    with pytest.raises(ProtocolError) as error:
        parse(line)
    told = protocol.error_line(str(error.value))
    assert told.startswith("info string error ")
    assert len(told) < 300


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)))
def test_any_line_is_a_command_or_a_protocol_error(line: str) -> None:
    try:
        parse(line)
    except ProtocolError as error:
        told = protocol.error_line(str(error))
        assert told.isascii()
        assert told.isprintable()


def test_the_lines_that_an_engine_writes() -> None:
    assert protocol.id_lines("A", "b c") == ["id name A", "id author b c"]
    assert protocol.check_line("Ponder", True) == "option name Ponder type check default true"
    assert protocol.spin_line("N", 3, 1, 9) == "option name N type spin default 3 min 1 max 9"
    assert protocol.string_line("S", "") == "option name S type string default <empty>"
    assert protocol.combo_line("C", "a", "ab") == "option name C type combo default a var a var b"
    assert protocol.bestmove_line("7g7f") == "bestmove 7g7f"
    assert protocol.bestmove_line("7g7f", "3c3d") == "bestmove 7g7f ponder 3c3d"
    assert protocol.checkmate_line("nomate") == "checkmate nomate"
    assert protocol.checkmate_line("mate", ["G*5b", "5a4a"]) == "checkmate G*5b 5a4a"
    assert protocol.error_line("a\nb 歩") == "info string error a b \\u6b69"


def test_an_info_line_has_what_a_gui_shows() -> None:
    info = Info(
        depth=2, seldepth=5, value=0.0, mate=None, nodes=300, seconds=0.5, hashfull=12, pv=["7g7f", "3c3d"]
    )
    assert protocol.info_line(info) == (
        "info depth 2 seldepth 5 score cp 0 nodes 300 nps 600 time 500 hashfull 12 pv 7g7f 3c3d"
    )
    mate = Info(
        depth=1, seldepth=1, value=-1, mate=-4, nodes=1, seconds=0.0, hashfull=0, pv=["5a5b"], multipv=2
    )
    assert protocol.info_line(mate) == (
        "info depth 1 seldepth 1 multipv 2 score mate -4 nodes 1 nps 1000 time 0 hashfull 0 pv 5a5b"
    )


def test_the_score_is_the_logistic_that_guis_expect() -> None:
    assert protocol.centipawns(0.5) == round(600 * math.log(3))  # a win rate of 3 in 4
    assert protocol.centipawns(0.0) == 0
    assert protocol.centipawns(1.0) == -protocol.centipawns(-1.0) == protocol.MAX_CP
    for value in (0.1, 0.9, 0.999999, 1.0, 1.5):
        assert 0 < protocol.centipawns(value) == -protocol.centipawns(-value) <= protocol.MAX_CP

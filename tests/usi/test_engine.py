"""Conversations with a real engine in its own process, and a small network."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from usi_talk import PATIENCE, Conversation, quick_talk, talk

from keisei.shogi import Move, ShogiGame, encoding
from keisei.shogi.positions import Positions

pytest_plugins = ["usi_fixtures"]

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
PROBLEM = "4k4/9/4P4/9/9/9/9/9/9 b G 1"
LONGER_MATE = "7k1/9/9/9/9/9/9/9/4K4 b R2G 1"
NO_MATE = "4k4/9/9/9/9/9/9/9/4K4 b P 1"
ENDLESS_CHECKS = "9/9/9/9/4k4/9/9/9/K8 b 4S4N 1"  # which the search for mate does not exhaust in a minute
DECLARABLE = "+P+P+P+PK+P+P+P+R/7+BR/9/9/9/9/9/9/4k4 b 6P 1"
ONLY_MOVE = "8k/6R2/9/9/9/9/9/9/K8 w - 1"
A_MOVE_THAT_LOSES = "4k4/9/p3P4/9/9/9/9/9/4K4 w G 1"  # at once: the pawn's, for G*5b mates
LOST = "k8/9/K8/9/9/9/9/9/9 w 2G 1"  # 9a8a, G*8b
START = ShogiGame().sfen()
REPEATED = "2h3h 8b7b 3h2h 7b8b"

LATE = 20.0  # seconds that a busy machine may add; what is tested is that the engine does not wait for more


def legal(position: str, answer: str) -> bool:
    """Return whether a bestmove line has a legal move, and a legal reply to ponder on, if any."""
    words = answer.split()
    start, _, moves = position.removeprefix("sfen ").partition(" moves ")
    game = ShogiGame(None if start == "startpos" else start, max_moves=None)
    for move in [*moves.split(), words[1], *words[3:]]:
        game.push(move)
    return words[0] == "bestmove" and (len(words) == 2 or (len(words) == 4 and words[2] == "ponder"))


def fields(info: str) -> dict[str, str]:
    """Return the words of an info line with their values."""
    head, _, pv = info.removeprefix("info ").partition(" pv ")
    words = head.replace("score ", "").split()
    return dict(zip(words[::2], words[1::2], strict=True)) | {"pv": pv}


# ---- before the network


def test_usi_is_answered_before_the_network_is_loaded_and_quit_meanwhile(checkpoint: Path) -> None:
    with talk(checkpoint) as engine:
        lines = engine.ask("usi", "usiok")
        assert lines[0].startswith("id name Keisei ")
        assert lines[1].startswith("id author ")
        assert all(line.startswith("option name ") for line in lines[2:-1])
        assert {line.split()[2] for line in lines[2:-1]} == set(engine.state()[1])
        engine.say("isready")
        engine.say("quit")
        code, answers, errors = engine.end(close=False)
        assert (code, errors) == (0, "")
        assert answers in ([], ["readyok"])  # the network may be loaded by then


def test_the_engine_plays_without_torch(checkpoint: Path) -> None:
    # The process itself is asked which libraries it has.
    with talk(checkpoint) as engine:
        engine.ready()
        engine.say("position startpos")
        assert engine.ask("go nodes 50", "bestmove")
        libraries = Path(f"/proc/{engine.pid}/maps").read_text()
        assert "_native" in libraries
        assert "libtorch" not in libraries


def test_what_a_library_prints_is_not_taken_for_an_answer(checkpoint: Path) -> None:
    code = """if True:
        import os, sys, threading, time
        from keisei.usi.main import main

        def make_noise():
            while os.fstat(1).st_ino != os.fstat(2).st_ino:
                time.sleep(0.01)
            os.write(1, b"noise ")
            print("and noise", flush=True)
            print("made", file=sys.stderr, flush=True)

        threading.Thread(target=make_noise, daemon=True).start()
        sys.exit(main(sys.argv[1], {}))
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, str(checkpoint)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"noise and noise\n"
        out, _ = process.communicate(b"usi\nquit\n", timeout=PATIENCE)
    assert process.returncode == 0
    assert b"noise" not in out


@pytest.mark.parametrize(
    "starts", [12, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_a_gui_that_goes_away_at_any_moment_leaves_no_complaint(checkpoint: Path, starts: int) -> None:
    moments = random.Random(starts)
    go = "usi\nisready\nposition startpos\ngo {}\n"
    talks = ["usi\nisready\n", *(go.format(how) for how in ("infinite", "byoyomi 300", "mate infinite"))]
    for _ in range(starts):
        with subprocess.Popen(
            [sys.executable, "-m", "keisei.usi.main", str(checkpoint)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(moments.choice(talks).encode())
            process.stdin.flush()
            time.sleep(moments.uniform(0, 1))  # while it loads, thinks, or answers
            if moments.random() < 0.5:
                process.stdout.close()
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
            assert process.stderr.read() == b""


PARENT = """if True:  # starts an engine, talks to it, tells it to quit and is gone at the same moment
    import os, subprocess, sys, time
    command, talk, wait = sys.argv[1:]
    engine = subprocess.Popen([command, "usi"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    engine.stdin.write(talk.encode())
    engine.stdin.flush()
    time.sleep(float(wait))
    os.write(engine.stdin.fileno(), b"quit\\n")
    os._exit(0)
"""


@pytest.mark.parametrize(
    "starts", [12, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_an_engine_that_quits_while_its_parent_ends_leaves_no_complaint(starts: int) -> None:
    moments = random.Random(starts + 1)
    command = str(Path(sys.executable).with_name("keisei"))
    go = "usi\nisready\nposition startpos\ngo {}\n"
    talks = ["", "usi\nisready\n", *(go.format(how) for how in ("infinite", "nodes 300", "mate infinite"))]
    for _ in range(starts):
        arguments = [command, moments.choice(talks), f"{moments.uniform(0, 1):.3f}"]
        # The engine has the parent's error output, so this ends when both have.
        done = subprocess.run(
            [sys.executable, "-c", PARENT, *arguments], stderr=subprocess.PIPE, timeout=PATIENCE, check=True
        )
        assert done.stderr == b""


def test_the_options_of_the_command_line_are_the_defaults(checkpoint: Path) -> None:
    with talk(checkpoint, "Visits=33", "EnteringKingRule=try") as engine:
        lines = engine.ask("usi", "usiok")
        assert "option name Visits type spin default 33 min 0 max 1000000000" in lines
        assert "option name EnteringKingRule type combo default try var 27 var 24 var try var off" in lines
        engine.say("quit")
        assert engine.end(close=False) == (0, [], "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "keisei: no checkpoint at nowhere: expected latest, a run"),
        (["CHECKPOINT", "Visits=-1"], "keisei: option Visits: expected a whole number 0 to 1000000000"),
        (["CHECKPOINT", "Visits"], "keisei: expected CHECKPOINT [OPTION=VALUE ...]"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    checkpoint: Path, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    given = [word.replace("CHECKPOINT", str(checkpoint)) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "keisei.usi.main", *given],
        cwd=tmp_path,
        input="usi\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == 1


def test_a_damaged_checkpoint_is_told_at_isready(checkpoint: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in checkpoint.iterdir():
        (damaged / path.name).write_bytes(path.read_bytes())
    weights = damaged / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with quick_talk(damaged) as engine:
        engine.ask("usi", "usiok")
        engine.say("isready", "go nodes 1")
        code, lines, errors = engine.end()
    assert code == 2
    assert lines == [f"info string error {errors.strip().removeprefix('keisei: ')}"]
    assert "weights.safetensors is damaged" in errors
    assert errors.count("\n") == 1


# ---- thinking


@pytest.mark.parametrize(
    "go",
    [
        "go nodes 1",
        "go nodes 50",
        "go depth 2",
        "go movetime 150",
        "go movetime 0",
        "go btime 0 wtime 0 byoyomi 200",
        "go btime 3000 wtime 1",
        "go btime 1 wtime 3000 binc 50 winc 50",
        "go btime -100 wtime -100",
        "go btime 0 wtime 0",
        "go byoyomi 100 nodes 5 depth 1 movetime 90",
        "go nodes 1000000000000 movetime 100",
    ],
)
@pytest.mark.parametrize("position", ["startpos", "startpos moves 7g7f"])
def test_every_kind_of_go_is_answered_with_a_legal_move(engine: Conversation, go: str, position: str) -> None:
    engine.say(f"position {position}", go)
    started = time.monotonic()
    *infos, answer = engine.until("bestmove")
    assert legal(position, answer)
    assert time.monotonic() - started < 0.2 + LATE
    assert fields(infos[-1])["pv"].split()[0] == answer.split()[1]
    assert engine.ready() == []


def test_go_without_a_limit_ends_by_itself(engine: Conversation) -> None:
    *infos, answer = engine.ask("go", "bestmove")
    assert legal("startpos", answer)
    assert fields(infos[-1])["nodes"] == "800"


def test_nodes_are_visits_and_the_option_bounds_them(engine: Conversation) -> None:
    assert fields(engine.ask("go nodes 64", "bestmove")[-2])["nodes"] == "64"
    engine.say("setoption name Visits value 40")
    assert fields(engine.ask("go nodes 64", "bestmove")[-2])["nodes"] == "40"
    assert fields(engine.ask("go byoyomi 60000", "bestmove")[-2])["nodes"] == "40"


def test_a_search_goes_on_with_the_tree_of_the_last_one(engine: Conversation) -> None:
    """After the expected reply the first report already has the visits that the tree had there."""
    engine.say("usinewgame", "position startpos")
    *_, last, best = engine.ask("go nodes 3000", "bestmove")
    mine, reply = fields(last)["pv"].split()[:2]
    assert best.split()[1] == mine
    engine.say(f"position startpos moves {mine} {reply}")
    kept = int(fields(engine.ask("go nodes 2", "bestmove")[-2])["nodes"])
    assert 2 < kept < 3000
    engine.say(f"position startpos moves {mine} {reply}")
    assert fields(engine.ask("go nodes 2", "bestmove")[-2])["nodes"] == "2"  # the same again begins anew


def test_depth_ends_when_the_line_of_play_is_so_long(engine: Conversation) -> None:
    info = fields(engine.ask("go depth 3", "bestmove")[-2])
    assert 3 <= len(info["pv"].split()) == int(info["depth"]) <= int(info["seldepth"])
    assert int(info["nodes"]) <= 3000


def test_info_lines_have_what_a_gui_shows(engine: Conversation) -> None:
    infos = engine.ask("go movetime 400", "bestmove")[:-1]
    told = [fields(info) for info in infos]
    assert len(told) >= 2
    for info in told:
        assert {"depth", "seldepth", "cp", "nodes", "nps", "time", "hashfull", "pv"} == set(info)
        assert legal("startpos", f"bestmove {info['pv'].split()[0]}")
        assert legal(f"startpos moves {info['pv']}".rpartition(" ")[0], f"bestmove {info['pv'].split()[-1]}")
    nodes = [int(info["nodes"]) for info in told]
    assert nodes == sorted(nodes)


def test_byoyomi_is_used_and_kept(engine: Conversation) -> None:
    for _ in range(2):
        started = time.monotonic()
        engine.say("go btime 0 wtime 0 byoyomi 400")
        _, at = engine.until_timed("bestmove")
        assert 0.2 < at - started < 0.4 + LATE


def test_the_clock_of_the_side_to_move_counts(engine: Conversation) -> None:
    engine.say("position startpos moves 7g7f")
    started = time.monotonic()
    engine.bestmove("go btime 900000000 wtime 300")
    assert time.monotonic() - started < LATE


def test_an_only_move_is_not_thought_about(engine: Conversation) -> None:
    assert engine.bestmove(f"position sfen {ONLY_MOVE}", "go byoyomi 60000").startswith("bestmove 1a2a")


def test_multipv_tells_that_many_lines_best_first(engine: Conversation) -> None:
    engine.say("setoption name MultiPV value 3")
    *infos, answer = engine.ask("go nodes 200", "bestmove")
    last = [fields(info) for info in infos[-3:]]
    assert [info["multipv"] for info in last] == ["1", "2", "3"]
    firsts = [info["pv"].split()[0] for info in last]
    assert len(set(firsts)) == 3
    assert firsts[0] == answer.split()[1]
    engine.say(f"position sfen {ONLY_MOVE}")
    assert len(engine.ask("go nodes 10", "bestmove")) == 2


def test_the_policy_alone_plays_its_most_probable_move(engine: Conversation, checkpoint: Path) -> None:
    from keisei.runs.load import load_network

    game = ShogiGame(max_moves=load_network(checkpoint).policy.config.env.max_moves)
    game.push("2g2f")
    positions = Positions.of_games([game])
    priors, values = load_network(checkpoint).policy.evaluate(positions)
    best = encoding.move_of(int(positions.actions[priors.argmax()]), game.turn)
    engine.say(
        "setoption name Policy value true", "setoption name MultiPV value 2", "position startpos moves 2g2f"
    )
    first, second, answer = engine.ask("go byoyomi 60000", "bestmove")
    assert answer == f"bestmove {best}"
    assert fields(first)["pv"] == str(best) != fields(second)["pv"]
    assert abs(int(fields(first)["cp"]) - 600 * 2 * float(values[0])) < 5  # near 0 the logistic is a line


def test_temperature_varies_the_moves(engine: Conversation) -> None:
    engine.say("setoption name Policy value true")
    assert len({engine.bestmove("go nodes 1") for _ in range(20)}) == 1
    engine.say("setoption name Temperature value 1.5")
    answers = {engine.bestmove("go nodes 1") for _ in range(20)}
    assert len(answers) > 1
    assert all(legal("startpos", answer) for answer in answers)
    engine.say("setoption name Policy value false", "setoption name Temperature value 100")
    assert len({engine.bestmove("go nodes 30") for _ in range(10)}) > 1
    engine.say(f"position sfen {A_MOVE_THAT_LOSES}")
    assert "bestmove 9c9d" not in {engine.bestmove("go nodes 200") for _ in range(20)}


def test_ponder_moves_are_given_when_they_are_wanted(engine: Conversation) -> None:
    assert " ponder " not in engine.bestmove("go nodes 300")
    engine.say("setoption name USI_Ponder value true")
    answer = engine.bestmove("go nodes 300")
    assert " ponder " in answer
    assert legal("startpos", answer)


# ---- holding back and being stopped


@pytest.mark.parametrize(
    ("go", "sfen"),
    [
        ("go infinite", START),
        ("go infinite nodes 3", START),
        ("go ponder byoyomi 50", START),
        ("go infinite", MATE_IN_ONE),
        ("go ponder", DECLARABLE),
        ("go infinite", f"{MATE_IN_ONE} moves G*5b"),
    ],
)
def test_the_answer_is_held_back_until_stop(engine: Conversation, go: str, sfen: str) -> None:
    engine.say(f"position sfen {sfen}", go)
    time.sleep(0.15)
    said = engine.ready()  # answered while thinking
    assert not any(line.startswith("bestmove") for line in said)
    engine.say("stop")
    assert engine.until("bestmove")
    assert engine.ready() == []


def test_ponderhit_starts_the_clock(engine: Conversation) -> None:
    engine.say("go ponder btime 0 wtime 0 byoyomi 400")
    time.sleep(0.6)
    assert not any(line.startswith("bestmove") for line in engine.ready())
    hit = time.monotonic()
    engine.say("ponderhit")
    (*_, answer), at = engine.until_timed("bestmove")
    assert legal("startpos", answer)
    assert 0.2 < at - hit < 0.4 + LATE


def test_ponderhit_may_bring_newer_clocks(engine: Conversation) -> None:
    started = time.monotonic()
    engine.say("go ponder btime 900000 wtime 900000 byoyomi 900000", "ponderhit btime 0 wtime 0 byoyomi 100")
    assert legal("startpos", engine.until("bestmove")[-1])
    assert time.monotonic() - started < LATE


def test_ponderhit_without_pondering_is_an_error(engine: Conversation) -> None:
    expected = "info string error ponderhit, but the engine is not pondering: expected go ponder before it"
    engine.say("ponderhit")
    assert engine.ready() == [expected]
    engine.say("go infinite", "ponderhit")
    assert expected in engine.ready()
    engine.bestmove("stop")


def test_stop_is_obeyed_at_once_and_harmless_otherwise(engine: Conversation) -> None:
    engine.say("stop")
    assert engine.ready() == []
    engine.say("go byoyomi 600000")
    time.sleep(0.1)
    started = time.monotonic()
    assert legal("startpos", engine.bestmove("stop"))
    assert time.monotonic() - started < LATE


@pytest.mark.parametrize(
    "line",
    [
        "position startpos moves 7g7f",
        "go nodes 1",
        "go mate 5",
        "setoption name Visits value 7",
    ],
)
def test_what_must_wait_for_the_answer_is_refused_while_thinking(engine: Conversation, line: str) -> None:
    before = engine.state()
    engine.say("go infinite", line)
    said = [text for text in engine.ready() if text.startswith("info string")]
    assert said == [f"info string error {line.split()[0]} while thinking: expected stop first"]
    assert legal("startpos", engine.bestmove("stop"))
    assert engine.state() == before
    assert engine.ready() == []


@pytest.mark.parametrize("end", ["gameover lose", "gameover", "usinewgame"])
def test_the_end_of_a_game_ends_the_thinking_and_every_go_is_answered(engine: Conversation, end: str) -> None:
    engine.say("go ponder", end, "setoption name USI_Ponder value true")
    said = [line for line in engine.ready() if not line.startswith("info depth")]
    assert len(said) == 1
    assert legal("startpos", said[0])
    assert legal("startpos", engine.bestmove("go nodes 2"))


# ---- the end of a game


def test_a_mate_in_one_is_played_and_told(engine: Conversation) -> None:
    engine.say(f"position sfen {MATE_IN_ONE}")
    *infos, answer = engine.ask("go byoyomi 60000", "bestmove")
    assert answer == "bestmove G*5b"
    assert fields(infos[-1])["mate"] == "1"


@pytest.mark.parametrize("go", ["go byoyomi 60000", "go nodes 5", "go"])
def test_who_is_mated_resigns(engine: Conversation, go: str) -> None:
    assert engine.bestmove(f"position sfen {MATE_IN_ONE} moves G*5b", go) == "bestmove resign"


def test_who_may_declare_declares(engine: Conversation) -> None:
    assert engine.bestmove(f"position sfen {DECLARABLE}", "go byoyomi 60000") == "bestmove win"
    for rule in ("24", "try", "off"):
        engine.say(f"setoption name EnteringKingRule value {rule}")
        assert legal(f"sfen {DECLARABLE}", engine.bestmove("go nodes 20"))


def test_a_lost_game_is_played_on(engine: Conversation) -> None:
    engine.say(f"position sfen {LOST}")
    *infos, answer = engine.ask("go nodes 200", "bestmove")
    assert answer == "bestmove 9a8a"
    assert fields(infos[-1])["mate"] == "-2"


def test_a_game_that_looks_lost_is_resigned_only_if_asked_for(engine: Conversation) -> None:
    engine.say("setoption name ResignValue value 100")
    assert engine.bestmove("go nodes 20") == "bestmove resign"
    engine.say("setoption name ResignValue value 1")
    assert legal("startpos", engine.bestmove("go nodes 20"))


def test_a_move_is_found_where_the_gui_goes_on_after_the_end(engine: Conversation) -> None:
    repetition = f"startpos moves {' '.join([REPEATED] * 3)}"
    assert legal("startpos", engine.bestmove(f"position {repetition}", "go nodes 10"))
    engine.say(f"position startpos moves {' '.join([REPEATED] * 5)} 7g7f")
    assert engine.ready() == []
    engine.say("setoption name MaxMoves value 3", "position startpos moves 7g7f 3c3d 2g2f 8c8d")
    assert engine.ready() == []
    assert legal("startpos moves 7g7f 3c3d 2g2f 8c8d", engine.bestmove("go nodes 10"))


# ---- mate search


def test_go_mate_finds_mates_and_their_absence(engine: Conversation) -> None:
    engine.say(f"position sfen {MATE_IN_ONE}")
    assert engine.ask("go mate 60000", "checkmate") == ["checkmate G*5b"]
    engine.say(f"position sfen {LONGER_MATE}")
    (line,) = engine.ask("go mate infinite", "checkmate")
    game = ShogiGame(LONGER_MATE)
    for move in line.split()[1:]:
        game.push(Move.from_usi(move))
    outcome = game.outcome()
    assert outcome is not None
    assert outcome.winner == ShogiGame(LONGER_MATE).turn
    engine.say(f"position sfen {NO_MATE}")
    assert engine.ask("go mate 60000", "checkmate") == ["checkmate nomate"]
    engine.say(f"position sfen {MATE_IN_ONE} moves G*5b")
    assert engine.ask("go mate 60000", "checkmate") == ["checkmate nomate"]


def test_go_mate_keeps_its_time_and_can_be_stopped(engine: Conversation) -> None:
    engine.say(f"position sfen {ENDLESS_CHECKS}")
    started = time.monotonic()
    assert engine.ask("go mate 300", "checkmate") == ["checkmate timeout"]
    assert time.monotonic() - started < 0.3 + LATE
    engine.say("go mate infinite")
    time.sleep(0.1)
    assert engine.ready() == []
    assert engine.ask("stop", "checkmate") == ["checkmate timeout"]


def test_a_mate_problem_without_the_attackers_king_is_answered(engine: Conversation) -> None:
    for sfen, answer in [
        (PROBLEM, "checkmate G*5b"),
        (PROBLEM.replace("G 1", "P 1"), "checkmate nomate"),
        (f"{PROBLEM} moves G*5b", "checkmate nomate"),  # mated
        (f"{PROBLEM} moves G*4b", "checkmate nomate"),  # there is no king that could be
        (f"{PROBLEM} moves G*6c 5a4a", "checkmate nomate"),
        ("9/9/9/9/9/9/4p4/9/4K4 w g 1", "checkmate G*5h"),
    ]:
        for go in ("go mate 60000", "go mate infinite"):
            engine.say(f"position sfen {sfen}")
            assert engine.ask(go, "checkmate") == [answer]
    engine.say(f"position sfen {PROBLEM} moves G*4b")
    assert engine.state()[0] == "4k4/5G3/4P4/9/9/9/9/9/9 w - 2"


@pytest.mark.parametrize("go", ["go nodes 5", "go", "go infinite", "go ponder byoyomi 100", "go mate"])
def test_go_is_refused_where_a_king_is_missing_and_changes_nothing(engine: Conversation, go: str) -> None:
    engine.say(f"position sfen {PROBLEM}")
    before = engine.state()
    engine.say(go)
    (told,) = engine.ready()
    assert told.startswith("info string error ")
    assert ("black has 0 kings, expected one" in told) == (go != "go mate")
    assert engine.state() == before
    engine.say("ponderhit", "stop")
    assert engine.ready() == [
        "info string error ponderhit, but the engine is not pondering: expected go ponder before it"
    ]
    assert engine.ask("go mate 60000", "checkmate") == ["checkmate G*5b"]
    assert legal("startpos", engine.bestmove("position startpos", "go nodes 5"))


# ---- mistakes change nothing


@pytest.mark.parametrize(
    "line",
    [
        "position startpos moves 7g7f 7g7f",
        "position startpos moves 7g7e",
        "position startpos moves 7g7f hello",
        "position startpos moves 5i5h 5a5b 5h5i 5b5a resign",
        "position sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSN b - 1",
        "position sfen 9/9/9/9/9/9/9/9/9 b - 1",
        "position sfen 9/9/9/9/9/9/9/9/4K4 b - 1",
        "position sfen 4k4/9/4P4/9/9/9/9/9/9 w G 1",
        "position sfen 4k4/9/4P4/9/9/9/9/9/9 b G 1 moves G*5a",
        "position sfen 4k4/4P4/9/9/9/9/9/9/4K4 b - 1",
        "position startpos moves " + "7g7f " * 200_000,
        "setoption name Nothing value 3",
        "setoption name Visits value many",
        "setoption name Visits value -1",
        "setoption name Visits",
        "setoption name Policy value yes",
        "setoption name Temperature value nan",
        "setoption name Temperature value 1e999",
        "setoption name EnteringKingRule value 25",
        "go sideways",
        "what is this",
    ],
    ids=lambda line: line[:60].replace("/", "-"),
)
def test_a_mistake_is_told_and_changes_nothing(engine: Conversation, line: str) -> None:
    engine.say("position startpos moves 2g2f 8c8d", "setoption name Visits value 12")
    before = engine.state()
    engine.say(line)
    (told,) = engine.ready()
    assert told.startswith("info string error ")
    assert len(told) < 400
    assert engine.state() == before


# ---- the end of the process


STATES = {
    "at the start": [],
    "after usi": ["usi"],
    "ready": ["isready"],
    "thinking": ["isready", "go byoyomi 600000"],
    "analysing": ["isready", "go infinite"],
    "pondering": ["isready", "go ponder byoyomi 600000"],
    "mating": ["isready", f"position sfen {ENDLESS_CHECKS}", "go mate infinite"],
}


@pytest.mark.parametrize("quitting", [True, False], ids=["quit", "end of input"])
@pytest.mark.parametrize("state", STATES)
def test_it_ends_in_every_state(checkpoint: Path, state: str, quitting: bool) -> None:
    with quick_talk(checkpoint) as engine:
        engine.say(*STATES[state])
        if "isready" in STATES[state]:
            engine.until("readyok")
            time.sleep(0.1)
        if quitting:
            engine.say("quit")
        started = time.monotonic()
        code, lines, errors = engine.end(close=not quitting)
    assert (code, errors) == (0, "")
    assert time.monotonic() - started < LATE
    answers = [line.split()[0] for line in lines if line.startswith(("bestmove", "checkmate"))]
    expected = {
        "thinking": "bestmove",
        "analysing": "bestmove",
        "pondering": "bestmove",
        "mating": "checkmate",
    }
    assert answers == ([] if quitting or state not in expected else [expected[state]])


def test_commands_that_are_piped_in_are_answered_also_without_isready(checkpoint: Path) -> None:
    with quick_talk(checkpoint) as engine:
        engine.say("usi", "position startpos moves 7g7f", "go nodes 30")
        code, lines, errors = engine.end()
    assert (code, errors) == (0, "")
    answers = [line for line in lines if not line.startswith(("info", "option", "id"))]
    assert answers[0] == "usiok"
    assert legal("startpos moves 7g7f", answers[1])
    assert len(answers) == 2


def test_a_gui_that_is_gone_ends_it_quietly(checkpoint: Path) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "keisei.usi.main", str(checkpoint)],
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert process.stdin is not None
    with process, open(reading, "rb") as answers:
        process.stdin.write(b"isready\ngo infinite\n")
        process.stdin.flush()
        assert answers.readline() == b"readyok\n"
        assert answers.readline().startswith(b"info ")
        answers.close()
        assert process.wait(PATIENCE) == 0  # its output is still read: the next answer ends it
        assert process.stderr is not None
        assert process.stderr.read() == b""

import pytest

from keisei.evaluation.engines.usi_options import UsiOption, read_option
from keisei.evaluation.engines.usi_spec import Limit, LimitKind, UsiEngineSpec, parse_spec


def test_a_text_names_an_engine_and_how_it_plays() -> None:
    text = "usi:fairy-stockfish;depth=1;Skill Level=-20;name=fsf-s-20-d1"
    assert parse_spec(text) == UsiEngineSpec(
        "fsf-s-20-d1", ("fairy-stockfish",), Limit(LimitKind.DEPTH, 1), {"Skill Level": "-20"}
    )


def test_a_text_may_say_everything() -> None:
    text = "usi:'/my engines/x' --a 'b c' ; byoyomi=1500; processes=4;memory=2G;start=60;move=2.5;Book=;F=a=b"
    spec = parse_spec(text)
    assert spec == UsiEngineSpec(
        "x-byoyomi1500",
        ("/my engines/x", "--a", "b c"),
        Limit(LimitKind.BYOYOMI, 1500),
        {"Book": "", "F": "a=b"},
        start_seconds=60,
        move_seconds=2.5,
        memory_bytes=2 << 30,
        processes=4,
    )
    assert spec.identity == "usi:'/my engines/x' --a 'b c';byoyomi=1500;Book=;F=a=b"


def test_identity_is_what_determines_the_play() -> None:
    spec = parse_spec("usi:x -a;nodes=5;B=1;A=2;name=somebody;memory=none;move=3")
    assert spec.identity == "usi:x -a;nodes=5;A=2;B=1"
    assert parse_spec(spec.identity).identity == spec.identity
    assert spec.memory_bytes is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fairy-stockfish;depth=1", "is not a USI engine, expected usi:COMMAND;KEY=VALUE"),
        ("usi:;depth=1", "has no command"),
        ("usi:'';depth=1", "the engine has no command, expected a program"),
        ("usi:'x;depth=1", 'cannot parse the command "\'x": no closing quotation'),
        ("usi:x", "has no limit, expected one of nodes, depth, byoyomi, movetime"),
        ("usi:x;nodes=1;depth=1", "has nodes and depth, expected one of"),
        ("usi:x;depth=1;depth=2", "has depth twice"),
        ("usi:x;depth=0", "depth is 0, expected at least 1"),
        ("usi:x;depth=-1", "depth is '-1', expected a whole number"),
        ("usi:x;nodes=1e3", "nodes is '1e3', expected a whole number"),
        ("usi:x;depth=1;", "cannot parse '' in .*, expected KEY=VALUE"),
        ("usi:x;depth=1;Ponder", "cannot parse 'Ponder' in .*, expected KEY=VALUE"),
        ("usi:x;depth=1;=3", "cannot parse '=3' in .*, expected KEY=VALUE"),
        ("usi:x;depth=1;name=", "the engine's name is empty"),
        ("usi:x;depth=1;processes=0", "processes is 0, expected at least 1"),
        ("usi:x;depth=1;memory=2g", "memory is '2g', expected a size such as 512M or 2G, or none"),
        ("usi:x;depth=1;memory=0", "memory is 0 bytes, expected at least 1"),
        ("usi:x;depth=1;start=0", "start is 0.0 seconds, expected more than 0"),
        ("usi:x;depth=1;move=inf", "move is 'inf', expected a number of seconds"),
        ("usi:x;byoyomi=2000;move=1", r"move is 1 seconds, expected at least 2 \(byoyomi\)"),
        ("usi:x;depth=1;A=1\nquit", "'1\\\\nquit' has a control character, expected one line of text"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_spec(text)


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (
            "option name Skill Level type spin default 20 min -20 max 20",
            UsiOption("Skill Level", "spin", -20, 20),
        ),
        ("option name USI_Hash type spin default 256", UsiOption("USI_Hash", "spin")),
        (
            "option name A type combo default B c var B c var D",
            UsiOption("A", "combo", choices=("B c", "D")),
        ),
        ("option name Debug Log File type string default", UsiOption("Debug Log File", "string")),
        ("option  name\tX type  button", UsiOption("X", "button")),
        ("option name F type filename default a min 3 var b", UsiOption("F", "filename")),
        ("option name X", None),
        ("option", None),
    ],
)
def test_what_an_engine_announces_is_read(line: str, option: UsiOption | None) -> None:
    assert read_option(line) == option

"""Texts in English and Japanese: both are complete, and the locale chooses."""

from string import Formatter

import pytest

from keisei.errors import UserError
from keisei.language import ENGLISH, JAPANESE, padded, speaker_for
from keisei.language.texts import TEXTS
from keisei.shogi import Color, Move, Outcome, Reason, ShogiGame
from keisei.shogi.records.kif import HANDICAPS
from keisei.shogi.typed_moves import IllegalMoveError, read_typed_move
from keisei.shogi.why_illegal import FAULTS

MATE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("key", TEXTS)
def test_both_languages_have_the_text_with_the_same_fields(key: str) -> None:
    english, japanese = TEXTS[key]
    assert english
    assert japanese
    assert fields(english) == fields(japanese)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("winner", [Color.BLACK, Color.WHITE, None])
def test_every_outcome_has_words(reason: Reason, winner: Color | None) -> None:
    outcome = Outcome(winner, reason)
    assert ENGLISH.outcome(outcome) == str(outcome)
    said = JAPANESE.outcome(outcome)
    assert said.startswith(
        {Color.BLACK: "先手の勝ち（", Color.WHITE: "後手の勝ち（", None: "引き分け（"}[winner]
    )
    assert not any(letter.isascii() for letter in said)


def test_a_game_that_is_not_over_has_no_outcome() -> None:
    assert (ENGLISH.outcome(None), JAPANESE.outcome(None)) == ("unfinished", "未了")


def test_the_sides_of_a_handicap_game_have_names_of_their_own() -> None:
    won = Outcome(Color.WHITE, Reason.RESIGNATION)
    for name, sfen in HANDICAPS.items():
        say = JAPANESE.of_game(sfen)
        sides = ("先手", "後手") if name == "平手" else ("下手", "上手")
        assert tuple(map(say.side, Color)) == sides
        assert say.outcome(won) == f"{sides[1]}の勝ち（投了）"
        assert say("analysis.graph") == f"{sides[0]}の勝率"
        assert say("play.end", outcome="先手", moves=1) == "まで1手で先手"  # what is filled in stays
        assert ENGLISH.of_game(sfen) == ENGLISH
    assert JAPANESE.of_game(MATE).side(Color.BLACK) == "先手"


def test_moves_are_told_as_the_readers_write_them() -> None:
    game = ShogiGame()
    game.push("7g7f")
    line = [Move.from_usi(text) for text in ("3c3d", "8h2b+", "3a2b", "B*5e")]
    assert ENGLISH.line(game, line) == "3c3d 8h2b+ 3a2b B*5e"
    assert JAPANESE.line(game, line) == "△３四歩 ▲２二角成 △同　銀 ▲５五角"
    assert game.ply == 1


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "ja_JP"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": ""}, "ja"),
    ],
)
def test_the_locale_chooses_unless_somebody_does(environ: dict[str, str], code: str) -> None:
    assert speaker_for(None, environ).code == code
    assert speaker_for("en", environ) == ENGLISH
    assert speaker_for("ja", environ) == JAPANESE


def test_another_language_is_refused() -> None:
    with pytest.raises(UserError, match="--lang is fr, expected en or ja"):
        speaker_for("fr")


def test_kanji_take_two_columns() -> None:
    assert padded("歩", 4) == "歩  "
    assert padded("同　銀", 7, right=True) == " 同　銀"
    assert padded("too long", 3) == "too long"


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("55玉", "55玉 は指せません: ５九の玉は５五に動けません。指せる手: ▲４八玉 ▲５八玉 ▲６八玉"),
        ("P*5e", "P*5e は指せません: 持駒に歩がありません"),
        ("5d5e", "5d5e は指せません: ５四に駒がありません"),
        ("3c3d", "3c3d は指せません: ３三の駒はあなたの駒ではありません"),
        ("2h3h+", "2h3h+ は指せません: 成れるのは敵陣三段目までに入る、"),
        ("55と", "55と は指せません: 盤上にとがありません"),
    ],
)
def test_why_a_move_is_illegal_is_told_in_japanese(typed: str, why: str) -> None:
    game = ShogiGame()
    with pytest.raises(IllegalMoveError) as refusal:
        read_typed_move(game, typed)
    assert JAPANESE.illegal(game, refusal.value).startswith(why)
    english = ENGLISH.illegal(game, refusal.value)
    assert str(refusal.value).startswith(english.partition("; legal")[0])


def test_every_fault_has_a_text() -> None:
    assert {f"illegal.{key}" for key in FAULTS} <= set(TEXTS)

"""Which moves are legal, rule by rule, and against the slow reference rules."""

import pytest
from conftest import random_play, table
from reference import ReferenceGame

from keisei.shogi import RulesError, ShogiGame


@pytest.mark.parametrize(
    ("rule", "sfen", "count", "legal", "illegal"), table("legality.tsv") + table("legality_more.tsv")
)
def test_the_tables_of_rules(rule: str, sfen: str, count: str, legal: str, illegal: str) -> None:
    check(sfen, [] if legal == "-" else legal.split(","), [] if illegal == "-" else illegal.split(","))
    moves = {str(move) for move in ShogiGame(sfen).legal_moves()}
    assert len(moves) == int(count), rule
    assert moves == ReferenceGame(sfen).legal_moves(), rule


def check(sfen: str, legal: list[str], illegal: list[str]) -> None:
    game = ShogiGame(sfen)
    moves = {str(move) for move in game.legal_moves()}
    assert moves >= set(legal)
    assert not moves & set(illegal)
    for move in legal:
        game.push(move)
        game.pop()
    for move in illegal:
        with pytest.raises(RulesError, match="illegal move"):
            game.push(move)
    assert game.sfen() == sfen


STARTS = [
    None,
    "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "ln2k1gn1/r1s1gsn2/1ppl4l/p2ppp1pp/1P+b1P1p2/P2P1P2g/3b1GPPP/6K1L/2S3RNS w p 62",
    "7lk/9/8S/9/9/9/9/7L1/8K b P 1",
    "+P+P+P+P1+P+P+P+P/4K4/9/9/9/9/9/4k4/+p+p+p+p1+p+p+p+p w 2R2B 1",
]


@pytest.mark.parametrize("sfen", STARTS)
@pytest.mark.parametrize("seed", range(3))
def test_random_games_follow_the_reference_rules(sfen: str | None, seed: int) -> None:
    start = ShogiGame(sfen).sfen()
    reference = ReferenceGame(start, max_moves=None)
    for game in random_play(seed, 40, sfen):
        if game.history:
            reference.push(str(game.history[-1]))
        outcome = game.outcome()
        expected = reference.outcome()
        if expected is None:
            assert outcome is None
            assert {str(move) for move in game.legal_moves()} == reference.legal_moves()
        else:
            assert outcome is not None
            assert (outcome.winner and str(outcome.winner)[0], outcome.reason) == expected
            assert game.legal_moves() == []
        assert game.sfen() == reference.sfen()
        assert game.is_check() == reference.is_check()

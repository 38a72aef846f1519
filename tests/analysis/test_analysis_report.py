"""Tables, graphs and comments of an analysis, against texts written by hand."""

from dataclasses import replace

from analysis_cases import FIRST, RATES, RECORD, SECOND, made

from keisei.analysis.analysis_report import commented, graph, summary, table
from keisei.shogi import read_kif, write_kif


def test_a_missed_move_is_in_the_table_with_the_better_line() -> None:
    assert table(RECORD, [FIRST], 0.1) == [
        "move           Black  mover  lost  better",
        "   1 ☗7g7f      50 %   50 %",
        "   2 ☖3c3d      50 %   50 %    30  8c8d 2g2f 8d8e",
        "   3 ☗8h2b+     80 %   80 %",
    ]
    assert table(RECORD, [FIRST], 0.31)[2] == "   2 ☖3c3d      50 %   50 %    30"


def test_a_second_network_has_its_own_columns() -> None:
    assert table(RECORD, [FIRST, SECOND], 0.5) == [
        "move           Black  mover  lost  o Black move    better",
        "   1 ☗7g7f      50 %   50 %           10 % 7g7f",
        "   2 ☖3c3d      50 %   50 %    30     10 % 8c8d",
        "   3 ☗8h2b+     80 %   80 %           10 % 8h2b+",
    ]


def test_a_proven_mate_and_a_declaration_are_named() -> None:
    move = FIRST.moves[1]
    mate = replace(move, before=replace(move.before, mate=3))
    declare = replace(move, before=replace(move.before, line=()))
    assert table(RECORD, [replace(FIRST, moves=(FIRST.moves[0], mate))], 0.1)[2].endswith(
        "8c8d 2g2f 8d8e (mate in 3)"
    )
    assert table(RECORD, [replace(FIRST, moves=(FIRST.moves[0], declare))], 0.1)[2].endswith("  declare")
    declared = replace(FIRST, moves=(FIRST.moves[0], declare))
    assert "better: 宣言 (declare)" in commented(RECORD, declared, 0.1).comments[2]


def test_the_graph_shows_the_win_rate_of_black() -> None:
    assert graph([FIRST]) == [
        " 100 % |",
        "       |",
        "       |  *",
        "       |   *",
        "       |",
        "  50 % |**--",
        "       |",
        "       |",
        "       |",
        "       |",
        "   0 % |",
        "       +----",
        "        0  3",
    ]


def test_the_graph_of_two_networks_has_two_signs_and_the_first_in_front() -> None:
    rows = graph([FIRST, SECOND])
    assert rows[9] == "       |oooo"
    same = graph([FIRST, made(RATES)])
    assert not any("o" in row for row in same)


def test_a_long_game_fits_the_width() -> None:
    long = replace(FIRST, positions=FIRST.positions * 100)
    assert max(map(len, graph([long], 40))) == 40
    assert graph([long], 40)[-1].split() == ["0", "399"]
    assert graph([replace(FIRST, positions=FIRST.positions[:1])])[-1].split() == ["0"]


def test_each_side_is_summed_up() -> None:
    assert summary(FIRST, 0.1) == [
        "☗black: 2 of 2 moves are the network's own, 0 missed a better one, 0.0 points lost on average",
        "☖white: 0 of 1 moves are the network's own, 1 missed a better one, 30.0 points lost on average",
    ]
    assert len(summary(replace(FIRST, moves=FIRST.moves[:1]), 0.1)) == 1


def test_comments_are_added_to_those_of_the_record() -> None:
    with_comments = commented(RECORD, FIRST, 0.1)
    assert with_comments.comments == {
        0: "first@100, 400 visits: Black's win rate is 50 %",
        1: "well known\nBlack's win rate 50 %",
        2: "Black's win rate 80 %\nWhite lost 30 points; better: △８四歩(83) ▲２六歩(27) △８五歩(84)",
        3: "Black's win rate 70 %",
    }
    assert replace(with_comments, comments=RECORD.comments) == RECORD
    assert read_kif(write_kif(with_comments)) == with_comments

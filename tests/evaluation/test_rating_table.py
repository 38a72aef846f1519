import pytest

from keisei.evaluation.ratings.rating import PairResult, rate
from keisei.evaluation.ratings.rating_table import format_markdown, format_table

RESULTS = [
    PairResult("net", "greedy", 60, 10, 50),
    PairResult("greedy", "random", 190, 5, 5),
    PairResult("strong", "net", 20, 0, 0),
    PairResult("random", "broken", 9, 0, 0),
    PairResult("x", "y", 1, 0, 1),
    PairResult("late", "random", 0, 0, 0),
]


def test_a_table_has_a_line_for_each_player_best_first() -> None:
    ratings = rate(RESULTS)
    lines = format_table(ratings, {"net": "my network"}).splitlines()
    assert lines[0].split() == ["player", "Elo", "95", "%", "interval", "games", "score", "LOS"]
    assert set(lines[1]) == {"-"}
    assert max(map(len, lines)) == len(lines[1])
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[2:]]
    net, greedy = ratings["net"], ratings["greedy"]
    superiority = round(100 * ratings.superiority("net", "greedy"))
    assert 75 < superiority < 95
    assert cells == [
        ["strong", f"> {ratings['strong'].low:.0f}", "one bound", "20", "100.0 %", "> 99 %"],
        [
            "my network",
            f"{net.elo:.0f}",
            f"{net.low:.0f} to {net.high:.0f}",
            "140",
            "46.4 %",
            f"{superiority} %",
        ],
        ["greedy", f"{greedy.elo:.0f}", f"{greedy.low:.0f} to {greedy.high:.0f}", "320", "77.3 %", "> 99 %"],
        ["random", "0", "anchor", "209", "7.9 %", "> 99 %"],
        ["broken", f"< {ratings['broken'].high:.0f}", "one bound", "9", "0.0 %"],
        ["late", "?", "no comparison", "0"],
        ["x", "?", "no comparison", "2", "50.0 %"],
        ["y", "?", "no comparison", "2", "50.0 %"],
    ]


def test_markdown_has_the_same_cells() -> None:
    ratings = rate(RESULTS, confidence=0.9)
    lines = format_markdown(ratings, {"net": "my|net"}).splitlines()
    assert lines[0] == "| player | Elo | 90 % interval | games | score | LOS |"
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: |"
    assert lines[3].startswith(f"| my\\|net | {ratings['net'].elo:.0f} | ")
    assert lines[6] == f"| broken | < {ratings['broken'].high:.0f} | one bound | 9 | 0.0 % |  |"
    assert len(lines) == 10


@pytest.mark.parametrize("elo", [-0.4, 0.4])
def test_an_elo_of_nearly_0_has_no_sign(elo: float) -> None:
    wins = 100_000 + (60 if elo > 0 else -60)
    ratings = rate([PairResult("a", "random", wins, 0, 200_000 - wins)])
    assert 0.1 < abs(ratings["a"].elo) < 0.4
    (line,) = (line for line in format_table(ratings).splitlines() if line.startswith("a "))
    assert line.split()[1] == "0"

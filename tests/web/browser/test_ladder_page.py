"""The ladder in a browser: bars where the ratings are, rows that lead to a player's games."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from made_runs import CONDITIONS, made_run
from web_server import Web, web

from keisei.evaluation.matches.results_store import ResultsStore, StoredGame

if TYPE_CHECKING:
    from playwright.sync_api import Page

OWN = "first@204800"


def rows(page: "Page") -> list[list[str]]:
    page.locator(".ladders section tbody tr").first.wait_for()
    return [
        row.locator("th, td:not(.chart)").all_inner_texts() for row in page.locator(".ladders tbody tr").all()
    ]


def test_players_stand_by_rating_with_their_figures(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/ladder")
    shown = rows(page)
    (table,) = site.get(f"/api/ladder?run={site.run()}")["tables"]
    assert [row[0] for row in shown] == [OWN, "greedy", "random"]
    for row, player in zip(shown, table["players"], strict=True):
        assert row[1] == f"{player['elo']:,}"
        assert row[4] == f"{player['games']:,}"
        assert abs(int(row[5].removesuffix("%")) - 100 * player["score"]) <= 0.5
    own = table["players"][0]
    assert shown[0][2] == f"{own['low']:,} to {own['high']:,}"
    assert abs(int(shown[0][3].removesuffix("%")) - 100 * own["los"]) <= 0.5
    assert shown[-1][1:4] == ["0", "–", "–"]
    assert CONDITIONS in page.locator(".ladders header").inner_text()


def test_bars_end_and_intervals_lie_where_the_ratings_are(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/ladder")
    rows(page)
    (table,) = site.get(f"/api/ladder?run={site.run()}")["tables"]
    elos = [player["elo"] for player in table["players"]]
    ends = [float(bar.get_attribute("width") or 0) for bar in page.locator("rect.bar").all()]
    scale = (ends[0] - ends[2]) / (elos[0] - elos[2])
    assert ends[1] - ends[2] == pytest.approx(scale * (elos[1] - elos[2]), abs=0.5)
    first = page.locator("tbody svg").first.locator("path.interval").first.get_attribute("d") or ""
    begin, end = (float(part.split(" ")[0]) for part in first.removeprefix("M").split("H"))
    own = table["players"][0]
    assert begin - ends[2] == pytest.approx(scale * own["low"], abs=0.5)
    assert end - ends[2] == pytest.approx(scale * own["high"], abs=0.5)


def test_a_row_leads_to_the_players_games(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/ladder")
    rows(page)
    page.locator("tbody tr", has_text="greedy").locator("td.games").click(
        force=True
    )  # the link lies over the row
    page.wait_for_url("**/games?*")
    assert parse_qs(urlsplit(page.url).query) == {"run": [site.run()], "player": ["greedy"]}
    page.locator(".list tbody tr").nth(5).wait_for()


def test_all_runs_and_conditions_and_a_rating_without_an_end(page: "Page", tmp_path: Path) -> None:
    made_run(tmp_path / "runs" / "first")
    second = made_run(tmp_path / "runs" / "second")
    with ResultsStore.open(second / "evaluation" / "results.sqlite") as results:
        results.add_player("unbeaten", "unbeaten", None)
        results.add(
            [
                StoredGame("unbeaten", "random", "other conditions", 7, pair, 0, "checkmate", 80)
                for pair in range(20)
            ]
        )
    with web(tmp_path) as server:
        page.goto(f"{server.base}/ladder?run={server.run('second')}")
        rows(page)
        assert page.locator(".ladders section").count() == 2
        unbeaten = page.locator("tbody tr", has_text="unbeaten")
        assert unbeaten.locator("td.elo").inner_text().startswith("> ")
        assert unbeaten.locator("path.interval.open").count() == 1
        page.locator("#run").select_option(label="all runs")
        page.locator(".ladders section").nth(2).wait_for()
        assert parse_qs(urlsplit(page.url).query) == {"run": ["all"]}
        page.go_back()
        page.wait_for_function("() => document.querySelectorAll('.ladders section').length === 2")


def test_a_directory_without_results_says_what_to_do(page: "Page", tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with web(tmp_path) as server:
        page.goto(f"{server.base}/ladder")
        page.get_by_text("keisei evaluate RUN").wait_for()
        page.goto(f"{server.base}/games")
        page.get_by_text("No game yet").wait_for()

"""The list of games in a browser: filters in the address, rows that lead to the replay, downloads."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from made_runs import game, made_run
from web_server import Web, web

from keisei.runs.kept_games import kept_game_path
from keisei.shogi import Color, GameRecord, Outcome, Reason, read_csa, read_kif, write_kif

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page

OWN = "first@204800"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server over a run with more games than a page lists."""
    folder = tmp_path_factory.mktemp("many")
    made_run(folder / "runs" / "first", games=60)
    with web(folder) as server:
        yield server


def rows(page: "Page") -> list[list[str]]:
    """Return the rows in sight, once they have been read."""
    page.wait_for_function(
        "() => document.querySelector('.list tbody tr, .list table[hidden]')"
        " && !document.querySelector('[aria-busy]')"
    )
    return [row.locator("td").all_inner_texts() for row in page.locator(".list tbody tr").all()]


def wait_for_rows(page: "Page", count: int) -> list[list[str]]:
    page.wait_for_function(
        "count => document.querySelectorAll('.list tbody tr').length === count"
        " && !document.querySelector('[aria-busy]')",
        arg=count,
    )
    return rows(page)


def wait_for_summary(page: "Page", text: str) -> None:
    page.wait_for_function("text => document.querySelector('.summary').textContent === text", arg=text)


def query(page: "Page") -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_games_of_both_kinds_are_listed(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/games")
    listed = rows(page)
    assert len(listed) == site.get("/api/games")["total"] == 12
    assert page.locator(".summary").inner_text() == "1–12 of 12 games"
    (mate,) = [row for row in listed if row[2] == "black wins by checkmate"]
    assert mate[:2] == [f"☗{OWN}", "☖greedy"]
    assert mate[3].startswith("7")
    assert mate[4].split() == ["7g7f", "6a7b", "8h3c+", "4a4b"]
    assert sum("self-play" in row[5] for row in listed) == 6
    assert page.locator("tbody .won", has_text=OWN).count() >= 1


def test_filters_choose_and_are_in_the_address(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/games")
    wait_for_rows(page, 12)
    page.get_by_label("Kind").select_option("evaluation")
    wait_for_rows(page, 6)
    page.get_by_label("Player").select_option("greedy")
    page.get_by_label("Result").select_option(label="greedy lost")
    assert [row[2] for row in wait_for_rows(page, 1)] == ["black wins by checkmate"]
    assert query(page) == {"kind": "evaluation", "player": "greedy", "result": "lost"}
    page.reload()
    assert len(wait_for_rows(page, 1)) == 1
    assert page.get_by_label("Result").input_value() == "lost"
    page.go_back()
    wait_for_rows(page, 6)
    page.get_by_role("button", name="Show all games").click()
    wait_for_rows(page, 12)
    assert query(page) == {}


@pytest.mark.parametrize(
    ("label", "chosen", "name", "value"),
    [
        ("Result", "Black won", "winner", "black"),
        ("Result", "draw", "winner", "draw"),
        ("Decided by", "resignation", "reason", "resignation"),
        ("Opening", "7g7f 6a7b 8h3c+ 4a4b (1)", "opening", "7g7f,6a7b,8h3c+,4a4b"),
    ],
)
def test_a_filter_shows_what_the_server_finds(
    page: "Page", site: Web, label: str, chosen: str, name: str, value: str
) -> None:
    total = site.get(f"/api/games?{name}={value.replace('+', '%2B')}")["total"]
    assert 0 < total < 12
    page.goto(f"{site.base}/games")
    wait_for_rows(page, 12)
    page.get_by_label(label).select_option(label=chosen)
    wait_for_rows(page, total)
    assert query(page) == {name: value}


def test_lengths_are_filtered_as_they_are_typed(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/games")
    wait_for_rows(page, 12)
    page.get_by_label("Least moves").fill("30")
    assert all(30 <= int(row[3].split()[0]) <= 60 for row in wait_for_rows(page, 6))
    page.get_by_label("Most moves").fill("40")
    page.get_by_text("No game matches.").wait_for()
    assert page.get_by_label("Most moves").evaluate("field => field === document.activeElement")


def test_pages_of_a_long_list(page: "Page", many: Web) -> None:
    page.goto(f"{many.base}/games")
    first = wait_for_rows(page, 50)
    page.get_by_role("button", name="Older").click()
    page.wait_for_function("() => document.querySelector('.summary').textContent.startsWith('51–100 of 120')")
    assert rows(page) != first
    page.get_by_role("button", name="Older").click()
    wait_for_rows(page, 20)
    assert page.get_by_role("button", name="Older").is_disabled()
    page.get_by_role("button", name="Newer").click()
    wait_for_summary(page, "51–100 of 120 games")
    page.get_by_role("button", name="Newer").click()
    wait_for_summary(page, "1–50 of 120 games")
    assert rows(page) == first
    page.get_by_role("button", name="Older").click()
    wait_for_summary(page, "51–100 of 120 games")
    page.get_by_label("Kind").select_option("training")
    wait_for_summary(page, "1–50 of 60 games")
    assert query(page) == {"kind": "training"}


def test_a_row_leads_to_the_replay(page: "Page", site: Web) -> None:
    page.goto(f"{site.base}/games?reason=checkmate")
    wait_for_rows(page, 1)
    page.locator(".list td.opening").click(force=True)  # the link lies over the row
    page.wait_for_url("**/games/*")
    (wanted,) = site.get("/api/games?reason=checkmate")["games"]
    assert urlsplit(page.url).path == f"/games/{wanted['id']}"


def test_openings_are_in_the_readers_language(page: "Page", site: Web) -> None:
    page.add_init_script("localStorage.setItem('keisei.lang', 'ja')")
    page.goto(f"{site.base}/games?reason=checkmate")
    ((black, white, result, plies, opening, kind),) = wait_for_rows(page, 1)
    assert opening.split() == ["▲７六歩", "△７二金", "▲３三角成", "△４二金"]
    assert result == "先手の勝ち（詰み）"
    assert (black, white, plies.split()[0]) == (f"☗{OWN}", "☖greedy", "7")
    assert kind.startswith("評価対局")


@pytest.mark.parametrize("kind", ["kif", "csa"])
def test_the_filtered_games_are_downloaded(page: "Page", site: Web, kind: str) -> None:
    page.goto(f"{site.base}/games?player=greedy&winner=black")
    wait_for_rows(page, 1)
    with page.expect_download() as download:
        page.get_by_role("link", name=f"Download {kind.upper()}").click()
    data = download.value.path().read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = archive.namelist()
        record = {"kif": read_kif, "csa": read_csa}[kind](archive.read(name))
    assert name.endswith(f".{kind}")
    assert [str(move) for move in record.moves][-1] == "G*5b"
    assert (record.black, record.white) == (OWN, "greedy")


def test_names_are_texts_and_long_ones_break(page: "Page", tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs" / f"{'long' * 30}-<img src=x onerror=alert(1)>", games=1)
    hostile = "<b onmouseover=alert(1)>" + "name" * 40
    record = GameRecord(
        tuple(game(1).history),
        black=hostile,
        white="'\"&<script>",
        outcome=Outcome(Color.BLACK, Reason.RESIGNATION),
    )
    kept_game_path(run / "games", 4096, 99).write_text(write_kif(record), "utf-8")
    dialogs: list[str] = []

    def note(dialog: "Dialog") -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    with web(tmp_path) as server:
        page.set_viewport_size({"width": 390, "height": 800})
        for path in ("/games", "/", "/ladder"):
            page.goto(server.base + path)
            page.locator("main").get_by_text("longlong").first.wait_for(state="attached")
            assert page.evaluate("() => document.documentElement.scrollWidth") == 390, path
            assert page.locator("main img, main script, main b[onmouseover]").count() == 0
        page.goto(f"{server.base}/games?kind=training")
        assert f"☗{hostile}" in [row[0] for row in wait_for_rows(page, 2)]
    assert dialogs == []

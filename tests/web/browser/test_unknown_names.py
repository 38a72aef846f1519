"""A run of another version has names that these pages have no texts for: they are shown as they are."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from made_runs import STEPS, UPDATES, line, made_run
from web_server import web

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_phases_and_opponents_of_another_version_are_shown_by_their_names(
    page: "Page", tmp_path: Path
) -> None:
    run = made_run(tmp_path / "runs" / "first")
    row = json.loads(line(UPDATES + 1))
    row |= {"time/dreaming": 3.0, "evaluation/alphabeta-9_score": 0.25}
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as metrics:
        metrics.write(json.dumps(row) + "\n")
    with web(tmp_path) as server:
        page.goto(server.base)
        page.locator(f"main[data-step='{STEPS * (UPDATES + 1)}']").wait_for()
        page.get_by_text("dreaming", exact=True).wait_for()
        page.get_by_text("alphabeta-9", exact=True).wait_for()

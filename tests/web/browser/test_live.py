"""The live page in a browser: a real training's curves and boards, the zoom, the stream, other runs."""

import itertools
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from look_probes import HIDE, TWO_FRAMES
from made_runs import STEPS, line, made_run
from web_fixtures import PATIENCE_MS
from web_server import KEISEI, Web, wait_until, web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Route

# A page's canvas has so many pixels in the colour of a curve, anti-aliased edges left out.
PAINTED = """(canvas, name) => {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.className = name;
  const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] > 200 && Math.hypot(data[i] - r, data[i + 1] - g, data[i + 2] - b) < 8) found++;
  return found;
}"""


class Training(NamedTuple):
    """A training that is running, in a folder with a server over it."""

    folder: Path
    run: Path
    web: Web


@contextmanager
def trained(folder: Path, *settings: str) -> Iterator[None]:
    """Run a training that would take hours; it is killed at the end."""
    command = [KEISEI, "train", "--config", "tiny", "run.console=off", "run.loggers=[]", *settings]
    with (folder / "train-errors.txt").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=errors, stderr=errors, start_new_session=True)
    try:
        wait_until(
            lambda: process.poll() is not None or bool(list(folder.glob("runs/*/metrics.jsonl"))), "a run"
        )
        assert process.poll() is None, (folder / "train-errors.txt").read_text(encoding="utf-8")
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("training")
    settings = (
        "run.name=live",
        "training.total_timesteps=100000000",
        "evaluation.every=4096",
        "run.checkpoint_every=0",
    )
    with trained(folder, *settings), web(folder) as server:
        yield Training(folder, folder / "runs" / "live", server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path


def chart(page: "Page", title: str) -> "Locator":
    return page.locator(f'section.chart[aria-label="{title}"]')


def step(page: "Page") -> int:
    return int(page.locator("main").get_attribute("data-step") or 0)


def wait_for_step(page: "Page", least: int) -> None:
    page.wait_for_function("least => Number(document.querySelector('main').dataset.step) >= least", arg=least)


def painted(of: "Locator", name: str = "curve-1") -> int:
    canvas = of.locator("canvas")
    canvas.scroll_into_view_if_needed()
    return int(canvas.evaluate(PAINTED, name))


def wait_for_paint(page: "Page", of: "Locator", name: str = "curve-1") -> None:
    of.locator("canvas").scroll_into_view_if_needed()
    page.wait_for_function(
        f"([canvas, name]) => ({PAINTED})(canvas, name) > 20",
        arg=[of.locator("canvas").element_handle(), name],
    )


def drag(page: "Page", of: "Locator", begin: float, end: float) -> None:
    """Drag over a chart, from one share of its width to another, once it stays where it is."""
    canvas = of.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    for share, act in ((begin, page.mouse.down), (end, page.mouse.up)):
        canvas.hover(position={"x": share * box["width"], "y": box["height"] / 2})
        act()


def rows_in_sight(page: "Page", of: "Locator") -> list[list[str]]:
    """Return the chart's table of values, newest row first."""
    of.get_by_role("button", name="values as a table").click()
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator("dialog.values tbody tr").all()]
    page.keyboard.press("Escape")
    return rows


def moves_in_sight(page: "Page", of: "Locator") -> tuple[int, int]:
    rows = rows_in_sight(page, of)
    return int(rows[-1][0].replace(",", "")), int(rows[0][0].replace(",", ""))


def test_curves_and_strength_grow_with_a_training(page: "Page", training: Training) -> None:
    page.goto(training.web.base)
    wait_for_step(page, 4096)
    entropy = chart(page, "Policy entropy")
    wait_for_paint(page, entropy, "curve-3")
    first = moves_in_sight(page, entropy)[1]
    wait_for_step(page, first + 2048)
    assert moves_in_sight(page, entropy)[1] > first
    assert "training" in page.locator(".state").inner_text()
    page.locator(".elo").wait_for()
    page.locator("#scores .bar").first.wait_for()
    assert page.locator("#phases .bar").count() > 3
    progress = page.get_by_role("progressbar").get_attribute("aria-valuenow")
    assert progress == "0"


def test_new_data_keep_the_zoom(page: "Page", training: Training) -> None:
    page.goto(training.web.base)
    wait_for_step(page, 8192)
    loss = chart(page, "Value loss")
    wait_for_paint(page, loss, "curve-2")
    drag(page, loss, 0.4, 0.8)
    whole = page.get_by_role("button", name="Whole run")
    whole.wait_for()
    zoomed = moves_in_sight(page, loss)
    assert zoomed == moves_in_sight(page, chart(page, "Policy loss")), "all charts have the same stretch"
    before = step(page)
    assert 0 < zoomed[0] < zoomed[1] < before
    wait_for_step(page, before + 4 * 512)
    assert moves_in_sight(page, loss) == zoomed
    assert whole.is_visible()
    loss.locator("canvas").dblclick()
    whole.wait_for(state="hidden")
    assert moves_in_sight(page, loss)[1] >= before


def test_boards_play_move_by_move(page: "Page", training: Training) -> None:
    page.add_init_script("localStorage.setItem('keisei.lang', 'en')")
    page.goto(training.web.base)
    page.locator(".live-board").nth(3).wait_for()
    page.evaluate(
        """() => {
          window.shown = [];
          const board = document.querySelector(".live-board"), caption = board.querySelector("figcaption");
          const note = () => window.shown.push(
            [caption.firstChild.textContent, board.querySelector("svg").innerHTML]);
          new MutationObserver(note).observe(caption, { subtree: true, childList: true });
        }"""
    )
    page.wait_for_function("() => window.shown.length >= 8")
    move = re.compile(r"game ([\d,]+), move ([\d,]+)")
    shown: list[tuple[str, str]] = page.evaluate("window.shown")
    found = [move.match(text) for text, _ in shown]  # none where a game is over
    seen = [tuple(int(number.replace(",", "")) for number in one.groups()) for one in found if one]
    steps = [after[1] - before[1] for before, after in itertools.pairwise(seen) if before[0] == after[0]]
    assert steps.count(1) >= 3, seen  # a game of few moves may go on beyond those that the file has
    assert len({markup for _, markup in shown}) >= 4, "the board itself is drawn anew"


def test_a_hidden_page_lets_go_of_the_stream_and_comes_back_for_the_rest(
    page: "Page", training: Training
) -> None:
    opened: list[str] = []
    page.on("request", lambda request: opened.append(request.url) if "/events?" in request.url else None)
    page.goto(training.web.base)
    wait_for_step(page, 2048)
    watching = training.run / "watching"
    wait_until(watching.exists, "watching")
    page.evaluate(HIDE, True)
    wait_until(lambda: not watching.exists(), "the end of watching")
    before, updates = step(page), int(page.locator("main").get_attribute("data-updates") or 0)
    whole_lines = (training.run / "metrics.jsonl").read_text(encoding="utf-8").rpartition("\n")[0]
    last = json.loads(whole_lines.rpartition("\n")[2])["step"]
    assert last >= before
    page.evaluate("document.querySelector('main').dataset.marked = 'yes'")
    page.evaluate(HIDE, False)
    wait_for_step(page, last + 512)
    assert len(opened) == 2
    assert "after=" in opened[1]
    assert int(page.locator("main").get_attribute("data-updates") or 0) > updates


def test_a_lost_server_is_told_and_found_again(browser: "Browser", folder: Path) -> None:
    page = browser.new_context(locale="en-GB").new_page()  # whose console may have the lost connection
    page.set_default_timeout(PATIENCE_MS)
    made_run(folder / "runs" / "first")
    with web(folder) as server:
        page.goto(server.base)
        wait_for_step(page, STEPS)
        port = server.port
    page.get_by_text("no connection; trying again").wait_for()
    with (folder / "runs" / "first" / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(line(51))
    with web(folder, port=port):
        wait_for_step(page, STEPS * 51)
        page.get_by_text("no connection; trying again").wait_for(state="hidden")
    page.context.close()


def test_the_crosshair_tells_all_curves_at_the_same_update(page: "Page", site: Web) -> None:
    page.goto(site.base)
    wait_for_step(page, STEPS)
    loss, results = chart(page, "Value loss"), chart(page, "Self-play results")
    wait_for_paint(page, loss, "curve-2")
    canvas = loss.locator("canvas")
    canvas.focus()
    last = loss.locator(".legend b").inner_text()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('.chart.pointing')")
    page.wait_for_function("() => document.getElementById('announcements').textContent.includes('moves')")
    told = page.locator("#announcements").inner_text()
    at = int(re.search(r"([\d,]+) moves", told)[1].replace(",", ""))  # type: ignore[index]
    rows = dict(rows_in_sight(page, loss))
    assert rows[f"{at:,}"] in told
    canvas.focus()
    assert at == STEPS * 46  # the first press goes to the last update
    assert last == next(iter(rows.values()))
    page.keyboard.press("Home")
    page.wait_for_function(
        "() => document.getElementById('announcements').textContent.includes(' 4,096 moves')"
    )
    results.locator("canvas").scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelectorAll('.chart.pointing').length > 3")
    page.set_viewport_size({"width": 390, "height": 300})
    results.locator("canvas").evaluate(
        "canvas => canvas.scrollIntoView({ block: 'start', behavior: 'instant' })"
    )
    box = canvas.bounding_box()
    assert box is not None
    assert box["y"] < -300  # out of sight, so nothing paints it
    page.evaluate(TWO_FRAMES)
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.chart.pointing')")


def test_a_mouse_at_rest_leaves_the_crosshair_to_the_keys(page: "Page", site: Web) -> None:
    page.goto(site.base)
    wait_for_step(page, STEPS)
    page.locator(".live-board").nth(3).wait_for()
    loss = chart(page, "Value loss")
    wait_for_paint(page, loss, "curve-2")
    canvas = loss.locator("canvas")
    canvas.hover()
    page.wait_for_function("() => document.querySelector('.chart.pointing')")
    page.mouse.move(5, 5)
    page.wait_for_function("() => !document.querySelector('.chart.pointing')")
    canvas.evaluate("canvas => canvas.addEventListener('pointerleave', () => { window.left = true; })")
    loss.get_by_role("heading").hover()
    canvas.focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.chart.pointing')")
    canvas.evaluate("canvas => scrollBy({ top: canvas.clientHeight / 2, behavior: 'instant' })")
    page.wait_for_function("() => document.querySelector('.chart canvas:hover')")
    canvas.evaluate("canvas => scrollBy({ top: 3 * canvas.clientHeight, behavior: 'instant' })")
    page.wait_for_function("() => window.left")
    page.evaluate(TWO_FRAMES)
    assert page.locator(".chart.pointing").count() > 3


def test_the_keyboard_zooms_and_comes_back(page: "Page", site: Web) -> None:
    page.goto(site.base)
    wait_for_step(page, STEPS)
    speed = chart(page, "Moves per second")
    wait_for_paint(page, speed, "curve-3")
    speed.locator("canvas").focus()
    page.keyboard.press("End")
    page.keyboard.press("+")
    page.get_by_role("button", name="Whole run").wait_for()
    assert moves_in_sight(page, speed)[0] > STEPS * 20
    speed.locator("canvas").focus()
    page.keyboard.press("0")
    page.get_by_role("button", name="Whole run").wait_for(state="hidden")
    assert moves_in_sight(page, speed) == (STEPS, STEPS * 50)


def test_smoothing_time_and_hidden_curves(page: "Page", site: Web) -> None:
    page.goto(site.base)
    wait_for_step(page, STEPS)
    loss = chart(page, "Value loss")
    wait_for_paint(page, loss, "curve-2")
    slider = page.get_by_label("Smoothing")
    slider.fill("10")
    smooth = [float(value) for _, value in rows_in_sight(page, loss)]
    slider.fill("0")
    raw = [float(value) for _, value in rows_in_sight(page, loss)]

    def roughness(values: list[float]) -> float:
        return sum(abs(one - other) for one, other in itertools.pairwise(values))

    assert roughness(smooth) < roughness(raw)
    page.get_by_role("radio", name="Time").check()
    assert re.fullmatch(r"\d+:\d\d:\d\d", rows_in_sight(page, loss)[0][0])
    results = chart(page, "Self-play results")
    wait_for_paint(page, results, "curve-6")
    results.get_by_role("button", name="Black").click()
    page.wait_for_function(
        f"canvas => ({PAINTED})(canvas, 'curve-6') === 0", arg=results.locator("canvas").element_handle()
    )


def test_only_charts_on_the_screen_are_drawn(page: "Page", site: Web) -> None:
    page.goto(site.base)
    wait_for_step(page, STEPS)
    page.locator(".live-board").first.wait_for()
    wait_for_paint(page, chart(page, "Rating"))
    speed = chart(page, "Moves per second").locator("canvas")
    undrawn = [300, 150]  # what a canvas has that nobody has drawn on
    size = "canvas => [canvas.width, canvas.height]"
    assert speed.evaluate(size) == undrawn
    assert page.get_by_text("no data yet").filter(visible=True).count() == 0  # of charts out of sight too
    speed.scroll_into_view_if_needed()
    page.wait_for_function("canvas => canvas.width !== 300", arg=speed.element_handle())


def test_another_run_is_laid_over(page: "Page", folder: Path) -> None:
    made_run(folder / "runs" / "first")
    made_run(folder / "runs" / "second", updates=30)
    with web(folder) as server:
        page.goto(f"{server.base}/?run={server.run('first')}")
        wait_for_step(page, STEPS * 50)
        entropy = chart(page, "Policy entropy")
        wait_for_paint(page, entropy, "curve-3")
        assert painted(entropy, "curve-1") == 0
        page.locator("details.others summary").click()
        page.get_by_role("checkbox", name="second").check()
        wait_for_paint(page, entropy, "curve-1")
        wait_for_paint(page, entropy, "curve-2")
        assert entropy.locator(".legend b").count() == 2
        page.get_by_role("checkbox", name="second").uncheck()
        wait_for_paint(page, entropy, "curve-3")


def test_the_page_stays_where_it_is_when_another_run_arrives(page: "Page", folder: Path) -> None:
    made_run(folder / "runs" / "first")
    made_run(folder / "runs" / "second", updates=30)
    held: list[Route] = []
    page.route("**/curves?*", lambda route: held.append(route))
    with web(folder) as server:
        page.goto(f"{server.base}/?run={server.run('first')}")
        wait_for_step(page, STEPS * 50)
        page.locator(".live-board").nth(3).wait_for()
        page.locator("details.others summary").click()
        with page.expect_request("**/curves?*"):
            page.get_by_role("checkbox", name="second").check()
        chart(page, "Moves per second").locator("canvas").scroll_into_view_if_needed()
        scrolled = page.evaluate("scrollY")
        assert scrolled > 0
        (asked,) = held
        asked.continue_()
        page.locator("details.others summary", has_text="1").wait_for(state="attached")
        page.evaluate(TWO_FRAMES)
        assert page.evaluate("scrollY") >= scrolled  # the legends above have grown
        assert page.evaluate("document.activeElement.value") == server.run("second")


def test_the_choice_of_a_run_is_in_the_address(page: "Page", folder: Path) -> None:
    made_run(folder / "runs" / "first")
    made_run(folder / "runs" / "second", updates=30)
    with web(folder) as server:
        page.goto(f"{server.base}/?run={server.run('first')}")
        wait_for_step(page, STEPS * 50)
        page.locator("#run").select_option(server.run("second"))
        page.wait_for_function("() => document.querySelector('main').dataset.step === String(30 * 4096)")
        assert f"run={server.run('second')}" in page.url
        page.go_back()
        wait_for_step(page, STEPS * 50)


def test_a_run_that_is_not_training_says_so_and_shows_its_games(page: "Page", site: Web) -> None:
    page.goto(site.base)
    page.get_by_text("The run is not training now.").wait_for()
    page.locator(".live-board").nth(3).wait_for()
    page.wait_for_function(
        "() => document.querySelector('.live-board figcaption').textContent.includes('move 2')"
    )
    assert "stopped" in page.locator(".state").inner_text()
    assert page.get_by_role("link", name="All its games").get_attribute("href") == f"/games?run={site.run()}"


def test_an_empty_directory_explains_how_to_begin_and_goes_on(page: "Page", folder: Path) -> None:
    with web(folder) as server:
        page.goto(server.base)
        page.get_by_text("keisei train --config tiny run.name=first").wait_for()
        made_run(folder / "elsewhere" / "first")
        shutil.move(folder / "elsewhere" / "first", folder / "runs" / "first")
        wait_for_step(page, STEPS * 50)


def test_a_long_run_is_drawn_from_buckets_and_a_zoom_brings_detail(page: "Page", folder: Path) -> None:
    run = made_run(folder / "runs" / "long", updates=1)
    with (run / "metrics.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(line(update, 512) for update in range(1, 20_001))
    with web(folder) as server:
        page.goto(server.base)
        wait_for_step(page, 512 * 20_000)
        assert int(page.locator("main").get_attribute("data-updates") or 0) <= 1000
        speed = chart(page, "Moves per second")
        wait_for_paint(page, speed, "curve-3")
        drag(page, speed, 0.50, 0.53)  # in which there are 30 buckets of the whole
        wait_until(lambda: len(rows_in_sight(page, speed)) == 100, "the detail")
        first, last = moves_in_sight(page, speed)
        assert last - first < 512 * 1000


def test_a_page_keeps_a_bounded_number_of_entries(page: "Page", site: Web) -> None:
    page.goto(site.base)
    found = page.evaluate(
        """async () => {
          const { Series } = await import("/static/series.js"), series = new Series();
          for (let i = 1; i <= 12345; i++) {
            const values = { loss: [i % 7], rare: [i === 5000 ? 1 : null] };
            values["evaluation/rating"] = [i % 100 ? null : i];
            series.append({ step: [i * 10], time: [i], values });
          }
          const { low, mean, high } = series.curves.get("loss");
          const moves = i => series.step[i] - (series.step[i - 1] ?? 0);
          return { length: series.length, last: series.step.at(-1),
            low: Math.min(...low), high: Math.max(...high),
            mean: mean.reduce((sum, value, i) => sum + value * moves(i), 0) / series.step.at(-1),
            inside: mean.every((value, i) => low[i] <= value && value <= high[i]),
            rare: series.curves.get("rare").mean.filter(value => value !== null).length,
            points: series.pointsOf("evaluation/rating", "step").at(-1),
            rising: series.step.every((step, i) => i === 0 || step > series.step[i - 1]) };
        }"""
    )
    assert found["length"] <= 2000
    assert found["last"] == 123_450
    assert (found["low"], found["high"], found["rare"]) == (0, 6, 1)
    assert found["mean"] == pytest.approx(sum(i % 7 for i in range(1, 12346)) / 12345, abs=1e-6)
    assert found["inside"]
    assert found["rising"]
    assert found["points"] == [123_000, 12_300]

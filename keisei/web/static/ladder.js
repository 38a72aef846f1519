// The ladder: every player's Elo with its interval, one table for each set of conditions of play.

import { Numbers, ticks } from "./numbers.js";
import { api, begin, element, svg, tell } from "./shell.js";

const ALL = "all", WIDTH = 1000, HEIGHT = 20, TICKS = 5, PAD = 0.04;

const { t, lang, site } = await begin("ladder");
const numbers = new Numbers(lang);
const places = element("div", { class: "ladders" });
const choice = element("select", { id: "run", onchange: () => {
  history.pushState(null, "", `/ladder?run=${encodeURIComponent(choice.value)}`);
  show();
} });

document.getElementById("main").replaceChildren(element("h1", { class: "unseen" }, t("shell.ladder")),
  element("div", { class: "row choose" }, element("label", null, t("ladder.run"), choice),
    element("p", { class: "dim" }, t("ladder.explained"))), places);
addEventListener("popstate", show);
await show();

// The run in the address, else the newest; ALL of them one below the other.
async function show() {
  const wanted = new URLSearchParams(location.search).get("run") ?? site.runs[0]?.id;
  choice.replaceChildren(...[...site.runs.map(({ id, name }) => [id, name]), [ALL, t("ladder.all runs")]].map(([value, name]) =>
    element("option", { value, selected: value === wanted }, name)));
  choice.disabled = !site.runs.length;
  const runs = site.runs.filter(({ id }) => wanted === ALL || id === wanted);
  try {
    const answers = await Promise.all(runs.map(({ id }) => api(`/api/ladder?run=${encodeURIComponent(id)}`)));
    tell(null);
    const found = answers.flatMap(({ tables }, i) => tables.map(table => ladder(runs[i], table)));
    places.replaceChildren(...found.length ? found : [element("section", { class: "card" },
      element("p", null, t("ladder.none")), element("pre", null, element("code", null, "keisei evaluate RUN")))]);
  } catch (error) {
    tell(error.message);
  }
}

function ladder(run, { conditions, seed, players }) {
  const range = rangeOf(players), under = [conditions, seed !== null && t("ladder.seed", { n: seed })].filter(Boolean).join(" · ");
  return element("section", { class: "card", "aria-label": `${run.name}, ${under}` },
    element("header", null, element("h2", null, run.name), element("p", { class: "dim" }, under)),
    element("table", null,
      element("thead", null, element("tr", null, element("th", { scope: "col" }, t("ladder.player")), element("th", { scope: "col", class: "chart" }, axis(range)),
        ["elo", "interval", "los", "games", "score"].map(column => element("th", { scope: "col", class: `number ${column}`, title: t(`ladder.${column} hint`) }, t(`ladder.${column}`))))),
      element("tbody", null, players.map(player => row(player, range, run.id)))));
}

function rangeOf(players) {
  const values = players.flatMap(({ elo, low, high }) => [elo, low, high]).filter(value => value !== null && value !== undefined);
  const least = Math.min(0, ...values), greatest = Math.max(100, ...values), pad = (greatest - least) * PAD;
  return [least - pad, greatest + pad];
}

function axis(range) {
  const x = value => (value - range[0]) / (range[1] - range[0]) * 100;
  return element("span", { class: "axis", "aria-hidden": "true" }, ticks(...range, TICKS).filter(mark => x(mark) > 3 && x(mark) < 97).map(mark =>
    element("i", { style: { left: `${x(mark)}%` } }, numbers.whole(mark))));
}

function row(player, range, run) {
  const { name, elo, low, high, los, games, score } = player;
  const query = new URLSearchParams({ run, player: name });
  return element("tr", null,
    element("th", { scope: "row" }, element("a", { href: `/games?${query}` }, name)),
    element("td", { class: "chart" }, bar(player, range)),
    element("td", { class: "number elo" }, elo !== null ? numbers.whole(elo) : bound(low, high)),
    element("td", { class: "number interval" }, elo !== null && low !== null && high !== null && low < high ? t("ladder.from to", { low: numbers.whole(low), high: numbers.whole(high) }) : "–"),
    element("td", { class: "number los" }, los === null || los === undefined ? "–" : numbers.percent(los)),
    element("td", { class: "number games" }, numbers.whole(games)),
    element("td", { class: "number score" }, numbers.percent(score)));
}

function bound(low, high) {
  return low !== null ? `> ${numbers.whole(low)}` : high !== null ? `< ${numbers.whole(high)}` : "–";
}

// The Elo as a bar from the left, its interval as a line across the bar's end; an open end fades out.
function bar({ elo, low, high }, range) {
  const x = value => (value - range[0]) / (range[1] - range[0]) * WIDTH, middle = HEIGHT / 2;
  const from = low ?? range[0], to = high ?? range[1], at = elo ?? low ?? high;
  if (at === null) return "";
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ticks(...range, TICKS).map(mark => svg("path", { class: "tick", d: `M${x(mark)} 0V${HEIGHT}` })),
    svg("rect", { class: "bar", x: 0, y: 5, width: Math.max(x(at), 0), height: HEIGHT - 10 }),
    svg("path", { class: `interval${elo === null ? " open" : ""}`, d: `M${x(from)} ${middle}H${x(to)}` }),
    low === null ? "" : svg("path", { class: "interval", d: `M${x(low)} 6V14` }),
    high === null ? "" : svg("path", { class: "interval", d: `M${x(high)} 6V14` }),
    elo === null ? "" : svg("path", { class: "point", d: `M${x(elo)} ${middle}h0.01` }));
}

// The live page: follows one run, chosen among all, and shows its state, strength, games and curves.

import { Chart } from "./chart.js";
import { ChartGroup } from "./chart_group.js";
import { Feed } from "./feed.js";
import { LiveBoards } from "./live_boards.js";
import { chartSpecs, metricNames } from "./live_charts.js";
import * as panels from "./live_panels.js";
import { liveTools } from "./live_tools.js";
import { Numbers } from "./numbers.js";
import { Series } from "./series.js";
import { api, begin, element, tell } from "./shell.js";
import { ZoomDetail } from "./zoom_detail.js";

const LOOK_MS = 15000; // for runs that begin or end
const BOARDS = 4;

const { t, lang, site, announce } = await begin("live");
const numbers = new Numbers(lang), page = { t, lang, numbers };
const specs = chartSpecs(t), names = metricNames(specs), group = new ChartGroup({ t, numbers, announce });
const detail = new ZoomDetail(group, names);
const main = document.getElementById("main");
let runs = site.runs; // as the server lists them
let run = null; // the one that is followed, with its curves: { …, series, detail }
let feed = null, boards, tools, view;

if (runs.length) start();
else waitForARun();

// An empty directory: how to begin; the page goes on by itself as soon as there is a run.
function waitForARun() {
  main.replaceChildren(element("section", { class: "card begin" },
    element("h1", null, t("live.nothing yet")), element("p", null, t("live.how to begin")),
    element("pre", null, element("code", null, "keisei train --config tiny run.name=first\nkeisei train")),
    element("p", { class: "dim" }, t("live.by itself"))));
  const timer = setInterval(async () => {
    if (document.hidden) return;
    runs = (await look()) ?? runs;
    if (!runs.length) return;
    clearInterval(timer);
    start();
  }, 3000);
}

function start() {
  view = build();
  main.replaceChildren(...view.sections);
  follow(wanted() ?? runs[0]);
  addEventListener("popstate", () => follow(wanted() ?? runs[0]));
  setInterval(async () => {
    const now = document.hidden ? null : await look();
    if (!now?.length) return;
    runs = now;
    tools.setRuns(runs, run);
    view.fillChoice();
  }, LOOK_MS);
}

// The runs that there are now; null while the server does not answer, which the stream reports already.
async function look() {
  try {
    return (await api("/api/site")).runs;
  } catch {
    return null;
  }
}

function wanted() {
  return runs.find(({ id }) => id === new URLSearchParams(location.search).get("run"));
}

function build() {
  const charts = Object.fromEntries(Object.entries(specs).map(([place, its]) => [place, its.map(spec => new Chart(group, spec))]));
  const choice = element("select", { id: "run", "aria-label": t("live.run"), onchange: () => {
    history.pushState(null, "", `/?run=${encodeURIComponent(choice.value)}`);
    follow(runs.find(({ id }) => id === choice.value));
  } });
  const fillChoice = () => {
    const options = runs.map(one => element("option", { value: one.id, selected: one.id === run?.id }, `${one.name} – ${t(`live.${one.state}`)}`));
    const same = options.length === choice.options.length && options.every((option, i) => option.isEqualNode(choice.options[i]));
    if (!same) choice.replaceChildren(...options); // which would close the list that somebody has opened
    choice.value = run?.id;
  };
  const place = name => element("div", { id: name });
  const parts = { badge: element("span"), link: element("span", { class: "link", role: "status" }), progress: place("progress"), strength: place("strength"), scores: place("scores"),
    results: place("results"), phases: place("phases"), workers: place("workers"), notices: place("notices") };
  const pause = element("button", { class: "plain", id: "pause" });
  boards = new LiveBoards({ ...page, button: pause });
  tools = liveTools({ group, page });
  group.onzoom = zoom => {
    tools.whole.hidden = !zoom;
    if (run) detail.look(run);
  };
  const card = (title, ...content) => element("section", { class: "card", "aria-label": title }, element("header", null, element("h3", null, title)), ...content);
  const [rating, scores] = charts.strength;
  rating.element.classList.add("first");
  rating.element.insertBefore(parts.strength, rating.canvas.parentElement);
  scores.element.insertBefore(parts.scores, scores.legend);
  const gamesTitle = element("h3"), noGames = element("p", { class: "dim" });
  const games = element("section", { class: "card games" }, element("header", null, gamesTitle, pause), noGames, boards.element);
  return {
    parts, charts, fillChoice, gamesTitle, noGames, pause,
    sections: [
      element("h1", { class: "unseen" }, t("shell.live")),
      element("section", { class: "card run", "aria-label": t("live.run") },
        element("div", { class: "row" }, choice, parts.badge, parts.link, tools.element), parts.progress),
      element("div", { class: "strength" }, rating.element, scores.element),
      games,
      element("div", { class: "charts" }, charts.learning.map(chart => chart.element)),
      element("div", { class: "details" }, card(t("live.ends"), parts.results), card(t("live.phases"), parts.phases),
        card(t("live.workers"), parts.workers), card(t("live.notices"), parts.notices)),
    ],
  };
}

// Follows another run from the beginning.
function follow(next) {
  if (!next || next.id === run?.id) return;
  feed?.close();
  run = { ...next, series: new Series(), detail: null };
  group.setZoom(null);
  group.setRuns([run]);
  boards.clear();
  view.fillChoice();
  tools.setRuns(runs, run);
  for (const part of Object.values(view.parts)) part.replaceChildren();
  showGamesState();
  document.title = `${run.name} – Keisei`;
  feed = new Feed(run.id, names, { state: showState, curves: takeCurves, rows: takeRows, games: showGames }, showConnection);
}

function takeCurves(data) {
  run.series.replace(data);
  run.detail = null;
  detail.look(run);
  showCurves();
}

function takeRows(rows) {
  run.series.append(rows);
  detail.append(run, rows);
  showCurves();
}

function showCurves() {
  const charts = [...view.charts.strength, ...view.charts.learning];
  for (const chart of charts) if (chart.spec.optional) chart.element.hidden = !chart.hasData;
  group.changed();
  main.dataset.updates = run.series.length;
  main.dataset.step = run.series.step.at(-1) ?? 0;
}

function showState(state) {
  const { parts } = view;
  const was = run.state;
  Object.assign(run, state.run);
  parts.badge.replaceChildren(panels.stateBadge(run, page));
  for (const name of ["progress", "strength", "scores", "results", "phases", "workers", "notices"]) {
    keepScrolled(parts[name], panels[`${name}Panel`](state, page));
  }
  if (was !== run.state) {
    runs.find(({ id }) => id === run.id).state = run.state;
    view.fillChoice();
    announce(`${run.name}: ${t(`live.${run.state}`)}`);
    boards.clear();
  }
  if (run.state !== "training" && boards.empty) showKeptGames();
  showGamesState();
}

// Replaces content only if it has changed: a list that somebody is reading stays where it is.
function keepScrolled(part, content) {
  const fresh = part.cloneNode(false);
  fresh.append(...[content].flat());
  if (part.isEqualNode(fresh)) return;
  const scrolled = part.querySelector("[tabindex]")?.scrollTop ?? 0, focused = part.contains(document.activeElement);
  part.replaceChildren(...fresh.childNodes);
  const scroller = part.querySelector("[tabindex]");
  if (!scroller) return;
  scroller.scrollTop = scrolled;
  if (focused) scroller.focus({ preventScroll: true });
}

function showGames(live) {
  boards.take(live.games);
  showGamesState();
}

// What the boards show: games being played, or the last evaluation games of a run that is not training.
function showGamesState() {
  const { gamesTitle, noGames, pause } = view, training = run.state === "training";
  gamesTitle.textContent = t(training ? "live.games" : "live.last games");
  noGames.replaceChildren(...training ? [t("live.games soon")]
    : [t(run.state === "finished" ? "live.is finished" : "live.is stopped"), " ", element("a", { href: `/games?run=${encodeURIComponent(run.id)}` }, t("live.its games"))]);
  noGames.hidden = training && !boards.empty;
  pause.hidden = boards.empty;
}

// The last games of a run that is not training, played over and over.
async function showKeptGames() {
  const followed = run;
  boards.clear();
  try {
    const { games } = await api(`/api/games?${new URLSearchParams({ run: run.id, limit: BOARDS })}`);
    const whole = await Promise.all(games.map(({ id }) => api(`/api/games/${encodeURIComponent(id)}`)));
    if (run === followed && run.state !== "training") boards.repeat(whole);
  } catch (error) {
    tell(error.message);
  }
  showGamesState();
}

function showConnection(connected) {
  view.parts.link.textContent = connected ? "" : t("live.connection lost");
}

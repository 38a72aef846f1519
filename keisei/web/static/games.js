// The list of games: filters that live in the address, pages of rows that lead to the replay, and downloads.

import { Numbers } from "./numbers.js";
import { api, begin, element, tell } from "./shell.js";

const PAGE = 50, MOST_ZIPPED = 2000, TYPING_MS = 400;
const FILTERS = ["run", "kind", "player", "result", "reason", "shortest", "longest", "opening"];
const KINDS = ["evaluation", "training", "table"], SIDES = ["black", "white", "draw"], OWN = ["won", "lost", "drawn"];

const { t, lang, site } = await begin("games");
const numbers = new Numbers(lang);
const form = element("form", { class: "card filters", "aria-label": t("games.filters") });
const summary = element("p", { class: "summary", role: "status" });
const downloads = element("div", { class: "row downloads" });
const body = element("tbody"), pages = element("nav", { class: "row pages", "aria-label": t("games.pages") });
const table = element("table", null,
  element("thead", null, element("tr", null, ["black", "white", "result", "number of plies", "opening", "kind"].map(name =>
    element("th", { scope: "col", class: name === "number of plies" && "number" }, t(`games.${name}`))))), body);
let asked = 0, typing = null;

document.getElementById("main").replaceChildren(element("h1", { class: "unseen" }, t("shell.games")), form,
  element("section", { class: "card list", "aria-label": t("shell.games") }, element("div", { class: "row top" }, summary, downloads), table, pages));
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("change", () => choose(chosen()));
form.addEventListener("input", event => {
  if (event.target.type !== "number") return;
  clearTimeout(typing);
  typing = setTimeout(() => choose(chosen()), TYPING_MS);
});
addEventListener("popstate", show);
showFilters(wanted(), { players: [], reasons: [], openings: [] }); // until the games are read
summary.textContent = t("games.reading");
await show();

// The filters in the address, only those that are set.
function wanted() {
  const query = new URLSearchParams(location.search);
  return Object.fromEntries([...FILTERS, "winner", "offset"].map(name => [name, query.get(name)]).filter(([, value]) => value));
}

// The filters in the form; who won has another name in the query than how the player did.
function chosen() {
  const filters = {};
  for (const name of FILTERS) {
    const field = form.elements[name];
    if (field?.value && field.checkValidity()) filters[SIDES.includes(field.value) && name === "result" ? "winner" : name] = field.value;
  }
  if (!filters.player && filters.result) delete filters.result;
  return filters;
}

// Applies other filters and puts them in the address, so that going back returns to the old ones.
function choose(filters) {
  clearTimeout(typing);
  const address = `/games?${new URLSearchParams(filters)}`;
  if (address === location.pathname + location.search) return;
  history.pushState(null, "", address);
  show();
}

async function show() {
  const filters = wanted(), number = ++asked;
  table.setAttribute("aria-busy", "true");
  try {
    const found = await api(`/api/games?${new URLSearchParams({ ...filters, limit: PAGE })}`);
    if (number !== asked) return; // another answer is on its way
    tell(null);
    showFilters(filters, found);
    showGames(filters, found);
  } catch (error) {
    tell(error.message);
  } finally {
    table.removeAttribute("aria-busy");
  }
}

function showFilters(filters, { players, reasons, openings }) {
  const focused = form.contains(document.activeElement) ? document.activeElement.name : null;
  const opening = filters.opening ?? "";
  const known = openings.map(({ moves, texts, games }) => [moves.join(","), `${texts[lang].join(" ")} (${numbers.whole(games)})`]);
  if (opening && !known.some(([moves]) => moves === opening)) known.push([opening, opening.replaceAll(",", " ")]);
  const own = filters.player ? OWN.map(name => [name, t(`games.${name}`, { player: filters.player })]) : [];
  form.replaceChildren(
    choice("run", filters.run, site.runs.map(({ id, name }) => [id, name])),
    choice("kind", filters.kind, KINDS.map(name => [name, t(`games.kind ${name}`)])),
    choice("player", filters.player, withChosen(players, filters.player).map(name => [name, name])),
    choice("result", filters.winner ?? filters.result, [...SIDES.map(name => [name, t(`games.${name} won`)]), ...own]),
    choice("reason", filters.reason, withChosen(reasons, filters.reason).map(name => [name, t(name)])),
    choice("opening", opening, known),
    element("div", { class: "lengths", role: "group", "aria-label": t("games.length") }, length("shortest", filters), length("longest", filters)),
    Object.keys(filters).some(name => name !== "offset")
      ? element("button", { type: "button", class: "plain all", onclick: () => choose({}) }, t("games.clear")) : "");
  if (focused) form.elements[focused]?.focus();
}

function withChosen(names, name) {
  return !name || names.includes(name) ? names : [...names, name];
}

function choice(name, value, options) {
  return element("label", { class: name }, t(`games.${name}`), element("select", { name },
    [["", t("games.any")], ...options].map(([its, text]) => element("option", { value: its, selected: its === (value ?? "") }, text))));
}

function length(name, filters) {
  return element("label", null, t(`games.${name}`), element("input", { name, type: "number", inputmode: "numeric", min: 0, max: 100000, step: 1, value: filters[name] }));
}

function showGames(filters, { total, games }) {
  const offset = Number(filters.offset ?? 0);
  summary.textContent = total ? t("games.shown", { from: numbers.whole(Math.min(offset + 1, total)), to: numbers.whole(Math.min(offset + games.length, total)), total: numbers.whole(total) })
    : t(Object.keys(filters).length ? "games.none match" : "games.none");
  body.replaceChildren(...games.map(row));
  table.hidden = !games.length;
  const query = { ...filters };
  delete query.offset;
  downloads.replaceChildren(...total ? [
    total > MOST_ZIPPED ? element("small", null, t("games.at most", { n: numbers.whole(MOST_ZIPPED) })) : "",
    ...["kif", "csa"].map(format => element("a", { class: "button", href: `/api/games.zip?${new URLSearchParams({ ...query, format })}`, download: "games.zip" },
      t("games.download", { format: format.toUpperCase() }))),
  ] : []);
  pages.hidden = total <= PAGE;
  pages.replaceChildren(step("games.newer", query, offset - PAGE, offset > 0), step("games.older", query, offset + PAGE, offset + PAGE < total));
}

function step(name, query, offset, possible) {
  const to = offset > 0 ? { ...query, offset } : query;
  return element("button", { disabled: !possible, onclick: () => { choose(to); scrollTo(0, 0); } }, t(name));
}

function row(game) {
  const player = (name, side) => {
    const won = game.winner === side;
    return [element("i", { class: `side ${side ? "white" : "black"}`, "aria-hidden": "true" }, side ? "☖" : "☗"), element("span", { class: won && "won" }, name || t("games.nobody"))];
  };
  const kind = [t(`games.kind ${game.kind}`), game.step !== null && t("games.at step", { step: numbers.short(game.step) })].filter(Boolean).join(" · ");
  return element("tr", null,
    element("td", { class: "black" }, element("a", { href: `/games/${encodeURIComponent(game.id)}` }, player(game.black, 0))),
    element("td", { class: "white" }, player(game.white, 1)),
    element("td", { class: "result" }, game.text[lang]),
    element("td", { class: "plies number" }, element("span", null, numbers.whole(game.plies)), element("span", { class: "unit" }, ` ${t("games.plies")}`)),
    element("td", { class: "opening" }, game.opening_texts[lang].map(move => [element("span", null, move), " "]).flat()),
    element("td", { class: "from" }, kind));
}

// The form that sets up a game: opponent, colour, strength, where it begins, clock. Settings are remembered.
import { api, element, remember } from "/static/shell.js";

const SIDES = ["black", "white", "random"];
const MINUTES = { value: 10, min: 0, max: 180 },
  BYOYOMI = { value: 30, min: 0, max: 600 };

// `fixed` is what the address says: { game, ply } or { sfen }. onStart(table) is called when the server has set the table.
export function newGameForm({ t, site, tell }, fixed, onStart) {
  const kept = keptSettings();
  const opponent = opponentChoice(site.players, kept.opponent, t);
  const visits = visitsChoice(site.visits, kept.visits, t);
  const isNetwork = () => site.players.find(player => player.id === opponent.value)?.kind === "network";
  const thinking = element("input", { type: "checkbox", name: "thinking", checked: kept.thinking });
  const start = startChoice(t, site.handicaps, fixed, kept);
  const clock = clockChoice(t, kept);
  const side = segments(
    "side",
    SIDES.map(name => [name, t(`play.side ${name}`)]),
    kept.side ?? "black",
  );
  const networkOnly = element(
    "div",
    { class: "grid" },
    field(t("play.visits"), visits),
    check(thinking, t("play.thinking shown")),
  );
  opponent.onchange = () => {
    networkOnly.hidden = !isNetwork();
  };
  opponent.onchange();
  const go = element("button", { class: "primary", type: "submit", disabled: !site.players.length }, t("play.start"));

  const form = element(
    "form",
    { class: "card grid new-game" },
    element("h1", null, t("play.new game")),
    field(t("play.opponent"), opponent),
    networkOnly,
    element("fieldset", null, element("legend", null, t("play.colour")), side.node),
    start.node,
    clock.node,
    go,
  );
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const settings = {
      opponent: opponent.value,
      side: side.value(),
      visits: Number(visits.value),
      thinking: isNetwork() && thinking.checked,
      ...start.value(),
      ...clock.value(),
    };
    remember("game", JSON.stringify({ ...settings, ...clock.kept(), ...start.kept() }));
    go.disabled = true;
    tell(null);
    try {
      await onStart(await api("/api/tables", settings));
    } catch (error) {
      tell(error.message);
    } finally {
      go.disabled = false;
    }
  });
  return form;
}

function keptSettings() {
  try {
    return JSON.parse(localStorage.getItem("keisei.game")) ?? {};
  } catch {
    return {};
  } // somebody edited the storage
}

// Groups are named after their run, except for these two.
const groupName = (group, t) => (["shipped", "built-in"].includes(group) ? t(`play.group ${group}`) : group);

function opponentChoice(players, kept, t) {
  const groups = new Map();
  for (const player of players) groups.set(player.group, [...(groups.get(player.group) ?? []), player]);
  const select = element(
    "select",
    { name: "opponent" },
    [...groups].map(([group, members]) =>
      element(
        "optgroup",
        { label: groupName(group, t) },
        members.map(({ id, name }) => element("option", { value: id }, name)),
      ),
    ),
  );
  if (players.some(({ id }) => id === kept)) select.value = kept;
  return select;
}

const VISITS = [16, 64, 200, 800, 1600, 5000];

// How much a network searches for a move: the server's bounds and usual number among ours; 0 is the policy alone.
export function visitsChoice({ least, most, usual }, kept, t) {
  const options = [...new Set([least, usual, most, ...VISITS])]
    .filter(visits => visits >= least && visits <= most)
    .sort((one, other) => one - other);
  const select = element(
    "select",
    { name: "visits" },
    options.map(visits =>
      element("option", { value: visits }, visits ? t("board.visits", { visits }) : t("play.policy alone")),
    ),
  );
  select.value = options.includes(Number(kept)) ? kept : usual;
  return select;
}

function startChoice(t, handicaps, fixed, kept) {
  if (fixed.game)
    return {
      node: element("p", { class: "dim" }, t("play.from game", { ply: fixed.ply })),
      value: () => ({ game: fixed.game, ply: fixed.ply }),
      kept: () => ({}),
    };
  const names = ["even", ...handicaps, "position"];
  const select = element(
    "select",
    { name: "start" },
    names.map(name => element("option", { value: name }, t(`play.start ${name}`))),
  );
  const sfen = element("input", {
    name: "sfen",
    value: fixed.sfen ?? kept.sfen ?? "",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "lnsgkgsnl/1r5b1/…  b - 1",
  });
  const box = field("SFEN", sfen);
  select.value = fixed.sfen ? "position" : names.includes(kept.start) ? kept.start : "even";
  const show = () => {
    box.hidden = select.value !== "position";
    sfen.required = !box.hidden;
  };
  select.onchange = show;
  show();
  const value = () =>
    select.value === "position"
      ? { sfen: sfen.value.trim() }
      : select.value === "even"
        ? {}
        : { handicap: select.value };
  return {
    node: element("div", { class: "grid" }, field(t("play.begin with"), select), box),
    value,
    kept: () => ({ start: select.value, sfen: sfen.value }),
  };
}

function clockChoice(t, kept) {
  const on = element("input", { type: "checkbox", name: "clock", checked: Boolean(kept.clockOn) });
  const minutes = element("input", {
    type: "number",
    name: "minutes",
    required: true,
    ...MINUTES,
    value: kept.minutes ?? MINUTES.value,
  });
  const byoyomi = element("input", {
    type: "number",
    name: "byoyomi",
    required: true,
    ...BYOYOMI,
    value: kept.byoyomi ?? BYOYOMI.value,
  });
  const times = element("div", { class: "row" }, field(t("play.minutes"), minutes), field(t("play.byoyomi"), byoyomi));
  const show = () => {
    times.hidden = minutes.disabled = byoyomi.disabled = !on.checked;
  };
  on.onchange = show;
  show();
  return {
    node: element("div", { class: "grid" }, check(on, t("play.clock")), times),
    value: () => (on.checked ? { clock: { minutes: Number(minutes.value), byoyomi: Number(byoyomi.value) } } : {}),
    kept: () => ({ clockOn: on.checked, minutes: Number(minutes.value), byoyomi: Number(byoyomi.value) }),
  };
}

const field = (name, input) => element("label", null, name, input);
const check = (input, name) => element("label", { class: "check" }, input, name);

function segments(name, options, chosen) {
  const inputs = options.map(([value]) => element("input", { type: "radio", name, value, checked: value === chosen }));
  const node = element(
    "div",
    { class: "segments" },
    options.map(([, text], i) => element("label", null, inputs[i], element("span", null, text))),
  );
  return { node, value: () => inputs.find(input => input.checked).value };
}

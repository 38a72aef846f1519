// What a network would play at the position shown: which network, how much it thinks, its candidates as a list.
import { api, element, remember, remembered } from "/static/shell.js";
import { lineList } from "/static/game_view.js";
import { visitsChoice } from "/static/new_game_form.js";

const SETTLED_MS = 150; // the reader stays on a position: only then is the network asked

export class NetworkPanel {
  // onLines(lines) when candidates are there ([] when they no longer hold), onPlay(line) when one is to be played out.
  constructor({ t, lang, site }, gameId, { onLines, onPlay }) {
    Object.assign(this, { t, lang, gameId, onLines, onPlay, asked: 0, lines: [], position: null });
    const networks = site.players.filter(player => player.kind === "network"),
      ids = networks.map(({ id }) => id);
    const options = networks.map(({ id, name }) => element("option", { value: id }, name));
    this.network = element("select", { name: "network", onchange: () => this.#changed() }, options);
    this.network.value = remembered("network", ids, ids[0]);
    this.visits = visitsChoice(site.visits, site.visits.usual, t);
    this.visits.addEventListener("change", () => this.#changed());
    const disabled = !networks.length;
    this.wanted = element("input", { type: "checkbox", id: "candidates", disabled, onchange: () => this.#changed() });
    this.list = element("div", { class: "candidates" });
    this.node = this.#section();
  }

  #section() {
    const { t } = this,
      network = element("label", null, t("replay.network"), this.network),
      visits = element("label", null, t("play.visits"), this.visits);
    return element(
      "section",
      { class: "card" },
      element("h2", null, t("replay.candidates")),
      element("div", { class: "row" }, network, visits),
      element("label", { class: "check" }, this.wanted, t("replay.show candidates")),
      this.list,
    );
  }

  // What is asked of the network, here and for the analysis of the whole game.
  settings() {
    return { network: this.network.value, visits: Number(this.visits.value) };
  }

  // The position shown is another one: { ply, turn }, or null where there is nothing to ask.
  show(position) {
    this.position = position;
    this.#clear();
    clearTimeout(this.waiting);
    if (position && this.wanted.checked) this.waiting = setTimeout(() => this.#ask(), SETTLED_MS);
  }

  #changed() {
    remember("network", this.network.value);
    this.show(this.position);
  }

  async #ask() {
    const number = this.asked;
    this.#say(this.t("replay.thinking"));
    try {
      const request = { ply: this.position.ply, ...this.settings() };
      const { lines } = await api(`/api/games/${this.gameId}/candidates`, request);
      if (number === this.asked) this.#fill(lines);
    } catch (error) {
      if (number === this.asked) this.#say(error.message);
    }
  }

  #fill(lines) {
    const { turn } = this.position;
    this.lines = lines;
    this.list.replaceChildren(lineList(lines, { turn, lang: this.lang, t: this.t, onPlay: this.onPlay }));
    this.onLines(lines);
  }

  #say(text) {
    this.list.replaceChildren(element("p", { class: "dim" }, text));
  }

  #clear() {
    this.asked += 1; // an answer on its way is too late
    this.lines = [];
    this.list.replaceChildren();
    this.onLines([]);
  }
}

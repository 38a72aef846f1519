// Games of a running training, on small boards. A training plays faster than the eye can follow: each board shows one
// game move by move at a readable pace, and then takes up the newest one. A board that begins to watch joins a game near its end.

import { MiniBoard } from "./mini_board.js";
import { Position } from "./position.js";
import { element, icon, svg } from "./shell.js";

const MOVE_MS = 700, HURRIED_MS = 350, MANY_MOVES = 50, END_MS = 4000, JOIN_BEFORE_END = 24;
const GRAPH = { width: 200, height: 36 };
const PAUSE_ICON = "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z", PLAY_ICON = "M7 4.5L19 12L7 19.5z";

export class LiveBoards {
  constructor({ t, lang, numbers, button }) {
    Object.assign(this, { t, lang, numbers, button, boards: [], paused: false });
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches; // then only the newest positions
    this.element = element("div", { class: "boards" });
    this.button.addEventListener("click", () => this.#pause(!this.paused));
    this.#pause(false);
    const step = now => {
      if (!this.paused && !this.still) for (const board of this.boards) board.step(now);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  get empty() {
    return !this.boards.length;
  }

  // Takes the games of the event `games`.
  take(games) {
    games.forEach((game, i) => {
      if (!this.boards[i]) {
        this.boards[i] = new LiveBoard(this);
        this.element.append(this.boards[i].element);
      }
      this.boards[i].take(game);
    });
  }

  // Plays whole games of /api/games from the beginning to the end, over and over.
  repeat(games) {
    this.take(games.map(({ id, sfen, moves, black_percent: percents, winner, reason, text, black, white }) => ({
      number: id, title: `☗ ${black}  ☖ ${white}`, before: 0, sfen, moves, black_percent: percents ?? moves.map(() => null),
      outcome: reason && { winner, reason, text } })));
    for (const board of this.boards) board.repeats = true;
  }

  clear() {
    this.boards = [];
    this.element.replaceChildren();
  }

  #pause(paused) {
    this.paused = paused;
    const name = this.t(paused ? "live.go on" : "live.pause");
    this.button.replaceChildren(icon(paused ? PLAY_ICON : PAUSE_ICON));
    this.button.title = name;
    this.button.setAttribute("aria-label", name);
  }
}

class LiveBoard {
  constructor(page) {
    Object.assign(this, { page, game: null, newest: null, shown: 0, due: 0 });
    const { t } = page;
    this.title = element("span");
    this.value = element("b", { class: "value" });
    this.curve = svg("path", { class: "curve" });
    this.area = svg("path", { class: "area" });
    const holder = element("div");
    this.graph = svg("svg", { class: "values", viewBox: `0 0 ${GRAPH.width} ${GRAPH.height}`, preserveAspectRatio: "none", role: "img", "aria-label": t("live.value line") },
      this.area, svg("path", { class: "middle", d: `M0 ${GRAPH.height / 2}H${GRAPH.width}` }), this.curve);
    this.element = element("figure", { class: "live-board" }, holder, this.graph,
      element("figcaption", null, this.title, this.value));
    this.board = new MiniBoard(holder, { label: t("live.board") });
  }

  take(game) {
    this.newest = game;
    if (!this.game) this.#begin(game, game.title ? 0 : Math.max(game.moves.length - JOIN_BEFORE_END, 0));
    else if (game.number === this.game.number) this.#extend(game);
    else if (this.page.still) this.#begin(game, game.moves.length);
    if (this.page.still && this.shown < this.moves.length) this.#showUpTo(this.moves.length);
  }

  // One move, if it is time for one.
  step(now) {
    if (!this.game || now < this.due) return;
    if (this.shown < this.moves.length) {
      this.#showUpTo(this.shown + 1);
      const left = this.moves.length - this.shown;
      this.due = now + (left === 0 && this.game.outcome ? END_MS : left > MANY_MOVES ? HURRIED_MS : MOVE_MS);
    } else if (this.repeats || this.newest !== this.game) {
      this.#begin(this.newest, 0);
      this.due = now + MOVE_MS;
    }
  }

  #begin(game, shown) {
    this.game = game;
    this.moves = [...game.moves];
    this.percents = [...game.black_percent];
    this.position = new Position(game.sfen);
    this.first = game.before;
    this.shown = 0;
    this.#showUpTo(shown);
  }

  // The same game, later: its last moves, of which the first may be known.
  #extend(game) {
    const known = this.first + this.moves.length - game.before;
    if (known < 0) return; // some are missing: what is known is played first, then this is taken up as another game
    this.moves.push(...game.moves.slice(known));
    this.percents.push(...game.black_percent.slice(known));
    this.game = game;
  }

  #showUpTo(shown) {
    const { numbers } = this.page;
    while (this.shown < shown) this.position.play(this.moves[this.shown++]);
    this.board.show({ sfen: this.position.sfen(), last: shown ? this.moves[shown - 1] : null });
    this.title.textContent = this.#caption(shown);
    const percent = this.percents.slice(0, Math.max(shown, 1)).findLast(value => value !== null) ?? null;
    this.value.textContent = percent === null ? "" : `☗ ${numbers.percent(percent / 100)}`;
    this.#drawValues(shown);
  }

  // The game and the move, and at its end the result.
  #caption(shown) {
    const { t, lang } = this.page, { number, title, outcome } = this.game, move = this.first + shown;
    const over = shown === this.moves.length && outcome;
    if (title) return `${title}  ${over ? outcome.text[lang] : t("live.move", { move })}`;
    return over ? t("live.game over", { game: number, result: outcome.text[lang] }) : t("live.game move", { game: number, move });
  }

  #drawValues(shown) {
    this.graph.toggleAttribute("hidden", this.percents.every(value => value === null));
    const { width, height } = GRAPH, scale = Math.max(shown, 40);
    const known = this.percents.slice(0, shown).map((value, i) => [i, value]).filter(([, value]) => value !== null);
    const points = known.map(([i, value]) => `${((i + 1) / scale * width).toFixed(1)} ${(height - 1 - value / 100 * (height - 2)).toFixed(1)}`);
    const middle = height / 2, x = i => ((i + 1) / scale * width).toFixed(1);
    this.curve.setAttribute("d", points.length ? `M${points.join("L")}` : "");
    this.area.setAttribute("d", points.length ? `M${x(known[0][0])} ${middle}L${points.join("L")}L${x(known.at(-1)[0])} ${middle}Z` : "");
  }
}

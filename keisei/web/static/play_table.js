// A game against the machine. The server has the rules and the truth: every answer and event is a whole table, shown as
// it is; a person's own move is drawn at once and confirmed by the next table. An older table never replaces a newer one.
import { announce, api, element, remember, tell } from "/static/shell.js";
import { Board } from "/static/board.js";
import { MoveChooser } from "/static/move_chooser.js";
import { showClock } from "/static/clock_face.js";
import { MoveList, arrowsOf, isCommand, lineList, playerBar, verdict } from "/static/game_view.js";
import { Position } from "/static/position.js";
import { ValueGraph } from "/static/value_graph.js";
import { visitsChoice } from "/static/new_game_form.js";

const FORMATS = ["kif", "csa", "usi"];

export class PlayTable {
  constructor(main, shell, table, { onNewGame }) {
    Object.assign(this, { main, shell, t: shell.t, onNewGame, table: null, ended: new AbortController() });
    this.#build(table);
    this.take(table);
    this.#listen();
    const { signal } = this.ended;
    document.addEventListener("keydown", event => this.#key(event), { signal });
    document.addEventListener("visibilitychange", () => this.#listen(), { signal });
    this.ticking = setInterval(() => this.#showClocks(), 200);
    remember("table", table.id);
    this.board.focus();
  }

  // The page shows something else from now on.
  leave() {
    this.ended.abort();
    clearInterval(this.ticking);
    this.stream?.close();
  }

  #build(table) {
    const { t } = this,
      button = (name, kind, act) => element("button", { id: name, class: kind, onclick: act }, t(`play.${name}`));
    const mine = table.side,
      theirs = mine === "black" ? "white" : "black",
      host = element("div", { class: "board-host" });
    this.board = new Board(host, { t, onPress: at => this.chooser.press(at), handicap: table.handicap });
    this.board.turn(mine === "white");
    this.chooser = new MoveChooser(this.board, { t, onMove: move => this.#play(move) });
    const bar = (name, side, place) => playerBar({ name, side, sideName: this.board.sideName(side[0]), place });
    this.bars = { [theirs]: bar(table.opponent.name, theirs, "above"), [mine]: bar(t("play.you"), mine, "below") };
    this.buttons = {
      hint: button("hint", "", () => this.#hint()),
      undo: button("undo", "", () => this.#do({ do: "undo" })),
      declare: button("declare", "primary", () => this.#do({ do: "declare" })),
      resign: button("resign", "danger", () => this.#resign()),
      turn: button("turn", "", () => this.board.turn(!this.board.turned)),
    };
    this.status = element("div", { class: "status", role: "status" });
    this.after = element("div", { class: "row" });
    this.settings = this.#settings(table);
    this.lines = element("section", { class: "card", "aria-label": t("play.lines"), hidden: true });
    const moves = element("section", { class: "card" }, element("h2", null, t("play.moves"))),
      graph = element("section", { class: "card" }, element("h2", null, t("board.win rate of black")));
    this.moves = new MoveList(moves, { label: t("play.moves") });
    this.graph = new ValueGraph(graph, { t });
    moves.append(this.#save(table));
    this.main.replaceChildren(
      element("section", { class: "stage" }, this.bars[theirs], host, this.bars[mine]),
      element(
        "aside",
        { class: "side" },
        element(
          "section",
          { class: "card" },
          this.status,
          this.after,
          element("div", { class: "row actions" }, Object.values(this.buttons)),
          this.settings,
        ),
        this.lines,
        moves,
        graph,
      ),
    );
  }

  #save({ id }) {
    return element(
      "div",
      { class: "row save" },
      element("span", { class: "dim" }, this.t("play.save")),
      FORMATS.map(format =>
        element(
          "a",
          { class: "button", href: `/api/tables/${id}/record?format=${format}`, download: true },
          format.toUpperCase(),
        ),
      ),
    );
  }

  #settings(table) {
    if (!this.#isNetwork(table)) return null;
    const { t } = this,
      visits = visitsChoice(this.shell.site.visits, table.visits, t);
    const thinking = element("input", {
      type: "checkbox",
      checked: table.thinking,
      onchange: () => this.#do({ do: "set", thinking: thinking.checked }),
    });
    visits.addEventListener("change", () => this.#do({ do: "set", visits: Number(visits.value) }));
    return element(
      "div",
      { class: "row settings" },
      element("label", null, t("play.visits"), visits),
      element("label", { class: "check" }, thinking, t("play.thinking shown")),
    );
  }

  #isNetwork({ opponent }) {
    return this.shell.site.players.find(player => player.id === opponent.id)?.kind !== "built-in";
  }

  // Show a table that came from the server.
  take(table) {
    if (this.table && table.version < this.table.version) return;
    const before = this.table,
      last = table.moves.at(-1) ?? null,
      position = new Position(table.sfen);
    Object.assign(this, { table, received: table === before ? this.received : performance.now() });
    if (before && table.moves.length < before.moves.length) this.#clearLines();
    const legal = table.state === "yours" ? table.legal : [],
      anew = !before || this.board.position.sfen() !== table.sfen || this.board.check !== table.check;
    if (anew) this.board.show(position, { last, check: table.check, still: !before }); // what it thought stays to be read, without arrows
    if (anew || legal.join() !== this.chooser.legal.join()) this.chooser.allow(legal); // else a piece just chosen stays so
    const texts = table.texts[this.shell.lang];
    this.moves.show({ texts, ply: texts.length });
    this.graph.show({ percents: table.black_percent, ply: table.moves.length });
    this.graph.host.hidden = !table.black_percent.some(percent => percent !== null);
    this.#showState();
    this.#showClocks();
    if (before && table.moves.length > before.moves.length) announce(this.#spoken(texts.at(-1)));
  }

  #spoken(text) {
    const { table, t } = this;
    return [text, table.check && !table.outcome && t("play.check"), table.outcome?.text[this.shell.lang]]
      .filter(Boolean)
      .join(t("board.comma"));
  }

  #showState() {
    const { table, shell } = this,
      { outcome } = table;
    const how = outcome ? [element("p", { class: "dim" }, outcome.text[shell.lang])] : [];
    this.status.replaceChildren(element("p", null, this.#words()), ...how);
    this.status.dataset.state = outcome ? this.#fate() : table.state;
    this.#showButtons();
    for (const side of ["black", "white"]) {
      const theirs = side !== table.side,
        turn = table.state === (theirs ? "thinking" : "yours");
      this.bars[side].classList.toggle("to-move", turn);
      this.bars[side].state.textContent = turn && theirs ? this.t("play.thinks") : "";
    }
  }

  #words() {
    const { table, t } = this;
    if (table.outcome) return t(`play.you ${this.#fate()}`);
    if (table.state === "failed") return table.error;
    if (table.state === "thinking") return t("play.is thinking");
    return t(table.check ? "play.your turn in check" : "play.your turn");
  }

  // What can be done now; of a game that is over only what leads on.
  #showButtons() {
    const { table, t, buttons } = this,
      playing = ["yours", "thinking"].includes(table.state),
      over = table.state === "over";
    buttons.hint.hidden = over || !this.#isNetwork(table);
    buttons.hint.disabled = table.state !== "yours";
    buttons.undo.hidden = over;
    buttons.undo.disabled = !this.#mayUndo();
    buttons.declare.hidden = !table.may_declare;
    buttons.resign.hidden = over;
    if (this.settings) this.settings.hidden = over;
    const replay =
      table.game && element("a", { class: "button", id: "replay", href: `/games/${table.game}` }, t("play.replay"));
    const another = element(
      "button",
      { class: "primary", id: "new", onclick: () => this.#newGame() },
      t("play.new game"),
    );
    this.after.hidden = playing;
    this.after.replaceChildren(...[replay, another].filter(Boolean));
  }

  #fate() {
    const { outcome, side } = this.table;
    return outcome.winner === null ? "drawn" : outcome.winner === (side === "black" ? 0 : 1) ? "won" : "lost";
  }

  // There is a move of one's own to take back.
  #mayUndo() {
    const { start_sfen: start, side, moves } = this.table,
      first = start.split(" ")[1] === "b" ? "black" : "white";
    return moves.length > (first === side ? 0 : 1);
  }

  #showClocks() {
    const passed = performance.now() - this.received;
    for (const side of ["black", "white"])
      if (this.table.clock) showClock(this.bars[side].clock, this.table.clock, side, passed, this.t);
  }

  // Draw one's own move at once, then let the server confirm it.
  #play(move) {
    const ply = this.table.moves.length;
    this.board.show(new Position(this.table.sfen).play(move), { last: move });
    this.chooser.allow([]);
    this.#clearLines();
    return this.#do({ do: "move", move, ply });
  }

  async #do(request) {
    tell(null);
    try {
      this.take(await api(`/api/tables/${this.table.id}`, request));
    } catch (error) {
      this.take(error.answer?.sfen ? error.answer : this.table); // a move that did not arrive can be played again
      this.#tell(error);
    }
  }

  async #hint() {
    const { table, buttons, t } = this;
    buttons.hint.disabled = true;
    buttons.hint.setAttribute("aria-busy", "true");
    try {
      const { lines } = await api(`/api/tables/${table.id}`, { do: "hint" });
      if (this.table.version !== table.version) return;
      this.#showLines(lines, t("play.hint"));
      const [best] = lines;
      if (best)
        announce(
          t("play.hint spoken", {
            move: best.text[this.shell.lang],
            verdict: verdict(best, this.board.position.turn, t),
          }),
        );
    } catch (error) {
      this.#tell(error);
    } finally {
      buttons.hint.removeAttribute("aria-busy");
      buttons.hint.disabled = this.table.state !== "yours";
    }
  }

  #showLines(lines, title) {
    const { t, shell, board } = this,
      { turn } = board.position;
    board.point(arrowsOf(lines, turn, t));
    this.lines.hidden = !lines.length;
    this.lines.replaceChildren(element("h2", null, title), lineList(lines, { turn, lang: shell.lang, t }));
  }

  #clearLines() {
    this.lines.hidden = true;
    this.board.point([]);
  }

  #resign() {
    const { t } = this,
      dialog = element(
        "dialog",
        {
          class: "resignation",
          onclose: () => {
            dialog.remove();
            this.board.focus();
          },
        },
        element("p", null, t("play.really resign")),
        element(
          "div",
          { class: "row" },
          element("button", { autofocus: true, onclick: () => dialog.close() }, t("play.go on")),
          element(
            "button",
            {
              class: "danger",
              id: "really-resign",
              onclick: () => {
                dialog.close();
                this.#do({ do: "resign" });
              },
            },
            t("play.resign"),
          ),
        ),
      );
    document.body.append(dialog);
    dialog.showModal();
  }

  async #newGame() {
    remember("table", "");
    if (this.table.state !== "over")
      await api(`/api/tables/${this.table.id}`, { do: "close" }).catch(error => tell(error.message));
    this.onNewGame();
  }

  // One stream, closed while the page is hidden; it begins with the table as it is.
  #listen() {
    if (document.hidden) {
      this.stream?.close();
      this.stream = null;
      return;
    }
    if (this.stream) return;
    this.stream = new EventSource(`/api/tables/${this.table.id}/events`);
    this.stream.addEventListener("table", event => {
      const table = JSON.parse(event.data);
      if (table.version !== this.table.version) this.take(table); // taken again it would let go of a piece just chosen
    });
    this.stream.addEventListener("thinking", event => {
      const { ply, lines } = JSON.parse(event.data);
      if (ply === this.table.moves.length && this.table.state === "thinking")
        this.#showLines(lines, this.t("play.its lines"));
    });
    this.stream.addEventListener("error", () => {
      if (this.stream?.readyState === EventSource.CLOSED) this.#refused();
    });
  }

  // The stream was refused: of a table that has ended while nobody looked, most likely.
  async #refused() {
    try {
      this.take(await api(`/api/tables/${this.table.id}`));
    } catch (error) {
      this.#tell(error);
    }
  }

  #tell(error) {
    tell(error.status === 404 ? this.t("play.table gone") : error.message);
  }

  #key(event) {
    if (!isCommand(event)) return;
    const { buttons } = this,
      press = button => {
        if (!button.hidden && !button.disabled) button.click();
      };
    if (event.key === "Escape") {
      this.chooser.cancel();
      this.#clearLines();
    } else if (event.key === "h") press(buttons.hint);
    else if (event.key === "u") press(buttons.undo);
    else if (!this.chooser.chooseFromHand(event.key)) return;
    event.preventDefault();
  }
}

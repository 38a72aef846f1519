// The replay page: a game on the board, its moves, its value graph, what a network thinks of each position.
// A line of the search can be played out on the board: then the keys step through the line, and Escape leads back.
import { api, announce, begin, element, icon, tell } from "/static/shell.js";
import { Board } from "/static/board.js";
import { MoveList, arrowsOf, isCommand, playerBar } from "/static/game_view.js";
import { NetworkPanel } from "/static/network_panel.js";
import { Position, sfensOf } from "/static/position.js";
import { ValueGraph } from "/static/value_graph.js";

const AUTOPLAY_MS = 900;
const ADDRESS_MS = 400; // between two changes of the address: of more than 100 in half a minute a browser refuses some
const FINAL = ["checkmate", "no legal move", "repetition", "perpetual check", "declaration", "maximum length"];
const TOLD_LOSS = 5; // points of win rate; smaller ones are noise of the search
const ICONS = {
  first: "M5 5h2.6v14H5zM19 5v14L8.6 12z",
  back: "M15.5 4.5L17.4 6.4L11.8 12L17.4 17.6L15.5 19.5L8 12z",
  forward: "M8.5 4.5L6.6 6.4L12.2 12L6.6 17.6L8.5 19.5L16 12z",
  last: "M16.4 5H19v14h-2.6zM5 5v14l10.4-7z",
  play: "M7 4.5v15l12-7.5z",
  pause: "M6 5h4v14H6zM14 5h4v14h-4z",
  turn: "M7 3v12.2l-3-3l-1.5 1.6L8 19.3l5.5-5.5L12 12.2l-3 3V3zM17 21V8.8l3 3l1.5-1.6L16 4.7l-3.2 3.2l1.5 1.5l.7-.6V21z",
};

class Replay {
  constructor(main, shell, game) {
    Object.assign(this, { main, shell, t: shell.t, game, line: null, playing: null, analysis: null, told: -Infinity });
    this.sfens = sfensOf(game.sfen, game.moves);
    this.percents = game.black_percent ?? [];
    this.losses = new Map();
    this.#build();
    const ply = Number(new URLSearchParams(location.search).get("ply") ?? game.moves.length);
    this.go(Math.max(0, Math.min(game.moves.length, ply)) || 0, { quiet: true });
    this.told = -Infinity; // the first step is told at once
    document.addEventListener("keydown", event => this.#key(event));
  }

  #build() {
    const { t, game } = this,
      host = element("div", { class: "board-host" });
    const handicap = game.sfen.split(" ")[1] === "w" && game.sfen.endsWith(" 1");
    this.board = new Board(host, { t, handicap });
    const bar = (name, side, place) =>
      playerBar({ name: this.#nameOf(name), side, sideName: this.board.sideName(side[0]), place });
    this.bars = { white: bar(game.white, "white", "above"), black: bar(game.black, "black", "below") };
    this.banner = element("div", { class: "line-banner", hidden: true });
    const graph = element("section", { class: "card wide" }, element("h2", null, t("board.win rate of black")));
    this.graph = new ValueGraph(graph, { t, onChoose: ply => this.go(ply) });
    graph.append(this.#analysisRow());
    const moves = element("section", { class: "card" }, element("h2", null, t("play.moves")));
    this.list = new MoveList(moves, { label: t("play.moves"), onChoose: ply => this.go(ply) });
    moves.append(this.#links());
    const panel = { onLines: lines => this.#point(lines), onPlay: line => this.#playOut(line) };
    this.panel = new NetworkPanel(this.shell, game.id, panel);
    this.main.replaceChildren(
      element(
        "section",
        { class: "stage" },
        this.bars.white,
        host,
        this.bars.black,
        this.#controls(),
        this.banner,
        graph,
      ),
      element("aside", { class: "side" }, this.#summary(), moves, this.panel.node),
    );
  }

  // In records of the play page the person is called "you".
  #nameOf(player) {
    return this.game.kind === "table" && player === "you" ? this.t("play.you") : player;
  }

  #summary() {
    const { t, game, shell } = this,
      step = game.step === null ? [] : [t("replay.step", { step: game.step.toLocaleString(shell.lang) })];
    return element(
      "section",
      { class: "card summary" },
      element("h1", null, `${this.#nameOf(game.black)} – ${this.#nameOf(game.white)}`),
      element("p", null, t("replay.end", { plies: game.plies, outcome: game.text[shell.lang] })),
      element("p", { class: "dim" }, [t(`replay.kind ${game.kind}`), ...step].join(" · ")),
    );
  }

  #controls() {
    const button = (name, act) =>
      element(
        "button",
        { id: name, "aria-label": this.t(`replay.${name}`), title: this.t(`replay.${name}`), onclick: act },
        icon(ICONS[name]),
      );
    this.playButton = button("play", () => this.#autoplay(!this.playing));
    return element(
      "div",
      { class: "row controls", role: "group", "aria-label": this.t("replay.controls") },
      button("first", () => this.#step(-Infinity)),
      button("back", () => this.#step(-1)),
      this.playButton,
      button("forward", () => this.#step(1)),
      button("last", () => this.#step(Infinity)),
      button("turn", () => this.#turn()),
    );
  }

  #links() {
    const { t, game } = this;
    this.fromHere = element("a", { class: "button", id: "from-here" }, t("replay.play from here"));
    return element(
      "div",
      { class: "row save" },
      this.fromHere,
      ["kif", "csa"].map(format =>
        element(
          "a",
          { class: "button", href: `/api/games/${game.id}/record?format=${format}`, download: true },
          format.toUpperCase(),
        ),
      ),
    );
  }

  #analysisRow() {
    this.analyse = element("button", { id: "analyse", onclick: () => this.#analyse() }, this.t("replay.analyse"));
    this.progress = element("progress", {
      max: this.sfens.length,
      value: 0,
      hidden: true,
      "aria-label": this.t("replay.analysing"),
    });
    return element("div", { class: "row analysis" }, this.analyse, this.progress);
  }

  // Show the position after so many moves of the game; leaves a line that was being played out.
  go(ply, { quiet = false } = {}) {
    this.#leaveLine();
    if (ply === this.ply && !quiet) {
      this.#draw();
      this.#point(this.panel.lines);
      return;
    }
    this.ply = ply;
    this.#draw();
    this.#tellAddress();
    if (!quiet) announce(ply ? this.game.texts[this.shell.lang][ply - 1] : this.t("replay.start"));
    this.panel.show(this.#askable());
    if (ply === this.game.moves.length) this.#autoplay(false);
  }

  // A reload comes back to the position; while a key is held down, the address follows now and then.
  #tellAddress() {
    const left = this.told + ADDRESS_MS - performance.now();
    clearTimeout(this.telling);
    if (left > 0) this.telling = setTimeout(() => this.#tellAddress(), left);
    else {
      history.replaceState(null, "", `?ply=${this.ply}`);
      this.told = performance.now();
    }
  }

  #draw() {
    const { ply, game } = this,
      position = new Position(this.sfens[ply]);
    this.board.show(position, { last: game.moves[ply - 1] ?? null });
    this.#showList();
    this.graph.show({ percents: this.percents.length ? this.percents : game.moves.map(() => null).concat(null), ply });
    for (const side of ["black", "white"])
      this.bars[side].classList.toggle("to-move", position.turn === side[0] && ply < game.moves.length);
    this.fromHere.href = `/play?game=${game.id}&ply=${ply}`;
  }

  #showList() {
    const loss = points => this.t("replay.lost", { points: Math.round(points) });
    this.list.show({ texts: this.game.texts[this.shell.lang], ply: this.ply, losses: this.losses, notes: { loss } });
  }

  #step(by) {
    if (this.line) this.#goInLine(Math.max(0, Math.min(this.line.moves.length, this.line.at + by)));
    else this.go(Math.max(0, Math.min(this.game.moves.length, this.ply + by)));
  }

  #turn() {
    this.board.turn(!this.board.turned);
    const { black, white } = this.bars,
      host = this.board.host;
    host.before(this.board.turned ? black : white);
    host.after(this.board.turned ? white : black);
  }

  #autoplay(on) {
    clearInterval(this.playing);
    this.playing = on ? setInterval(() => this.#step(1), AUTOPLAY_MS) : null;
    this.playButton.replaceChildren(icon(ICONS[on ? "pause" : "play"]));
    this.playButton.setAttribute("aria-pressed", String(Boolean(on)));
    if (on && !this.line && this.ply === this.game.moves.length) this.go(0);
  }

  // What the network may be asked about: not a position where the game has ended by the rules.
  #askable() {
    const last = this.ply === this.game.moves.length;
    return last && FINAL.includes(this.game.reason) ? null : { ply: this.ply, turn: this.board.position.turn };
  }

  #point(lines) {
    if (!this.line) this.board.point(arrowsOf(lines, this.board.position.turn, this.t, 5));
  }

  // Play a line out on the board, from the position of the game that it belongs to.
  #playOut(line) {
    this.#autoplay(false);
    const moves = line.pv,
      texts = line.pv_texts[this.shell.lang];
    this.line = { moves, texts, sfens: sfensOf(this.sfens[this.ply], moves), at: 0 };
    this.#goInLine(1);
  }

  #goInLine(at) {
    const { line, t } = this,
      text = at ? line.texts[at - 1] : t("replay.line start");
    line.at = at;
    this.board.show(new Position(line.sfens[at]), {
      last: line.moves[at - 1] ?? this.game.moves[this.ply - 1] ?? null,
    });
    this.banner.hidden = false;
    this.banner.replaceChildren(
      element(
        "ol",
        { "aria-label": t("replay.line") },
        line.texts.map((move, i) =>
          element(
            "li",
            null,
            element(
              "button",
              { class: "plain", "aria-current": i + 1 === at && "step", onclick: () => this.#goInLine(i + 1) },
              move,
            ),
          ),
        ),
      ),
      element("button", { id: "back-to-game", onclick: () => this.go(this.ply) }, t("replay.back to game")),
    );
    announce(text);
    if (at === line.moves.length) this.#autoplay(false);
  }

  #leaveLine() {
    this.line = null;
    this.banner.hidden = true;
  }

  async #analyse() {
    tell(null);
    this.analyse.disabled = true;
    Object.assign(this.progress, { hidden: false, value: 0 });
    const end = message => {
      this.analysis?.close();
      this.analyse.disabled = false;
      this.progress.hidden = true;
      if (message) tell(message);
    };
    try {
      const { analysis } = await api(`/api/games/${this.game.id}/analysis`, this.panel.settings());
      this.analysis = new EventSource(`/api/analyses/${analysis}/events`);
    } catch (error) {
      end(error.message);
      return;
    }
    const known = percents => [...percents, ...Array(this.sfens.length - percents.length).fill(null)];
    const show = percents => {
      this.percents = known(percents);
      this.graph.show({ percents: this.percents });
    };
    this.analysis.addEventListener("progress", event => {
      const { done, black_percent } = JSON.parse(event.data);
      this.progress.value = done;
      show(black_percent);
    });
    this.analysis.addEventListener("done", event => {
      const { black_percent, losses } = JSON.parse(event.data);
      const told = losses.filter(({ loss }) => loss >= TOLD_LOSS);
      this.losses = new Map(told.map(({ ply, loss }) => [ply, loss]));
      show(black_percent);
      this.graph.show({ losses: told });
      this.#showList();
      end();
    });
    this.analysis.addEventListener("failed", event => end(JSON.parse(event.data).error));
    this.analysis.addEventListener("error", () => {
      if (this.analysis.readyState === EventSource.CLOSED) end(this.t("shell.no answer"));
    });
  }

  #key(event) {
    if (!isCommand(event)) return;
    const acts = {
      ArrowLeft: () => this.#step(-1),
      ArrowRight: () => this.#step(1),
      Home: () => this.#step(-Infinity),
      End: () => this.#step(Infinity),
      " ": () => this.#autoplay(!this.playing),
      r: () => this.#turn(),
      Escape: () => this.line && this.go(this.ply),
    };
    if (!acts[event.key]) return;
    acts[event.key]();
    event.preventDefault();
  }
}

const shell = await begin("replay"),
  main = document.getElementById("main");
try {
  new Replay(main, shell, await api(`/api/games/${location.pathname.split("/")[2]}`));
} catch (error) {
  main.replaceChildren(element("p", { class: "card" }, error.message));
  if (error.status === undefined) throw error;
}

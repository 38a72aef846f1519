// The board of the play and replay pages, in one SVG: wood, pieces, hands, marks, dots and arrows.
// It draws what it is shown and says which square or piece in hand was pressed; the rules are elsewhere (move_chooser.js).
// `at` is a square ("7g") or a piece in the hand of the side to move ("P*").
import { svg } from "/static/shell.js";
import { HAND_ORDER, RANKS, fromSquare, isDrop, isWhite, toSquare } from "/static/position.js";
import { SQUARE, pieceUse } from "/static/pieces.js";
import { moveArrows } from "/static/board_arrows.js";

const { width: W, height: H } = SQUARE;
const WIDTH = 9 * W,
  HEIGHT = 9 * H;
const NARROW = matchMedia("(max-width: 640px)");
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const MOVE_MS = 140;

// Where the hands stand: beside the board, or above and below it on a narrow screen. Each has room for seven kinds.
const LAYOUTS = {
  wide: {
    box: [-178, -46, WIDTH + 362, HEIGHT + 74],
    tray: [126, 7 * 98 + 12],
    slot: [126, 98],
    step: [0, 98],
    lower: [WIDTH + 52, HEIGHT - 7 * 98 + 8],
    upper: [-178 + 2, -42],
  },
  narrow: {
    box: [-28, -170, WIDTH + 70, HEIGHT + 322],
    tray: [WIDTH + 66, 118],
    slot: [138, 116],
    step: [138, 0],
    lower: [-26, HEIGHT + 32],
    upper: [-26, -168],
  },
};

export class Board {
  // Options: t (texts), onPress(at) if squares can be pressed, handicap (the sides are then called by other names).
  constructor(host, { t, onPress = null, handicap = false }) {
    Object.assign(this, { host, t, onPress, handicap, turned: false, position: null, last: null, check: false });
    Object.assign(this, { chosen: null, destinations: new Set(), movable: new Set(), arrows: [], current: null });
    NARROW.addEventListener("change", () => this.#build());
    // Not on the grid: Chromium makes a tab stop of whatever in an SVG listens for focus.
    host.addEventListener("focusin", event => this.#showCursor(event.target));
    host.addEventListener("focusout", () => this.cursor.setAttribute("visibility", "hidden"));
    this.#build();
  }

  // Draw a position: `last` is the USI move that led to it; a step forward slides the piece unless `still`.
  show(position, { last = null, check = false, still = false } = {}) {
    const forward = this.position && position.number === this.position.number + 1;
    Object.assign(this, { position, last, check, chosen: null, destinations: new Set(), arrows: [] });
    this.#draw();
    if (last && forward && !still && !STILL.matches) this.#slide(last);
  }

  // What a person may do: the pieces that can move, the one chosen and the squares it can go to.
  mark({ movable = this.movable, chosen = null, destinations = new Set() }) {
    Object.assign(this, { movable, chosen, destinations });
    this.#draw();
  }

  // Moves drawn as arrows, the first the strongest: [{ move, text }].
  point(arrows) {
    this.arrows = arrows;
    this.#drawArrows();
  }

  turn(turned) {
    if (turned === this.turned) return;
    this.turned = turned;
    this.#build();
  }

  // Put the keyboard's focus on a square, or on the one that had it last.
  focus(square = this.current) {
    if (!this.onPress) return;
    this.cells.get(this.current)?.setAttribute("tabindex", -1);
    this.current = square;
    this.cells.get(square).setAttribute("tabindex", 0);
    this.cells.get(square).focus();
  }

  // The square `columns` to the right and `rows` down of another one, as seen; the edge stops it.
  neighbour(square, columns, rows) {
    const sign = this.turned ? -1 : 1,
      within = (value, low, high) => Math.min(high, Math.max(low, value));
    const file = within(Number(square[0]) - sign * columns, 1, 9),
      rank = within(RANKS.indexOf(square[1]) + sign * rows, 0, 8);
    return `${file}${RANKS[rank]}`;
  }

  // The upper left corner of a square.
  place(square) {
    const x = 9 - Number(square[0]),
      y = RANKS.indexOf(square[1]);
    return this.turned ? [(8 - x) * W, (8 - y) * H] : [x * W, y * H];
  }

  rectangleOf(square) {
    return this.cells.get(square).getBoundingClientRect();
  }

  sideName(side) {
    return this.t(`board.${side === "b" ? "black" : "white"}${this.handicap ? " handicap" : ""}`);
  }

  #build() {
    this.layout = LAYOUTS[NARROW.matches ? "narrow" : "wide"];
    this.layers = Object.fromEntries(
      ["marks", "pieces", "hands", "dots", "arrows"].map(name => [name, svg("g", { class: `layer-${name}` })]),
    );
    for (const name of ["marks", "pieces", "dots", "arrows"]) this.layers[name].setAttribute("aria-hidden", "true");
    this.cursor = svg("rect", { class: "cursor", width: W - 8, height: H - 8, rx: 6, visibility: "hidden" });
    this.current ??= this.turned ? "5c" : "5g";
    const focused = this.host.contains(document.activeElement) && document.activeElement.dataset?.at;
    this.host.replaceChildren(
      svg(
        "svg",
        { class: "board large", viewBox: this.layout.box.join(" ") },
        this.#wood(),
        this.layers.marks,
        this.#lines(),
        this.layers.pieces,
        this.layers.dots,
        this.layers.arrows,
        this.#cells(),
        this.cursor,
        this.layers.hands,
      ),
    );
    if (this.position) this.#draw();
    if (focused && this.cells.has(focused)) this.focus(focused);
  }

  #wood() {
    const { t } = this,
      names = [];
    for (let i = 0; i < 9; i++) {
      const [x, y] = this.place(`${i + 1}${RANKS[i]}`);
      names.push(svg("text", { x: x + W / 2, y: -15 }, t("board.files").split(" ")[i]));
      names.push(svg("text", { x: WIDTH + 19, y: y + H / 2 + 9 }, t("board.ranks").split(" ")[i]));
    }
    return svg(
      "g",
      { "aria-hidden": "true" },
      svg(
        "linearGradient",
        { id: "board-wood", x1: 0, y1: 0, x2: 0.25, y2: 1 },
        svg("stop", { offset: 0, class: "board-light" }),
        svg("stop", { offset: 1, class: "board-dark" }),
      ),
      svg("rect", { class: "board-shadow", x: -22, y: -38, width: WIDTH + 64, height: HEIGHT + 64, rx: 9 }),
      svg("rect", {
        class: "wood",
        x: -26,
        y: -42,
        width: WIDTH + 66,
        height: HEIGHT + 64,
        rx: 9,
        fill: "url(#board-wood)",
      }),
      svg("g", { class: "coordinates", "text-anchor": "middle" }, names),
    );
  }

  #lines() {
    const lines = [1, 2, 3, 4, 5, 6, 7, 8].map(i => `M0 ${i * H}H${WIDTH}M${i * W} 0V${HEIGHT}`).join("");
    return svg(
      "g",
      { "aria-hidden": "true" },
      svg("path", { class: "lines", d: lines }),
      svg("rect", { class: "frame", width: WIDTH, height: HEIGHT }),
      [
        [3, 3],
        [6, 3],
        [3, 6],
        [6, 6],
      ].map(([x, y]) => svg("circle", { class: "star", cx: x * W, cy: y * H, r: 6.5 })),
    );
  }

  // The squares as screen readers and the mouse meet them: a grid whose one tab stop moves (a table if nothing can be pressed).
  #cells() {
    const pressable = Boolean(this.onPress),
      ranks = this.turned ? [...RANKS].reverse() : [...RANKS];
    this.cells = new Map();
    const rows = ranks.map(rank =>
      svg(
        "g",
        { role: "row" },
        Array.from({ length: 9 }, (_, i) => {
          const square = `${this.turned ? i + 1 : 9 - i}${rank}`,
            [x, y] = this.place(square);
          const cell = svg("rect", {
            class: "cell",
            role: pressable ? "gridcell" : "cell",
            x,
            y,
            width: W,
            height: H,
            "data-at": square,
            tabindex: pressable ? (square === this.current ? 0 : -1) : null,
            onclick: pressable && (() => this.onPress(square)),
          });
          this.cells.set(square, cell);
          return cell;
        }),
      ),
    );
    return svg("g", { role: pressable ? "grid" : "table", "aria-label": this.t("board.board") }, rows);
  }

  #showCursor(cell) {
    if (!this.cells.has(cell.dataset.at) || !cell.matches(":focus-visible")) return;
    const [x, y] = this.place(cell.dataset.at);
    for (const [name, value] of [
      ["x", x + 4],
      ["y", y + 4],
      ["visibility", "visible"],
    ])
      this.cursor.setAttribute(name, value);
  }

  #draw() {
    const { squares, turn } = this.position,
      checked = this.check ? this.position.king(turn) : null;
    const marks = [];
    const mark = (square, kind) => {
      const [x, y] = this.place(square);
      marks.push(svg("rect", { class: `mark ${kind}`, x, y, width: W, height: H }));
    };
    if (this.last) [fromSquare(this.last), toSquare(this.last)].filter(Boolean).forEach(square => mark(square, "last"));
    if (checked) mark(checked, "check");
    if (this.cells.has(this.chosen)) mark(this.chosen, "chosen");
    this.layers.marks.replaceChildren(...marks);
    this.uses = new Map(
      [...squares].map(([square, piece]) => [square, pieceUse(piece, ...this.place(square), this.turned)]),
    );
    this.layers.pieces.replaceChildren(...this.uses.values());
    this.layers.dots.replaceChildren(...[...this.destinations].map(square => this.#dot(square)));
    for (const [square, cell] of this.cells) {
      cell.setAttribute("aria-label", this.#label(square));
      cell.classList.toggle("pressable", this.movable.has(square) || this.destinations.has(square));
      if (this.onPress) cell.setAttribute("aria-selected", square === this.chosen);
    }
    this.#drawHands();
    this.#drawArrows();
  }

  #dot(square) {
    const [x, y] = this.place(square),
      taken = this.position.squares.has(square);
    return taken
      ? svg("rect", { class: "dot take", x: x + 5, y: y + 5, width: W - 10, height: H - 10, rx: 12, "data-to": square })
      : svg("circle", { class: "dot", cx: x + W / 2, cy: y + H / 2, r: 12.5, "data-to": square });
  }

  #label(square) {
    const { t } = this,
      piece = this.position.squares.get(square);
    const named = piece
      ? t("board.piece", {
          side: this.sideName(isWhite(piece) ? "w" : "b"),
          kind: t(`board.kind ${piece.toUpperCase()}`),
        })
      : t("board.empty");
    const states = [
      square === this.chosen && "board.chosen",
      this.destinations.has(square) && "board.legal",
      this.last && toSquare(this.last) === square && "board.last",
      this.check && square === this.position.king(this.position.turn) && "board.in check",
    ]
      .filter(Boolean)
      .map(key => t(key));
    const place = { file: square[0], rank: t("board.spoken ranks").split(" ")[RANKS.indexOf(square[1])], piece: named };
    return [t("board.square", place), ...states].join(t("board.comma"));
  }

  #drawHands() {
    const focused = this.layers.hands.contains(document.activeElement) ? document.activeElement.dataset.at : null;
    this.layers.hands.replaceChildren(...["w", "b"].map(side => this.#hand(side)));
    if (focused) (this.layers.hands.querySelector(`[data-at="${focused}"]`) ?? this.cells.get(this.current)).focus();
  }

  #hand(side) {
    const below = (side === "b") !== this.turned,
      { tray, step, lower, upper } = this.layout,
      hand = this.position.hands[side];
    const held = [...HAND_ORDER].filter(letter => hand[letter]),
      skipped = step[1] ? 7 - held.length : 0;
    const label = [
      this.t("board.hand", { side: this.sideName(side) }),
      ...(held.length ? [] : [this.t("board.nothing")]),
    ].join(this.t("board.comma"));
    return svg(
      "g",
      { class: "hand", role: "group", "aria-label": label, transform: `translate(${below ? lower : upper})` },
      svg("rect", { class: "tray", width: tray[0], height: tray[1], rx: 10 }),
      held.map((letter, i) => {
        // the upper hand is seen from across the board
        const number = below ? i + skipped : 6 - i - skipped;
        return this.#held(
          side,
          letter,
          hand[letter],
          step.map(size => number * size),
        );
      }),
    );
  }

  #held(side, letter, count, [x, y]) {
    const [width, height] = this.layout.slot;
    const at = `${letter}*`,
      mine = this.onPress && side === this.position.turn && this.movable.has(at),
      chosen = mine && at === this.chosen;
    const label = this.t("board.held", { kind: this.t(`board.kind ${letter}`), count });
    return svg(
      "g",
      {
        class: `held${mine ? " pressable" : ""}${chosen ? " chosen" : ""}`,
        transform: `translate(${x} ${y})`,
        "data-at": mine ? at : null,
        role: mine ? "button" : "img",
        "aria-label": label,
        "aria-pressed": mine ? String(chosen) : null,
        tabindex: mine ? 0 : null,
        onclick: mine && (() => this.onPress(at)),
      },
      svg("rect", { class: "slot", x: 2, width: width - 4, height: height - 2, rx: 8 }),
      pieceUse(side === "b" ? letter : letter.toLowerCase(), width / 2 - W / 2 - 6, (height - H) / 2, this.turned),
      count > 1 &&
        svg(
          "text",
          { class: "count", x: width - 24, y: height - 12, "text-anchor": "middle", "aria-hidden": "true" },
          count,
        ),
    );
  }

  #drawArrows() {
    this.layers.arrows.replaceChildren(...moveArrows(this, this.arrows));
  }

  // The piece is drawn where it went; let it come from where it was (from its owner's hand if it was dropped).
  #slide(move) {
    const to = toSquare(move),
      use = this.uses.get(to),
      [x, y] = this.place(to);
    if (!use) return;
    const below = (this.position.turn === "w") !== this.turned,
      { lower, upper, tray } = this.layout;
    const hand = (below ? lower : upper).map((corner, i) => corner + (tray[i] - (i ? H : W)) / 2);
    const [fromX, fromY] = isDrop(move) ? hand : this.place(fromSquare(move));
    this.layers.pieces.append(use); // above the others on its way
    use.animate([{ transform: `translate(${fromX - x}px, ${fromY - y}px)` }, { transform: "none" }], {
      duration: MOVE_MS,
      easing: "ease-out",
    });
  }
}

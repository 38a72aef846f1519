// A small board that is only looked at; it is drawn anew only when what it shows changes.
import { svg } from "/static/shell.js";
import { HAND_ORDER, Position, RANKS, fromSquare, toSquare } from "/static/position.js";
import { SQUARE, pieceUse } from "/static/pieces.js";

const { width: W, height: H } = SQUARE;
const LINES = Array.from({ length: 10 }, (_, i) => `M0 ${i * H}H${9 * W}M${i * W} 0V${9 * H}`).join("");
const place = square => [(9 - Number(square[0])) * W, RANKS.indexOf(square[1]) * H];

export class MiniBoard {
  // `label` is what screen readers say of the picture.
  constructor(element, { label }) {
    this.marks = svg("g");
    this.pieces = svg("g");
    this.picture = svg(
      "svg",
      { class: "board mini", viewBox: `-118 -8 ${9 * W + 236} ${9 * H + 16}`, role: "img", "aria-label": label },
      svg("rect", { class: "wood", x: -8, y: -8, width: 9 * W + 16, height: 9 * H + 16, rx: 6 }),
      this.marks,
      svg("path", { class: "lines", d: LINES }),
      this.pieces,
    );
    element.append(this.picture);
  }

  // `last` is the USI move that led here, or null.
  show({ sfen, last = null }) {
    if (sfen === this.sfen && last === this.last) return;
    Object.assign(this, { sfen, last });
    const { squares, hands } = new Position(sfen);
    const marked = last ? [fromSquare(last), toSquare(last)].filter(Boolean) : [];
    this.marks.replaceChildren(
      ...marked.map(square => {
        const [x, y] = place(square);
        return svg("rect", { class: "mark last", x, y, width: W, height: H });
      }),
    );
    this.pieces.replaceChildren(
      ...[...squares].map(([square, piece]) => pieceUse(piece, ...place(square))),
      ...this.#hand(hands.b, false),
      ...this.#hand(hands.w, true),
    );
  }

  #hand(hand, white) {
    return [...HAND_ORDER]
      .filter(letter => hand[letter])
      .flatMap((letter, i) => {
        const x = white ? -112 : 9 * W + 12,
          y = white ? i * H : (8 - i) * H;
        const use = pieceUse(white ? letter.toLowerCase() : letter, x, y);
        return hand[letter] > 1
          ? [use, svg("text", { class: "count", x: x + 82, y: y + H - 4, "text-anchor": "middle" }, hand[letter])]
          : [use];
      });
  }
}

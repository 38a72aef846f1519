// A shogi position: reads SFEN, plays USI moves, writes SFEN back. It trusts the moves: the server has the rules.
// Squares are named as in USI ("7g"), pieces as in SFEN ("P" Black's, "+p" White's promoted pawn), sides "b" and "w".

export const RANKS = "abcdefghi";
export const HAND_ORDER = "RBGSNLP";
export const START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1";

export const isWhite = piece => piece !== piece.toUpperCase();
export const isDrop = move => move[1] === "*";
export const fromSquare = move => (isDrop(move) ? null : move.slice(0, 2));
export const toSquare = move => move.slice(2, 4);
export const promotes = move => move.endsWith("+");

export class Position {
  constructor(sfen = START) {
    const [rows, turn, hands, number] = sfen.split(" ");
    this.squares = new Map();
    this.turn = turn;
    this.number = Number(number ?? 1);
    this.hands = { b: {}, w: {} };
    rows.split("/").forEach((row, y) => {
      let file = 9;
      for (const [token] of row.matchAll(/\d|\+?[A-Za-z]/g)) {
        if (/\d/.test(token)) file -= Number(token);
        else this.squares.set(`${file--}${RANKS[y]}`, token);
      }
    });
    for (const [, count, letter] of hands.matchAll(/(\d*)([A-Za-z])/g))
      this.hands[isWhite(letter) ? "w" : "b"][letter.toUpperCase()] = Number(count || 1);
  }

  // Play a USI move ("7g7f", "8h2b+", "P*5e") for the side to move; return this.
  play(move) {
    const hand = this.hands[this.turn],
      to = toSquare(move);
    let piece;
    if (isDrop(move)) {
      if (!hand[move[0]]) throw new Error(`no ${move[0]} in hand for ${move} in ${this.sfen()}`);
      hand[move[0]] -= 1;
      piece = this.turn === "b" ? move[0] : move[0].toLowerCase();
    } else {
      piece = this.squares.get(fromSquare(move));
      if (!piece) throw new Error(`no piece to move for ${move} in ${this.sfen()}`);
      const taken = this.squares.get(to)?.at(-1).toUpperCase(); // a promoted piece is taken as what it was
      if (taken) hand[taken] = (hand[taken] ?? 0) + 1;
      this.squares.delete(fromSquare(move));
    }
    this.squares.set(to, promotes(move) ? `+${piece}` : piece);
    this.turn = this.turn === "b" ? "w" : "b";
    this.number += 1;
    return this;
  }

  king(side) {
    const king = side === "b" ? "K" : "k";
    for (const [square, piece] of this.squares) if (piece === king) return square;
    return null;
  }

  sfen() {
    return [this.#rows(), this.turn, this.#hands() || "-", this.number].join(" ");
  }

  #rows() {
    return [...RANKS]
      .map(rank => {
        let row = "",
          empty = 0;
        for (let file = 9; file >= 1; file--) {
          const piece = this.squares.get(`${file}${rank}`);
          if (!piece) {
            empty += 1;
            continue;
          }
          row += (empty || "") + piece;
          empty = 0;
        }
        return row + (empty || "");
      })
      .join("/");
  }

  #hands() {
    const held = (side, name) =>
      [...HAND_ORDER]
        .filter(letter => this.hands[side][letter])
        .map(letter => (this.hands[side][letter] > 1 ? this.hands[side][letter] : "") + name(letter))
        .join("");
    return held("b", letter => letter) + held("w", letter => letter.toLowerCase());
  }
}

// The positions of a game: the start and after every move, as SFENs.
export function sfensOf(start, moves) {
  const position = new Position(start);
  return [position.sfen(), ...moves.map(move => position.play(move).sfen())];
}

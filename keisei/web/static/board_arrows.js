// Moves as arrows on a board: the best boldest, each with a few characters; a drop is a faint piece in a dashed frame.
import { svg } from "/static/shell.js";
import { fromSquare, isDrop, toSquare } from "/static/position.js";
import { SQUARE, pieceUse } from "/static/pieces.js";

const { width: W, height: H } = SQUARE;

// The best is drawn last, above the others. Of a move with and without promotion only the better one is drawn.
export function moveArrows(board, arrows) {
  const ways = arrows.map(({ move }) => move.slice(0, 4)),
    goals = arrows.map(({ move }) => toSquare(move));
  return arrows
    .map((arrow, rank) =>
      ways.indexOf(ways[rank]) < rank ? null : moveArrow(board, arrow, rank, goals.indexOf(goals[rank]) < rank),
    )
    .filter(Boolean)
    .reverse();
}

// `crowded`: a better move's text is already at the square that this one goes to.
function moveArrow(board, { move, text }, rank, crowded) {
  const drawn = isDrop(move) ? droppedPiece(board, move) : shaft(board, move, rank);
  const place = isDrop(move) ? lowerPart : crowded ? halfWay : beyondPoint;
  const label = text ? pill(text, ...place(board, move)) : [];
  return svg("g", { class: `arrow rank-${Math.min(rank, 3)}`, "data-move": move }, drawn, label);
}

const middle = (board, square) => board.place(square).map((corner, i) => corner + (i ? H : W) / 2);

function droppedPiece(board, move) {
  const piece = board.position.turn === "b" ? move[0] : move[0].toLowerCase(),
    [x, y] = board.place(toSquare(move));
  const frame = svg("rect", { class: "drop", x: x + 6, y: y + 6, width: W - 12, height: H - 12, rx: 12 });
  return [pieceUse(piece, x, y, board.turned), frame];
}

// Drawn along the x-axis, then turned to where it points.
function shaft(board, move, rank) {
  const [x1, y1] = middle(board, fromSquare(move)),
    [x2, y2] = middle(board, toSquare(move));
  const half = 8.5 - 1.5 * Math.min(rank, 3),
    wing = half + 13,
    tail = half * 0.6;
  const end = Math.hypot(x2 - x1, y2 - y1) - 6,
    neck = end - 34,
    barb = neck - 5;
  const outline = `M18 ${-tail}L${neck} ${-half}L${barb} ${-wing}L${end} 0L${barb} ${wing}L${neck} ${half}L18 ${tail}Z`;
  const degrees = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  return svg("path", { class: "shaft", transform: `translate(${x1} ${y1}) rotate(${degrees})`, d: outline });
}

function lowerPart(board, move) {
  const [x, y] = middle(board, toSquare(move));
  return [x, y + 34];
}

function halfWay(board, move) {
  const [x1, y1] = middle(board, fromSquare(move)),
    [x2, y2] = middle(board, toSquare(move));
  return [(x1 + x2) / 2, (y1 + y2) / 2];
}

function beyondPoint(board, move) {
  const [x1, y1] = middle(board, fromSquare(move)),
    [x2, y2] = middle(board, toSquare(move)),
    length = Math.hypot(x2 - x1, y2 - y1);
  return [x2 + ((x2 - x1) / length) * 20, y2 + ((y2 - y1) / length) * 20];
}

function pill(text, x, y) {
  const width = 24 + [...text].reduce((sum, letter) => sum + (letter > "\u2fff" ? 23 : 13), 0); // kanji are wider
  return [
    svg("rect", { class: "pill", x: x - width / 2, y: y - 17, width, height: 34, rx: 17 }),
    svg("text", { class: "share", x, y: y + 8.5, "text-anchor": "middle" }, text),
  ];
}

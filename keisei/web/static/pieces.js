// The pieces: wooden bodies and faces drawn as brush strokes, so that no font is needed to read a board.
// `pieceUse` places one by <use>; every piece has a kanji and a letter, and the style sheet shows one of them.
import { svg } from "/static/shell.js";
import { isWhite } from "/static/position.js";

// A square of the board in the drawing's units; squares are a little taller than wide, as on a real board.
export const SQUARE = { width: 100, height: 108 };

// Strokes in a box of 100 by 100: a brush, then the points that the stroke runs through.
// Brushes: h horizontal, v vertical, c even, l sweep that thins out, r sweep that swells, d dot, k hook.
const KANJI = {
  K: ["h15,13 85,13", "h22,50 78,50", "h7,90 93,90", "v50,13 50,90", "d64,62 73,69 80,78"], // 玉
  k: ["h15,13 85,13", "h22,50 78,50", "h7,90 93,90", "v50,13 50,90"], // 王
  R: ["h6,9 60,9", "c60,9 64,33 78,47 90,46", "k90,46 94,41 95,32", "l88,10 80,17 69,22", "d71,22 82,29 89,37",
    "l44,19 31,27 12,32", "h3,54 64,54", "l26,30 25,66 7,97", "v46,24 46,97", "c64,54 67,74 80,92 91,91", "k91,91 96,86 97,76",
    "l91,54 84,61 73,66", "d75,66 85,72 92,80"], // 飛
  B: ["l38,2 30,17 12,31", "h35,13 66,13", "l66,13 60,23 52,30", "h25,31 79,31", "l25,31 24,70 8,97", "v79,31 79,91",
    "k79,91 76,96 63,94", "h25,50 79,50", "h25,69 79,69", "v52,31 52,69"], // 角
  G: ["l50,4 33,30 5,47", "r50,5 67,29 95,45", "h29,45 71,45", "h15,64 85,64", "v50,45 50,92", "d25,71 30,78 33,86",
    "l77,70 72,79 66,86", "h6,93 94,93"], // 金
  S: ["l24,3 17,20 2,35", "r25,5 34,18 47,28", "h12,38 38,38", "h5,56 44,56", "v25,38 25,90", "d9,65 13,72 15,80",
    "l41,64 38,73 34,80", "h2,94 46,90", "h57,8 88,8", "v88,8 88,46", "h57,27 88,27", "h57,46 88,46", "v57,8 57,91",
    "k55,93 64,89 74,82", "l95,55 87,63 75,69", "r67,47 76,72 98,93"], // 銀
  N: ["h3,27 43,27", "v24,3 24,97", "l23,31 16,50 2,66", "d27,40 35,48 43,59", "h53,20 94,20", "v73,3 73,44", "h47,44 98,44",
    "h53,68 94,68", "v73,50 73,93", "h45,94 99,94"], // 桂
  L: ["l76,3 54,11 22,14", "h6,29 94,29", "v50,12 50,55", "l47,31 32,46 5,57", "r53,31 68,45 95,55", "v27,62 27,98", "h27,63 73,63",
    "v73,63 73,98", "h27,79 73,79", "h27,95 73,95"], // 香
  P: ["v50,3 50,40", "h50,20 82,20", "v25,15 25,40", "h5,41 95,41", "v50,50 50,78", "k50,78 47,83 37,80", "l30,54 25,66 12,78",
    "d68,53 78,60 86,70", "l85,67 66,88 14,97"], // 歩
  "+R": ["v50,2 50,14", "h15,15 85,15", "d31,20 35,26 38,34", "l69,19 66,27 61,34", "h5,37 95,37", "v24,48 24,80", "h24,49 76,49",
    "v76,49 76,80", "h24,64 76,64", "h24,79 76,79", "v50,49 50,86", "c50,86 54,95 66,95 88,94", "k88,94 93,92 93,80"], // 竜
  "+B": ["v22,6 22,62", "h22,8 84,8", "h22,26 78,26", "h22,44 78,44", "v51,8 51,62", "h22,62 87,62", "c87,62 86,80 82,92", "k82,92 77,97 66,94",
    "l15,70 12,84 5,95", "d31,71 35,80 36,89", "d48,70 53,78 55,86", "d64,69 69,75 72,82"], // 馬
  "+S": ["l50,4 33,31 5,49", "r50,5 67,30 95,47", "h26,48 74,48", "h27,69 73,69", "h8,93 92,93", "v50,48 50,93"], // 全
  "+N": ["h17,20 83,20", "v50,3 50,44", "h6,44 94,44", "h17,68 83,68", "v50,50 50,93", "h4,94 96,94"], // 圭
  "+L": ["h7,21 93,21", "v50,2 50,56", "l47,24 33,43 5,56", "r53,24 67,42 95,54", "v27,63 27,98", "h27,65 73,65", "v73,65 73,98",
    "h27,93 73,93"], // 杏
  "+P": ["d33,6 37,26 44,44", "c82,28 50,42 25,62", "c25,62 18,78 34,91 84,89"], // と
};

// Half the width of a brush at the start, in the middle and at the end of its stroke, for a weight of 1.
const BRUSHES = { h: [4.1, 3.6, 4.3], v: [5.2, 4.6, 4.8], c: [4.8, 4.6, 4.8], l: [5, 4.4, 1.6], r: [2.4, 4.4, 5.4], d: [2.8, 4.6, 5.6], k: [4.8, 3.6, 1.2] };
const WEIGHTS = { S: 0.86, R: 0.86, L: 0.94, "+R": 0.9, N: 0.94, "+B": 0.92, K: 1.14, k: 1.14, "+P": 1.3, "+S": 1.06 };

// Bodies: width and height; the more a piece is worth the larger it is, as carved.
const BODIES = { K: [89, 98], R: [86, 95], B: [86, 95], G: [83, 92], S: [83, 92], N: [79, 89], L: [76, 89], P: [73, 86] };

// All 15 faces pointing up and down, drawn once for a page; put there by the first `pieceUse`.
let drawn = false;
function draw() {
  const symbols = Object.keys(KANJI).flatMap(face => [false, true].map(down => pieceGroup(face, down)));
  document.body.append(svg("svg", { class: "unseen", "aria-hidden": "true", width: 0, height: 0 }, svg("defs", null, gradients(), symbols)));
  drawn = true;
}

// Light falls from above, also upon a piece that points down.
function gradients() {
  return [false, true].map(down => svg("linearGradient", { id: `wood-${down ? "down" : "up"}`, x1: 0, y1: down ? 1 : 0, x2: 0.35, y2: down ? 0 : 1 },
    svg("stop", { offset: 0, class: "wood-light" }), svg("stop", { offset: 1, class: "wood-dark" })));
}

const symbolName = (face, down) => `piece-${face.replace("+", "pro-").replace("k", "k2")}-${down ? "down" : "up"}`;

// A piece ("P", "+r") in the square whose upper left corner is x, y; `turned` is the board seen from White's side.
export function pieceUse(piece, x, y, turned = false) {
  if (!drawn) draw();
  const kind = piece.toUpperCase(), face = piece === "k" ? "k" : kind;
  return svg("use", { href: `#${symbolName(face, isWhite(piece) !== turned)}`, x, y });
}

// The piece alone in an <svg> of its own, for buttons.
export function pieceIcon(piece, turned = false) {
  return svg("svg", { class: "piece-icon", viewBox: `0 0 ${SQUARE.width} ${SQUARE.height}`, "aria-hidden": "true" }, pieceUse(piece, 0, 0, turned));
}

function pieceGroup(face, down) {
  const kind = face.toUpperCase().at(-1), [width, height] = BODIES[kind], body = bodyOutline(width, height);
  const centre = `translate(${SQUARE.width / 2} ${SQUARE.height / 2 + 0.5})`, scale = width / 100;
  const letter = face.toUpperCase();
  return svg("g", { id: symbolName(face, down), class: face[0] === "+" ? "piece promoted" : "piece" },
    svg("path", { class: "shadow", d: body, transform: `${centre} translate(1.8 3.4)${down ? " rotate(180)" : ""}` }),
    svg("g", { transform: `${centre}${down ? " rotate(180)" : ""}` },
      svg("path", { class: "body", d: body, fill: `url(#wood-${down ? "down" : "up"})` }),
      svg("path", { class: "face kanji", d: faceOutline(face), transform: `translate(${-32.5 * scale} ${-30 * scale}) scale(${0.65 * scale} ${0.76 * scale})` }),
      svg("text", { class: "face letters", x: 0, y: 25 * scale, "font-size": (letter.length > 1 ? 46 : 58) * scale, "text-anchor": "middle" }, letter)));
}

// A wedge with the point up, its middle at 0, 0.
function bodyOutline(width, height) {
  const top = -height / 2, shoulder = top + 0.2 * height, half = width / 2;
  return `M0 ${top}L${0.36 * width} ${shoulder}L${half} ${height / 2}H${-half}L${-0.36 * width} ${shoulder}Z`;
}

function faceOutline(face) {
  return KANJI[face].map(stroke => strokeOutline(stroke, WEIGHTS[face] ?? 1)).join("");
}

// The outline of one stroke: the brush's width to both sides of a smooth line, round at its ends.
function strokeOutline(stroke, weight) {
  const points = stroke.slice(1).split(" ").map(point => point.split(",").map(Number)), brush = BRUSHES[stroke[0]];
  const line = smooth(points), left = [], right = [];
  line.forEach(([x, y, angle], i) => {
    const half = weight * between(brush, i / (line.length - 1)), last = line.length - 1;
    const ends = i === 0 ? [180, 150, 120] : i === last ? [60, 30, 0] : [];
    for (const turn of i === last ? [90, ...ends] : [...ends, 90]) {
      const across = turn * Math.PI / 180, along = 0.6 * half * Math.cos(across), aside = half * Math.sin(across);
      left.push([x + along * Math.cos(angle) - aside * Math.sin(angle), y + along * Math.sin(angle) + aside * Math.cos(angle)]);
      right.push([x + along * Math.cos(angle) + aside * Math.sin(angle), y + along * Math.sin(angle) - aside * Math.cos(angle)]);
    }
  });
  return `M${[...left, ...right.reverse()].map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
}

// Points on a Catmull-Rom curve through `points`, each with the direction there.
function smooth(points) {
  const at = i => points[Math.max(0, Math.min(points.length - 1, i))], places = [];
  const steps = points.length === 2 ? 2 : 8;
  for (let i = 0; i < points.length - 1; i++)
    for (let step = i ? 1 : 0; step <= steps; step++) places.push(curve(at(i - 1), at(i), at(i + 1), at(i + 2), step / steps));
  return places.map(([x, y], i) => {
    const [before, after] = [places[Math.max(0, i - 1)], places[Math.min(places.length - 1, i + 1)]];
    return [x, y, Math.atan2(after[1] - before[1], after[0] - before[0])];
  });
}

function curve(p0, p1, p2, p3, s) {
  return [0, 1].map(k => 0.5 * (2 * p1[k] + (p2[k] - p0[k]) * s + (2 * p0[k] - 5 * p1[k] + 4 * p2[k] - p3[k]) * s ** 2 +
    (3 * p1[k] - p0[k] - 3 * p2[k] + p3[k]) * s ** 3));
}

const between = ([start, middle, end], part) =>
  part < 0.5 ? start + (middle - start) * part * 2 : middle + (end - middle) * (part * 2 - 1);

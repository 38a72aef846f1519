// Paints a chart on a canvas: grid, bands, lines, points, the crosshair and what is being selected.
// In: layers { xs, low, line, high, points, color, dash } in the chart's units. Out: pixels, and the `Frame`
// that converts between both. It keeps nothing and knows nothing of runs.

import { ticks, timeTicks } from "./numbers.js";

const TOP = 8, RIGHT = 10, BOTTOM = 20, LABEL_GAP = 6, BAND_ALPHA = 0.2, OUTLINE_ALPHA = 0.35;

// The place of the data on the canvas, in CSS pixels.
export class Frame {
  constructor(left, width, height, x, y) {
    Object.assign(this, { left, right: Math.max(width - RIGHT, left + 1), top: TOP, bottom: Math.max(height - BOTTOM, TOP + 1), x, y });
  }

  toX(x) {
    return this.left + (x - this.x[0]) / (this.x[1] - this.x[0]) * (this.right - this.left);
  }

  toY(y) {
    return this.bottom - (y - this.y[0]) / (this.y[1] - this.y[0]) * (this.bottom - this.top);
  }

  fromX(pixel) {
    return this.x[0] + (pixel - this.left) / (this.right - this.left) * (this.x[1] - this.x[0]);
  }
}

// Paints all of it and returns the frame. `x`, `y`: [least, greatest]; `xText`, `yText`: values as texts;
// `at`: the crosshair's x or null, `atText`: as a text; `selection`: [x, x] or null; `colors`: { ink, dim, grid, accent, card, font }.
export function paint(canvas, { layers, x, y, xUnit, xText, yText, at, atText, selection, colors }) {
  const context = prepared(canvas), width = canvas.clientWidth, height = canvas.clientHeight;
  context.font = colors.font;
  const rows = ticks(...y, Math.max(Math.round((height - TOP - BOTTOM) / 40), 2));
  const left = Math.ceil(Math.max(...rows.map(row => context.measureText(yText(row)).width))) + LABEL_GAP + 2;
  const frame = new Frame(left, width, height, x, y);
  grid(context, frame, { rows, xUnit, xText, yText, colors });
  context.save();
  context.beginPath();
  context.rect(frame.left, 0, frame.right - frame.left + RIGHT / 2, frame.bottom + 1);
  context.clip();
  for (const layer of layers) band(context, frame, layer);
  for (const layer of layers) line(context, frame, layer);
  context.restore();
  if (selection) selected(context, frame, selection, colors);
  if (at !== null) crosshair(context, frame, layers, at, atText, colors);
  return frame;
}

// The canvas in the screen's own pixels, cleared.
function prepared(canvas) {
  const scale = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  context.lineJoin = "round";
  return context;
}

function grid(context, frame, { rows, xUnit, xText, yText, colors }) {
  context.strokeStyle = colors.grid;
  context.fillStyle = colors.dim;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.beginPath();
  for (const row of rows) {
    const at = Math.round(frame.toY(row)) + 0.5;
    context.moveTo(frame.left, at);
    context.lineTo(frame.right, at);
    context.fillText(yText(row), frame.left - LABEL_GAP, at);
  }
  context.stroke();
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const marks = (xUnit === "time" ? timeTicks : ticks)(...frame.x, Math.max((frame.right - frame.left) / 75, 2));
  let free = -Infinity; // the first pixel without a label
  for (const mark of marks) {
    const text = xText(mark), half = context.measureText(text).width / 2;
    const at = Math.min(Math.max(frame.toX(mark), frame.left + half - LABEL_GAP), frame.right + RIGHT - half);
    if (at - half < free) continue;
    context.fillText(text, at, frame.bottom + 15);
    free = at + half + LABEL_GAP;
  }
}

function band(context, frame, { xs, low, high, color }) {
  if (!low) return;
  const known = inSight(xs, frame).filter(i => low[i] !== null && high[i] !== null);
  if (known.length < 2) return;
  context.beginPath();
  for (const i of known) context.lineTo(frame.toX(xs[i]), frame.toY(high[i]));
  for (const i of known.reverse()) context.lineTo(frame.toX(xs[i]), frame.toY(low[i]));
  context.globalAlpha = BAND_ALPHA;
  context.fillStyle = color;
  context.fill();
  context.globalAlpha = OUTLINE_ALPHA; // a band without height, of single updates, is still seen
  context.strokeStyle = color;
  context.lineWidth = 0.75;
  context.stroke();
  context.globalAlpha = 1;
}

function line(context, frame, { xs, line: values, points, color, dash }) {
  const known = inSight(xs, frame).filter(i => values[i] !== null);
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 1.75;
  context.setLineDash(dash ?? []);
  context.beginPath();
  for (const i of known) context.lineTo(frame.toX(xs[i]), frame.toY(values[i]));
  context.stroke();
  context.setLineDash([]);
  const dots = points && known.length <= 60 ? known : known.length === 1 ? known : known.slice(-1);
  for (const i of dots) dot(context, frame.toX(xs[i]), frame.toY(values[i]), points ? 2.75 : 2.5);
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

// The entries within the frame, and one on either side for the lines that leave it.
function inSight(xs, frame) {
  let begin = xs.findIndex(x => x >= frame.x[0]), end = xs.findIndex(x => x > frame.x[1]);
  if (begin === -1) begin = xs.length;
  if (end === -1) end = xs.length;
  const found = [];
  for (let i = Math.max(begin - 1, 0); i < Math.min(end + 1, xs.length); i++) found.push(i);
  return found;
}

function selected(context, frame, [from, to], { accent }) {
  const [left, right] = [from, to].map(x => frame.toX(x)).sort((a, b) => a - b);
  context.globalAlpha = 0.15;
  context.fillStyle = accent;
  context.fillRect(left, frame.top, right - left, frame.bottom - frame.top);
  context.globalAlpha = 1;
}

function crosshair(context, frame, layers, at, text, { dim, card, ink }) {
  const x = Math.round(frame.toX(at)) + 0.5;
  if (x < frame.left - 1 || x > frame.right + 1) return;
  context.strokeStyle = dim;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, frame.top);
  context.lineTo(x, frame.bottom);
  context.stroke();
  for (const layer of layers) {
    const i = nearest(layer, at);
    if (i === null || layer.xs[i] < frame.x[0] || layer.xs[i] > frame.x[1]) continue;
    context.fillStyle = card;
    dot(context, frame.toX(layer.xs[i]), frame.toY(layer.line[i]), 4.5);
    context.fillStyle = layer.color;
    dot(context, frame.toX(layer.xs[i]), frame.toY(layer.line[i]), 3);
  }
  const half = context.measureText(text).width / 2 + LABEL_GAP; // its x, over the marks of the axis
  const middle = Math.min(Math.max(x, half), frame.right + RIGHT - half);
  context.fillStyle = ink;
  context.fillRect(middle - half, frame.bottom + 3, 2 * half, BOTTOM - 4);
  context.fillStyle = card;
  context.textAlign = "center";
  context.fillText(text, middle, frame.bottom + 15);
}

// The entry of a layer nearest to an x that has a value, or null; there is none after the end of the layer's run.
export function nearest({ xs, line: values, end }, at) {
  if (at > end && at !== Infinity) return null;
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < at) low = middle + 1;
    else high = middle;
  }
  let before = low - 1, after = low;
  while (before >= 0 && values[before] === null) before--;
  while (after < xs.length && values[after] === null) after++;
  if (before < 0 && after >= xs.length) return null;
  if (before < 0) return after;
  return after < xs.length && xs[after] - at < at - xs[before] ? after : before;
}

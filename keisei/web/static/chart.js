// One chart: title, legend with values, canvas. It shows the curves of a group's runs and hands mouse,
// touch and key events to the group, so that all charts have the same stretch and crosshair.
//
// spec: { title, curves: [{ label, name | part and whole, interval? }], kind, bounds? }. A curve is a metric, or a
// ratio of two; `interval` names the metrics of its lower and upper end; `kind` is that of Numbers.of; bounds:
// [least, greatest] that are always in sight, null where the data decide.

import { colorNumber } from "./chart_group.js";
import { nearest, paint } from "./chart_paint.js";
import { showTable } from "./chart_table.js";
import { element, icon, svg } from "./shell.js";

const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3]], CLICK_PIXELS = 5, LABEL_MS = 5000, PAD = 0.06;
const TABLE_ICON = "M3 4h18v16H3zM5 6v3h14V6zM5 11v3h6v-3zM13 11v3h6v-3zM5 16v2h6v-2zM13 16v2h6v-2z";

export class Chart {
  constructor(group, spec) {
    Object.assign(this, { group, spec, hidden: new Set(), visible: false, stale: true, layers: [], frame: null, selection: null });
    const t = group.t;
    this.yText = group.numbers.of(spec.kind);
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-roledescription": t("live.chart"), "aria-label": spec.title });
    this.legend = element("div", { class: "legend" });
    this.empty = element("p", { class: "empty" }, t("live.no data"));
    const table = element("button", { class: "plain", title: t("live.table"), "aria-label": t("live.table of", { title: spec.title }),
      onclick: () => showTable(this) }, icon(TABLE_ICON));
    const alone = spec.curves.length === 1; // then its value stands beside the title
    this.element = element("section", { class: "card chart", "aria-label": spec.title },
      element("header", null, element("h3", null, spec.title), alone && this.legend, table),
      !alone && this.legend, element("div", { class: "canvas" }, this.canvas, this.empty));
    this.#listen();
    group.add(this);
  }

  setVisible(visible) {
    this.visible = visible;
    if (visible) this.group.repaint();
  }

  get hasData() {
    return this.spec.curves.some(curve => this.group.runs.some(({ series }) => series.has(curve)));
  }

  // Brings the lines up to date, which those of a chart out of sight are not.
  refresh() {
    if (this.stale) this.#refresh();
  }

  draw() {
    this.refresh();
    const { group } = this;
    this.empty.hidden = this.layers.length > 0;
    const x = group.range[0] < group.range[1] ? group.range : [group.range[0] - 1, group.range[1] + 1];
    this.frame = paint(this.canvas, {
      layers: this.layers, x, y: this.#yRange(x), xUnit: group.unit, xText: value => group.xText(value), yText: this.yText,
      at: this.layers.length ? group.at : null, atText: group.at === null ? "" : group.xText(group.at, true), selection: this.selection, colors: group.colors,
    });
    this.#showValues();
  }

  // The values of all curves at the crosshair, else the last ones: [{ label, values: [{ text, run }] }].
  readings() {
    return this.spec.curves.map((curve, k) => ({
      curve, k,
      values: this.layers.filter(layer => layer.curve === curve).map(layer => {
        const i = nearest(layer, this.group.at ?? Infinity);
        const text = i === null ? "–" : this.yText(layer.line[i]);
        const interval = i !== null && layer.interval ? `${this.yText(layer.low[i])} – ${this.yText(layer.high[i])}` : null;
        return { text, interval, run: layer.run, colorNumber: layer.colorNumber };
      }),
    }));
  }

  #refresh() {
    const { group, spec, hidden } = this, alone = group.runs.length === 1;
    this.stale = false;
    if (!this.layers.length) this.labelled = null; // the first values are told at once
    this.layers = group.runs.flatMap((run, r) => spec.curves.map((curve, k) => {
      if (hidden.has(k) || !run.series.has(curve)) return null;
      const number = colorNumber(alone ? curve.color ?? k : r);
      return { ...data(run.detail?.series ?? run.series, curve, group), curve, run: run.name, end: run.series.xs(group.unit).at(-1), colorNumber: number, color: group.colors.curves[number - 1],
        dash: alone ? [] : DASHES[k % DASHES.length] };
    })).filter(layer => layer);
    this.#buildLegend();
  }

  #yRange([from, to]) {
    let [least, greatest] = [Infinity, -Infinity];
    const see = value => {
      if (value === null) return;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    };
    for (const { xs, line, low, high } of this.layers) {
      for (let i = 0; i < xs.length; i++) {
        if ((xs[i + 1] ?? xs[i]) < from || (xs[i - 1] ?? xs[i]) > to) continue;
        see(line[i]);
        if (low) { see(low[i]); see(high[i]); }
      }
    }
    if (least > greatest) [least, greatest] = [0, 1];
    const pad = (greatest - least || Math.abs(greatest) || 1) * PAD, [floor, ceiling] = this.spec.bounds ?? [null, null];
    return [floor === null ? least - pad : Math.min(floor, least), ceiling === null ? greatest + pad : Math.max(ceiling, greatest)];
  }

  #buildLegend() {
    const several = this.spec.curves.length > 1;
    this.legend.replaceChildren(...this.readings().map(({ curve, k, values }) => {
      const shown = this.group.runs.some(({ series }) => series.has(curve));
      if (!shown) return "";
      const marks = values.flatMap(({ colorNumber: number, run }) => [
        svg("svg", { class: `swatch curve-${number}`, viewBox: "0 0 14 4", "aria-hidden": "true" },
          svg("path", { d: "M1 2H13", "stroke-dasharray": this.group.runs.length > 1 ? DASHES[k % DASHES.length].join(" ") : null })),
        element("b", { title: this.group.runs.length > 1 ? run : null }), element("small"),
      ]);
      if (!several) return element("span", null, marks);
      const change = () => { if (!this.hidden.delete(k)) this.hidden.add(k); this.stale = true; this.group.repaint(); };
      return element("button", { class: "plain", "aria-pressed": String(!this.hidden.has(k)), onclick: change },
        marks.slice(0, 1), element("span", null, curve.label), marks.slice(1));
    }));
  }

  // Only texts change as the crosshair moves: the legend's nodes stay.
  #showValues() {
    const values = this.readings().flatMap(reading => reading.values);
    const places = this.legend.querySelectorAll("b");
    values.forEach(({ text, interval }, i) => {
      if (!places[i]) return;
      places[i].textContent = text;
      places[i].nextSibling.textContent = interval ?? "";
    });
    const now = performance.now();
    if (!(now - this.labelled < LABEL_MS)) {
      this.labelled = now;
      this.canvas.setAttribute("aria-label", this.group.t("live.chart label", { title: this.spec.title, values: this.#spoken() }));
    }
  }

  #spoken() {
    const { group } = this;
    const at = group.at ?? group.main?.xs(group.unit).at(-1);
    const values = this.readings().flatMap(({ curve, values: its }) => its.map(({ text, interval, run }) =>
      [group.runs.length > 1 && run, curve.label, text, interval && `(${interval})`].filter(Boolean).join(" ")));
    return values.length ? `${values.join(", ")}; ${group.xText(at, true)}` : group.t("live.no data");
  }

  #listen() {
    const { canvas, group } = this;
    const xOf = event => this.frame?.fromX(event.clientX - canvas.getBoundingClientRect().left) ?? 0;
    let pressed = null; // { pixel, x } where the button went down
    const end = () => { pressed = this.selection = null; };
    canvas.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      pressed = { pixel: event.clientX, x: xOf(event) };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      const dragged = pressed && Math.abs(event.clientX - pressed.pixel) > CLICK_PIXELS;
      this.selection = dragged ? [pressed.x, xOf(event)] : null;
      group.pointedBy = canvas;
      this.#point(xOf(event));
    });
    canvas.addEventListener("pointerup", () => {
      const chosen = this.selection;
      end();
      if (chosen) group.setZoom(chosen);
    });
    canvas.addEventListener("pointercancel", () => { end(); group.setAt(null); });
    canvas.addEventListener("pointerleave", event => {
      if (group.pointedBy === canvas && !pressed && event.pointerType === "mouse") group.setAt(null);
    });
    canvas.addEventListener("dblclick", () => group.setZoom(null));
    canvas.addEventListener("blur", () => group.setAt(null));
    canvas.addEventListener("keydown", event => {
      if (event.ctrlKey || event.altKey || event.metaKey || !this.#key(event.key, event.shiftKey ? 10 : 1)) return;
      group.pointedBy = null; // a page that scrolls under a mouse at rest does not take the crosshair from the keys
      event.preventDefault();
    });
  }

  // The crosshair snaps to the nearest entry, so that all charts read the same update.
  #point(x) {
    const [from, to] = this.group.range;
    const layer = this.layers[0], i = layer ? nearest(layer, Math.min(Math.max(x, from), to)) : null;
    this.group.setAt(i === null ? null : layer.xs[i]);
  }

  // Returns whether the key means something here.
  #key(key, step) {
    const { group } = this, moves = { ArrowLeft: -step, ArrowRight: step, Home: -Infinity, End: Infinity };
    if (key in moves) this.#walk(moves[key]);
    else if (key === "+" || key === "=") group.zoomBy(1 / 2);
    else if (key === "-") group.zoomBy(2);
    else if (key === "0") group.setZoom(null);
    else if (key === "Escape") group.setAt(null);
    else return false;
    return true;
  }

  #walk(step) {
    this.refresh();
    const layer = this.layers[0], { group } = this;
    if (!layer) return;
    const [from, to] = group.range;
    const known = layer.xs.map((_, i) => i).filter(i => layer.line[i] !== null && layer.xs[i] >= from && layer.xs[i] <= to);
    if (!known.length) return;
    const now = group.at === null ? known.length - 1 - Math.max(Math.min(step, 1), -1) : known.indexOf(nearest(layer, group.at));
    const next = known[Math.min(Math.max(now + step, 0), known.length - 1)];
    group.setAt(layer.xs[next]);
    group.announce(this.#spoken());
  }
}

// The arrays of a curve: of a metric of every update with its least and greatest values, or of points.
function data(series, curve, group) {
  if (!series.points.get(curve.name)?.length) return { xs: series.xs(group.unit), ...series.line(curve, group.span), points: false };
  const points = series.pointsOf(curve.name, group.unit), xs = points.map(([x]) => x);
  const ends = curve.interval?.map(name => new Map(series.pointsOf(name, group.unit)));
  const column = end => ends ? xs.map(x => ends[end].get(x) ?? null) : null;
  return { xs, line: points.map(([, value]) => value), low: column(0), high: column(1), points: true, interval: Boolean(ends) };
}

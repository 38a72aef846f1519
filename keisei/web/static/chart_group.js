// What charts side by side share: the runs they show, the stretch in sight, the crosshair, the smoothing, moves or
// time, the colours. A change repaints, in the next frame, those charts that are on the screen.

import { clock, duration } from "./numbers.js";

const CURVE_COLORS = 6, LEAST_STRETCH = 1e-4; // of the whole run

export class ChartGroup {
  // t: texts; numbers: of the language; announce: speaks to screen readers.
  constructor({ t, numbers, announce }) {
    Object.assign(this, { t, numbers, announce, charts: [], runs: [], unit: "step", smoothing: 0.02, zoom: null, at: null });
    this.pointedBy = null; // the canvas whose mouse leads the crosshair, null if keys do
    this.onzoom = () => {};
    this.seen = new IntersectionObserver(entries => {
      for (const { target, isIntersecting } of entries) this.charts.find(chart => chart.canvas === target).setVisible(isIntersecting);
    });
    const repaint = () => { this.palette = null; this.repaint(); };
    for (const [target, event] of [[window, "themechange"], [window, "resize"], [matchMedia("(prefers-color-scheme: dark)"), "change"]])
      target.addEventListener(event, repaint);
    this.sizes = new ResizeObserver(repaint);
  }

  add(chart) {
    this.charts.push(chart);
    this.seen.observe(chart.canvas);
    this.sizes.observe(chart.canvas);
  }

  // runs: [{ name, series, detail }], the one that is followed first; detail: of a stretch, or null.
  setRuns(runs) {
    this.runs = runs;
    this.changed();
  }

  // New data, or another way to see it: the lines are computed anew.
  changed() {
    for (const chart of this.charts) chart.stale = true;
    this.repaint();
  }

  repaint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      for (const chart of this.charts) {
        chart.element.classList.toggle("pointing", this.at !== null); // out of sight too, which nothing paints
        if (chart.visible) chart.draw();
        else chart.empty.hidden = chart.hasData; // a screen reader reads what is out of sight
      }
    });
  }

  get main() {
    return this.runs[0]?.series;
  }

  // The least and the greatest x of all runs.
  get extent() {
    const ends = this.runs.map(({ series }) => series.xs(this.unit)).filter(xs => xs.length);
    if (!ends.length) return [0, 1];
    const last = Math.max(...ends.map(xs => xs.at(-1)));
    return [Math.min(0, ...ends.map(xs => xs[0])), last > 0 ? last : 1];
  }

  // What is in sight. New data never change a stretch that somebody chose.
  get range() {
    return this.zoom ?? this.extent;
  }

  // The moves over which a mean is taken: a share of the run that is followed.
  get span() {
    return this.smoothing * (this.main?.step.at(-1) ?? 0);
  }

  setZoom(zoom) {
    if (zoom) {
      const [first, last] = this.extent, least = (last - first) * LEAST_STRETCH;
      let [from, to] = [Math.max(Math.min(...zoom), first), Math.min(Math.max(...zoom), Math.max(last, this.zoom?.[1] ?? last))];
      if (to - from < least) [from, to] = [from - least / 2, from + least / 2];
      this.zoom = from <= first && to >= last ? null : [from, to];
    } else this.zoom = null;
    this.onzoom(this.zoom);
    this.repaint();
  }

  // A factor below 1 comes closer, around the crosshair or the middle.
  zoomBy(factor) {
    const [from, to] = this.range, centre = this.at !== null && this.at >= from && this.at <= to ? this.at : (from + to) / 2;
    this.setZoom([centre - (centre - from) * factor, centre + (to - centre) * factor]);
  }

  setAt(at) {
    this.at = at;
    this.repaint();
  }

  setUnit(unit) {
    if (unit === this.unit) return;
    const convert = x => this.main.convert(x, this.unit, unit);
    const zoom = this.main && this.zoom?.map(convert), at = this.main && this.at !== null ? convert(this.at) : null;
    Object.assign(this, { unit, zoom: zoom ?? null, at });
    this.onzoom(this.zoom);
    this.changed();
  }

  setSmoothing(smoothing) {
    this.smoothing = smoothing;
    this.changed();
  }

  // An x as a text: short on the axis, in full beside the crosshair.
  xText(x, inFull = false) {
    if (this.unit === "time") return inFull ? clock(x) : duration(x, this.t);
    return inFull ? this.t("live.moves", { n: this.numbers.whole(x) }) : this.numbers.short(x);
  }

  // The colours of the style sheet, as the theme has them now.
  get colors() {
    return this.palette ??= paletteOf(this.charts[0].canvas);
  }
}

// The number of a curve's colour, from 1, as in the classes .curve-1 to .curve-6.
export function colorNumber(index) {
  return index % CURVE_COLORS + 1;
}

function paletteOf(canvas) {
  const probe = document.createElement("span"); // resolves var() and light-dark(), which a canvas cannot
  canvas.parentElement.append(probe);
  const style = getComputedStyle(probe);
  const color = name => {
    probe.style.color = `var(--${name})`;
    return style.color;
  };
  const palette = {
    ink: color("ink"), dim: color("dim"), grid: color("line"), accent: color("accent"), card: color("card"),
    curves: Array.from({ length: CURVE_COLORS }, (_, i) => color(`curve-${i + 1}`)), font: `11px ${style.fontFamily}`,
  };
  probe.remove();
  return palette;
}

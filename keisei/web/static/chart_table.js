// The values of a chart as a table, in a dialog: what is in sight, at most MOST rows, evenly spaced.

import { nearest } from "./chart_paint.js";
import { element } from "./shell.js";

const MOST = 100;

export function showTable(chart) {
  chart.refresh();
  const { group, layers, spec } = chart, { t } = group;
  const close = () => dialog.close();
  const columns = layers.map(layer => [spec.curves.length > 1 && layer.curve.label, group.runs.length > 1 && layer.run].filter(Boolean).join(", ") || spec.title);
  const dialog = element("dialog", { class: "values", "aria-label": spec.title },
    element("header", null, element("h2", null, spec.title), element("button", { class: "plain", "aria-label": t("shell.close"), onclick: close }, "×")),
    element("div", { class: "scroll", tabindex: 0 }, element("table", null,
      element("thead", null, element("tr", null, [t(group.unit === "step" ? "live.by moves" : "live.by time"), ...columns].map(name => element("th", { scope: "col" }, name)))),
      element("tbody", null, places(chart).map(at => element("tr", null,
        element("th", { scope: "row" }, group.unit === "step" ? group.numbers.whole(at) : group.xText(at, true)),
        layers.map(layer => element("td", null, text(chart, layer, at)))))))));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", event => { if (event.target === dialog) close(); });
  document.body.append(dialog);
  dialog.showModal();
}

// The x of the rows: those of the first curve within the range.
function places({ layers, group }) {
  const [from, to] = group.range;
  const xs = layers.length ? layers[0].xs.filter((x, i) => x >= from && x <= to && layers[0].line[i] !== null) : [];
  const step = Math.max((xs.length - 1) / (MOST - 1), 1);
  return Array.from({ length: Math.min(xs.length, MOST) }, (_, i) => xs[Math.round(i * step)]).reverse();
}

function text(chart, layer, at) {
  const i = nearest(layer, at);
  if (i === null) return "–";
  const interval = layer.interval && layer.low[i] !== null ? ` (${chart.yText(layer.low[i])} – ${chart.yText(layer.high[i])})` : "";
  return chart.yText(layer.line[i]) + interval;
}

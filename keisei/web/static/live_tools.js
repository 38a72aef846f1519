// How the curves are seen: by moves or by time, smoothed, closer, and beside other runs.

import { Series } from "./series.js";
import { chartSpecs, metricNames } from "./live_charts.js";
import { api, element, remember, remembered, tell } from "./shell.js";

const MOST_OTHERS = 5, OTHERS_MS = 30000, MOST_SMOOTHING = 10; // percent of the run

// Returns { element, setRuns(runs, followed), whole: the button that ends a zoom }; followed: the run as the group has it.
export function liveTools({ group, page }) {
  const { t, numbers } = page;
  const whole = element("button", { class: "primary", id: "whole", hidden: true, onclick: () => group.setZoom(null) }, t("live.whole run"));
  const others = new Others({ group, page });
  const tools = element("div", { class: "tools", role: "group", "aria-label": t("live.curves") }, whole, unitChoice(group, t), smoothingSlider(group, t, numbers), others.element);
  return { element: tools, whole, setRuns: (runs, followed) => others.setRuns(runs, followed) };
}

function unitChoice(group, t) {
  const chosen = remembered("unit", ["step", "time"], "step");
  group.setUnit(chosen);
  const option = (unit, name) => element("label", null, element("input", { type: "radio", name: "unit", value: unit, checked: unit === chosen,
    onchange: () => { remember("unit", unit); group.setUnit(unit); } }), element("span", null, name));
  return element("div", { class: "segments", role: "radiogroup", "aria-label": t("live.unit") }, option("step", t("live.by moves")), option("time", t("live.by time")));
}

function smoothingSlider(group, t, numbers) {
  const shown = element("output");
  const slider = element("input", { type: "range", id: "smoothing", min: 0, max: MOST_SMOOTHING, step: 0.5, value: group.smoothing * 100 });
  const set = () => {
    shown.textContent = numbers.digits(slider.valueAsNumber) + " %";
    slider.setAttribute("aria-valuetext", t("live.smoothing of", { share: numbers.digits(slider.valueAsNumber) }));
    group.setSmoothing(slider.valueAsNumber / 100);
  };
  slider.addEventListener("input", set);
  set();
  return element("label", { class: "smoothing", title: t("live.smoothing hint") }, element("span", null, t("live.smoothing")), slider, shown);
}

// The other runs that are laid over; those still training are read anew now and then.
class Others {
  constructor({ group, page }) {
    Object.assign(this, { group, page, chosen: new Map(), runs: [], run: null });
    this.list = element("div", { class: "menu" });
    this.summary = element("summary");
    this.element = element("details", { class: "others" }, this.summary, this.list);
    document.addEventListener("pointerdown", event => { if (!this.element.contains(event.target)) this.element.open = false; });
    this.element.addEventListener("keydown", event => { if (event.key === "Escape") { this.element.open = false; this.summary.focus(); } });
    setInterval(() => this.#readOn(), OTHERS_MS);
  }

  setRuns(runs, run) {
    if (run.id !== this.run?.id) this.chosen.clear();
    const before = this.runs.map(({ id, name }) => `${id} ${name}`).join();
    const anew = run.id !== this.run?.id;
    Object.assign(this, { runs: runs.filter(({ id }) => id !== run.id), run });
    if (anew || before !== this.runs.map(({ id, name }) => `${id} ${name}`).join()) this.#show();
  }

  #show() {
    const { t } = this.page;
    this.element.hidden = !this.runs.length;
    const full = this.chosen.size >= MOST_OTHERS;
    const names = [this.run, ...[...this.chosen.keys()].map(id => this.runs.find(one => one.id === id))].filter(Boolean);
    this.summary.textContent = this.chosen.size ? t("live.compared", { n: this.chosen.size }) : t("live.compare");
    const focused = this.list.contains(document.activeElement) ? document.activeElement.value : null;
    this.list.replaceChildren(...this.runs.map(({ id, name }) => element("label", { class: "check" },
      element("input", { type: "checkbox", value: id, checked: this.chosen.has(id), disabled: full && !this.chosen.has(id),
        onchange: event => this.#choose(id, event.target.checked) }),
      element("i", { class: `swatch-dot curve-${names.findIndex(one => one.id === id) + 1}` }), element("span", null, name))));
    if (focused) this.list.querySelector(`input[value="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  async #choose(id, checked) {
    if (checked) {
      this.chosen.set(id, new Series());
      await this.#read(id);
    } else this.chosen.delete(id);
    this.#show();
    this.#apply();
  }

  async #read(id) {
    const names = metricNames(chartSpecs(this.page.t)).join(",");
    try {
      this.chosen.get(id)?.replace(await api(`/api/runs/${encodeURIComponent(id)}/curves?${new URLSearchParams({ names })}`));
    } catch (error) {
      tell(error.message);
    }
  }

  async #readOn() {
    const training = this.runs.filter(({ id, state }) => state === "training" && this.chosen.has(id));
    if (document.hidden || !training.length) return;
    for (const { id } of training) await this.#read(id);
    this.#apply();
  }

  #apply() {
    const others = [...this.chosen].map(([id, series]) => ({ name: this.runs.find(one => one.id === id)?.name ?? "", series }));
    this.group.setRuns([this.run, ...others]);
  }
}

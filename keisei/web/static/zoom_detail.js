// A long run is drawn from a thousand buckets. Whoever zooms into it gets the buckets of that stretch alone,
// fetched once the zoom has come to rest; new updates are added to them as to the whole.

import { Series } from "./series.js";
import { api, tell } from "./shell.js";

const REST_MS = 250, COARSE = 900, ENOUGH = 300; // entries of a run that is in buckets; entries in sight that will do

export class ZoomDetail {
  constructor(group, names) {
    Object.assign(this, { group, names, timer: null, asked: 0 });
  }

  // To be called when the zoom changes; run: { id, series, detail }.
  look(run) {
    clearTimeout(this.timer);
    const { zoom, unit } = this.group;
    const [from, to] = zoom ? zoom.map(x => Math.max(Math.round(run.series.convert(x, unit, "step")), 0)) : [0, 0];
    if (run.detail && zoom && from >= run.detail.from && to <= run.detail.to && to - from > (run.detail.to - run.detail.from) / 12) return;
    const inSight = run.series.step.filter(step => step >= from && step <= to).length;
    if (!zoom || run.series.length < COARSE || inSight > ENOUGH) {
      if (run.detail) this.#set(run, null);
      return;
    }
    const margin = to - from; // on either side, so that a mean has a beginning
    this.timer = setTimeout(() => this.#fetch(run, Math.max(from - margin, 0), to + margin), REST_MS);
  }

  append(run, rows) {
    if (run.detail && rows.step.every(step => step <= run.detail.to)) run.detail.series.append(rows);
  }

  async #fetch(run, from, to) {
    const number = ++this.asked, query = new URLSearchParams({ names: this.names.join(","), from, to });
    try {
      const data = await api(`/api/runs/${encodeURIComponent(run.id)}/curves?${query}`);
      if (number !== this.asked || !this.group.zoom || this.group.runs[0] !== run) return;
      const series = new Series();
      series.replace(data);
      this.#set(run, { from, to, series });
    } catch (error) {
      tell(error.message);
    }
  }

  #set(run, detail) {
    run.detail = detail;
    this.group.changed();
  }
}

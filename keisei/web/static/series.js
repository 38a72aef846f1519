// A run's curves: aligned columns of low, mean and high by moves and by time, and the points of rare metrics.
// In: the events `curves` and `rows`. Out: lines to draw. However long a run is, it keeps at most MOST entries:
// beyond that, neighbours are joined into buckets of equal numbers of moves.

const MOST = 2000, JOINED = 1000;
const RARE = /^evaluation\//; // metrics of some updates only; their rows become points

export class Series {
  constructor() {
    this.replace({ x: { step: [], time: [] }, curves: {}, points: {} });
  }

  get length() {
    return this.step.length;
  }

  // Takes all curves anew.
  replace({ x, curves, points }) {
    this.step = [...x.step];
    this.time = [...x.time];
    this.curves = new Map(Object.entries(curves).map(([name, { low, mean, high }]) =>
      [name, { low: [...low], mean: [...mean], high: [...high] }]));
    this.points = new Map(Object.entries(points ?? {}).map(([name, rows]) => [name, [...rows]]));
  }

  // Adds updates, one entry each.
  append({ step, time, values }) {
    const before = this.length;
    this.step.push(...step);
    this.time.push(...time);
    for (const [name, added] of Object.entries(values)) {
      if (RARE.test(name) || this.points.has(name)) this.#addPoints(name, step, time, added);
      else if (!this.curves.has(name)) this.curves.set(name, emptyCurve(before));
    }
    for (const [name, curve] of this.curves) {
      const added = values[name] ?? Array(step.length).fill(null);
      for (const column of Object.values(curve)) column.push(...added);
    }
    if (this.length > MOST) this.#join();
  }

  // The x of all entries: moves ("step") or seconds ("time").
  xs(unit) {
    return this[unit];
  }

  // The points of a rare metric, [[x, value], …].
  pointsOf(name, unit) {
    const at = unit === "step" ? 0 : 1;
    return (this.points.get(name) ?? []).filter(point => point[2] !== null).map(point => [point[at], point[2]]);
  }

  has({ name, part }) {
    return this.points.get(name)?.length > 0
      || (this.curves.get(name ?? part)?.mean.some(value => value !== null) ?? false);
  }

  // The exponential mean of a curve over `span` moves, and its least and greatest values (null for a ratio).
  line({ name, part, whole }, span) {
    const none = emptyCurve(this.length);
    if (name) {
      const curve = this.curves.get(name) ?? none;
      return { low: curve.low, high: curve.high, line: this.#smoothed(curve.mean, null, span) };
    }
    const parts = (this.curves.get(part) ?? none).mean, wholes = (this.curves.get(whole) ?? none).mean;
    return { low: null, high: null, line: this.#smoothed(parts, wholes, span) };
  }

  // The x in one unit of an x in the other.
  convert(x, from, to) {
    const known = this[from], wanted = this[to];
    if (!known.length) return x;
    const after = known.findIndex(value => value >= x);
    if (after <= 0) return wanted[after === 0 ? 0 : known.length - 1];
    const share = (x - known[after - 1]) / (known[after] - known[after - 1] || 1);
    return wanted[after - 1] + share * (wanted[after] - wanted[after - 1]);
  }

  // An entry counts by its moves, so that joined and single updates are smoothed alike.
  #smoothed(values, wholes, span) {
    let sum = 0, weight = 0;
    return values.map((value, i) => {
      if (value === null || (wholes && wholes[i] === null)) return null;
      const share = span > 0 ? 1 - Math.exp(-this.#moves(i) / span) : 1;
      sum += share * (value - sum);
      weight += share * ((wholes ? wholes[i] : 1) - weight);
      return weight > 1e-9 ? sum / weight : null;
    });
  }

  #moves(i) {
    return Math.max(this.step[i] - (this.step[i - 1] ?? 0), 1);
  }

  #addPoints(name, step, time, values) {
    let points = this.points.get(name) ?? [];
    values.forEach((value, i) => {
      if (value !== null) points.push([step[i], time[i], value]);
    });
    if (points.length > MOST) points = points.filter((_, i) => i % 2 || i === points.length - 1);
    this.points.set(name, points);
  }

  #join() {
    const first = this.step[0], width = (this.step.at(-1) - first) / JOINED || 1, groups = [];
    let bucket = -1;
    this.step.forEach((step, i) => {
      const its = Math.min(Math.floor((step - first) / width), JOINED - 1);
      if (its === bucket) groups.at(-1)[1] = i + 1;
      else groups.push([i, i + 1]);
      bucket = its;
    });
    const moves = this.step.map((_, i) => this.#moves(i));
    for (const curve of this.curves.values()) {
      const { low, mean, high } = curve;
      curve.low = groups.map(([begin, end]) => extreme(Math.min, low, begin, end));
      curve.high = groups.map(([begin, end]) => extreme(Math.max, high, begin, end));
      curve.mean = groups.map(([begin, end]) => weighted(mean, moves, begin, end));
    }
    this.step = groups.map(([, end]) => this.step[end - 1]);
    this.time = groups.map(([, end]) => this.time[end - 1]);
  }
}

function emptyCurve(length) {
  const column = () => Array(length).fill(null);
  return { low: column(), mean: column(), high: column() };
}

function extreme(choose, values, begin, end) {
  const known = values.slice(begin, end).filter(value => value !== null);
  return known.length ? choose(...known) : null;
}

function weighted(values, weights, begin, end) {
  let sum = 0, weight = 0;
  for (let i = begin; i < end; i++) {
    if (values[i] === null) continue;
    sum += values[i] * weights[i];
    weight += weights[i];
  }
  return weight ? sum / weight : null;
}

// Black's win rate over a game as a line: above the middle Black is ahead. A press or a drag on it chooses a position.
import { element, svg } from "/static/shell.js";

const HEIGHT = 116,
  LEFT = 34,
  RIGHT = 10,
  TOP = 8,
  BOTTOM = 20;

export class ValueGraph {
  // onChoose(ply) is called when a person chooses; without it the graph is only looked at.
  constructor(host, { t, onChoose = null }) {
    Object.assign(this, { host, t, onChoose, percents: [], losses: [], ply: 0, width: 0 });
    this.picture = svg("svg", {
      class: "value-graph",
      height: HEIGHT,
      role: onChoose ? "slider" : "img",
      tabindex: onChoose ? 0 : null,
      "aria-label": t("board.win rate of black"),
    });
    this.reading = element("output", { class: "reading" });
    host.append(this.reading, this.picture);
    new ResizeObserver(() => this.#draw()).observe(this.picture);
    if (onChoose) this.#listen();
  }

  // percents: one for each position, null where unknown. losses: moves to mark, as [{ ply, loss }].
  show({ percents = this.percents, losses = this.losses, ply = this.ply }) {
    Object.assign(this, { percents, losses, ply });
    this.#draw();
  }

  #listen() {
    const choose = event => this.onChoose(this.#plyAt(event.clientX));
    this.picture.addEventListener("pointerdown", event => {
      this.picture.setPointerCapture(event.pointerId);
      choose(event);
    });
    this.picture.addEventListener("pointermove", event => {
      if (event.buttons & 1) choose(event);
      else this.#read(this.#plyAt(event.clientX));
    });
    this.picture.addEventListener("pointerleave", () => this.#read(this.ply));
  }

  #plyAt(clientX) {
    const part = (clientX - this.picture.getBoundingClientRect().left - LEFT) / (this.width - LEFT - RIGHT);
    return Math.round(Math.max(0, Math.min(1, part)) * this.#last());
  }

  #last() {
    return Math.max(1, this.percents.length - 1);
  }
  #x(ply) {
    return LEFT + (ply / this.#last()) * (this.width - LEFT - RIGHT);
  }
  #y(percent) {
    return TOP + ((100 - percent) / 100) * (HEIGHT - TOP - BOTTOM);
  }

  #read(ply) {
    const percent = this.percents[ply] ?? null;
    this.reading.textContent = this.t(percent === null ? "board.no reading" : "board.reading", {
      ply,
      percent: Math.round(percent),
    });
  }

  #draw() {
    this.width = this.picture.getBoundingClientRect().width;
    if (!this.width) return;
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.picture.replaceChildren(...this.#scale(), ...this.#curve(), ...this.#losses(), ...this.#here());
    this.#read(this.ply);
    if (!this.onChoose) return;
    for (const [name, value] of [
      ["valuemin", 0],
      ["valuemax", this.percents.length - 1],
      ["valuenow", this.ply],
      ["valuetext", this.reading.textContent],
    ])
      this.picture.setAttribute(`aria-${name}`, value);
  }

  #scale() {
    const lines = [0, 50, 100].map(percent =>
      svg(
        "g",
        null,
        svg("line", {
          class: percent === 50 ? "middle" : "rule",
          x1: LEFT,
          x2: this.width - RIGHT,
          y1: this.#y(percent),
          y2: this.#y(percent),
        }),
        svg("text", { x: LEFT - 6, y: this.#y(percent) + 4, "text-anchor": "end" }, percent),
      ),
    );
    const step = [10, 20, 50, 100, 200].find(size => this.#last() / size <= 8) ?? 500,
      plies = [];
    for (let ply = step; ply <= this.#last(); ply += step)
      plies.push(svg("text", { x: this.#x(ply), y: HEIGHT - 5, "text-anchor": "middle" }, ply));
    return [...lines, ...plies];
  }

  // Runs of known values; the area between the line and the middle is filled.
  #curve() {
    const runs = [];
    this.percents.forEach((percent, ply) => {
      if (percent === null) return;
      if (ply && this.percents[ply - 1] !== null) runs.at(-1).push([this.#x(ply), this.#y(percent)]);
      else runs.push([[this.#x(ply), this.#y(percent)]]);
    });
    const path = run => run.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
    return runs.flatMap(run =>
      run.length === 1
        ? [svg("circle", { class: "alone", cx: run[0][0], cy: run[0][1], r: 2 })]
        : [
            svg("path", {
              class: "area",
              d: `M${run[0][0]} ${this.#y(50)}L${path(run)}L${run.at(-1)[0]} ${this.#y(50)}Z`,
            }),
            svg("path", { class: "line", d: `M${path(run)}` }),
          ],
    );
  }

  #losses() {
    return this.losses
      .filter(({ ply }) => (this.percents[ply] ?? null) !== null)
      .map(({ ply }) => svg("circle", { class: "loss", cx: this.#x(ply), cy: this.#y(this.percents[ply]), r: 4 }));
  }

  #here() {
    const x = this.#x(Math.min(this.ply, this.#last())),
      percent = this.percents[this.ply] ?? null;
    const dot = percent === null ? [] : [svg("circle", { class: "here-dot", cx: x, cy: this.#y(percent), r: 4.5 })];
    return this.percents.length
      ? [svg("line", { class: "here", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }), ...dot]
      : [];
  }
}

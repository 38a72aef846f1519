// What the play and replay pages have in common: the players beside the board, the list of moves, lines of a search.
import { element, svg } from "/static/shell.js";

// A player's name with a small piece: filled for Black, open for White. `clock` and `state` are filled by the page.
export function playerBar({ name, side, sideName, place }) {
  const clock = element("span", { class: "clock" }),
    state = element("span", { class: "state" });
  const bar = element(
    "div",
    { class: `player ${place}` },
    sideMark(side),
    element("b", null, name),
    element("span", { class: "dim" }, sideName),
    state,
    clock,
  );
  return Object.assign(bar, { clock, state });
}

function sideMark(side) {
  return svg(
    "svg",
    { class: `side-mark ${side}`, viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("path", { d: "M10 1.5L15.5 5L18 18.5H2L4.5 5Z" }),
  );
}

// The moves of a game, numbered; with onChoose each is a button that leads to the position after it.
export class MoveList {
  constructor(host, { label, onChoose = null }) {
    Object.assign(this, { onChoose, texts: [] });
    this.list = element("ol", { class: "moves", "aria-label": label, tabindex: onChoose ? null : 0 });
    host.append(this.list);
  }

  // losses: Map from the number of a move to what it lost, in points. Items that stay are not made anew.
  show({ texts, ply, losses = new Map(), notes = {} }) {
    const same = texts.findIndex((text, i) => text !== this.texts[i] || losses.get(i + 1) !== this.losses?.get(i + 1));
    const kept = same < 0 ? texts.length : same;
    while (this.list.children.length > kept) this.list.lastChild.remove();
    for (let i = kept; i < texts.length; i++)
      this.list.append(this.#item(texts[i], i + 1, losses.get(i + 1), notes.loss));
    Object.assign(this, { texts, losses });
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const item = this.list.children[ply - 1];
    (this.onChoose ? item?.firstChild : item)?.setAttribute("aria-current", "step");
    this.#reveal(item);
  }

  #item(text, number, loss, lossText) {
    const parts = [
      element("span", { class: "number" }, number),
      element("span", { class: "text" }, text),
      loss !== undefined && element("span", { class: "lost", title: lossText(loss) }, `−${Math.round(loss)}`),
    ];
    return element(
      "li",
      null,
      this.onChoose
        ? element("button", { class: "plain", onclick: () => this.onChoose(number) }, parts)
        : element("div", null, parts),
    );
  }

  // Scroll the list alone, never the page.
  #reveal(item) {
    if (!item) {
      this.list.scrollTop = 0;
      return;
    }
    const { offsetTop: top, offsetHeight: height } = item,
      { scrollTop, clientHeight } = this.list;
    if (top < scrollTop + height)
      this.list.scrollTop = top - height; // one move more than needed, to see where it comes from
    else if (top + 2 * height > scrollTop + clientHeight) this.list.scrollTop = top + 2 * height - clientHeight;
  }
}

// Whether a key is a command to the page: not one for the browser, a field or a dialog, nor the press of what has the focus.
export function isCommand(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.target.closest('select, textarea, dialog, input:not([type="checkbox"])')) return false;
  return !(event.key === " " && event.target.closest("button, a, input"));
}

// The win rate of the side to move, from Black's.
const percentOf = (blackPercent, turn) => (turn === "b" ? blackPercent : 100 - blackPercent);

// What a search says of one move, in a few characters: "62 %", "mate 5".
export function verdict(line, turn, t) {
  if (line.mate !== null) return t(line.mate > 0 ? "board.mates" : "board.mated", { plies: Math.abs(line.mate) });
  return t("board.percent", { percent: Math.round(percentOf(line.black_percent, turn)) });
}

// The lines as arrows for Board.point: at most `most`, the best first.
export function arrowsOf(lines, turn, t, most = 3) {
  return lines.slice(0, most).map(line => ({ move: line.move, text: verdict(line, turn, t) }));
}

// The lines as a list; with onPlay each can be played out on the board.
export function lineList(lines, { turn, lang, t, onPlay = null }) {
  return element(
    "ol",
    { class: "line-list" },
    lines.map((line, number) => {
      const parts = [
        element("b", { class: "share", title: t("board.mover's win rate") }, verdict(line, turn, t)),
        element("span", { class: "pv" }, line.pv_texts[lang].join(" ")),
        element("span", { class: "dim visits" }, line.visits ? t("board.visits", { visits: line.visits }) : ""),
      ];
      return element(
        "li",
        { class: `rank-${Math.min(number, 3)}` },
        onPlay
          ? element("button", { class: "plain", title: t("board.play out"), onclick: () => onPlay(line) }, parts)
          : element("div", null, parts),
      );
    }),
  );
}

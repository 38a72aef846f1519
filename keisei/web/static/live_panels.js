// What the live page shows beside its charts, each made from the event `state`: strength, scores, progress, results,
// phases, workers and notices. Everything is a text node or the width of a bar.

import { OPPONENTS } from "./live_charts.js";
import { duration } from "./numbers.js";
import { element, nameOf } from "./shell.js";

const NO_INTERVAL = "–";

// The rating, large: "1,469", "> 2,100" if it is unbounded, and its interval.
export function strengthPanel({ rating }, { t, numbers }) {
  if (!rating) return [element("p", { class: "dim" }, t("live.no rating"))];
  const { elo, low, high, step } = rating;
  const value = known(elo) ? numbers.whole(elo) : known(low) ? `> ${numbers.whole(low)}` : known(high) ? `< ${numbers.whole(high)}` : NO_INTERVAL;
  const interval = known(low) && known(high) ? t("live.interval", { low: numbers.whole(low), high: numbers.whole(high) })
    : known(elo) ? t("live.half interval", { bound: known(low) ? `> ${numbers.whole(low)}` : `< ${numbers.whole(high)}` }) : null;
  return [
    element("p", { class: "elo" }, element("b", null, value), " ", element("span", null, t("live.elo"))),
    interval && element("p", { class: "interval" }, interval),
    element("p", { class: "dim" }, t("live.rated at", { step: step < 1e5 ? numbers.whole(step) : numbers.short(step) })),
  ].filter(Boolean);
}

export function scoresPanel({ scores }, { t, numbers }) {
  if (!scores.length) return [element("p", { class: "dim" }, t("live.no evaluation"))];
  const place = ({ opponent }) => OPPONENTS.indexOf(opponent);
  return [...scores].sort((one, other) => place(one) - place(other)).map(({ opponent, score }) => bar(nameOf("live.opponent", opponent), score, numbers.percent(score), "score"));
}

// Who won, as one bar of three parts, and how games ended.
export function resultsPanel({ results }, { t, numbers }) {
  const total = results ? results.black + results.white + results.draws : 0;
  if (!total) return [element("p", { class: "dim" }, t("live.no games"))];
  const parts = [["black", results.black], ["white", results.white], ["draws", results.draws]];
  const label = parts.map(([name, count]) => `${t(`live.${name}`)} ${numbers.percent(count / total)}`).join(", ");
  const reasons = Object.entries(results.by).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  return [
    element("div", { class: "parts", role: "img", "aria-label": label },
      parts.map(([name, count]) => element("i", { class: name, style: { "flex-grow": String(count) } }))),
    element("p", { class: "keys" }, parts.map(([name, count]) =>
      element("span", { class: name }, `${t(`live.${name}`)} `, element("b", null, numbers.percent(count / total))))),
    ...reasons.map(([reason, count]) => bar(t(reason), count / total, numbers.percent(count / total))),
    element("p", { class: "dim" }, t("live.of games", { n: numbers.whole(total) })),
  ];
}

export function phasesPanel({ phases }, { t, numbers }) {
  const shares = Object.entries(phases ?? {}).filter(([, share]) => share >= 0.0005).sort((a, b) => b[1] - a[1]);
  if (!shares.length) return [element("p", { class: "dim" }, t("live.no data"))];
  return shares.map(([phase, share]) => bar(nameOf("live.phase", phase), share, numbers.percent(share)));
}

export function workersPanel({ workers }, { t, numbers }) {
  if (!workers?.length) return [element("p", { class: "dim" }, t("live.no workers"))];
  return workers.map(({ number, state, moves, restarts, utilisation }) => element("div", { class: "worker" },
    bar(t("live.worker", { n: number }), utilisation, numbers.percent(utilisation)),
    element("small", null, [state && nameOf("live.worker", state), t("live.worker moves", { n: numbers.short(moves) }),
      t(restarts === 1 ? "live.restart" : "live.restarts", { n: numbers.whole(restarts) })].filter(Boolean).join(" · "))));
}

export function noticesPanel({ notices }, { t, lang }) {
  if (!notices?.length) return [element("p", { class: "dim" }, t("live.no notices"))];
  const when = new Intl.DateTimeFormat(lang, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return [element("ol", { class: "notices", tabindex: 0, "aria-label": t("live.notices") }, [...notices].reverse().map(({ time, text }) =>
    element("li", null, element("time", null, typeof time === "number" ? when.format(time * 1000) : time), " ", text)))];
}

// The state in a word, the progress, the time left and the speed.
export function progressPanel({ run, seconds_left: left, moves_per_second: speed, facts }, { t, numbers }) {
  const share = run.total_steps ? Math.min(run.step / run.total_steps, 1) : null;
  const done = share === null ? t("live.moves", { n: numbers.whole(run.step) })
    : t("live.of moves", { step: numbers.whole(run.step), total: numbers.whole(run.total_steps) });
  const running = run.state === "training";
  const words = [share !== null && numbers.finePercent(share), done, running && known(left) && t("live.left", { time: duration(left, t) }),
    running && known(speed) && t("live.moves per second", { n: numbers.digits(speed) })].filter(Boolean);
  return [
    element("div", { class: "progress", role: "progressbar", "aria-label": t("live.progress"), "aria-valuemin": 0, "aria-valuemax": 100,
      "aria-valuenow": Math.round((share ?? 0) * 100) }, element("i", { style: { width: `${(share ?? 0) * 100}%` } })),
    element("p", { class: "figures" }, words.map(word => element("span", null, word))),
    element("p", { class: "facts dim" }, factWords(facts ?? {}, { t, numbers }).map(word => element("span", null, word))),
  ];
}

export function stateBadge({ state }, { t }) {
  return element("span", { class: `state ${state}` }, t(`live.${state}`));
}

function factWords({ algorithm, parameters, device, seed }, { t, numbers }) {
  return [algorithm && nameOf("live.algorithm", algorithm), known(parameters) && t("live.parameters", { n: numbers.whole(parameters) }),
    device, known(seed) && t("live.seed", { n: seed })].filter(Boolean);
}

function bar(name, share, text, kind = "") {
  return element("div", { class: `bar ${kind}` }, element("span", { title: name }, name),
    element("i", { class: "track" }, element("i", { style: { width: `${Math.min(Math.max(share, 0), 1) * 100}%` } })), element("b", null, text));
}

function known(value) {
  return value !== null && value !== undefined;
}

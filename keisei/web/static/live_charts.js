// The charts of the live page: which metrics they show, and how.

export const OPPONENTS = ["random", "greedy", "alphabeta-1", "best", "material", "alphabeta-2", "alphabeta-3", "alphabeta-4"];

// The charts of strength, which stand first, and those of learning, games and speed. One that shows only what some
// algorithms write has `optional`: it is hidden while there is none of it.
export function chartSpecs(t) {
  const share = [0, 1];
  return {
    strength: [
      { title: t("live.rating"), kind: "elo", curves: [{ name: "evaluation/rating", label: t("live.elo"),
        interval: ["evaluation/rating_low", "evaluation/rating_high"] }] },
      { title: t("live.scores"), kind: "percent", bounds: share,
        curves: OPPONENTS.map(name => ({ name: `evaluation/${name}_score`, label: t(`live.opponent ${name}`) })) },
    ],
    learning: [
      { title: t("live.policy loss"), kind: "number", curves: [{ name: "loss/policy", label: t("live.policy loss") }] },
      { title: t("live.value loss"), kind: "number", curves: [{ name: "loss/value", label: t("live.value loss"), color: 1 }] },
      { title: t("live.entropy"), kind: "number", curves: [{ name: "policy/entropy", label: t("live.entropy"), color: 2 }] },
      { title: t("live.search agreement"), kind: "percent", optional: true,
        curves: [{ name: "search/agreement", label: t("live.search agreement"), color: 3 }] },
      { title: t("live.policy change"), kind: "number", optional: true, curves: [
        { name: "policy/approx_kl", label: t("live.kl") }, { name: "policy/clip_fraction", label: t("live.clipped") }] },
      { title: t("live.explained variance"), kind: "number", bounds: [0, 1],
        curves: [{ name: "value/explained_variance", label: t("live.explained variance"), color: 1 }] },
      { title: t("live.game length"), kind: "number", curves: [{ name: "games/length", label: t("live.plies"), color: 5 }] },
      { title: t("live.results"), kind: "percent", bounds: [0, null], curves: [
        { part: "games/black_wins", whole: "games/finished", label: t("live.black"), color: 5 },
        { part: "games/white_wins", whole: "games/finished", label: t("live.white"), color: 0 },
        { part: "games/draws", whole: "games/finished", label: t("live.draws"), color: 1 }] },
      { title: t("live.speed"), kind: "number", bounds: [0, null],
        curves: [{ name: "speed/steps_per_second", label: t("live.speed"), color: 2 }] },
    ],
  };
}

// The metrics that the charts need, each once.
export function metricNames({ strength, learning }) {
  const curves = [...strength, ...learning].flatMap(spec => spec.curves);
  return [...new Set(curves.flatMap(({ name, part, whole, interval }) => [name, part, whole, ...interval ?? []]))].filter(Boolean);
}

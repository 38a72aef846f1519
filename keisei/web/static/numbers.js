// Numbers as a page shows them: short, with the separators and units of a language (1.2M, 120万), and ticks.

const TINY = 1e-4; // below, with an exponent

export class Numbers {
  constructor(lang) {
    const format = options => {
      const formatter = new Intl.NumberFormat(lang, options);
      return value => value === null || value === undefined || !Number.isFinite(value) ? "–" : formatter.format(value);
    };
    this.whole = format({ maximumFractionDigits: 0 });
    this.short = format({ notation: "compact", maximumSignificantDigits: 3 });
    const digits = format({ maximumSignificantDigits: 3 }), tiny = format({ notation: "scientific", maximumSignificantDigits: 2 });
    this.digits = value => (value && Math.abs(value) < TINY ? tiny : digits)(value);
    this.percent = format({ style: "percent", maximumFractionDigits: 0 });
    this.finePercent = format({ style: "percent", maximumFractionDigits: 1 });
  }

  // A value of a chart by the kind of its axis.
  of(kind) {
    if (kind === "percent") return value => (value && Math.abs(value) < 0.0995 ? this.finePercent : this.percent)(value);
    if (kind === "elo") return this.whole;
    return value => (value !== null && Math.abs(value) >= 10000 ? this.short : this.digits)(value);
  }
}

// Round values between low and high, about so many.
export function ticks(low, high, count) {
  const raw = (high - low) / count;
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  return between(low, high, [1, 2, 5, 10].find(factor => factor * power >= raw * 0.999) * power);
}

// The same for seconds: whole seconds, minutes, hours or days.
export function timeTicks(low, high, count) {
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400];
  const raw = (high - low) / count;
  const step = steps.find(candidate => candidate >= raw);
  return step && raw >= 1 ? between(low, high, step) : ticks(low / 86400, high / 86400, count).map(day => day * 86400);
}

function between(low, high, step) {
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

// Seconds in the two largest units, such as "1 h 20 min"; texts are those of the page.
export function duration(seconds, t) {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(Math.round(seconds), 0);
  if (whole < 60) return t("live.seconds", { s: whole });
  const minutes = Math.round(whole / 60);
  if (minutes < 60) return t("live.minutes", { m: minutes });
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? t("live.hours minutes", { h: hours, m: minutes % 60 }) : t("live.hours", { h: hours });
  return hours % 24 ? t("live.days hours", { d: Math.floor(hours / 24), h: hours % 24 }) : t("live.days", { d: hours / 24 });
}

// Seconds to the second: "1:02:30".
export function clock(seconds) {
  const whole = Math.max(Math.round(seconds), 0), two = number => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

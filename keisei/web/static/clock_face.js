// A player's clock: main time as 9:59, then the seconds of byoyomi; it runs on between what the server tells.

const SHORT_MS = 10_000;

// `clock` is the table's, told `passed` milliseconds ago; `face` is the node that shows one side's.
export function showClock(face, clock, side, passed, t) {
  const runs = clock.running === side,
    main = clock[`${side}_ms`],
    used = runs ? passed : 0;
  const inByoyomi = clock.byoyomi_ms > 0 && main <= used;
  const left = Math.max(0, inByoyomi ? byoyomiLeft(clock, runs, used - main) : main - used);
  face.textContent = inByoyomi ? t("play.byoyomi left", { seconds: Math.ceil(left / 1000) }) : minutesAndSeconds(left);
  face.classList.toggle("short", runs && left < SHORT_MS);
}

const byoyomiLeft = (clock, runs, used) => (runs ? clock.byoyomi_left_ms - used : clock.byoyomi_ms);

function minutesAndSeconds(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

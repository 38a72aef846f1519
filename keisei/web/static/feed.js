// Follows a run by one event stream. A hidden page lets go of it (a browser allows six per host) and comes
// back for what it has missed; after a lost connection it tries again, less and less often.

const FIRST_WAIT_MS = 1000, LONGEST_WAIT_MS = 30000;

export class Feed {
  // handlers: by event, `state`, `curves`, `rows`, `games`; connected(whether) says when that changes.
  constructor(run, names, handlers, connected) {
    Object.assign(this, { run, names, handlers, connected, last: null, source: null, wait: FIRST_WAIT_MS, closed: false });
    this.visibility = () => (document.hidden ? this.#let() : this.#open());
    document.addEventListener("visibilitychange", this.visibility);
    if (!document.hidden) this.#open();
  }

  // Ends it for good.
  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.visibility);
    this.#let();
  }

  #open() {
    if (this.source || this.closed) return;
    const query = new URLSearchParams({ names: this.names.join(",") });
    if (this.last) query.set("after", this.last); // a new EventSource cannot send Last-Event-ID
    const source = this.source = new EventSource(`/api/runs/${encodeURIComponent(this.run)}/events?${query}`);
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, event => {
        if (event.lastEventId) this.last = event.lastEventId;
        handle(JSON.parse(event.data));
      });
    }
    source.addEventListener("open", () => {
      this.wait = FIRST_WAIT_MS;
      this.connected(true);
    });
    source.addEventListener("error", () => this.#lost());
  }

  // Our own retry, because a browser gives up on an answer that is no stream, such as that of a proxy.
  #lost() {
    this.#let();
    this.connected(false);
    this.timer = setTimeout(() => { if (!document.hidden) this.#open(); }, this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  #let() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}

// What every page shares: the header, texts, choices that are remembered, requests, and making nodes.
// begin(view) fills <header id="shell"> and returns { t, lang, pieces, site, announce, tell }.
// Nodes are made with textContent only: nothing that comes from the server is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const VIEWS = [
  ["live", "/"],
  ["games", "/games"],
  ["play", "/play"],
  ["ladder", "/ladder"],
];
const THEMES = ["auto", "light", "dark"];
const THEME_ICONS = {
  auto: "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18zM12 5.2v13.6a6.8 6.8 0 0 1 0-13.6z",
  light:
    "M12 7.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9zM11 1.5h2v3.5h-2zM11 19h2v3.5h-2zM1.5 11h3.5v2h-3.5zM19 11h3.5v2h-3.5z" +
    "M4 5.4L5.4 4L7.9 6.5L6.5 7.9zM16.1 17.5L17.5 16.1L20 18.6L18.6 20zM4 18.6L6.5 16.1L7.9 17.5L5.4 20zM16.1 6.5L18.6 4L20 5.4L17.5 7.9z",
  dark: "M10 3.2a9 9 0 1 0 10.8 10.8A7.4 7.4 0 0 1 10 3.2z",
};
let texts = {};

// The text of a key in the chosen language; values fill its braces.
export function t(key, values = {}) {
  const text = texts[key];
  if (text === undefined) throw new Error(`no text for the key ${key}`);
  return text.replace(/\{([^}]+)\}/g, (_, name) => values[name] ?? "");
}

// What a run calls a phase, an opponent and the like, in the chosen language; a name of another version stays as it is.
export function nameOf(kind, name) {
  return texts[`${kind} ${name}`] ?? name;
}

// JSON from the server: POST if there is a body. The Error of a refusal has the server's line, `status` and `answer`.
export async function api(path, body) {
  const options =
    body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        };
  let response, answer;
  try {
    response = await fetch(path, options);
    answer = await response.json();
  } catch (cause) {
    throw new Error(texts["shell.no answer"] ?? "keisei web does not answer", { cause });
  }
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status, answer });
  return answer;
}

// A node of HTML. Attributes: onclick and the like take functions, style takes an object, false and null are left out.
export function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// A node of SVG, made likewise.
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [property, set] of Object.entries(value)) node.style.setProperty(property, set);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

// An icon of one path in a box of 24.
export function icon(path) {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: path, "fill-rule": "evenodd" }),
  );
}

// What was chosen on an earlier visit; `remember` keeps it. A choice that is not among `allowed` is forgotten.
export function remembered(name, allowed, otherwise) {
  const value = localStorage.getItem(`keisei.${name}`);
  return allowed.includes(value) ? value : otherwise;
}

export function remember(name, value) {
  localStorage.setItem(`keisei.${name}`, value);
}

// Say something to screen readers alone. The same words twice are said twice.
export function announce(text) {
  const region = document.getElementById("announcements");
  region.replaceChildren(element("p", null, text));
}

// Say something to everybody, in a bar at the foot that can be closed; null takes it away.
export function tell(text) {
  document.getElementById("notice")?.remove();
  if (!text) return;
  document.body.append(
    element(
      "div",
      { id: "notice", role: "alert" },
      element("span", null, text),
      element("button", { class: "plain", "aria-label": t("shell.close"), onclick: () => tell(null) }, "×"),
    ),
  );
}

export async function begin(view) {
  const header = document.getElementById("shell");
  document.body.append(element("div", { id: "announcements", class: "unseen", "aria-live": "polite" }));
  const site = await api("/api/site");
  const lang = remembered("lang", ["en", "ja"], site.lang ?? (navigator.language.startsWith("ja") ? "ja" : "en"));
  texts = await api(`/api/texts?lang=${lang}`);
  document.documentElement.lang = lang;
  document.title = `${t(`shell.${view}`)} – Keisei`;
  header.replaceChildren(
    element("a", { class: "skip", href: "#main" }, t("shell.skip")),
    element("a", { class: "brand", href: "/" }, "Keisei", element("span", { lang: "ja" }, "形勢")),
    element(
      "nav",
      { "aria-label": t("shell.navigation") },
      VIEWS.map(([name, path]) =>
        element("a", { href: path, "aria-current": name === view && "page" }, t(`shell.${name}`)),
      ),
    ),
    element("div", { class: "choices" }, languageButton(lang), piecesButton(), themeButton()),
  );
  return {
    t,
    lang,
    site,
    announce,
    tell,
    get pieces() {
      return document.documentElement.dataset.pieces;
    },
  };
}

function languageButton(lang) {
  const other = lang === "en" ? "ja" : "en";
  const change = () => {
    remember("lang", other);
    location.reload();
  };
  return element(
    "button",
    { class: "plain", id: "language", lang: other, onclick: change },
    other === "ja" ? "日本語" : "English",
  );
}

// Every piece has both faces and the style sheet shows one of them: nothing is drawn anew.
function piecesButton() {
  const root = document.documentElement;
  const name = () => t(root.dataset.pieces === "kanji" ? "shell.letters" : "shell.kanji");
  const button = element(
    "button",
    {
      class: "plain",
      id: "pieces",
      onclick: () => {
        root.dataset.pieces = root.dataset.pieces === "kanji" ? "letters" : "kanji";
        remember("pieces", root.dataset.pieces);
        button.title = name();
        button.setAttribute("aria-label", name());
      },
    },
    svg(
      "svg",
      { class: "piece-mark", viewBox: "0 0 24 26", "aria-hidden": "true" },
      svg("path", { d: "M12 1.5L19 5.5L22.5 24.5H1.5L5 5.5Z" }),
      svg("text", { class: "kanji", x: 12, y: 20.5, "text-anchor": "middle" }, "P"),
      svg("text", { class: "letters", x: 12, y: 20, "text-anchor": "middle" }, "歩"),
    ),
  );
  button.title = name();
  button.setAttribute("aria-label", name());
  return button;
}

function themeButton() {
  const root = document.documentElement;
  const button = element("button", {
    class: "plain",
    id: "theme",
    onclick: () => {
      root.dataset.theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
      remember("theme", root.dataset.theme);
      show();
      dispatchEvent(new Event("themechange"));
    },
  });
  const show = () => {
    const name = t(`shell.theme ${root.dataset.theme}`);
    button.replaceChildren(icon(THEME_ICONS[root.dataset.theme]));
    button.title = name;
    button.setAttribute("aria-label", name);
  };
  show();
  return button;
}

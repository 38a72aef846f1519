"""Scripts for pages: they return what is wrong with the looks, or where the focus is; HIDE hides the page."""

# Texts in sight that are too small, or too like what is behind them: WCAG AA.
PALE = """() => {
  const channels = color => (color.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const linear = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map(i => top[i] * alpha + below[i] * (1 - alpha));
  };
  const behind = node => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      layers.push(color);
      if ((color[3] ?? 1) === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255]);
  };
  const skipped = "svg, option, .unseen, [hidden], :disabled, [aria-pressed=false]";
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || node.closest(skipped) || !node.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(node), back = behind(node), fore = over(channels(style.color), back);
    const [light, dark] = [luminance(fore), luminance(back)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.5 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5) || size < 11)
      found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}, ${size}`);
  }
  return found;
}"""

# How many elements Tab must reach; of the radio buttons of a group, one. They are kept for MISSED.
FOCUSABLE = """() => {
  const names = new Set();
  window.wanted = [];
  const focusable = "a[href], button, input, select, textarea, summary, [tabindex]";
  for (const node of document.querySelectorAll(focusable)) {
    if (node.tabIndex < 0 || node.disabled || !node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.type === "radio" && names.has(node.name)) continue;
    if (node.type === "radio") names.add(node.name);
    window.wanted.push(node);
  }
  return window.wanted.length;
}"""

# Whether the focus can be seen, and what has it; null at the end of the page.
FOCUSED = """() => {
  const node = document.activeElement;
  if (node === document.body) return null;
  window.reached ??= new Set();
  window.reached.add(node.type === "radio" ? node.name : node);
  const rings = [node, node.nextElementSibling, node.parentElement].filter(one => one)
    .flatMap(one => [getComputedStyle(one), getComputedStyle(one, "::after")]);
  const ring = style => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [rings.some(ring) || node.getBoundingClientRect().width === 0, node.outerHTML.slice(0, 120)];
}"""

MISSED = """() => window.wanted
  .filter(node => !window.reached.has(node.type === "radio" ? node.name : node))
  .map(node => node.outerHTML.slice(0, 120))"""

# Elements that stick out of a narrow page.
OUTSIDE = """() => [...document.querySelectorAll("main *")]
  .filter(node => !node.closest("svg, .scroll, .unseen, thead") && node.checkVisibility())
  .filter(node => node.getBoundingClientRect().right > innerWidth + 1
    || node.getBoundingClientRect().left < -1)
  .map(node => node.outerHTML.slice(0, 120))"""

# Controls and pictures of which a screen reader could say nothing.
NAMELESS = """() => [...document.querySelectorAll(
    "button, a[href], input, select, canvas, svg[role=img], [role=application], [role=img]")]
  .filter(node => node.checkVisibility() && !node.getAttribute("aria-label") && !node.textContent.trim())
  .filter(node => !node.getAttribute("aria-labelledby") && !node.labels?.length)
  .filter(node => !node.closest("label, [aria-hidden=true]"))
  .map(node => node.outerHTML.slice(0, 120))"""

LABELS = """() => [...document.querySelectorAll("main [aria-label], main [title]")]
  .map(node => node.getAttribute("aria-label") ?? node.title)"""

# Whether the first chart has two pixels of its canvas for one of the page's; then its width.
SHARP = """() => {
  const canvas = document.querySelector(".chart canvas");
  return canvas.width > 0 && canvas.width === Math.round(canvas.clientWidth * 2) && canvas.clientWidth;
}"""

HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""

# Waits until what has happened so far is drawn.
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"

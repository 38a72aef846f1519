"""A flame graph as one SVG that opens in any browser: hover for figures, click to zoom, type to search.

Takes {"frame;frame;frame": samples}, outermost frame first. Width is time; a frame stands on its caller.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

WIDTH, ROW = 1200, 17
_TOP, _LETTER = 46, 6.6  # pixels: above the graph; the width of a letter of 11 pixels
_THINNEST = 0.001  # share of all samples below which a frame is not drawn
_TEMPLATE = re.compile(r"<[^<>]*>")
_ARGUMENTS = re.compile(r"\([^()]*\)(?=.* \()")
_UNKNOWN = re.compile(r"^0x[0-9a-f]+ \(\?\)$")  # made at run time, as oneDNN's kernels are
_ADDRESS = re.compile(r"^0x[0-9a-f]+ ")


@dataclass
class Frame:
    """A function in one chain of calls. samples: its own and its callees'."""

    name: str
    samples: int = 0
    callees: dict[str, "Frame"] = field(default_factory=dict)


def tree(stacks: Mapping[str, int], name: str = "all") -> Frame:
    """Return the stacks as a tree of frames; neighbours with one name become one frame."""
    root = Frame(name)
    for stack, samples in stacks.items():
        root.samples += samples
        at = root
        for raw in stack.split(";"):
            frame = simplified(raw)
            if frame == at.name:
                continue
            at = at.callees.setdefault(frame, Frame(frame))
            at.samples += samples
    return root


def simplified(frame: str) -> str:
    """Return a frame's name without template arguments, parameters and addresses."""
    frame = _ADDRESS.sub("", _UNKNOWN.sub("code without a name (?)", frame))
    before = ""
    while before != frame and "::" in frame:
        before, frame = frame, _TEMPLATE.sub("", frame)
    return _ARGUMENTS.sub("", frame) if "::" in frame else frame


def draw(stacks: Mapping[str, int], title: str) -> str:
    """Return the SVG."""
    root = tree(stacks)
    least = max(1, root.samples * _THINNEST)
    rows = _drawn_depth(root, least)
    height = _TOP + rows * ROW + 8
    boxes: list[str] = []
    _draw(root, 0.0, 0, WIDTH / max(root.samples, 1), least, root.samples, height, boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="#fdfcf7"/>\n'
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>\n'
        f'<text x="10" y="38" id="said" fill="#555">{root.samples:,} samples; hover a frame for its share, '
        "click to zoom in, click the bottom row to zoom out, press / to search</text>\n"
        f'<g id="graph">\n{"".join(boxes)}</g>\n'
        f"<script><![CDATA[{_SCRIPT}]]></script>\n</svg>\n"
    )


def _drawn_depth(frame: Frame, least: float) -> int:
    wide = (callee for callee in frame.callees.values() if callee.samples >= least)
    return 1 + max((_drawn_depth(callee, least) for callee in wide), default=0)


def _draw(
    frame: Frame,
    x: float,
    row: int,
    scale: float,
    least: float,
    samples: int,
    height: int,
    boxes: list[str],
) -> None:
    """Append a frame's box, and the boxes of its callees above it; the bottom row is the root."""
    width, y = frame.samples * scale, height - 8 - (row + 1) * ROW
    name = escape(frame.name)
    share = f"{frame.samples / max(samples, 1):.1%}"
    boxes.append(
        f'<g class="f" data-x="{x:.2f}" data-w="{width:.2f}" data-n="{name}">'
        f"<title>{name}: {frame.samples:,} samples, {share}</title>"
        f'<rect x="{x:.2f}" y="{y}" width="{max(width - 0.4, 0.2):.2f}" height="{ROW - 1}" rx="1.5" '
        f'fill="{colour(frame.name)}"/>'
        f'<text x="{x + 3:.2f}" y="{y + 12}">{escape(_fitting(frame.name, width))}</text></g>\n'
    )
    for callee in sorted(frame.callees.values(), key=lambda callee: callee.name):
        if callee.samples >= least:
            _draw(callee, x, row + 1, scale, least, samples, height, boxes)
        x += callee.samples * scale


def _fitting(name: str, width: float) -> str:
    letters = int((width - 6) / _LETTER)
    if letters < 3:
        return ""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def colour(name: str) -> str:
    """Return the colour of a frame: ours warm, other Python's yellow, native code green, processes grey."""
    shade = zlib.crc32(name.encode()) % 12
    if "(" not in name:
        return f"hsl(220 10% {78 + shade / 2:.0f}%)"
    if "keisei" in name.rpartition("(")[2] or "_native." in name or "keisei::" in name:
        return f"hsl({14 + shade} 85% {70 + shade / 2:.0f}%)"
    if name.endswith(".py)") or "<" in name.rpartition("(")[2]:
        return f"hsl({44 + shade} 85% {72 + shade / 2:.0f}%)"
    return f"hsl({100 + 3 * shade} 45% {72 + shade / 2:.0f}%)"


_STYLE = ".f{cursor:pointer}.f:hover rect{stroke:#333}.f text{pointer-events:none}.hit rect{fill:#c53fd0}"
_SCRIPT = """
const frames = [...document.querySelectorAll('.f')];
const said = document.getElementById('said');
const letters = 6.6, full = document.documentElement.viewBox.baseVal.width;
function show(left, width) {
  for (const f of frames) {
    const x = (f.dataset.x - left) / width * full, w = f.dataset.w / width * full;
    const a = Math.max(x, 0), b = Math.min(x + w, full);
    f.style.display = b - a < 0.3 ? 'none' : '';
    const box = f.querySelector('rect'), text = f.querySelector('text');
    box.setAttribute('x', a); box.setAttribute('width', Math.max(b - a - 0.4, 0.2));
    text.setAttribute('x', a + 3);
    const fit = Math.floor((b - a - 6) / letters), name = f.dataset.n;
    text.textContent = fit < 3 ? '' : name.length <= fit ? name : name.slice(0, fit - 1) + '…';
  }
}
for (const f of frames) {
  f.addEventListener('click', () => show(+f.dataset.x, +f.dataset.w));
  f.addEventListener('mouseenter', () => { said.textContent = f.querySelector('title').textContent; });
}
document.addEventListener('keydown', event => {
  if (event.key !== '/') return;
  event.preventDefault();
  const wanted = (prompt('frames that contain') || '').toLowerCase();
  let found = 0;
  for (const f of frames) {
    const hit = wanted !== '' && f.dataset.n.toLowerCase().includes(wanted);
    f.classList.toggle('hit', hit);
    found += hit;
  }
  said.textContent = wanted ? found + ' frames contain ' + wanted : '';
});
"""

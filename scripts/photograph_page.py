"""Take a picture of a page: python scripts/photograph_page.py http://127.0.0.1:8765/ docs/web-live.png

Needs what `make browser` installs, and a `keisei web` that runs, for the README's picture beside a training.
The picture has few colours, so that it is small; a second later the boards look different.
"""

import argparse
import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image

from keisei.errors import UserError

WAIT_MS = 120_000  # for the first games of a training
COLORS = 256  # with fewer, the lines of charts lose their own
ROUNDS = 4  # to find them; without, the background is tinted
NAMES = ("chromium", "chromium-browser", "google-chrome")  # as in the Makefile
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def photograph(
    address: str, *, width: int, height: int, scale: float, dark: bool, lang: str, seconds: float
) -> bytes:
    """Return the page as a PNG, so many seconds after its charts and boards are there."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError as error:
        raise UserError("no playwright: make browser installs it") from error
    with sync_playwright() as playwright:
        chromium = os.environ.get("KEISEI_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        if chromium is None:
            raise UserError("no chromium: make browser installs it")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        context = browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
            color_scheme="dark" if dark else "light",
            locale={"en": "en-US", "ja": "ja-JP"}[lang],
        )
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.add_init_script(f"localStorage.setItem('keisei.lang', '{lang}')")
        try:
            page.goto(address)
        except Error as error:
            raise UserError(f"cannot open {address}: {str(error).splitlines()[0]}") from error
        page.locator("main section").first.wait_for()
        if page.locator("main .boards").count():
            page.locator(".live-board").nth(3).wait_for()
        page.wait_for_timeout(1000 * seconds)
        return bytes(page.screenshot())


def reduced(picture: bytes) -> Image.Image:
    """Return a picture with few colours, those that it has most of."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    return whole.quantize(COLORS, Image.Quantize.MAXCOVERAGE, ROUNDS, dither=Image.Dither.NONE)


def main() -> int:
    """Take a picture as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("address", help="of a page, such as http://127.0.0.1:8765/")
    parser.add_argument("out", type=Path, help="the PNG to write")
    parser.add_argument("--width", type=int, default=1000, help="of the window, in the page's pixels")
    parser.add_argument("--height", type=int, default=1170, help="of the window")
    parser.add_argument("--scale", type=float, default=1.6, help="pixels of the picture for one of the page")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    parser.add_argument("--lang", choices=("en", "ja"), default="en")
    parser.add_argument("--seconds", type=float, default=15.0, help="to wait, while the boards go on")
    chosen = vars(parser.parse_args())
    out: Path = chosen.pop("out")
    try:
        if out.suffix != ".png" or not out.parent.is_dir():
            raise UserError(f"cannot write {out}: expected a .png in a directory that exists")
        for name, least in (("width", 100), ("height", 100), ("scale", 0.1), ("seconds", 0)):
            if not least <= chosen[name] <= 10_000:
                raise UserError(f"--{name} is {chosen[name]:g}, expected {least:g} to 10000")
        reduced(photograph(chosen.pop("address"), **chosen)).save(out, optimize=True)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{out}: {out.stat().st_size / 1000:.0f} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

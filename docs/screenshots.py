"""The pictures of pages in these documents, made anew: ``python docs/screenshots.py NAME=PAGE.html ...``.

Writes ``docs/images/page-NAME.png`` for each page, and of ``compare`` its top as well. Needs Chromium and Pillow.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PIL import Image

from tests.browser import Browser, find_browser

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 1200
# The first row of sections ends here.
TOP = "document.querySelectorAll('section')[1].getBoundingClientRect().bottom + scrollY + 10"
LARGEST = 400_000


def shrink(path: Path) -> None:
    """Fewer colours, until the file is small enough to be kept."""
    image = Image.open(path).convert("RGB")
    for colors in (128, 64, 32):
        image.quantize(colors, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < LARGEST:
            return
    raise SystemExit(f"{path} is still {path.stat().st_size:,} bytes; show less of the page")


def main() -> None:
    browser = find_browser()
    if browser is None:
        raise SystemExit("no Chromium; apt-get install chromium, or name one in SHARPEN_BROWSER")
    IMAGES.mkdir(exist_ok=True)
    with Browser(browser) as running:
        for argument in sys.argv[1:]:
            name, _, page = argument.partition("=")
            with running.open(Path(page), WIDTH) as tab:
                path = IMAGES / f"page-{name}.png"
                tab.screenshot(path)
                if name == "compare":
                    Image.open(path).crop((0, 0, WIDTH, round(tab.run(TOP)))).save(IMAGES / "compare-top.png")
                    shrink(IMAGES / "compare-top.png")
                shrink(path)


if __name__ == "__main__":
    main()

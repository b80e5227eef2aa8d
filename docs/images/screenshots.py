"""Screenshots of the pages for the documentation: python docs/images/screenshots.py EN-FR-MODEL

Needs the extra packages of the server, playwright and Chromium.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
TEXT = "The black cat sat on the couch. The girl bought a dress and she lost it. The queen will talk to the heroes."
WIDTH = 1280


@contextmanager
def served(model: Path) -> Iterator[str]:
    """The address of a server of a model."""
    command = [sys.executable, "-m", "glassformer", "serve", f"en-fr={model}", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        try:
            for line in process.stdout:
                if "http://" in line:
                    yield "http://" + line.partition("http://")[2].split()[0].rstrip("/.,")
                    break
        finally:
            process.terminate()


def top_of(page: Page, part: str) -> float:
    """The position of the upper edge of a part of a page, from the top of the page."""
    found = page.locator(part).first
    found.scroll_into_view_if_needed()
    page.wait_for_timeout(500)  # a part is drawn when it is in view
    box = found.bounding_box()
    assert box
    return float(box["y"] + page.evaluate("scrollY"))


def write(page: Page, name: str, top: float, bottom: float) -> None:
    """Save a page between two heights, over its whole width, as PNG."""
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
    page.screenshot(path=HERE / f"{name}.png", full_page=True, clip=clip)
    print(f"{name}.png: {(HERE / f'{name}.png').stat().st_size / 1000:.0f} KB")


def main(model: Path) -> None:
    """Write all screenshots."""
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--hide-scrollbars"])
        page = browser.new_page(color_scheme="light", viewport={"width": WIDTH, "height": 520}, locale="en-US")
        with served(model) as address:
            page.goto(f"{address}/")
            page.fill(".mirror textarea", TEXT)
            page.wait_for_selector(".output .word")
            page.wait_for_timeout(2000)
            page.locator(".output .word").nth(1).hover()
            page.wait_for_timeout(500)
            write(page, "serve", 0, 520)
        report = Path(folder) / "inspect.html"
        sentence = TEXT.partition(".")[0] + "."
        command = [sys.executable, "-m", "glassformer", "inspect", str(model), sentence, "--out", str(report)]
        subprocess.run(command, check=True)
        page.goto(report.as_uri())
        bottom = top_of(page, "text=norm of queries") - 8
        write(page, "inspect", top_of(page, "details:has(h2:text-is('Attention'))") + 1, bottom)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

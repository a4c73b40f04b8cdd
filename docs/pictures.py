"""Make the pictures of the page: `python docs/pictures.py` plays a game in Chromium and writes docs/pictures/*.png."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from web_server import CHROMIUM, MIRA, page_server, say  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WORDS = ["I talk to Maren Holt.", "I search for tracks.", "I go to Lighthouse Hill.", "I climb the ivy to the lamp."]


def main() -> None:
    """Play, and look at each view."""
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        page_server(Path(home) / "home", developer=True, buffer="summary", summary_offset=1) as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
        page.goto(f"{server.url}/c/isle/")
        for words in [MIRA, *WORDS]:
            say(page, words)
        page.click("text=Roll again")
        page.locator(".takes button").nth(1).wait_for(timeout=20_000)
        _take(page, "story")
        page.click("#quest .people .field >> nth=0")
        page.locator(".origin").wait_for()
        _take(page, "field")
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 1280, "height": 1600})  # so that nothing of a panel is scrolled away
        page.locator("#memories").screenshot(path=PICTURES / "memories.png")
        page.locator("#tree").screenshot(path=PICTURES / "lines.png")
        page.set_viewport_size({"width": 1280, "height": 860})
        for name in ("chronicle", "fidelity", "settings", "behind"):
            page.goto(f"{server.url}/c/isle/{name}")
            _take(page, name)
        page.goto(server.url)
        _take(page, "campaigns")
        page.goto(f"{server.url}/a/companion/")
        say(page, "My name is Mira and I live in Bergen.")
        _take(page, "companion")
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        phone.goto(f"{server.url}/c/isle/")
        _take(phone, "phone")
        browser.close()


def _take(page: Page, name: str) -> None:
    page.wait_for_timeout(900)
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()

"""The page without a mouse: everything that one sees is reached and used by Tab, Enter, Space, letters and arrows."""

from pathlib import Path

import pytest
from web_server import MIRA, Visitor, settle

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow


class Keys:
    """A person at a page who has only a keyboard."""

    def __init__(self, page):
        self.page, self.expect = page, pytest.importorskip("playwright.sync_api").expect

    def reach(self, selector, words=""):
        """Press Tab until what has the focus is an element with these words."""
        script = (
            "([selector, words]) => document.activeElement.matches(selector)"
            " && document.activeElement.textContent.includes(words)"
        )
        for _ in range(150):
            if self.page.evaluate(script, [selector, words]):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {selector} {words!r}")

    def press(self, selector, words="", key="Enter"):
        """Go to an element and press a key there."""
        self.reach(selector, words)
        self.page.keyboard.press(key)

    def write(self, selector, text, key=""):
        """Go to a field and write something in the place of what is there; then press a key."""
        self.reach(selector)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)
        if key:
            self.page.keyboard.press(key)

    def sees(self, selector, words=""):
        """Wait until something is on the page."""
        self.expect(self.page.locator(selector, has_text=words).first).to_be_visible(timeout=15_000)

    def loses(self, selector, words=""):
        """Wait until something is no longer on the page."""
        self.expect(self.page.locator(selector, has_text=words)).to_have_count(0, timeout=15_000)

    def goes(self, selector, words=""):
        """Follow a link."""
        with self.page.expect_navigation():
            self.press(selector, words)


@pytest.fixture
def keys(page):
    return Keys(page)


def test_a_turn_is_played_edited_and_taken_back_without_a_mouse(page, keys):
    keys.write("#text", MIRA, "Enter")
    keys.sees("#turn-1 .reply")
    keys.press("#sheet .field", "thief")
    keys.write("#value", "spy")
    keys.press("#card .send")
    keys.sees("#sheet .field", "spy")
    keys.loses("#dialog[open]")
    settle(page)
    keys.expect(page.locator("#sheet .field", has_text="spy")).to_be_focused()
    keys.write("#text", "I look around.", "Enter")
    keys.sees("#turn-2 .reply")
    keys.press("button", "Undo")
    keys.loses("#turn-2")


def test_every_view_of_a_campaign_is_used_without_a_mouse(page, site, keys):
    with Visitor(site.url) as other:
        for words in (MIRA, *["I sneak past Maren Holt"] * 4, "I look around."):
            other.say(words)
        other.post("undo")
        other.say("I leave the town.")
    page.goto(f"{site.url}/c/isle/")
    keys.sees("#tree [role=treeitem]")
    _use_the_pages(page, keys)
    _use_the_memories(page, keys)
    _use_what_is_past(page, keys)


def _use_the_pages(page, keys):
    keys.press("#sheet summary", "More of the sheet")
    keys.press("#sheet .add[aria-label='Add to the first kit']")
    keys.write("#new", "lantern")
    keys.write("#value", "2")
    keys.press("#card .send")
    keys.sees("#sheet .inventory", "lantern ×2")
    keys.press("#quest .people .strong")
    keys.sees("#card .origin")
    keys.press("#card dd .field", "yes")
    keys.press("#value", key="ArrowDown")
    keys.press("#card .send")
    keys.sees("#quest .people .dead")
    keys.press("#quest .add[aria-label='Add a quest']")
    keys.write("#new", "Find the key")
    keys.press("#card .send")
    keys.press("#quest .strong", "Find the key")
    keys.press("#card button", "Remove")
    keys.loses("#quest .quests", "Find the key")


def _use_the_memories(page, keys):
    keys.write("#words", "sneak past Maren")
    keys.sees("#matches .why", "shares the words sneak, past, maren")
    keys.press("#matches .field", "sneak")
    keys.sees("#card .origin")
    keys.write("#forget", "sneak", "Enter")
    keys.sees("#card h2", "Forget “sneak”?")
    keys.press("[name=whole]", key="Space")
    assert page.is_checked("[name=whole]")
    keys.press("#card .close", "Keep it")
    keys.loses("#dialog[open]")
    keys.press("#matches .field", "sneak")
    keys.press("#card button", "Retract turn", "Space")
    keys.press("#card .send", "Retract it")
    keys.sees("#card h2", "Done")
    keys.press("#card .close", "Close")
    keys.loses("#dialog[open]")
    keys.write("#words", "town")
    keys.press("#matches .field", "town")
    keys.write("#forget", "town", "Enter")
    keys.press("#card .send", "Forget for ever")
    keys.sees("#card h2", "Done")
    page.keyboard.press("Escape")
    keys.loses("#dialog[open]")
    keys.sees("#story", "[forgotten]")


def _use_what_is_past(page, keys):
    keys.press("#tree [role=treeitem]", key="ArrowDown")
    keys.press("#one", key="ArrowDown")
    keys.press("#tree button", "Compare", "Space")
    keys.sees("#card .sides")
    page.keyboard.press("Escape")
    keys.write("#line", "the quay", "Enter")
    keys.sees("#tree", "the quay")
    keys.press("#dice summary")
    keys.sees("#dice details .roll")
    keys.press("button", "Keys")
    keys.press("#keys button", "Close")
    keys.loses("#keys:popover-open")
    keys.press(".change summary", "A wish")
    keys.write("#wish", "More of the sea.")
    keys.press(".change button", "Wish")
    keys.sees(".change summary", "Your wish")
    keys.goes("#summary a", "side by side")
    keys.sees("h2", "Buffer")
    keys.goes(".where a")
    keys.goes(".top a", "Chronicle")
    with page.expect_download() as download:
        keys.press("a", "Markdown")
    assert "# isle" in Path(download.value.path()).read_text("utf-8")
    keys.goes(".where a", "isle")


def test_shelf_settings_and_core_memory_are_used_without_a_mouse(page, site, keys):
    page.goto(f"{site.url}/")
    keys.reach("#name")
    with page.expect_navigation():
        keys.write("#name", "the reef", "Enter")
    keys.write("#text", MIRA, "Enter")
    keys.sees("#turn-1 .reply")
    keys.goes("a", "Settings")
    keys.write("#s-buffer_tokens", "50", "Enter")
    keys.sees("#p-buffer_tokens .problem")
    keys.write("#s-buffer_tokens", "2500")
    keys.press("#s-buffer", key="ArrowDown")
    keys.press("summary", "Recall", "Space")
    keys.write("#s-weights-words", "2.5", "Enter")
    keys.sees("#settings-done .done")
    with page.expect_file_chooser() as chooser:
        keys.press("#files")
    chooser.value.set_files({"name": "gate.md", "mimeType": "text/markdown", "buffer": b"# Gate\n\nIt opens.\n"})
    keys.press("#lore .send")
    keys.press("#lore button", "Remove")
    keys.loses("#lore b")
    with page.expect_download() as download:
        keys.press("a", "Export it")
    assert Path(download.value.path()).stat().st_size > 1000
    with page.expect_navigation():
        keys.write("#rename", "the rock", "Enter")
    keys.goes("a", "Settings")
    keys.goes("button", "Put it away")
    keys.press(".away summary")
    keys.goes(".away a", "the rock")
    keys.goes("a", "Settings")
    keys.goes("button", "Put it back")
    keys.goes(".books a", "Talk to a companion")
    keys.write("#text", "My name is Mira.", "Enter")
    keys.sees("#core .section")
    keys.write("#core-new", "plans", "Enter")
    keys.sees("#core .section b", "plans")
    keys.press("#core [aria-label='Move plans up']")
    keys.sees("#core .section:nth-of-type(3) b", "plans")
    plans = "#core .section:nth-of-type(3)"
    keys.write(f"{plans} textarea", "Sail north.")
    keys.press(f"{plans} button", "Change")
    keys.sees(f"{plans} small", "11 of")
    keys.press("#core [aria-label='Remove plans']", key="Space")
    keys.loses("#core .section b", "plans")

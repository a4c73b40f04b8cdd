"""The page without a mouse: everything that one sees is reached and used by Tab, Enter, Space, letters and arrows."""

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
        self.page.locator(selector, has_text=words).first.wait_for(state="attached")
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


REACH = """() => {
  const reached = document.activeElement.reached;
  document.activeElement.reached = true;
  return reached;
}"""
UNREACHED = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled && !e.reached)
  .map((e) => e.outerHTML.slice(0, 90))"""


def unreached(page):
    """Press Tab until it has been everywhere; return what one can use with a mouse, and Tab has not come to."""
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    page.evaluate("document.activeElement.blur()")
    for _ in range(250):
        page.keyboard.press("Tab")
        if page.evaluate(REACH):
            break
    return page.evaluate(UNREACHED)


def test_tab_comes_to_everything_that_one_can_use(page, site, keys):
    with Visitor(site.url) as other, Visitor(site.url, "/a/companion/") as companion:
        for words in (MIRA, *["I sneak past Maren Holt"] * 4, "I look around."):
            other.say(words)
        other.post("undo")
        companion.say("My name is Mira.")
    for path in ("/", "/c/isle/", "/c/isle/settings", "/c/isle/chronicle", "/c/isle/fidelity", "/a/companion/"):
        page.goto(site.url + path)
        settle(page)
        assert unreached(page) == [], path


def test_dialogs_lists_and_the_tree_are_used_without_a_mouse(page, site, keys):
    with Visitor(site.url) as other:
        for words in (MIRA, "I look around."):
            other.say(words)
        other.post("undo")
        other.say("I leave the town.")
    page.goto(f"{site.url}/c/isle/")
    keys.press("#sheet .field", "thief")
    keys.write("#value", "spy")
    keys.press("#card .send")
    keys.loses("#dialog[open]")
    keys.expect(page.locator("#sheet .field", has_text="spy")).to_be_focused()
    keys.sees("#tree [role=treeitem]")
    keys.press("#quest .people .strong")
    keys.sees("#card .origin")
    keys.press("#card dd .field", "yes")
    keys.press("#value", key="ArrowDown")
    keys.press("#card .send")
    keys.sees("#quest .people .dead")
    keys.write("#words", "leave the town")
    keys.press("#matches .field", "town")
    keys.write("#forget", "town", "Enter")
    keys.press("[name=whole]", key="Space")
    assert page.is_checked("[name=whole]")
    keys.press("#card .close", "Keep it")
    keys.loses("#dialog[open]")
    keys.press("#tree [role=treeitem]", key="ArrowDown")
    page.keyboard.press("Enter")
    keys.sees(".turn .player", "look around")
    keys.press("#tree button", "Compare", "Space")
    keys.sees("#card .sides")
    page.keyboard.press("Escape")
    keys.loses("#dialog[open]")
    keys.press("button", "Keys")
    keys.press("#keys button", "Close")
    keys.loses("#keys:popover-open")
    keys.goes(".top a", "Settings")
    with page.expect_file_chooser() as chooser:
        keys.press("#files")
    chooser.value.set_files({"name": "gate.md", "mimeType": "text/markdown", "buffer": b"# Gate\n\nIt opens.\n"})
    keys.press("#lore .send")
    keys.sees("#lore b", "gate.md")

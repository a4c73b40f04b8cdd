"""The page for everybody: axe on every view and state, what is announced, nothing that jumps, print, files."""

import asyncio
import base64

import pytest
from web_server import MIRA, say, settle

from questbook.graphs.web.open_campaign import OpenCampaign

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow

VIEWS = ("/", "/c/isle/", "/c/isle/settings", "/c/isle/chronicle", "/c/isle/fidelity", "/c/isle/behind",
         "/a/companion/", "/nowhere")  # fmt: skip
SHAPES = [(360, "light", False), (360, "dark", True), (1280, "light", True), (1280, "dark", False)]
"""Width of the window, colours, and whether all states are gone through."""


@pytest.fixture
def slow_words(monkeypatch):
    """Let each piece of a reply take its time."""
    tell = OpenCampaign._tell

    async def slow(self, kind, data):
        await tell(self, kind, data)
        await asyncio.sleep(0.02 if kind == "piece" else 0)

    monkeypatch.setattr(OpenCampaign, "_tell", slow)


@pytest.mark.timeout(300)
def test_every_view_and_every_state_can_be_used_by_everybody(browser, site, page, slow_words):
    axe, problems = pytest.importorskip("axe_playwright_python.sync_playwright"), []
    say(page, MIRA)
    for words in ("I sneak past Maren Holt", "I look around."):
        say(page, words)
    settle(page)

    def check(view, state):
        results = axe.Axe().run(view).response["violations"]
        problems.extend((state, each["id"], [node["html"][:90] for node in each["nodes"][:3]]) for each in results)
        if view.evaluate("document.documentElement.scrollWidth") > view.viewport_size["width"]:
            problems.append((state, "wider than the window"))

    for width, scheme, states in SHAPES:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
        )
        view = context.new_page()
        for path in VIEWS:
            view.goto(site.url + path)
            view.wait_for_timeout(250)
            check(view, (path, width, scheme))
        view.goto(f"{site.url}/c/isle/")
        for name in ("sheet", "quest", "memories", "tree") if width < 800 else ():
            view.click(f"[data-view={name}]")
            check(view, (name, width, scheme))
        if not states:
            context.close()
            continue
        if width < 800:
            view.click("[data-view=quest]")
        view.click("[aria-label='Add an item']")
        view.click("#card .send")
        view.locator("#card-problem .problem").wait_for()
        check(view, ("an error in a card", width, scheme))
        view.keyboard.press("Escape")
        if width > 800:
            view.fill("#words", "Maren")
            view.locator("#matches .field").first.click()
            view.locator("#card .origin").wait_for()
            check(view, ("a memory", width, scheme))
            view.keyboard.press("Escape")
            view.click("button:text-is('Keys')")
            check(view, ("the keys", width, scheme))
            view.keyboard.press("Escape")
        else:
            view.click("[data-view=story]")
        view.fill("#text", "I look at the boats.")
        view.press("#text", "Enter")
        view.locator("#live-reply p").first.wait_for()
        check(view, ("a reply that comes", width, scheme))
        settle(view)
        view.goto(f"{site.url}/c/isle/settings")
        view.fill("#s-buffer_tokens", "5")
        view.click("button:text-is('Keep')")
        view.locator("#p-buffer_tokens .problem").wait_for()
        check(view, ("an error in the settings", width, scheme))
        context.close()
    assert not problems, problems


def test_a_reply_is_announced_once_and_nothing_jumps_while_it_comes(page, slow_words):
    say(page, MIRA)
    settle(page)
    page.evaluate(
        """() => {
          window.said = []; window.shift = 0;
          new MutationObserver(() => said.push(document.getElementById("news").textContent))
            .observe(document.getElementById("news"), {childList: true, characterData: true, subtree: true});
          new PerformanceObserver((list) => {
              for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
            })
            .observe({type: "layout-shift"});
        }"""
    )
    page.fill("#text", "I sneak past Maren Holt")
    page.press("#text", "Enter")
    page.locator("#live-reply p").first.wait_for()
    assert page.locator("#live[aria-busy=true]").count() == 1
    assert page.locator("#story[aria-live], #story [aria-live], [role=log]").count() == 0
    settle(page)
    said, reply = page.evaluate("said"), page.locator(".turn .reply").last.evaluate("e => e.textContent")
    assert said.count(reply) == 1
    others = [words for words in said if words != reply and not words.startswith("Noted: ")]
    assert others == [said[0]]  # the roll, in words
    assert "Stealth" in said[0]
    assert page.evaluate("shift") < 0.1  # what Web Vitals call good; 0.25 is poor


def test_who_wants_less_motion_gets_none(browser, site):
    moving = {}
    for wish in ("reduce", "no-preference"):
        view = browser.new_page(reduced_motion=wish)
        view.goto(f"{site.url}/c/isle/")
        moving[wish] = view.evaluate(
            """() => {
              document.getElementById("story").innerHTML = '<span class="die fresh">1</span>';
              return document.querySelector(".die").getAnimations().length;
            }"""
        )
        view.close()
    assert moving == {"reduce": 0, "no-preference": 1}


def test_sheet_and_chronicle_print_as_paper(page, site):
    say(page, MIRA)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#sheet, #quest").evaluate_all("all => all.every(e => e.checkVisibility())")
    for name in (".top", ".story", ".past", ".add", "#tree", "#text"):
        assert not page.locator(name).first.is_visible(), name
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").count(b"/Type /Page\n") == 1
    page.goto(f"{site.url}/c/isle/chronicle")
    page.locator(".top").wait_for(state="hidden")
    assert page.locator(".chronicle p").first.is_visible()


def test_lore_files_are_dropped_and_what_cannot_be_read_is_said(page, site):
    say(page, MIRA)
    page.goto(f"{site.url}/c/isle/settings")
    files = {
        "gate.md": b"# The sea gate\n\nThe sea gate opens at the lowest tide.\n",
        "run.exe": b"MZ",
        "torn.pdf": b"%PDF-1.7 torn",
    }
    sent = {name: base64.b64encode(content).decode() for name, content in files.items()}
    data = page.evaluate_handle(
        """(files) => {
          const data = new DataTransfer();
          for (const [name, text] of Object.entries(files))
            data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
          return data;
        }""",
        sent,
    )
    page.dispatch_event("h1", "drop", {"dataTransfer": data})  # beside the area: nothing happens, the page stays
    page.dispatch_event("#lore .drop", "dragover", {"dataTransfer": data})
    assert page.locator("#lore .drop.over").count() == 1
    page.dispatch_event("#lore .drop", "drop", {"dataTransfer": data})
    report = page.locator("#lore-report")
    report.locator(".done", has_text="gate.md: added").wait_for()
    report.locator(".problem", has_text="run.exe: not read").wait_for()
    report.locator(".problem", has_text="torn.pdf: unreadable").wait_for()
    assert page.locator("#lore b").all_inner_texts() == ["gate.md"]

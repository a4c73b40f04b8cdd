"""Every button, form, field and link of the page is used as a person would, and does what it says."""

import asyncio
import re
from pathlib import Path

import pytest
from web_server import MIRA, say, settle

from questbook.graphs.web.open_campaign import OpenCampaign

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow


def test_every_control_does_what_it_says(page, site, tmp_path, monkeypatch):
    page.set_default_timeout(12_000)
    _begin_a_campaign(page, site)
    _play(page, monkeypatch)
    _edit_pages(page)
    _go_through_lines(page)
    _remember_and_forget(page)
    _read(page, site)
    _set_and_keep(page, site, tmp_path)
    _talk_to_a_companion(page, site)


def card(page, opener):
    page.wait_for_selector("[aria-busy]", state="detached")  # what was changed before is shown
    page.locator(opener).first.click()
    page.locator("#dialog[open] #card h2").wait_for()


def change(page, opener, value):
    """Write a field's card."""
    card(page, opener)
    page.locator("#value").fill(value)
    page.click("#card .send")
    page.locator("#dialog[open]").wait_for(state="detached")


def opens(page, name):
    return f"[hx-get$='/field?page={name}']"


def add(page, what, name, value=None):
    card(page, f"[aria-label='Add {what}']")
    page.fill("#new", name)
    if value is not None:
        page.fill("#value", value)
    page.click("#card .send")
    page.locator("#dialog[open]").wait_for(state="detached")


def _begin_a_campaign(page, site):
    page.goto(f"{site.url}/")
    page.fill("#name", "isle")
    page.click("button:text-is('Begin')")
    page.locator(".opening").wait_for()
    page.click("button:text-is('Keys')")
    page.locator("#keys", has_text="stops a reply").wait_for()
    page.click("#keys button:text-is('Close')")
    page.locator("#keys").wait_for(state="hidden")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "text"
    page.fill("#text", "I'm Mira, a halfling.")
    page.click("#say .send")
    page.locator("#story .missing .field", has_text="class").wait_for(timeout=20_000)
    settle(page)
    change(page, "#story .missing .field:text-is('class')", "thief")
    page.locator("#sheet dd", has_text="thief").wait_for()
    say(page, MIRA)
    page.locator("#quest", has_text="To do").wait_for()


def _play(page, monkeypatch):
    for _ in range(4):
        say(page, "I sneak past Maren Holt")
    page.locator("#dice summary", has_text="All").click()
    page.locator("#dice .roll").last.wait_for()
    assert page.locator("#dice .totals dd").first.inner_text() == str(page.locator("#dice .roll").count())
    page.click("text=Other words")
    page.locator(".takes button").nth(1).wait_for(timeout=20_000)
    page.click("text=Roll again")
    page.locator(".takes button").nth(2).wait_for(timeout=20_000)
    page.locator(".takes button").first.click()
    page.locator(".takes button[aria-pressed=true]", has_text="1").wait_for()
    page.click("text=Change the reply")
    page.fill("[id^=rewrite-]", "A brass bell hangs over the quay. What do you do?")
    page.click("text=It was so")
    page.locator(".turn:last-of-type .reply", has_text="brass bell").wait_for()
    page.click("text=A wish for the next turns")
    page.fill("#wish", "More of the sea.")
    page.fill(".short", "3")
    page.click(".change button:text-is('Wish')")
    page.locator("text=Your wish, for 3 more turns").wait_for()
    page.click("text=Change your words")
    page.fill("[id^=edit-]", "I look around the quay.")
    page.click("text=Play it again")
    page.locator(".turn:last-of-type[id^=turn-] .player", has_text="look around the quay").wait_for(timeout=20_000)
    settle(page)
    turns = page.locator(".turn").count()
    page.locator(".plain", has_text="Undo").click()
    page.locator(".turn").nth(turns - 1).wait_for(state="detached")
    page.click("text=Bring it back")
    page.locator(".turn").nth(turns - 1).wait_for()
    page.locator(".plain", has_text="Undo").click()
    page.locator(".turn").nth(turns - 1).wait_for(state="detached")
    tell = OpenCampaign._tell

    async def slow(self, kind, data):
        await tell(self, kind, data)
        await asyncio.sleep(0.3 if kind == "piece" else 0)

    with monkeypatch.context() as patch:
        patch.setattr(OpenCampaign, "_tell", slow)
        page.fill("#text", "I look at the boats.")
        page.press("#text", "Enter")
        page.locator("#live-reply p").first.wait_for(timeout=20_000)
        page.click(".stop")
        page.locator("#live").wait_for(state="detached")
        page.fill("#text", "")
    page.locator(".plain", has_text="Other words").click()  # the message that was stopped is answered
    page.locator(".turn:last-of-type[id^=turn-] .reply p").first.wait_for(timeout=20_000)
    settle(page)
    page.reload()
    page.click("text=Previously on")
    page.locator("#recap p").first.wait_for()


def _edit_pages(page):
    page.locator("#quest .people .strong").first.wait_for()
    change(page, opens(page, "character&path=name"), "Ada")
    page.locator("#sheet h2", has_text="Ada").wait_for()
    change(page, opens(page, "character&path=level"), "2")
    page.locator("#sheet h2", has_text="level 2").wait_for()
    change(page, opens(page, "character&path=goal"), "wants the lamp lit")
    page.locator("#sheet dd", has_text="lamp lit").wait_for()
    change(page, opens(page, "quest&path=condition&path=hp"), "3")
    page.locator("#sheet .bar[aria-label^='Hit points: 3 of']").wait_for()
    change(page, "#sheet .abilities .field", "20")
    page.locator("#sheet .abilities", has_text="+5").wait_for()
    add(page, "a condition", "poisoned", "until dawn")
    page.locator("#sheet .conditions", has_text="until dawn").wait_for()
    card(page, "#sheet .conditions .field")
    page.click("#card button:text-is('Remove')")
    page.locator("#sheet .conditions").wait_for(state="detached")
    page.click("text=More of the sheet")
    add(page, "to the first kit", "lantern", "2")
    page.locator("#sheet .inventory", has_text="lantern ×2").wait_for()
    card(page, "#sheet .inventory .field")
    page.click("#dialog button:text-is('Close')")
    change(page, opens(page, "quest&path=location"), "The Lamp Room")
    change(page, opens(page, "quest&path=clock&path=day"), "4")
    change(page, opens(page, "quest&path=clock&path=time"), "dusk")
    page.locator("#quest .place", has_text=re.compile("The Lamp Room.*day 4, dusk", re.DOTALL)).wait_for()
    change(page, opens(page, "quest&path=scene"), "Gulls on the sill.")
    change(page, opens(page, "quest&path=objective"), "Light it.")
    page.locator("#quest .goal", has_text="Light it.").wait_for()
    change(page, opens(page, "quest&path=gold"), "99")
    page.locator("#quest .inventory", has_text="99 gold").wait_for()
    add(page, "an item", "Rope/hook", "1")
    page.locator("#quest .inventory .field", has_text="Rope/hook").wait_for()
    card(page, "#quest .inventory .field:text-is('Rope/hook')")
    assert "No turn of this line noted" in page.locator(".origin").inner_text()
    page.fill("#value", "many")
    page.click("#card .send")
    page.locator("#card-problem .problem", has_text="number").wait_for()
    assert page.evaluate("document.activeElement.matches('#value[aria-invalid=true]')")
    page.fill("#value", "2")
    page.click("#card .send")
    page.locator("#quest .inventory", has_text="Rope/hook ×2").wait_for()
    card(page, "[aria-label='Add an item']")
    page.fill("#new", "rope/HOOK")
    page.click("#card .send")
    page.locator("#card-problem .problem", has_text="on the page already").wait_for()
    page.keyboard.press("Escape")
    card(page, "[aria-label='Add a person']")
    page.fill("#new", "Old Tom")
    page.fill("#new-role", "ferryman")
    page.fill("#new-attitude", "wary")
    page.click("#card .send")
    page.locator("#quest .people", has_text=re.compile(r"Old Tom.*ferryman.*wary", re.DOTALL)).wait_for()
    change(page, "#quest .people .chip .field:text-is('wary')", "friendly")
    card(page, "#quest .people .strong:text-is('Old Tom')")
    page.click("#card dd .field:text-is('yes')")
    page.select_option("#value", "False")
    page.click("#card .crumb .field")
    page.locator("#card dt", has_text="role").wait_for()
    page.click("#card dd .field:text-is('yes')")
    page.select_option("#value", "False")
    page.click("#card .send")
    page.locator("#quest .people .dead", has_text="Old Tom").wait_for()
    card(page, "[aria-label='Add a quest']")
    page.fill("#new", "Find the key")
    page.fill("#new-notes", "Under the mat?")
    page.click("#card .send")
    page.locator("#quest .quests", has_text="Find the key").wait_for()
    change(page, "#quest .quests .field:text-is('Under the mat?')", "Under the boat.")
    card(page, "#quest .quests .strong:text-is('Find the key')")
    page.click("#card dd .field:text-is('open')")
    page.select_option("#value", "done")
    page.click("#card .send")
    page.locator("#quest .quests .done", has_text="Find the key").wait_for()
    add(page, "something learnt", "The tide", "turns at six")
    change(page, "#quest dd .field:text-is('turns at six')", "turns at seven")
    page.locator("#quest dd", has_text="turns at seven").wait_for()


def _go_through_lines(page):
    page.fill("#line", "the quay")
    with page.expect_response("**/line"):
        page.click("#tree button:text-is('Name')")
    say(page, "I leave the town.")
    page.locator("#tree", has_text="the quay").wait_for()
    page.select_option("#one", index=1)
    page.select_option("#other", index=0)
    page.click("#tree button:text-is('Compare')")
    page.locator("#card .sides", has_text="Remembered only at").wait_for()
    page.click("#dialog button:text-is('Close')")
    page.locator("#tree [role=treeitem]").nth(1).click()
    page.locator(".turn .player", has_text="leave the town").wait_for(state="detached")


def _remember_and_forget(page):
    say(page, "I tell everybody about the Velvet Anchor.")
    settle(page)
    page.fill("#words", "velvet anchor")
    page.press("#words", "Enter")
    page.locator("#matches .field").first.wait_for()
    card(page, "#matches .field")
    page.locator("#card .origin").wait_for()
    page.click("#card button:has-text('Retract turn')")
    page.locator("#card [name=sure]").wait_for(state="attached")
    page.click("#card .send")
    page.locator("#card h2", has_text="Done").wait_for()
    page.click("#dialog button:text-is('Close')")
    page.locator("#matches .field", has_text="Velvet").wait_for(state="detached")
    say(page, "I tell everybody about the Velvet Anchor.")
    settle(page)
    page.locator("#matches .field", has_text="Velvet").first.wait_for()
    card(page, "#matches .field:has-text('Velvet')")
    page.fill("#forget", "Velvet Anchor")
    page.click("#card button:has-text('Forget')")
    page.check("[name=whole]")
    page.click("text=Keep it")
    page.locator("#dialog[open]").wait_for(state="detached")
    assert "Velvet" in page.locator("#story").inner_text()
    card(page, "#matches .field:has-text('Velvet')")
    page.fill("#forget", "Velvet Anchor")
    page.click("#card button:has-text('Forget')")
    page.click("text=Forget for ever")
    page.locator("#story", has_text="[forgotten]").wait_for(timeout=20_000)
    page.click("#dialog button:text-is('Close')")
    page.fill("#words", "Maren Holt")
    page.locator("#matches .why", has_text="turn 3 of").first.wait_for()
    card(page, "#matches li:has-text('turn 3 of') .field")
    page.click("text=Go back to turn 3")
    page.locator("#story[data-turn='3']").wait_for()
    assert page.locator("#turn").inner_text() == "turn 3"


def _read(page, site):
    page.click("text=Chronicle")
    page.locator("h1", has_text="the tale of").wait_for()
    with page.expect_download() as download:
        page.click("text=Markdown")
    assert "# isle" in Path(download.value.path()).read_text("utf-8")
    page.click(".where a")
    page.click("text=side by side")
    page.locator("h2", has_text="Buffer").wait_for()
    page.go_back()
    page.click("text=What the model saw")
    page.locator(".section summary").first.click()
    assert page.locator(".section pre").first.is_visible()
    page.go_back()


def _set_and_keep(page, site, tmp_path):
    page.click("a:text-is('Settings')")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.fill("#s-buffer_tokens", "50")
    page.click("button:text-is('Keep')")
    page.locator("#p-buffer_tokens .problem", has_text="200").wait_for()
    page.fill("#s-buffer_tokens", "2500")
    page.select_option("#s-buffer", "turns")
    page.click("text=Recall weights")
    page.fill("#s-weights-words", "-1")
    page.click("button:text-is('Keep')")
    page.locator("#p-weights-words .problem").wait_for()
    page.fill("#s-weights-words", "2.5")
    page.click("button:text-is('Keep')")
    page.locator("#settings-done .done").wait_for()
    page.reload()
    values = {name: page.input_value(f"#s-{name}") for name in ("buffer", "buffer_tokens", "weights-words")}
    assert values == {"buffer": "turns", "buffer_tokens": "2500", "weights-words": "2.5"}
    page.set_input_files("#files", {"name": "gate.md", "mimeType": "text/markdown", "buffer": b"# Gate\n\nIt opens.\n"})
    page.click("#lore .send")
    page.locator("#lore b", has_text="gate.md").wait_for()
    page.click("#lore button:text-is('Remove')")
    page.locator("#lore b").wait_for(state="detached")
    page.fill("#rename", "the reef")
    page.click('button:has-text("Rename")')
    page.wait_for_url(re.compile("the%20reef"), timeout=20_000)
    page.click("a:text-is('Settings')")
    with page.expect_download() as download:
        page.click("text=Export it")
    download.value.save_as(tmp_path / "reef.zip")
    page.click("text=Put it away")
    page.locator(".away summary").click()
    page.click(".away a")
    page.click("a:text-is('Settings')")
    page.click("text=Put it back")
    page.locator(".campaigns b", has_text="the reef").wait_for()
    page.set_input_files("#file", tmp_path / "reef.zip")
    page.fill("#as", "a copy")
    page.click("button:text-is('Import')")
    page.wait_for_url(re.compile("a%20copy"), timeout=20_000)
    page.click(".brand")
    for name in ("a copy", "the reef"):
        page.locator(".campaigns b", has_text=name).wait_for()


def _talk_to_a_companion(page, site):
    page.click("text=Talk to a companion")
    say(page, "My name is Mira and I live in Bergen.")
    page.fill("#core-new", "plans")
    page.click("#core button:text-is('Add')")
    plans = page.locator("#core .section", has=page.locator("b:text-is('plans')"))
    plans.wait_for()
    page.click("[aria-label='Move plans up']")
    page.locator("#core .section:nth-of-type(3) b:text-is('plans')").wait_for()
    plans.locator("textarea").fill("Sail north.")
    plans.locator("button:text-is('Change')").click()
    plans.locator("small", has_text="11 of").wait_for()
    page.click("[aria-label='Remove plans']")
    plans.wait_for(state="detached")
    page.set_viewport_size({"width": 360, "height": 740})
    for view in ("core", "memories", "tree", "story"):
        page.click(f"[data-view={view}]")
        page.locator(f"#{view}").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.goto(f"{site.url}/c/a%20copy/")
    for view in ("sheet", "quest", "story"):
        page.click(f"[data-view={view}]")
        page.locator(f"#{view}").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360

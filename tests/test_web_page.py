"""The page in a real browser: a game from the interview on, long ones, and what happens in the middle of a reply."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from web_server import MIRA, PageServer, Visitor, half_answers, page_server, say, settle

from questbook.graphs.local.game import open_game
from questbook.graphs.web.open_campaign import OpenCampaign

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow


def text_of(page, selector):
    return page.locator(selector).inner_text()


def test_a_whole_game_from_the_interview_to_a_death_and_back(browser, tmp_path):
    with page_server(tmp_path / "home", seed=19) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.url}/c/ford/")
        say(page, "I'm Ida, a human wizard who studied the tides and wants her brother back.")
        page.locator("#sheet .bar[aria-label='Hit points: 8 of 8']").wait_for()
        for words in ("I go to Sorrow Bridge.", "I go to the Arch."):
            say(page, words)
        says = ["I attack the river pike.", *["I wait."] * 12]
        while says and not page.locator("#sheet .conditions", has_text="dead").count():
            say(page, says.pop(0))
        page.locator("#sheet .bar[aria-label='Hit points: 0 of 8']").wait_for()
        page.locator("#tree .chip", has_text="died").wait_for()
        turn = int(page.locator("#turn").inner_text().split()[1])
        dead = page.locator("#story .turn").last.inner_text()
        page.locator(".plain", has_text="Undo").click()
        page.locator(f"#turn-{turn}").wait_for(state="detached")
        page.locator("#sheet .conditions").wait_for(state="detached")
        while not page.locator("#sheet .bar[aria-label='Hit points: 8 of 8']").count():  # to before the fight
            turn -= 1
            page.locator(".plain", has_text="Undo").click()
            page.locator(f"#turn-{turn}").wait_for(state="detached")
            settle(page)
        assert not page.locator("#sheet .bar[aria-label^='Hit points: 0']").count()
        say(page, "I go to Sorrow Bridge.")
        page.locator("#quest .place", has_text="Sorrow Bridge").wait_for()
        fallen = page.locator("#tree [role=treeitem]:has(.chip)")
        page.locator("#tree [aria-selected=false]:has(.chip)").wait_for()
        assert "dead" in fallen.get_attribute("aria-label")
        assert page.locator("#tree .map .dead").count() == 1
        fallen.click()  # to the dead line, and from it by a click to the living one
        page.locator("#sheet .conditions", has_text="dead").wait_for()
        assert page.locator("#story .turn").last.inner_text() == dead
        page.locator("#tree [aria-selected=true]:has(.chip)").wait_for()
        page.locator("#tree [role=treeitem]:not(:has(.chip))").first.click()
        page.locator("#quest .place", has_text="Sorrow Bridge").wait_for()
        say(page, "I look around.")
        page.close()


def test_a_message_is_played_before_the_script_of_the_page_has_run(browser, tmp_path):
    with page_server(tmp_path / "home") as server:
        page = browser.new_page(java_script_enabled=False)
        page.goto(f"{server.url}/c/isle/")
        page.fill("#text", MIRA)
        page.click("#say .send")
        page.wait_for_url(f"{server.url}/c/isle/")
        assert MIRA in page.locator("#story").inner_text()
        page.close()


def test_the_chronicle_leads_to_each_session(browser, tmp_path):
    from playwright.sync_api import expect

    with ThreadPoolExecutor() as pool:
        pool.submit(asyncio.run, _long_campaign(tmp_path / "home", 60)).result()
    with page_server(tmp_path / "home") as server:
        page = browser.new_page()
        page.goto(f"{server.url}/c/isle/chronicle")
        page.click("a:text-is('Session 2')")
        expect(page.locator("#h-2")).to_be_in_viewport()
        assert page.locator("section").nth(1).locator(".player").first.inner_text() == "Deed 31."
        page.close()


def test_turns_that_left_the_prompt_stay_on_the_page(browser, tmp_path):
    with page_server(tmp_path / "home", buffer="turns", buffer_turns=1) as server:
        page = browser.new_page()
        page.goto(f"{server.url}/c/isle/")
        for words in (MIRA, "I look around.", "I search for tracks.", "I look around."):
            say(page, words)
        assert [turn.get_attribute("id") for turn in page.locator(".turn").all()] == [f"turn-{n}" for n in (1, 2, 3, 4)]
        assert page.locator("#turn-4").bounding_box()["y"] > 0
        phone = browser.new_page(viewport={"width": 390, "height": 700})
        phone.goto(f"{server.url}/c/isle/")
        phone.locator("#turn-1").wait_for(state="attached")
        settle(phone)
        assert phone.locator("#turn-1").bounding_box()["y"] < 0 < phone.locator("#turn-4").bounding_box()["y"]


def test_a_page_of_a_thousand_turns_opens_at_once_and_scrolls_to_the_first(browser, tmp_path):
    with ThreadPoolExecutor() as pool:  # Playwright has an event loop in this thread
        pool.submit(asyncio.run, _long_campaign(tmp_path / "home", 1000)).result()
    with page_server(tmp_path / "home") as server:
        httpx.get(f"{server.url}/c/isle/", timeout=30)  # the first request of a server also loads the program
        page, waits, empty = browser.new_page(), [], []
        while len(waits) < 8 and min(waits, default=1) >= 1:  # the machine may do other work
            for path, first, seconds in (("isle/", "#turn-1000", waits), ("empty/", ".opening", empty)):
                began = time.monotonic()
                page.goto(f"{server.url}/c/{path}", wait_until="domcontentloaded")
                page.locator(first).wait_for()
                seconds.append(time.monotonic() - began)
        assert min(waits) < max(1, 2 * min(empty)), (waits, empty)
        page.goto(f"{server.url}/c/isle/")
        for _ in range(400):
            if page.locator("#turn-1").count():
                break
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(150)
        assert page.locator(".turn").count() == 1000
        assert "Deed 1." in text_of(page, "#turn-1")


async def _long_campaign(path, turns):
    """Play two turns, and say of a thousand that they were played."""
    server = PageServer(path)
    async with open_game(server.context, server.home) as game:
        for words in (MIRA, "I look around."):
            async for _ in game.send(words):
                pass
        await game.finish()
        graph, values = await game.load(), (await game.saved_game()).values
        branch = values["timeline"][0][0]
        space = ("ann", "isle", "exchanges")
        record = (await graph.store.aget(space, f"{branch}-2-exchange-0")).value
        for turn in range(1, turns + 1):
            words = {"player": f"Deed {turn}.", "reply": f"Reply {turn}.", "text": f"Deed {turn}.\nReply {turn}."}
            place = {"turn": turn, "session": 1 + (2 * turn > turns)}
            await graph.store.aput(space, f"{branch}-{turn}-exchange-0", record | words | place, index=False)
        through = dict.fromkeys(("turn", "remembered_through", "noted_through"), turns)
        await (await game.history()).write({"timeline": [[branch, turns]], **through})


def test_the_first_words_are_on_the_page_as_soon_as_the_graph_has_them(site, page, monkeypatch):
    say(page, MIRA)
    sent, tell = [], OpenCampaign._tell

    async def note(self, kind, data):
        if kind == "piece":
            sent.append(time.time() * 1000)
        await tell(self, kind, data)

    monkeypatch.setattr(OpenCampaign, "_tell", note)
    waits = []
    while len(waits) < 8 and min(waits, default=51) > 50:  # the machine may do other work
        sent.clear()
        page.evaluate(
            """() => { window.shown = 0; new MutationObserver(() => {
                if (!window.shown && document.querySelector("#live-reply p")?.textContent) window.shown = Date.now();
            }).observe(document.getElementById("story"), { childList: true, subtree: true, characterData: true }); }"""
        )
        say(page, "I look around.")
        waits.append(page.evaluate("window.shown") - sent[0])
    assert min(waits) <= 50, waits


WORDS = "#live-reply p"


def begin_to_look(page):
    """Send a message, and wait for the first words of the reply."""
    page.fill("#text", "I look around.")
    page.press("#text", "Enter")
    page.locator(WORDS, has_text=" ").first.wait_for()
    return page.locator(WORDS).first.inner_text()


def test_a_page_that_is_loaded_again_goes_on_with_the_words_that_were_there(browser, tmp_path):
    with page_server(tmp_path / "home") as server:
        page, other = browser.new_page(), browser.new_page()
        for tab in (page, other):
            tab.goto(f"{server.url}/c/isle/")
        page.fill("#text", MIRA)
        page.locator(".send").dblclick()  # plays once
        other.locator("#turn-1 .reply").wait_for(timeout=20_000)
        settle(page)
        with half_answers():
            before = begin_to_look(page)
            page.reload()
            for tab in (page, other):
                tab.locator(WORDS, has_text=before).first.wait_for()
        for tab in (page, other):
            tab.locator("#turn-2 .reply p", has_text=before).first.wait_for(timeout=60_000)
            assert tab.locator(".turn").count() == 2


def test_who_is_off_the_list_sees_so_in_the_middle_of_a_reply(browser, tmp_path):
    with page_server(tmp_path / "home", log_in=True) as server, Visitor(server.url, "/u/ann/c/isle/", "ann") as ann:
        ann.say(MIRA)
        ann.post("share", guests="bob")
        page = browser.new_context(extra_http_headers={"x-user": "bob"}).new_page()
        page.add_init_script("delete window.SharedWorker")  # Playwright gives a worker's requests no headers
        page.goto(f"{server.url}/u/ann/c/isle/")
        with half_answers():
            begin_to_look(page)
            ann.post("share", guests="")
            page.get_by_text("There is no such campaign").wait_for()
        assert page.locator("#story").count() == 0


def test_nothing_jumps_stop_has_its_own_place_and_words_outlive_the_server_and_the_page(browser, tmp_path):
    server = PageServer(tmp_path / "home").start()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{server.url}/c/isle/")
    for words in (MIRA, "I look around."):
        say(page, words)
    where = "[...document.querySelectorAll('.turn .reply')].at(-1).firstElementChild.getBoundingClientRect().top"
    others = page.locator(".plain", has_text="Other words").bounding_box()
    with half_answers() as goes_on:
        begin_to_look(page)
        page.wait_for_timeout(200)
        stop = page.locator(".stop").bounding_box()
        assert stop["x"] >= others["x"] + others["width"]
        page.evaluate(f"window.last = null; window.jumps = []; window.watch = setInterval(() => {{ const now = {where};"
                      " const live = Boolean(document.getElementById('live')); if (last && last.live !== live)"
                      " jumps.push(now - last.now); last = { now, live }; }, 1)")  # fmt: skip
        goes_on.set()
        page.locator("#turn-3 .reply p").first.wait_for()
        settle(page)
        assert all(abs(jump) < 10 for jump in page.evaluate("jumps")), page.evaluate("jumps")
    for button in ("#unanswered button:text-is('Take it back')", "#say button:text-is('Undo')"):
        with half_answers():
            begin_to_look(page)
            page.click(".stop")
            page.locator("#unanswered").wait_for()  # while the reply still comes, nothing is taken back
            page.click(button)
            pytest.importorskip("playwright.sync_api").expect(page.locator("#text")).to_have_value("I look around.")
            page.locator("#unanswered").wait_for(state="detached")
    page.fill("#text", "")
    undo = page.locator("#say button:text-is('Undo')").bounding_box()
    for count in (1, 2):  # a slow double click, whose second click comes when the page shows what the first has done
        page.mouse.move(undo["x"] + 9, undo["y"] + 9)
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)
        page.locator("#turn-3").wait_for(state="detached")
        settle(page)
    page.wait_for_timeout(400)
    assert page.locator(".turn").count() == 2
    page.click("text=Bring it back")
    page.locator("#turn-3").wait_for()
    page.locator("#tree [role=treeitem]").first.focus()
    page.keyboard.press("Enter")
    settle(page)
    assert page.evaluate("document.activeElement.role") == "treeitem"
    page.fill("#text", "I was about to say")
    page.goto(f"{server.url}/c/isle/settings")
    page.goto(f"{server.url}/c/isle/")
    assert page.input_value("#text") == "I was about to say"
    settle(page)
    server.stop()
    page.locator("#unheard", has_text="The server does not answer").wait_for(timeout=20_000)  # nothing was sent
    page.press("#text", "Enter")
    page.locator("#unheard", has_text="The server does not answer").wait_for()
    assert page.input_value("#text") == "I was about to say"
    again = PageServer(tmp_path / "home")
    again.sockets.pop().close()
    again.port = server.port
    again.start()
    page.locator("#unheard:empty").wait_for(state="attached", timeout=20_000)
    say(page, "I was about to say")
    assert page.locator(".turn .player").last.inner_text() == "I was about to say"
    page.close()
    again.stop()

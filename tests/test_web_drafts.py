"""What a person is writing on the page stays while others change the campaign, and goes when it was sent."""

import asyncio

import pytest
from web_server import MIRA, Visitor, page_server, say

from questbook.graphs.web.open_campaign import OpenCampaign

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow


@pytest.fixture
def expect():
    return pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def companion(browser, tmp_path):
    """A companion's page with a core memory of three sections, and another visitor of it."""
    with page_server(tmp_path / "home") as server, Visitor(server.url, "/a/companion/") as visitor:
        visitor.say("My name is Mira.")
        page = browser.new_page()
        page.goto(f"{server.url}/a/companion/")
        page.locator("#core textarea").nth(2).wait_for()
        yield page, visitor
        page.close()


def text_of_section(page, label):
    return page.locator("#core .section", has_text=label).locator("textarea")


def caret(page):
    return page.evaluate("[document.activeElement.value, document.activeElement.selectionStart]")


def test_words_in_core_memory_stay_with_their_section_and_are_the_server_s_once_sent(companion, expect):
    page, other = companion
    page.locator("#core-new").press_sequentially("plans")
    other.post("core", label="human", value="She sails.")
    expect(text_of_section(page, "human")).to_have_value("She sails.")
    assert caret(page) == ["plans", 5]
    page.keyboard.press("Enter")
    expect(text_of_section(page, "plans")).to_be_visible()
    expect(page.locator("#core-new")).to_have_value("")

    plans = text_of_section(page, "plans")
    plans.press_sequentially("Sail   nrth")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    other.post("core", label="plans", up="1")
    expect(page.locator("#core .section b").nth(2)).to_have_text("plans")
    assert caret(page) == ["Sail   nrth", 8]
    page.keyboard.type("o")
    expect(plans).to_have_value("Sail   north")
    page.click("[aria-label='Move plans up']")
    expect(page.locator("#core .section b").nth(1)).to_have_text("plans")
    expect(plans).to_have_value("Sail   north")

    other.post("core", label="plans", delete="1")
    other.post("core", label="human", value="She rows.")
    expect(text_of_section(page, "human")).to_have_value("She rows.")
    expect(plans).to_have_value("Sail   north")
    plans.locator("..").get_by_role("button", name="Change").click()
    expect(page.locator("#core .section", has_text="plans").locator("small")).to_contain_text("12 of")
    other.post("core", label="plans", value="Row south.")
    expect(plans).to_have_value("Row south.")


def test_a_refusal_stays_at_its_field_until_it_is_sent_again(companion, expect):
    page, other = companion
    page.fill("#core-new", "Human")
    page.click("#core button:text-is('Add')")
    expect(page.locator("#core-problem")).to_contain_text("There is a section")
    other.post("core", label="human", value="She sails.")
    expect(text_of_section(page, "human")).to_have_value("She sails.")
    expect(page.locator("#core-problem")).to_contain_text("There is a section")
    expect(page.locator("#core-new")).to_have_value("Human")
    page.fill("#core-new", "plans")
    page.click("#core button:text-is('Add')")
    expect(text_of_section(page, "plans")).to_be_visible()
    expect(page.locator("#core-problem")).to_be_empty()


def test_a_refresh_between_sending_and_its_answer_takes_nothing(companion, expect):
    page, other = companion
    held = []
    page.route("**/companion/core", lambda route: held.append(route))
    page.fill("#core-new", "plans")
    page.click("#core button:text-is('Add')")
    other.post("core", label="human", value="She sails.")
    expect(text_of_section(page, "human")).to_have_value("She sails.")
    expect(page.locator("#core-new")).to_have_value("plans")
    with page.expect_response("**/companion/core"):
        held[0].continue_()
    expect(text_of_section(page, "plans")).to_be_visible()
    expect(page.locator("#core-new")).to_have_value("")


def test_the_latest_of_two_refreshes_counts_however_late_the_first_one_comes(companion, expect):
    page, other = companion
    held = []
    page.route("**/panel/core", lambda route: held.append((route, route.fetch())), times=1)
    with page.expect_request("**/panel/core"):
        other.post("core", label="human", value="She sails.")
    while not held:
        page.wait_for_timeout(20)
    other.post("core", label="human", value="She rows.")
    page.wait_for_timeout(300)  # a second refresh that does not wait would be done
    held[0][0].fulfill(response=held[0][1])
    expect(text_of_section(page, "human")).to_have_value("She rows.")


def test_words_in_the_story_stay_when_others_play_and_change_no_other_turn(page, site, expect):
    say(page, MIRA)
    page.click("text=A wish for the next turns")
    page.locator("#wish").press_sequentially("More of the sea.")
    page.click("text=Change your words")
    page.locator("#edit-1").fill("I'm Ada.")
    with Visitor(site.url) as other:
        asked = []
        page.on("request", lambda request: asked.append(request))
        other.say("I look around.")
        expect(page.locator("#turn-2 .reply")).to_be_visible()
        by_itself = [request for request in asked if "/events" not in request.url]
        assert by_itself, "what others play is shown"
        assert all(request.headers.get("x-questbook-refresh") for request in by_itself), "and is no use of a session"
        expect(page.locator("#wish")).to_have_value("More of the sea.")
        expect(page.locator("#edit-1")).to_have_value("I'm Ada.")
        page.locator("#change-words-1 button").click()
        expect(page.locator("#problem")).to_contain_text("for turn 1, and the story is at turn 2")
        expect(page.locator("#edit-1")).to_have_value("I'm Ada.")
        page.click(".change button:text-is('Wish')")
        expect(page.locator("#change-wish summary")).to_have_text("Your wish, for 5 more turns")
        page.locator("#change-words-1 summary").click()
        other.post("line", name="the quay")
        expect(page.locator("#edit-1")).to_have_count(0)
    expect(page.locator("#edit-2")).to_have_value("I look around.")


def test_the_tree_keeps_its_row_its_choice_and_the_name_that_one_writes(page, site, expect):
    for words in (MIRA, "I look around."):
        say(page, words)
    with Visitor(site.url) as other:
        other.post("undo")
        other.say("I leave the town.")
        rows = page.locator("#tree [role=treeitem]")
        expect(rows).to_have_count(2)
        page.select_option("#one", index=2)
        chosen = page.input_value("#one")
        page.fill("#line", "the qu")
        page.locator("#tree [aria-selected=true]").focus()
        page.keyboard.press("ArrowDown")
        row = rows.nth(1).get_attribute("id")
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        expect(page.locator(f"#{row}")).to_be_focused()
        other.post("undo")
        other.say("I wait.")
        expect(rows).to_have_count(3)
        expect(page.locator(f"#{row}")).to_be_focused()
        page.keyboard.press("Tab")
        other.post("undo")
        other.say("I sleep.")
        expect(rows).to_have_count(4)
        expect(page.locator("#tree [tabindex='0']")).to_have_attribute("id", row)
        page.keyboard.press("Shift+Tab")
        expect(page.locator(f"#{row}")).to_be_focused()
    assert page.input_value("#line") == "the qu"
    assert page.input_value("#one") == chosen


def test_what_is_written_while_a_message_is_sent_stays(page, expect):
    held = []
    page.route("**/say", lambda route: held.append(route))
    page.fill("#text", MIRA)
    page.press("#text", "Enter")
    page.keyboard.type(" And I")
    with page.expect_response("**/say"):
        held[0].continue_()
    expect(page.locator("#text")).to_have_value(" And I")
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator("#turn-1 .player")).to_have_text(MIRA, timeout=20_000)


def test_words_stay_when_a_proxy_answers_for_a_server_that_is_gone(page, expect):
    page.evaluate("['offline', 'online'].forEach((name) => dispatchEvent(new Event(name)))")
    expect(page.locator("#unheard")).to_be_empty()  # its new stream is open: nothing else takes the line away
    page.route("**/say", lambda route: route.fulfill(status=502, body="Bad Gateway"), times=1)
    page.fill("#text", MIRA)
    page.press("#text", "Enter")
    expect(page.locator("#unheard")).to_contain_text("Your words stay here")
    expect(page.locator("#text")).to_have_value(MIRA)
    page.press("#text", "Enter")
    expect(page.locator("#turn-1 .player")).to_have_text(MIRA, timeout=20_000)
    expect(page.locator("#text")).to_have_value("")
    expect(page.locator("#unheard")).to_be_empty()


def test_the_page_and_the_next_words_stay_while_notes_are_made(browser, site, monkeypatch, expect):
    wait, seen = OpenCampaign._wait_for_upkeep, {}

    async def slow(self, live):
        await asyncio.sleep(3)
        await wait(self, live)

    for width in (1280, 390):
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.goto(f"{site.url}/c/wide{width}/")
        with monkeypatch.context() as patch:
            patch.setattr(OpenCampaign, "_wait_for_upkeep", slow)
            page.fill("#text", MIRA)
            page.press("#text", "Enter")
            page.locator("body.noting").wait_for(state="attached", timeout=20_000)
            page.keyboard.type("I look")
            expect(page.locator("#story .reply").last).to_be_visible()
            expect(page.locator("#text")).to_have_value("I look")
            seen[width] = page.locator(".upkeep").is_visible()
            page.locator("body.noting").wait_for(state="detached")
        expect(page.locator("#text")).to_be_focused()
        expect(page.locator("#text")).to_have_value("I look")
        page.close()
    assert seen == {1280: True, 390: False}


def test_what_is_pressed_stays_in_its_place_until_it_is_let_go(companion, expect):
    page, other = companion
    labels = page.locator("#core .section b")
    first, second, third = labels.all_inner_texts()
    page.locator(f"[aria-label='Move {third} up']").hover()
    page.mouse.down()
    other.post("core", label=first, delete="1")  # what is below it would come up
    page.wait_for_timeout(500)
    expect(labels).to_have_text([first, second, third])
    page.mouse.up()
    expect(labels).to_have_text([third, second])
    page.locator(f"[aria-label='Move {second} up']").hover()
    page.mouse.down()
    other.post("core", label=third, value="It is let go elsewhere, or never.")
    expect(text_of_section(page, third)).to_have_value("It is let go elsewhere, or never.", timeout=5_000)

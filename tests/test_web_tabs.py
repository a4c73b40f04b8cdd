"""Many tabs of one browser: it opens six connections to a server, and no tab may wait for another's event stream."""

import pytest
from program import start
from web_server import MIRA, say, settle

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow
HEAR = """() => {
  window.heard = [];
  const look = () => heard.push(document.querySelector("#live-reply")?.textContent ?? "");
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""


@pytest.fixture
def open_tab(browser, site):
    """Open tabs of one browser; an error of a script fails the test."""
    context, problems = browser.new_context(), []

    def open_one(name):
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(f"{site.url}/c/{name}/")
        return tab

    yield open_one
    context.close()
    assert not problems


def see(tabs, words, turns):
    """Wait until all tabs show the same last turn, with these words, and so many turns."""
    for tab in tabs:
        tab.locator(".turn:not(.live)", has_text=words).wait_for()
        settle(tab)
        assert tab.locator(".turn").count() == turns
    assert len({tab.locator(".turn .reply").last.inner_text() for tab in tabs}) == 1


def test_eight_tabs_of_a_campaign_share_a_stream_and_all_hear_each_turn_once(site, open_tab):
    tabs = [open_tab("isle") for _ in range(8)]
    say(tabs[0], MIRA)
    tabs.append(late := open_tab("isle"))
    see(tabs, "Mira", 1)
    for tab in tabs:
        tab.evaluate(HEAR)
    say(tabs[7], "I look around.")
    see(tabs, "I look around.", 2)
    assert len(site.streams) == 1
    for tab in tabs:
        heard = "".join(max(tab.evaluate("heard"), key=len).split())
        assert heard
        assert heard in "".join(tab.locator(".turn .reply").last.inner_text().split())
    for tab in tabs[:8]:
        tab.close()
    say(late, "I wait.")  # the stream goes on for the last one
    assert len(site.streams) == 1


def test_eight_tabs_of_eight_campaigns_leave_connections_free_and_all_hear_their_turns(site, open_tab):
    tabs = [open_tab(f"isle-{number}") for number in range(8)]
    for tab in tabs:
        say(tab, MIRA)
    pairs = [(tabs[number], open_tab(f"isle-{number}")) for number in (0, 7)]
    assert len(site.streams) <= 4  # three, and one that asks in this moment
    for pair in pairs:
        say(pair[0], "I look around.")
        see(pair, "I look around.", 2)
    for tab in pairs[0]:
        tab.close()
    say(tabs[7], "I wait.")
    say(tabs[3], "I wait.")


def test_without_shared_workers_a_page_has_a_stream_of_its_own(site, open_tab, browser):
    context = browser.new_context()
    context.add_init_script("delete window.SharedWorker")
    tab = context.new_page()
    tab.goto(f"{site.url}/c/isle/")
    say(tab, MIRA)
    other = open_tab("isle")
    say(other, "I look around.")
    see([tab, other], "I look around.", 2)
    assert len(site.streams) == 2
    context.close()


def test_tabs_follow_their_campaign_to_its_new_name_with_what_was_written_and_begin_no_other(site, open_tab):
    tabs = [open_tab("isle") for _ in range(2)]
    say(tabs[0], MIRA)
    see(tabs, "Mira", 1)
    tabs[0].fill("#text", "I look for my sister.")
    settings = open_tab("isle")
    settings.goto(f"{site.url}/c/isle/settings")
    settings.fill("#rename", "reef")
    settings.press("#rename", "Enter")
    settings.wait_for_url("**/c/reef/")
    tabs[1].fill("#text", "I dive.")
    tabs[1].press("#text", "Enter")  # at once, before its stream says so
    for tab, words in zip(tabs, ("I look for my sister.", "I dive."), strict=True):
        tab.wait_for_url("**/c/reef/")
        settle(tab)
        assert tab.input_value("#text") == words
        assert tab.locator(".turn").count() == 1
    say(tabs[0], "I look around.")
    see([*tabs, settings], "I look around.", 2)
    tabs[0].goto(site.url)
    assert tabs[0].locator(".campaigns b").all_inner_texts() == ["reef", "Talk to a companion"]


def test_a_tab_whose_campaign_was_removed_says_so_keeps_its_words_and_begins_no_other(site, open_tab):
    tab = open_tab("isle")
    say(tab, MIRA)
    tab.fill("#text", "I dive.")
    site.stop()
    answer = start(site.home.path, "forget", "--user", "ann", "--campaign", "isle", "--yes")
    assert answer.returncode == 0, answer.stderr
    site.start()
    tab.locator("#problem", has_text="not here any more").wait_for()
    tab.press("#text", "Enter")
    settle(tab)
    assert tab.input_value("#text") == "I dive."
    assert tab.locator(".turn").count() == 1
    tab.goto(site.url)
    assert tab.locator(".campaigns b").all_inner_texts() == ["Talk to a companion"]


def test_all_tabs_go_on_when_the_server_was_away(site, open_tab):
    tabs = [open_tab("isle") for _ in range(2)]
    say(tabs[0], MIRA)
    site.stop()
    site.start()
    say(tabs[1], "I look around.")
    see(tabs, "I look around.", 2)

"""The page in the middle of a reply: loaded again, in another tab, and when it is shared no more."""

import pytest
from web_server import MIRA, Visitor, half_answers, page_server, settle

pytest_plugins = ["web_browser"]
pytestmark = pytest.mark.slow

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
        page.goto(f"{server.url}/u/ann/c/isle/")
        with half_answers():
            begin_to_look(page)
            ann.post("share", guests="")
            page.get_by_text("There is no such campaign").wait_for()
        assert page.locator("#story").count() == 0

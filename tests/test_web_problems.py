"""The page when something goes wrong: nobody is left on a bare page, or waits for what does not come."""

import asyncio
import re
import time
from pathlib import Path

import httpx
import pytest
from web_server import page_server

from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.web import campaigns, views
from questbook.graphs.web.app import OF_A_CAMPAIGN

WEB = Path(__file__).parent.parent / "graphs" / "web"


@pytest.fixture
def web(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    home = page_server(tmp_path / "home", model="openai:gpt-4.1-mini")
    with home as server, httpx.Client(base_url=server.url, timeout=30) as client:
        client.headers["x-questbook-token"] = re.search(r'data-token="([^"]+)"', client.get("/").text)[1]
        yield client


def test_who_is_lost_is_led_back_and_a_turn_that_fails_is_over(web, monkeypatch):
    lost = web.get("/no/such/place")
    assert lost.status_code == 404
    assert '<a href="/">To your campaigns</a>' in lost.text
    long = web.get(f"/c/{'a' * 300}/")
    assert (long.status_code, "To your campaigns" in long.text) == (409, True)
    assert "To your campaigns" not in web.get(f"/c/{'a' * 300}/", headers={"hx-request": "true"}).text
    monkeypatch.setattr(views, "costs_of", lambda *_: asyncio.sleep(0.2))  # the turn fails while the page is made
    web.post("/c/isle/say", data={"text": "I'm Mira.", "ticket": "1"})
    deadline = time.monotonic() + 10
    while "needs a key" not in (story := web.get("/c/isle/story").text):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "I&#39;m Mira." in story
    assert "thinks…" not in story
    assert 'id="live"' not in story


def test_the_500_campaigns_that_were_played_last_are_listed(web, monkeypatch):
    async def listed(checkpointer, user, most):
        return [SavedGame(user, f"isle {number}", "t", "2026-01-01", {}) for number in range(most)]

    monkeypatch.setattr(campaigns, "list_campaigns", listed)
    assert "These are the 500 that were played last." in web.get("/").text


def test_a_command_of_the_terminal_is_no_part_of_the_story_and_a_refused_message_stays_where_it_was_written(web):
    refused = web.post("/c/isle/say", data={"text": "/undo", "ticket": "1"}, headers={"hx-request": "true"})
    assert refused.status_code == 409
    assert "/undo is a command of the terminal" in refused.text
    assert refused.headers["hx-retarget"] == "#problem"
    assert "/undo" not in web.get("/c/isle/story").text


def test_a_message_from_a_page_whose_script_has_not_run_yet_is_taken_and_leads_back_to_the_page(web):
    token = web.headers.pop("x-questbook-token")
    form = {"text": "I'm Mira.", "ticket": "1"}
    assert [web.post("/c/isle/say", data=form | more).status_code for more in ({}, {"token": "wrong"})] == [403, 403]
    assert web.post("/c/isle/undo", data={"token": token}).status_code == 403
    answer = web.post("/c/isle/say", data=form | {"token": token}, headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.next_request.url.path) == (303, "/c/isle/")
    assert "I&#39;m Mira." in web.get("/c/isle/").text


def test_a_turn_is_not_retracted_before_somebody_is_sure(web):
    asked = web.post("/c/isle/retract", data={"turn": "1"})
    assert asked.status_code == 200
    assert "Retract turn 1?" in asked.text


def test_every_address_on_the_page_has_an_endpoint_and_every_endpoint_is_on_the_page():
    html = "".join(path.read_text("utf-8") for path in (WEB / "templates").glob("*.html"))
    asked = {
        ("POST" if kind == "hx-post" or path == "/say" else "GET", re.sub(r"\{\{.*", "", path) or "/")
        for kind, path in re.findall(r'(hx-get|hx-post|href|action)="\{\{ (?:here|root) \}\}(/[^"?]*)', html)
        if not path.startswith("/static/")
    }
    script = "".join((WEB / "static" / name).read_text("utf-8") for name in ("page.js", "stream.js"))
    asked |= {("GET", path) for path in re.findall(r"\$\{place\}(/[a-z]+)\?", script)}
    asked |= {("GET", "/field"), ("GET", "/story"), ("GET", "/panel/{panel}")}  # their addresses are put together
    routes = {(method, each.path) for each in (*campaigns.ROUTES, *OF_A_CAMPAIGN) for method in each.methods - {"HEAD"}}
    assert asked == routes

"""The page on LangGraph's development server, below /play, on the data of terminal and Studio."""

import json
import re
import time

import httpx
import pytest
from dev_server import ROOT
from dev_server import say as say_to_graph

AUTH = """
from langgraph_sdk import Auth

auth = Auth()
NAMES = {"session=ann-secret": "ann", "session=bob-secret": "bob", "session=eve-secret": "eve"}


@auth.authenticate
async def who(headers):
    name = NAMES.get(headers.get(b"cookie", b"").decode())
    if name is None:
        raise Auth.exceptions.HTTPException(status_code=401, detail="Log in.")
    return {"identity": name}
"""


def start_with_log_in(studio):
    """Start the server, with `AUTH`."""
    config = json.loads((ROOT / "langgraph.json").read_text())
    (studio.state / "langgraph.json").unlink()
    (studio.state / "langgraph.json").write_text(json.dumps(config | {"auth": {"path": "./auth.py:auth"}}))
    (studio.state / "auth.py").write_text(AUTH)
    studio.start()


def token_of(page):
    token = re.search(r'data-token="([^"]+)"', page.text)[1]
    return {"x-questbook-token": token, "hx-request": "true"}


def played(web, path, words):
    """Say something on a page and wait for the end of the turn; return the story."""
    page = web.get(path)
    number = re.search(r'data-number="(\d+)"', page.text)[1]
    said = {"text": words, "ticket": str(time.time())}
    assert web.post(f"{path}say", data=said, headers=token_of(page)).status_code == 200
    with web.stream("GET", f"{path}events?after={number}") as events:
        assert any(line == "event: pages" for line in events.iter_lines())
    return web.get(f"{path}story").text


@pytest.mark.slow
async def test_studio_s_server_serves_the_page_on_the_same_data(studio):
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await say_to_graph(client, thread, "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.")
    with httpx.Client(base_url=studio.url, follow_redirects=True, timeout=30) as web:
        listed = web.get("/play/")
        assert "studio" in listed.text
        page = web.get("/play/c/studio/")
        assert page.status_code == 200, (studio.state / "log").read_text()[-6000:]
        assert "Mira" in page.text
        assert "secret" not in page.text.casefold()
        assert web.post("/play/c/studio/say", data={"text": "I look around.", "ticket": "1"}).status_code == 403
        assert "I look around." in played(web, "/play/c/studio/", "I look around.")
        assert web.get("/play/static/page.css").status_code == 200
        assert web.get("/play/", headers={"origin": "https://evil.example"}).status_code == 403


@pytest.mark.slow
def test_langgraph_s_log_in_names_whose_each_request_is(studio):
    start_with_log_in(studio)
    people = {
        name: httpx.Client(
            base_url=studio.url, follow_redirects=True, timeout=30, headers={"cookie": f"session={name}-secret"}
        )
        for name in ("ann", "bob", "eve", "nobody")
    }
    ann, bob, eve, nobody = people.values()
    assert nobody.get("/play/").status_code == 401
    assert nobody.get("/play/u/ann/c/isle/").status_code == 401

    assert ann.get("/play/favicon.ico").url.path == "/play/static/icon.svg"
    began = ann.get("/play/new?name=isle")
    assert began.url.path == "/play/u/ann/c/isle/"
    assert "Mira" in played(ann, "/play/u/ann/c/isle/", "I'm Mira, a halfling thief who grew up on the docks.")
    assert "/play/u/ann/c/isle/" in ann.get("/play/").text
    assert "/c/isle/" not in bob.get("/play/").text, "bob sees his own list"
    assert "Ada" in played(bob, "/play/u/bob/c/isle/", "I'm Ada, an elf wizard who wants to learn.")
    assert "Mira" not in bob.get("/play/u/bob/c/isle/").text, "and his own campaign of this name"
    for path in ("", "story", "panel/sheet", "events", "memory?key=x", "settings", "export", "chronicle"):
        assert bob.get(f"/play/u/ann/c/isle/{path}").status_code == 404, path

    settings = ann.get("/play/u/ann/c/isle/settings")
    shared = ann.post("/play/u/ann/c/isle/share", data={"guests": "bob"}, headers=token_of(settings))
    assert "Shared with bob" in shared.text
    assert "/play/u/ann/c/isle/" in bob.get("/play/").text
    story = played(bob, "/play/u/ann/c/isle/", "I look around.")
    assert "bob: I look around." in story, "each message says whose it is"
    page = bob.get("/play/u/ann/c/isle/")
    assert [bob.get(f"/play/u/ann/c/isle/{path}").status_code for path in ("settings", "export")] == [403, 403]
    for change in ("settings", "share", "put-away", "rename", "forget", "retract", "lore"):
        answer = bob.post(f"/play/u/ann/c/isle/{change}", data={"words": "Mira"}, headers=token_of(page))
        assert answer.status_code == 403, change
    assert eve.get("/play/u/ann/c/isle/").status_code == 404
    ann.post("/play/u/ann/c/isle/share", data={"guests": ""}, headers=token_of(settings))
    assert bob.get("/play/u/ann/c/isle/").status_code == 404
    for client in people.values():
        client.close()

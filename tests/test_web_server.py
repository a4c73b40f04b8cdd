"""The page on LangGraph's development server, below /play, on the data of terminal and Studio."""

import re

import httpx
import pytest
from dev_server import say


@pytest.mark.slow
async def test_studio_s_server_serves_the_page_on_the_same_data(studio):
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await say(client, thread, "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.")
    with httpx.Client(base_url=studio.url, follow_redirects=True, timeout=30) as web:
        shelf = web.get("/play/")
        assert "studio" in shelf.text
        page = web.get("/play/c/studio/")
        assert page.status_code == 200, (studio.state / "log").read_text()[-6000:]
        assert "Mira" in page.text
        assert "secret" not in page.text.casefold()
        token = re.search(r'data-token="([^"]+)"', page.text)[1]
        said = {"text": "I look around.", "ticket": "1"}
        assert web.post("/play/c/studio/say", data=said).status_code == 403
        assert web.post("/play/c/studio/say", data=said, headers={"x-questbook-token": token}).status_code == 200
        with web.stream("GET", "/play/c/studio/events?after=0") as events:
            for line in events.iter_lines():
                if line == "event: replied":
                    break
        assert "I look around." in web.get("/play/c/studio/story").text
        assert web.get("/play/static/page.css").status_code == 200
        assert web.get("/play/", headers={"origin": "https://evil.example"}).status_code == 403

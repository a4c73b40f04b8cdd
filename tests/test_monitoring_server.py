"""Health, metrics and log lines on LangGraph's development server."""

import json

import httpx
import pytest
from dev_server import say as say_to_graph
from test_monitoring import WORD, samples
from test_web_server import start_with_log_in

pytestmark = pytest.mark.slow


async def test_runs_on_the_server_are_counted_and_logged_without_words(studio):
    studio.environment |= {"QUESTBOOK_LOG": "json"}
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await say_to_graph(client, thread, f"I'm Mira, a halfling thief of {WORD} who wants her sister back.")
    assert httpx.get(f"{studio.url}/play/health").text == "ok"
    assert httpx.get(f"{studio.url}/play/ready").text == "ready"
    found = samples(f"{studio.url}/play")
    assert found["questbook_turns_total", "dungeon_master", "replied"] == 1
    assert found["questbook_first_token_seconds_count", "dungeon_master"] == 1
    assert found["questbook_canary_leaked_total",] == 0
    assert "questbook_turns_total" not in httpx.get(f"{studio.url}/metrics").text, "the server's own stay what they are"
    lines = [line for line in (studio.state / "log").read_text().splitlines() if '"logger": "questbook.' in line]
    [turn] = [line for line in map(json.loads, lines) if line["event"] == "A turn has ended."]
    assert turn["thread"] == thread["thread_id"]
    assert turn["run"]
    assert not [line for line in lines if WORD in line]


async def test_a_log_in_does_not_keep_a_probe_from_health(studio):
    start_with_log_in(studio)
    assert httpx.get(f"{studio.url}/play/health", headers={"host": "10.0.0.9"}).text == "ok"
    assert httpx.get(f"{studio.url}/play/metrics", headers={"host": "10.0.0.9"}).status_code == 403

"""LangGraph's server with `store.index` and `store.ttl` of its configuration, and our store."""

import json
import sqlite3

import pytest

from questbook.graphs.local.home import Home

NOTING = """
from typing import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

class State(TypedDict):
    said: str

def note(state: State, runtime: Runtime):
    runtime.store.put(("notes",), "sync", {"content": state["said"], "other": "x"})

async def anote(state: State, runtime: Runtime):
    await runtime.store.aput(("notes",), "async", {"content": state["said"], "other": "x"})

graph = StateGraph(State).add_sequence([anote, note]).add_edge(START, "anote").compile()
"""


@pytest.mark.slow
async def test_index_and_time_to_live_of_the_configuration_hold(studio):
    (studio.state / "vectors.py").write_text(
        "from questbook import HashEmbeddings\n"
        "def embed(texts):\n    return HashEmbeddings(64).embed_documents(texts)\n"
    )
    (studio.state / "noting.py").write_text(NOTING)
    settings = json.loads((studio.state / "langgraph.json").read_text())
    (studio.state / "langgraph.json").unlink()
    settings["store"] |= {
        "index": {"embed": "./vectors.py:embed", "dims": 64, "fields": ["content"]},
        "ttl": {"default_ttl": 90, "refresh_on_read": False, "sweep_interval_minutes": 1},
    }
    settings["graphs"] = {"noting": "./noting.py:graph"}
    (studio.state / "langgraph.json").write_text(json.dumps(settings))
    client = studio.start()
    await client.runs.wait(None, "noting", input={"said": "Biscuit is a tabby."})
    found = await client.store.search_items(("notes",), query="Biscuit is a tabby.")
    assert [(item["key"], round(item["score"], 3)) for item in found["items"]] == [("async", 1.0), ("sync", 1.0)]
    studio.stop()
    database = sqlite3.connect(Home(studio.home).memory)
    assert database.execute("SELECT ttl_minutes FROM items").fetchall() == [(90,), (90,)]
    meta = dict(database.execute("SELECT key, value FROM meta"))
    assert (meta["embedder"], meta["fields"]) == ("embed with 64 dimensions", '["content"]')
    database.close()

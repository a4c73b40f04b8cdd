"""LangGraph's own development server runs an agent made of notebooks, and Studio's API edits its pages."""

import json

import pytest
from langgraph_sdk.errors import APIStatusError

DESK = """
from questbook.graphs.agent import build_agent
from questbook import Count, Notebook, on_demand, once


class CustomerNotebook(Notebook):
    "Who writes."
    UPDATE = once
    REQUIRED = ("name",)
    name: str = ""


class TicketNotebook(Notebook):
    "What they need help with."
    UPDATE = on_demand
    steps: dict[str, str] = {}
    calls: Count = 0


app = build_agent([CustomerNotebook, TicketNotebook], name="desk").compile()
"""


@pytest.mark.slow
async def test_studio_runs_an_agent_and_edits_its_pages(studio):
    config = json.loads((studio.state / "langgraph.json").read_text("utf-8"))
    (studio.state / "langgraph.json").unlink()
    (studio.state / "langgraph.json").write_text(json.dumps(config | {"graphs": {"desk": "./desk.py:app"}}), "utf-8")
    (studio.state / "desk.py").write_text(DESK, "utf-8")
    client = studio.start()
    [assistant] = await client.assistants.search(graph_id="desk")
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert {"ticket", "customer", "mode"} <= set(schemas["state_schema"]["properties"])
    assert schemas["context_schema"]["properties"]["campaign"]["default"] == "agent:desk"
    thread = (await client.threads.create(graph_id="desk"))["thread_id"]
    for words in ("Hello", "Ann"):
        message = {"messages": [{"role": "user", "content": words}]}
        values = await client.runs.wait(thread, "desk", input=message, context={"model": "offline"})
    assert values["customer"]["name"] == "Ann"
    await client.threads.update_state(thread, {"ticket": {"steps": {"1": "wait"}, "calls": {"$add": 2}}})
    for bad in ({"ticket": {"steps": 3}}, {"ticket": {"colour": "red"}}, {"customer": {"name": ["Ann"]}}):
        with pytest.raises(APIStatusError, match="was left as it is") as refused:
            await client.threads.update_state(thread, bad)
        assert refused.value.status_code == 400
    values = (await client.threads.get_state(thread))["values"]
    assert values["ticket"] == {"version": 1, "steps": {"1": "wait"}, "calls": 2}

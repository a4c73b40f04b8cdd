"""Double texting on LangGraph's own development server: a message sent during the upkeep, with every strategy."""

import asyncio
import time

import pytest
from fake_openai import Hang, call, say
from langgraph_sdk.errors import ConflictError

from questbook.notebooks import StateNotebook

pytestmark = pytest.mark.slow  # a server's start

MOST = 20.0
"""Seconds that a message waits for at most on a busy machine; who waits for the notes waits for a minute."""
CONTEXT = {"model": "openai:scripted", "campaign": "studio", "seed": 3}
WHO = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "docks", "goal": "find her sister"}
FIRST, SECOND = "I look under the bed.", "I greet Goran."


class Table:
    """A dungeon master behind a loopback server: its notes of the second turn never come."""

    def __init__(self, server):
        self.noting, self.noted = [], False
        server.responder = self

    def __call__(self, request):
        tools = [tool["function"]["name"] for tool in request.get("tools", [])]
        told = "\n".join(str(message["content"]) for message in request["messages"])
        if "CharacterNotebook" in tools:
            return call("CharacterNotebook", WHO)
        if StateNotebook.__name__ not in tools:
            return say("Goran nods." if SECOND in told else "You find ten crowns." if FIRST in told else "It begins.")
        self.noting.append(told)
        if FIRST in told and SECOND not in told:
            return Hang()
        return call("StateNotebook", {"objective": "Spend them."}) if SECOND in told else say("no change")


@pytest.fixture
def table(server, studio):
    table = Table(server)
    studio.environment |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none"}
    return table


def said(words):
    return {"messages": [{"role": "user", "content": words}]}


async def until_notes_hang(client, thread, table):
    """Play up to the upkeep of the second turn, and leave it at its notes."""
    await client.runs.wait(thread, "dungeon_master", input=said("I'm Mira, a halfling rogue."), context=CONTEXT)
    run = await client.runs.create(thread, "dungeon_master", input=said(FIRST), context=CONTEXT, durability="sync")
    for _ in range(1200):
        if any(FIRST in told for told in table.noting):
            return run["run_id"]
        await asyncio.sleep(0.05)
    raise AssertionError(table.noting)


async def reply_to(client, thread, strategy):
    """Send the second message; return the reply and the seconds until its first piece."""
    start, waited, words = time.monotonic(), None, ""
    async for part in client.runs.stream(
        thread, "dungeon_master", input=said(SECOND), context=CONTEXT, stream_mode=["messages-tuple", "custom"],
        multitask_strategy=strategy, durability="sync",
    ):  # fmt: skip
        assert part.event != "error", part.data
        if part.event == "custom" and waited is None:
            waited = time.monotonic() - start
        if part.event == "messages" and part.data[1]["langgraph_node"] == "run_quest":
            words += part.data[0]["content"]
    return words, waited


@pytest.mark.parametrize("strategy", ["enqueue", "interrupt"])
async def test_a_message_does_not_wait_for_notes_and_they_are_made_with_it(studio, table, strategy):
    client = studio.start()
    thread = (await client.threads.create(graph_id="dungeon_master"))["thread_id"]
    await until_notes_hang(client, thread, table)
    words, waited = await reply_to(client, thread, strategy)
    print(f"{strategy}: {waited:.2f} s")
    assert words == "Goran nods."
    assert waited < MOST
    values = (await client.threads.get_state(thread))["values"]
    assert (values["turn"], values["noted_through"], values["remembered_through"]) == (3, 3, 3)
    assert values["quest"]["objective"] == "Spend them."
    assert "ten crowns" in table.noting[-1]
    assert [m["content"] for m in values["messages"] if m["type"] == "human"][1:] == [FIRST, SECOND]
    items = await client.store.search_items(["adventurer", "studio", "exchanges"], limit=50)
    assert sorted(item["value"]["turn"] for item in items["items"]) == [1, 2, 3]


async def test_a_rejected_message_is_refused_at_once_and_nothing_is_lost(studio, table):
    client = studio.start()
    thread = (await client.threads.create(graph_id="dungeon_master"))["thread_id"]
    run = await until_notes_hang(client, thread, table)
    with pytest.raises(ConflictError):
        await reply_to(client, thread, "reject")
    await client.runs.cancel(thread, run, wait=True)
    words, _ = await reply_to(client, thread, "reject")
    assert words == "Goran nods."
    values = (await client.threads.get_state(thread))["values"]
    assert (values["turn"], values["noted_through"]) == (3, 3)
    assert "ten crowns" in table.noting[-1]

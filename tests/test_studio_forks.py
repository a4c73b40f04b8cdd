"""Forks through LangGraph's own server, by its SDK: what Studio does, memory follows."""

import pytest
from dev_server import CONTEXT, DevServer, say
from langgraph_sdk import get_client

EXCHANGES = ["adventurer", "studio", "exchanges"]
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
TIGHT = {"buffer_tokens": 200, "recall_tokens": 2000}  # so that turns leave the buffer, and are recalled


pytestmark = pytest.mark.slow  # a server's start and its waits; test_studio.py has the quick ones


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    home = tmp_path_factory.mktemp("forks")
    running = DevServer(home / "home", home / "studio")
    running.start()
    yield running.url
    running.stop()


@pytest.fixture
def client(url):
    return get_client(url=url)


@pytest.fixture
async def thread(client):
    return await client.threads.create(graph_id="dungeon_master")


def message(words):
    return {"messages": [{"role": "user", "content": words}]}


async def run(client, thread, words=None, checkpoint=None):
    """Run to the end; return what `recall` remembered, None if that node was not passed."""
    recalled = None
    stream = client.runs.stream(
        thread["thread_id"],
        "dungeon_master",
        input=message(words) if words else None,
        context={**CONTEXT, **TIGHT},
        checkpoint=checkpoint,
        stream_mode=["updates"],
        durability="sync",
    )
    async for part in stream:
        assert part.event != "error", part.data
        if part.event == "updates" and "recall" in part.data:
            recalled = part.data["recall"]["recalled"]
    return recalled


async def end(client, thread):
    return await client.threads.get_state(thread["thread_id"])


async def seen(client, state):
    """What the store holds that this state's timeline may see, as (turn, what the player said)."""
    found = []
    for branch, through in state["values"]["timeline"]:
        items = await client.store.search_items(
            EXCHANGES, filter={"branch": branch, "order": {"$lte": f"{through:08}"}}, limit=100
        )
        found += [(item["value"]["turn"], item["value"]["player"]) for item in items["items"]]
    return sorted(found)


def words_of(told):
    return [player for _, player in told]


async def test_forks_by_the_sdk_know_nothing_of_each_other(client, thread):
    await run(client, thread, MIRA)
    await run(client, thread, "I count the herons on the quay")
    here = await end(client, thread)
    await run(client, thread, "I drown the heron king")
    for _ in range(3):
        await run(client, thread, "I wait for the tide and look at the herons")
    died = await end(client, thread)
    assert "I drown the heron king" in words_of(await seen(client, died))

    # A run with `checkpoint`, and on until turns leave the buffer.
    await run(client, thread, "I feed the heron king", here["checkpoint"])
    for _ in range(3):
        await run(client, thread, "I sing for the herons, the heron king above all")
    recalled = await run(client, thread, "What became of the heron king?")
    lived = await end(client, thread)
    assert recalled
    assert "I feed the heron king" in [memory.get("player") for memory in recalled]
    assert "drown" not in str(recalled)
    assert "I drown the heron king" not in words_of(await seen(client, lived))

    # The abandoned branch, returned to, has its own memories.
    recalled = await run(client, thread, "What became of the heron king?", died["checkpoint"])
    assert "I drown the heron king" in [memory.get("player") for memory in recalled]
    assert "feed" not in str(recalled)
    back = await end(client, thread)
    turns = [turn for turn, _ in await seen(client, back)]
    assert turns == list(range(1, back["values"]["turn"] + 1)), "none lost, none twice"


async def test_an_edited_message_is_run_again(client, thread):
    await run(client, thread, "I go on to the mill")  # the campaign goes on from its head
    await run(client, thread, "I burn the mill")
    first = await end(client, thread)
    history = await client.threads.get_history(thread["thread_id"], limit=50)
    before = next(state for state in history if state["next"] == ["recall"])
    asked = before["values"]["messages"][-1]
    assert asked["content"] == "I burn the mill"
    change = {"messages": [{"role": "user", "content": "I mend the mill", "id": asked["id"]}]}
    edited = await client.threads.update_state(
        thread["thread_id"], change, as_node="__start__", checkpoint=before["checkpoint"]
    )
    await run(client, thread, checkpoint=edited["checkpoint"])
    second = await end(client, thread)
    assert "I mend the mill" in words_of(await seen(client, second))
    assert "I burn the mill" not in words_of(await seen(client, second))
    assert "I burn the mill" in words_of(await seen(client, first))
    assert "I mend the mill" not in words_of(await seen(client, first))

    # A page edited by a person, and a run on from there: the page is this branch's, the records stay.
    paged = await client.threads.update_state(
        thread["thread_id"], {"quest": {"gold": 77}}, as_node="remember", checkpoint=first["checkpoint"]
    )
    await run(client, thread, "I look at the ashes", paged["checkpoint"])
    third = await end(client, thread)
    assert third["values"]["quest"]["gold"] == 77
    assert second["values"]["quest"]["gold"] != 77
    assert words_of(await seen(client, third))[-2:] == ["I burn the mill", "I look at the ashes"]


async def test_a_copied_thread_parts_from_the_first(client, thread):
    await run(client, thread, "I come to the crossroads")
    copied = await client.threads.copy(thread["thread_id"])
    copy = copied or (await client.threads.search(limit=1))[0]
    assert copy["thread_id"] != thread["thread_id"]
    await run(client, thread, "I go left")
    await run(client, copy, "I go right")
    left, right = await end(client, thread), await end(client, copy)
    assert words_of(await seen(client, left))[-2:] == ["I come to the crossroads", "I go left"]
    assert words_of(await seen(client, right))[-2:] == ["I come to the crossroads", "I go right"]
    reply, _ = await say(client, copy, "I go on", **TIGHT)
    assert reply.strip()


async def test_a_run_that_is_rolled_back_leaves_no_checkpoint_and_the_server_goes_on(client, thread):
    settings = {**CONTEXT, "campaign": "rolled back"}
    said = message(MIRA)
    await client.runs.wait(thread["thread_id"], "dungeon_master", input=said, context=settings)
    before = await client.threads.get_state(thread["thread_id"])
    for words, more in (("I take the wrong road.", {}), ("I take the right road.", {"multitask_strategy": "rollback"})):
        where = (thread["thread_id"], "dungeon_master")
        last = await client.runs.create(*where, input=message(words), context=settings, **more)
    await client.runs.join(thread["thread_id"], last["run_id"])
    after = await client.threads.get_state(thread["thread_id"])
    spoken = [one["content"] for one in after["values"]["messages"] if one["type"] == "human"]
    assert spoken == [MIRA, "I take the right road."]
    assert after["values"]["turn"] == before["values"]["turn"] + 1
    other = await client.threads.create(graph_id="dungeon_master")
    await client.runs.wait(other["thread_id"], "dungeon_master", input=said, context={**settings, "campaign": "other"})
    assert (await client.threads.get_state(other["thread_id"]))["values"]["turn"]

"""What MemoryScope's operations do, feature by feature (MS1 to MS24 in docs/coverage.md): in a game, at the terminal.

Its failings are tests here too: messages that count as memorised though the model failed, contradictions of another
day, insights without sources, a command line in small letters that stops at the first space.
"""

import asyncio

import pytest
from fact_play import FACTS, known
from program import start
from reflecting import DEBT, FAIR, MILL, ask, conclude, numbers, tell
from scripted import call, say

from questbook import Memories
from questbook.graphs.local.databases import open_store
from questbook.memory.timeline.namespaces import campaign_namespace

ASKED = ask()


def home(where):
    text = f"Goran lives at {where}."
    return {"text": text, "subject": "Goran", "attribute": "home", "value": where, "kind": "trait", "importance": 2}


async def items(game):
    return {item.value["text"]: item for item in await game.store.asearch(FACTS, limit=999)}


def timeline(game):
    return [tuple(segment) for segment in game.values["timeline"]]


async def test_ms07_memories_are_listed_by_what_they_are_and_whether_they_hold(new_mira):
    game = await new_mira(reflection_importance=8)
    await tell(game, "I ask.", home("the mill"))
    game.model.queue("question", ASKED)
    game.model.queue("conclude", conclude(("Goran flees from his debt.", [DEBT["text"]])))
    await tell(game, "I ask on.", home("the inn"), DEBT)
    drawn, noted, ended = (
        "Goran flees from his debt.",
        {home("the inn")["text"], DEBT["text"]},
        home("the mill")["text"],
    )

    async def status(view):
        found = await Memories(game.store, "adventurer", campaign="default", timeline=view).list()
        return {memory.text: memory.status for memory in found if memory.kind != "exchange"}

    assert await status(timeline(game)) == dict.fromkeys([drawn, *noted], "holds") | {ended: "ended"}
    before = await status([(timeline(game)[0][0], 2)])
    assert before == dict.fromkeys([drawn, *noted], "elsewhere") | {ended: "holds"}, "as of the turn before"


async def test_ms14_an_insight_takes_in_its_like_and_gives_way_to_a_newer_one(new_mira):
    game = await new_mira(reflection_importance=6)
    game.model.queue("question", ASKED, ASKED, ASKED)
    first, second, newer = "Oda is content.", "Nothing draws Oda away.", "Oda longs for company."
    await tell(game, "I ask.", MILL, conclude=conclude((first, [MILL["text"]])))
    bell = {"text": "Oda rang the mill's bell by night.", "subject": "Oda", "importance": 6}

    def again(messages):
        number = numbers(messages)
        like = {"text": second, "cites": [number[bell["text"]]], "same_as": number[first]}
        return say("", call("Reflection", insights=[like]))

    await tell(game, "I listen to Oda.", bell, conclude=again)
    assert {text for text, item in (await items(game)).items() if item.value["cites"]} == {first}
    game.model.queue("conclude", conclude((newer, [FAIR["text"]]), ended=MILL["text"], holds=FAIR["text"]))
    await tell(game, "I go to the fair where Oda is.", FAIR)
    game.model.queue("question", ASKED)
    game.model.queue("conclude", conclude(ended=first, holds=newer))
    song = {"text": "Oda sang of company at the mill.", "subject": "Oda", "importance": 6}
    await tell(game, "I listen to Oda, content or not.", song)
    assert newer in await known(game)
    assert first not in await known(game)
    assert first in await items(game), "kept, and found by who asks what was believed then"


@pytest.mark.slow
async def test_ms15_a_contradiction_of_long_ago_is_put_before_the_model_without_a_setting(new_mira):
    game = await new_mira(reflection_importance=150)
    await tell(game, "I ask.", MILL)
    for n in range(14):
        await tell(game, f"I count stone {n}.", {"text": f"The stone number {n} is red.", "importance": 10})
    game.model.queue("question", ASKED)
    for n in range(14, 28):
        await tell(game, f"I count stone {n}.", {"text": f"The stone number {n} is red.", "importance": 10})
    assert MILL["text"] in await known(game)
    game.model.queue("question", ASKED)
    game.model.queue("conclude", conclude(ended=MILL["text"], holds=FAIR["text"]))
    await tell(game, "I go to the fair.", FAIR | {"importance": 10}, {"text": "The king is dead.", "importance": 10})
    assert FAIR["text"] in await known(game)
    assert MILL["text"] not in await known(game)
    assert (await items(game))[MILL["text"]].value["text"] == MILL["text"], "no content was rewritten"


def test_ms22_the_command_line_keeps_capitals_and_spaces_and_lists_its_commands(tmp_path):
    flags = ("--character", "Miku")
    added = start(tmp_path, "memories", "add", "I like Green Tea and NATO", *flags)
    assert added.returncode == 0, added.stderr
    assert "I like Green Tea and NATO" in start(tmp_path, "memories", "list", *flags).stdout.decode()
    played = start(tmp_path, "play", "--seed", "1", words="/help\n/quit\nI am never read\n").stdout.decode()
    for command in ("/help", "/memories", "/quit"):
        assert command in played
    assert "never read" not in played


def test_ms07_at_the_terminal_under_their_headings(tmp_path):
    async def write():
        async with open_store(tmp_path / "memory.db") as store:
            value = {"kind": "event", "text": "Goran sold the lamp.", "branch": "a", "turn": 2, "order": "00000002"}
            place = campaign_namespace("adventurer", "default", "facts")
            await store.aput(place, "a-2-fact-0", value)
            await store.aput(place, "a-2-insight-0", {**value, "text": "Goran is poor.", "cites": ["a-2-fact-0"]})
            await store.aput(place, "a-9-fact-0", {**value, "text": "Goran died.", "turn": 9})
            head = {"timeline": [["a", 5]]}
            await store.aput(campaign_namespace("adventurer", "default", "head"), "head", head, index=False)

    asyncio.run(write())
    lines = start(tmp_path, "memories", "list", "--campaign", "default").stdout.decode().splitlines()
    assert [line.partition(" ")[0] for line in lines] == [
        "Facts:", "a-2-fact-0", "Insights:", "a-2-insight-0", "On", "a-9-fact-0"
    ]  # fmt: skip
    assert start(tmp_path, "memories", "list", "--campaign", "none").stdout == b"Nothing is remembered there.\n"

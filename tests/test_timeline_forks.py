"""Rewinding and forking a game: the checkpoint alone decides what is remembered."""

import asyncio
from types import SimpleNamespace

import pytest
from conftest import EXCHANGES
from faulty_stores import Hooked
from langchain_core.messages import AIMessage, HumanMessage
from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.quest import recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import HistoryError
from questbook.graphs.history.history import History
from questbook.graphs.turn.recall import memories_for
from questbook.memory.timeline.timeline import visible_filters


async def seen(game, config=None):
    """What the checkpoint may see, as (turn, reply)."""
    state = game.app.get_state(config or game.config).values
    found = [
        (item.value["turn"], item.value["reply"])
        for segment in visible_filters([tuple(part) for part in state["timeline"]])
        for item in await game.store.asearch(EXCHANGES, filter=segment, limit=100)
    ]
    return sorted(found)


async def turn(game, words, reply, config=None):
    game.model.queue("quest", say(reply))
    await game.app.ainvoke(
        {"messages": [HumanMessage(words)]} if words else None, config or game.config, context=game.settings
    )
    return game.app.get_state(game.config).config


async def test_a_rewound_game_does_not_know_the_abandoned_future(game):
    await game.begin()
    two = await turn(game, "I go in", "You are inside.")
    died = await turn(game, "I fight", "You die.")
    await turn(game, "ghostly wails", "Nobody hears.")
    lived = await turn(game, "I flee", "You live.", two)
    await turn(game, "I rest", "You sleep.")
    assert [reply for _, reply in await seen(game)][1:] == ["You are inside.", "You live.", "You sleep."]
    assert [reply for _, reply in await seen(game, died)][1:] == ["You are inside.", "You die."]
    assert [reply for _, reply in await seen(game, lived)][1:] == ["You are inside.", "You live."]
    again = await turn(game, "I curse", "The dead curse.", died)
    assert [reply for _, reply in await seen(game, again)][1:] == ["You are inside.", "You die.", "The dead curse."]
    assert len(await game.store.asearch(EXCHANGES, limit=100)) == 7, "each future keeps its own"


@pytest.mark.parametrize("node", ["update_state", "remember"])
async def test_a_reply_rewritten_before_it_is_remembered_is_another_future(game, node):
    """Studio keeps the id of a message that is edited; the older branch must keep its words all the same."""
    await game.begin()
    first = await turn(game, "I knock", "Nobody answers.")
    before = next(s for s in game.app.get_state_history(game.config) if s.next == (node,))
    change = {"messages": [AIMessage("A dog barks.", id=before.values["messages"][-1].id)]}
    previous = {"update_state": "run_quest", "remember": "update_state"}[node]
    second = await turn(game, None, "", await game.app.aupdate_state(before.config, change, as_node=previous))
    assert [reply for _, reply in await seen(game, first)][1:] == ["Nobody answers."]
    assert [reply for _, reply in await seen(game, second)][1:] == ["A dog barks."]


async def test_a_page_edited_before_the_turn_is_remembered_leaves_the_older_record(game):
    await game.begin()
    await turn(game, "I knock", "Nobody answers.")
    before = next(s for s in game.app.get_state_history(game.config) if s.next == ("remember",))
    edited = await game.app.aupdate_state(before.config, {"quest": {"location": "The moon"}}, as_node="update_state")
    await turn(game, None, "", edited)
    records = [item.value for item in await game.store.asearch(EXCHANGES, limit=100) if item.value["turn"] == 2]
    assert sorted(record["location"] for record in records) == ["The Bent Nail", "The moon"]


async def test_a_record_that_stands_is_never_written_again(game):
    await game.begin()
    await turn(game, "I knock", "Nobody answers.")
    written = [item.value for item in await game.store.asearch(EXCHANGES, limit=100)]
    before = next(s for s in game.app.get_state_history(game.config) if s.next == ("remember",))
    await asyncio.sleep(1.1)  # said_at counts seconds
    await turn(game, None, "", before.config)
    assert [item.value for item in await game.store.asearch(EXCHANGES, limit=100)] == written, "nor its provenance"


async def test_a_turn_that_could_not_be_written_does_not_see_another_in_its_place(game):
    async def full(when, written):
        if "exchanges" in written:
            raise OSError("disk full")

    game.keep_in(Hooked(game.store))
    await game.begin()
    root = game.app.get_state(game.config).config
    await turn(game, "I drown", "The sea takes you.")
    game.store.hook = full
    await turn(game, "I swim", "You reach the shore.", root)
    game.store.hook = None
    state = game.app.get_state(game.config).values
    assert state["remembered_through"] == 1
    runtime = SimpleNamespace(store=game.store, context=Context.of(game.settings), execution_info=None)
    shortened = state | {"messages": [HumanMessage("What of the sea?")], "turn": 3}
    assert "drown" not in str(await memories_for(DungeonState.model_validate(shortened), runtime, recall_plan))
    history = History(game.app, game.config, Context.of(game.settings))
    with pytest.raises(HistoryError, match="'2'"):
        await history.find("2")
    assert "shore" in (await history.go("2")).values["messages"][-1].text, (
        "the turn of this line, not the one in its place"
    )
    await turn(game, "I rest", "You sleep.")
    assert [reply for _, reply in await seen(game)][1:] == ["You reach the shore.", "You sleep."]


async def test_a_killed_write_and_another_message_make_no_branch(game):
    """The record stands and no checkpoint says so; the next turn finds it, and the line goes on as it was."""
    await game.begin()
    await turn(game, "I knock", "Nobody answers.")
    before = next(s for s in game.app.get_state_history(game.config) if s.next == ("remember",))
    game.model.queue("update", say("", call("StateNotebook", location="The hall")))
    end = await turn(game, "I go in", "A hall.", before.config)
    assert [reply for _, reply in await seen(game, end)][1:] == ["Nobody answers.", "A hall."]
    assert len(game.app.get_state(end).values["timeline"]) == 1


async def test_the_same_checkpoint_recalls_the_same_whatever_happened_since(new_game):
    game = new_game(buffer_tokens=200)
    await game.begin()
    for number in range(8):
        await turn(game, f"I ask for heron {number}", f"Heron {number} sings. " + "La. " * 40)
    here = game.app.get_state(game.config)

    async def recalled():
        runtime = SimpleNamespace(store=game.store, context=Context.of(game.settings), execution_info=None)
        state = DungeonState.model_validate(here.values)
        return [(memory["turn"], memory["reply"]) for memory in await memories_for(state, runtime, recall_plan)]

    first = await recalled()
    assert first
    for number in range(8):
        await turn(game, f"heron heron heron {number}", f"Heron heron {number}. " + "Heron. " * 40)
    assert await recalled() == first

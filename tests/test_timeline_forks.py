"""Rewinding and forking a game: the checkpoint alone decides what is remembered."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from conftest import EXCHANGES, MIRA
from faulty_stores import Hooked
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
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


@pytest.mark.slow
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


def told(state):
    return [(message.id, message.type, message.text) for message in state.values["messages"]]


async def test_an_edit_on_a_fork_leaves_the_older_branch_as_it_was(game, tmp_path):
    """langgraph#8551: after an edit of a message on a fork, the older branch was read back with the edit in it."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        app = build_graph().compile(checkpointer=saver, store=game.store)
        game.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        await app.ainvoke({"messages": [HumanMessage("I'm Mira.")]}, game.config, context=game.settings)
        await app.ainvoke({"messages": [HumanMessage("I knock")]}, game.config, context=game.settings)
        older = await app.aget_state(game.config)
        before = await anext(s async for s in app.aget_state_history(game.config) if s.next == ("recall",))
        change = {"messages": [HumanMessage("I sing", id=before.values["messages"][-1].id)]}
        edited = await app.aupdate_state(before.config, change, as_node="__start__")
        await app.ainvoke(None, edited, context=game.settings)
        await app.aupdate_state(game.config, {"quest": {"inventory": {"silver key": 1}}}, as_node="condense")
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        app = build_graph().compile(checkpointer=saver, store=game.store)
        again, newer = await app.aget_state(older.config), await app.aget_state(game.config)
    assert told(again) == told(older)
    assert again.values["quest"] == older.values["quest"]
    assert again.values["timeline"] == older.values["timeline"]
    assert [text for _, _, text in told(newer)][-2] == "I sing"
    assert newer.values["quest"]["inventory"]["silver key"] == 1


async def test_several_writes_of_one_step_are_read_back_in_their_order(game, tmp_path):
    """langgraph#8382: what was written side by side came back from disk in another order."""
    rolls = [call("roll_dice", expression=f"1d{sides}", reason=f"die {sides}") for sides in (4, 6, 8, 10, 12, 20)]
    game.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        app = build_graph().compile(checkpointer=saver, store=game.store)
        await app.ainvoke({"messages": [HumanMessage("I'm Mira.")]}, game.config, context=game.settings)
        game.model.queue("quest", say("You throw.", *rolls), say("They fall."))
        await app.ainvoke({"messages": [HumanMessage("I throw dice")]}, game.config, context=game.settings)
        first = await app.aget_state(game.config)
    assert [roll["reason"] for roll in first.values["rolls"]] == [f"die {sides}" for sides in (4, 6, 8, 10, 12, 20)]
    for _ in range(3):
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
            app = build_graph().compile(checkpointer=saver, store=game.store)
            again = await app.aget_state(game.config)
        assert told(again) == told(first)
        assert json.dumps(again.values["rolls"]) == json.dumps(first.values["rolls"])


async def test_messages_keep_their_ids_when_a_turn_is_run_again(game):
    """langgraph#7913: a message without an id was given another one at each replay, and stood there twice."""
    await game.begin()
    await game.play({"messages": [{"role": "user", "content": "I knock"}]})
    middle = next(s for s in game.app.get_state_history(game.config) if s.next == ("run_quest",))
    for _ in range(3):
        await game.app.ainvoke(None, middle.config, context=game.settings)
        asked = [message for message in game.values["messages"] if message.text == "I knock"]
        assert [message.id for message in asked] == [middle.values["messages"][-1].id]

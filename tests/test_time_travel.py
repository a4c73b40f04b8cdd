"""Faults of time travel that LangGraph has had (each by its number on GitHub), as far as they would touch us."""

import json

from conftest import MIRA
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted import call, say

from questbook.graphs.dungeon_master.graph import build_graph


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


async def test_a_fork_of_a_fork_reads_its_own_ancestors(game):
    """langgraph#7498, #8458: a run from an old checkpoint took values from the newest one."""
    await game.begin()
    ends = [game.app.get_state(game.config)]
    for depth in range(4):
        game.model.queue("update", say("", call("StateNotebook", gold=depth + 1)))
        await game.app.ainvoke(
            {"messages": [HumanMessage(f"Deed {depth}")]}, ends[depth // 2].config, context=game.settings
        )
        ends.append(game.app.get_state(game.config))
    for end in ends:
        again = game.app.get_state(end.config)
        assert told(again) == told(end)
        assert again.values["quest"] == end.values["quest"]
    assert [end.values["turn"] for end in ends] == [1, 2, 2, 3, 3]

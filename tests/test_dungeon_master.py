"""The machine as a whole: its picture, its calls, its stream, and both ways of running it."""

import asyncio

import pytest
from conftest import EXCHANGES, MIRA
from desk import TicketNotebook
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import StateNotebook, build_agent, every
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph, graph
from questbook.graphs.reflect.graph import build_graph as build_reflect


def test_the_picture_is_the_design():
    edges = {
        "__start__": {"build_character", "recall", "condense"},
        "build_character": {"recall", "remember"},
        "recall": {"run_quest"},
        "run_quest": {"roll_dice", "update_state"},
        "roll_dice": {"run_quest"},
        "update_state": {"remember"},
        "remember": {"reflect", "condense", "__end__"},
        "reflect": {"condense", "__end__"},
        "condense": {"__end__"},
    }
    drawn = graph.get_graph()
    assert set(drawn.nodes) == {*edges, "__end__"}
    assert {(edge.source, edge.target) for edge in drawn.edges} == {(a, b) for a in edges for b in edges[a]}
    assert graph.checkpointer is None
    assert graph.store is None


@pytest.mark.parametrize("build", [build_graph, build_companion, build_reflect, lambda: build_agent([TicketNotebook])])
def test_the_schema_that_studio_shows_describes_each_channel_and_has_no_constants(build):
    fields = build().compile().get_output_jsonschema()["properties"]
    assert [name for name in build().compile().channels if name.isupper()] == []
    assert [name for name, field in fields.items() if not field.keys() & {"description", "$ref"}] == []


async def test_what_is_secret_shows_in_no_notice(mira):
    bad = say("", call("StateNotebook", secrets={"Maren": ["is the traitor"]}, gold="much"))
    await mira.play("I look", update=[bad, bad, bad])
    told = mira.values["notices"][-1]["detail"]
    assert "traitor" not in told
    assert "gold: got 'much'" in told
    assert "A secret did not fit." in told
    assert "secrets.Maren: expected text" in mira.model.asked("update")[-1][-1].text, "the model is told which"


def test_the_sync_api_works(model):
    app = build_graph().compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "x"}}
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    out = app.invoke({"messages": [HumanMessage("hi")]}, config, context=Context(model="scripted"))
    assert out["messages"][-1].text.startswith("The wind")
    model.queue("quest", say("", call("roll_dice", expression="1d6", reason="x")), say("Six words of it are streamed."))
    stream = app.stream(
        {"messages": [HumanMessage("go")]}, config, context=Context(model="scripted"), stream_mode="messages"
    )
    tokens = [m.text for m, meta in stream if isinstance(m, AIMessage) and meta["langgraph_node"] == "run_quest"]
    assert "".join(tokens) == "Six words of it are streamed."
    assert len(tokens) >= 6
    assert [item.value["turn"] for item in app.store.search(EXCHANGES)] in ([1, 2], [2, 1])


async def test_the_sync_api_works_inside_a_running_loop(model):
    out = build_graph().compile().invoke({"messages": [HumanMessage("hi")]}, context={"model": "scripted"})
    assert out["messages"][-1].text == "And what else?"


async def test_only_the_reply_is_streamed_never_the_notes(mira):
    mira.model.queue("quest", say("One two three."))
    mira.model.queue("update", say("secret notes about the mayor", call("StateNotebook", secrets={"mayor": "thief"})))
    heard, prompts = [], []
    stream = mira.app.astream(
        {"messages": [HumanMessage("go")]}, mira.config, context=mira.settings, stream_mode=["messages", "custom"]
    )
    async for mode, event in stream:
        if mode == "messages" and isinstance(event[0], AIMessage):
            heard.append((event[1]["langgraph_node"], event[0].text))
        elif mode == "custom":
            prompts += [event] if "prompt" in event else []
    assert "".join(text for node, text in heard if node == "run_quest") == "One two three."
    assert not any("mayor" in text for _, text in heard)
    [prompt] = prompts
    sections = {part["section"]: part for part in prompt["prompt"]}
    assert list(sections) == ["instructions", "character", "messages", "quest"]
    assert all(part["tokens"] > 0 for part in sections.values())


async def test_many_games_at_once_do_not_mix(new_game, model):
    async def one(number):
        game = new_game(campaign=f"c{number}")
        model_reply = await game.play(f"hello {number}")
        return [m.text for m in model_reply["messages"] if isinstance(m, HumanMessage)]

    heard = await asyncio.gather(*(one(number) for number in range(20)))
    assert heard == [[f"hello {number}"] for number in range(20)]


async def test_the_notes_keep_the_rhythm_that_the_page_declares(mira, monkeypatch):
    monkeypatch.setattr(StateNotebook, "UPDATE", every(2))
    await mira.play("I look")
    assert (mira.values["noted_through"], len(mira.model.asked("update"))) == (2, 2)
    await mira.play("I listen")
    assert len(mira.model.asked("update")) == 2
    await mira.play("I pay", update=say("", call("StateNotebook", gold=3)))
    told = mira.model.asked("update")[-1][-1].text
    assert ("I listen" in told, "I pay" in told) == (True, True)
    assert (mira.values["quest"]["gold"], mira.values["noted_through"]) == (3, 4)

"""Traces: recall is the run of a retriever, with its question and its documents; each graph has its name."""

from importlib import import_module

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.graph import START, StateGraph

from questbook.graphs.agent import TeamState, as_node
from questbook.graphs.companion.graph import build_graph


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.questions, self.documents = [], []

    async def on_retriever_start(self, serialized, query, **kwargs):
        self.questions.append((kwargs.get("name"), query))

    async def on_retriever_end(self, documents, **kwargs):
        self.documents.append(documents)


async def test_recall_is_the_run_of_a_retriever(game):
    await game.begin()
    await game.play("The bell is made of brass.")
    seen = Seen()
    game.config = {**game.config, "callbacks": [seen]}
    await game.play("What is the bell made of?")
    assert seen.questions == [("recall", "What is the bell made of?")]
    [documents] = seen.documents
    assert all(document.page_content and document.metadata["kind"] for document in documents)


@pytest.mark.parametrize("machine", ["dungeon_master", "companion", "reflect"])
def test_a_graph_is_called_by_its_name(machine):
    graph = import_module(f"questbook.graphs.{machine}.graph")
    assert graph.build_graph().compile().name == graph.graph.name == machine
    assert graph.build_graph().compile(name="mine").name == "mine"


async def test_a_graph_inside_another_is_called_by_its_name():
    builder = StateGraph(TeamState, input_schema=TeamState)
    builder.add_node("assistant", as_node(build_graph().compile()))
    builder.add_edge(START, "assistant")
    said = {"messages": [("user", "Hello.")], "seats": {}}
    context = {"user": "ann", "model": "offline"}
    app = builder.compile(name="app")
    names = {event["name"] async for event in app.astream_events(said, context=context, version="v2")}
    assert {"app", "assistant", "companion", "respond"} <= names
    assert "LangGraph" not in names

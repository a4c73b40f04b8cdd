"""Peers: other ways to keep a conversation, as their documentation shows them; and our steps without their work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cost import Turn, run
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from tables import Tables
from typing_extensions import TypedDict

BUDGET = 4000
"""Tokens of conversation where a peer takes a budget: the default of the dungeon master's `buffer_tokens`."""


Compiled = Any
Builder = Callable[[Tables, Any], Compiled]


def plain(model: Tables, saver: Any) -> Compiled:
    """A chatbot as in LangGraph's introduction: the whole history in state and prompt."""

    async def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def trimming(model: Tables, saver: Any) -> Compiled:
    """The same, with trim_messages before the prompt; the state keeps everything."""

    async def chat(state: MessagesState) -> dict[str, Any]:
        latest = trim_messages(
            state["messages"],
            max_tokens=BUDGET,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
        )
        return {"messages": [await model.ainvoke(latest)]}

    return StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def _all(state: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    for update in writes:
        state = add_messages(state, update)  # type: ignore[assignment,arg-type]
    return state


class DeltaState(TypedDict):
    """Messages of which a checkpoint keeps what was added."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_all)]


def delta(model: Tables, saver: Any) -> Compiled:
    """The plain chatbot with a DeltaChannel (beta in LangGraph 1.2) for its messages."""

    async def chat(state: DeltaState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(DeltaState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def summarising(model: Tables, saver: Any) -> Compiled:
    """LangChain's create_agent with its SummarizationMiddleware, at the budget that ours has."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    middleware = SummarizationMiddleware(model, trigger=("tokens", BUDGET), keep=("messages", 20))
    return create_agent(model, [], middleware=[middleware], checkpointer=saver)


class BotState(MessagesState):
    """State of OpenGPTs' dungeon master."""

    character: str
    state: str


def opengpts(model: Tables, saver: Any) -> Compiled:
    """OpenGPTs' dungeon master (2023): a reply, then an update; the history holds all, also the updates."""
    told = "You are a dungeon master leading one player on a quest. Character: {}. The state of the quest: {}"

    def prompt(state: BotState) -> list[AnyMessage]:
        system = SystemMessage(told.format(state.get("character", "Mira, a halfling rogue"), state.get("state")))
        return [system, *state["messages"]]

    async def execute(state: BotState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(prompt(state))]}

    async def update_state(state: BotState) -> dict[str, Any]:
        asked = [*prompt(state), HumanMessage("Update the notebook if needed, otherwise just say no.")]
        noted = (await model.ainvoke(asked)).text
        call = {"name": "StateNotebook", "arguments": json.dumps({"state": noted})}
        return {"messages": [AIMessage("", additional_kwargs={"function_call": call})], "state": noted}

    graph = StateGraph(BotState).add_node(execute).add_node(update_state)
    return graph.add_edge(START, "execute").add_edge("execute", "update_state").compile(checkpointer=saver)


def _latest(state: list[AnyMessage], update: Any) -> list[AnyMessage]:
    return add_messages(state, update)[-20:]  # type: ignore[index,return-value]


class StepsState(TypedDict):
    """The last messages, and what each step writes."""

    messages: Annotated[list[AnyMessage], _latest]
    recalled: int
    page: dict[str, Any]
    remembered: int


def steps(model: Tables, saver: Any) -> Compiled:
    """The steps of each turn of our dungeon master, and its calls of the model, but nothing done in them.

    What is left is what LangGraph takes for such a graph: no recall, no prompt, no checked notes, nothing remembered.
    """
    tells, notes = (model.bind_tools([{"function": {"name": name}}]) for name in ("roll_dice", "StateNotebook"))

    async def ask(bound: Any, messages: list[AnyMessage]) -> Any:
        chunks = [chunk async for chunk in bound.astream([SystemMessage("x" * 9000), *messages])]
        return sum(chunks[1:], start=chunks[0])

    async def recall(state: StepsState) -> dict[str, Any]:  # noqa: ARG001
        return {"recalled": 1}

    async def run_quest(state: StepsState) -> dict[str, Any]:
        return {"messages": [await ask(tells, state["messages"])]}

    async def roll_dice(state: StepsState) -> dict[str, Any]:
        return {"messages": [ToolMessage("17", tool_call_id=state["messages"][-1].tool_calls[0]["id"])]}  # type: ignore[union-attr]

    async def update_state(state: StepsState) -> dict[str, Any]:
        return {"page": (await ask(notes, state["messages"][-2:])).tool_calls[0]["args"]}

    async def remember(state: StepsState) -> dict[str, Any]:  # noqa: ARG001
        return {"remembered": 1}

    async def route(state: StepsState) -> str:
        return "roll_dice" if getattr(state["messages"][-1], "tool_calls", None) else "update_state"

    graph = StateGraph(StepsState).add_sequence([recall, run_quest]).add_sequence([update_state, remember])
    graph.add_node(roll_dice).add_edge(START, "recall").add_edge("roll_dice", "run_quest")
    return graph.add_conditional_edges("run_quest", route, ["roll_dice", "update_state"]).compile(checkpointer=saver)


async def peer(build: Builder, model: Tables, turns: int, home: Path) -> list[Turn]:
    """One of the others, on LangGraph's checkpointer for SQLite."""
    await asyncio.to_thread(home.mkdir, parents=True)
    checkpoints = home / "checkpoints.db"
    async with AsyncSqliteSaver.from_conn_string(str(checkpoints)) as saver:
        graph, config = build(model, saver), {"configurable": {"thread_id": "1"}}

        # Our steps are streamed as the terminal has ours.
        how: dict[str, Any] = {"stream_mode": "updates"}
        if build is steps:
            how = {"stream_mode": ["messages", "updates", "custom"], "durability": "sync"}

        async def play(text: str) -> None:
            async for _ in graph.astream({"messages": [("user", text)]}, config, **how):
                pass

        return await run(model, play, turns, checkpoints)


PEERS: dict[str, Builder] = {
    "full history": plain,
    "trim_messages": trimming,
    "DeltaChannel": delta,
    "SummarizationMiddleware": summarising,
    "OpenGPTs' shape": opengpts,
    "our bare steps": steps,
}

"""The dungeon master inside your own LangGraph app: rewind or fork your app, and the game goes back with it."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from questbook import TeamState, as_node
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph

builder: StateGraph[TeamState, Context, Any, TeamState]
builder = StateGraph(TeamState, context_schema=Context)  # your state derives from TeamState, which holds the game
builder.add_node("play", as_node(build_graph().compile()))  # without a checkpointer of its own
builder.add_edge(START, "play").add_edge("play", END)
app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


async def main() -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "evening-1"}}
    for words in ("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.", "I look around."):
        context = Context(user="ann", campaign="my-app", seed=1)
        out = await app.ainvoke({"messages": [HumanMessage(words)]}, config, context=context)
        print(f"> {words}\n{out['messages'][-1].text}\n")


if __name__ == "__main__":
    asyncio.run(main())

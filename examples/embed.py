"""The dungeon master inside your own LangGraph app, on your checkpointer and your store."""

import asyncio

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph

dungeon_master = build_graph().compile(checkpointer=True)  # remembers its state under your thread


async def play(state: MessagesState) -> MessagesState:
    told = await dungeon_master.ainvoke({"messages": state["messages"][-1:]})
    return {"messages": told["messages"][-1:]}  # a turn ends with what the dungeon master said


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(play)
builder.add_edge(START, "play").add_edge("play", END)
app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())


async def main() -> None:
    config = {"configurable": {"thread_id": "evening-1"}}
    for words in ("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.", "I look around."):
        context = Context(user="ann", campaign="my-app", seed=1)
        out = await app.ainvoke({"messages": [("user", words)]}, config, context=context)
        print(f"> {words}\n{out['messages'][-1].text}\n")


if __name__ == "__main__":
    asyncio.run(main())

"""Two agents in one graph: each has its own conversation, both write on one page, and they hand a person over."""

import asyncio
import sys
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from questbook import Count, Notebook, TeamState, as_node, build_agent, on_demand, patches


class TicketNotebook(Notebook):
    """What the customer needs, and what was promised to them."""

    UPDATE = on_demand
    need: str = ""
    promises: dict[str, str] = Field(default={}, description="To whom or of what, and what.")
    promised: Count = 0


class DeskState(TeamState):
    """The team's state, with the page that it shares."""

    ticket: Annotated[TicketNotebook, patches(TicketNotebook, bounded=False)]


def team(model: str) -> StateGraph[DeskState, Any, Any, Any]:
    tasks = {"sales": "what to buy, and what it costs", "billing": "invoices and refunds"}
    builder = StateGraph(DeskState)
    for name, task in tasks.items():
        others = {other: task for other, task in tasks.items() if other != name}
        agent = build_agent(
            [TicketNotebook],
            name=name,
            instructions=f"You are of the support team, and know about {task}.",
            model=model,
            shared=[TicketNotebook],
            handoffs=others,
        )
        builder.add_node(name, as_node(agent.compile()), destinations=(*others, END))
    builder.add_edge(START, "sales")
    return builder


async def main(model: str = "offline") -> None:
    app = team(model).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config: RunnableConfig = {"configurable": {"thread_id": "ann"}}
    for words in ("Hello! I want a lamp by Friday.", "And where is my last invoice?"):
        values = await app.ainvoke({"messages": [("user", words)]}, config, context={"user": "ann"})
        print(f"> {words}\n{values['messages'][-1].text}\n")
    print(values["ticket"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

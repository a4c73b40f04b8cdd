"""Two agents in one parent graph to test teams with: sales and billing, and a page of visits that agents share."""

import uuid
from typing import Annotated

from desk import AgentModel, CallbackNotebook, TicketNotebook
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import Count, Notebook, on_demand
from questbook.graphs.agent import TeamState, as_node, build_agent
from questbook.graphs.turn.state import patches


class VisitsNotebook(Notebook):
    """Who called, and how often."""

    UPDATE = on_demand

    calls: Count = 0
    callers: dict[str, str] = {}


class DeskState(TeamState):
    callback: Annotated[CallbackNotebook, patches(CallbackNotebook, bounded=False)]


class VisitsState(TeamState):
    visits: Annotated[VisitsNotebook, patches(VisitsNotebook, bounded=False)]


class Team:
    """Sales and billing, who hand over to each other and share a notebook; sales is asked first."""

    def __init__(self, saver=None, store=None):
        self.models = {"sales": AgentModel(), "billing": AgentModel()}
        builder = StateGraph(DeskState)
        for name, other in (("sales", "billing"), ("billing", "sales")):
            agent = build_agent(
                [CallbackNotebook, TicketNotebook],
                name=name,
                model=self.models[name],
                shared=[CallbackNotebook],
                handoffs={other: f"what {other} knows better"},
            )
            builder.add_node(name, as_node(agent.compile()), destinations=(other, END))
        builder.add_edge(START, "sales")
        self.store = store or InMemoryStore()
        self.app = builder.compile(checkpointer=saver or InMemorySaver(), store=self.store)
        self.config = {"configurable": {"thread_id": str(uuid.uuid4())}}

    async def say(self, words, config=None, **answers):
        for name, queued in answers.items():
            self.models[name].queue("reply", *queued)
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        values = await self.app.ainvoke(update, config or self.config, durability="sync")
        return values["messages"][-1].text

    @property
    def values(self):
        return self.app.get_state(self.config).values


OVER = say("", call("hand_over", to="billing"))

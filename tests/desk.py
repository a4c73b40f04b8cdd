"""A support desk to test agents with: notebooks with every policy, and a scripted model that knows an agent's jobs."""

from __future__ import annotations

import uuid
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import ScriptedModel, call, say, sections_of

from questbook import Count, Notebook, every, every_turn, on_demand, once
from questbook.graphs.agent import build_agent


class CustomerNotebook(Notebook):
    """Who writes."""

    UPDATE = once
    REQUIRED = ("name", "product")

    name: str = ""
    product: str = ""


class TicketNotebook(Notebook):
    """What they need help with."""

    UPDATE = every_turn
    LIMIT = 300

    problem: str = ""
    status: str = "open"
    steps: dict[str, str] = {}


class MoodNotebook(Notebook):
    """How they feel."""

    UPDATE = every(3)
    PLACE = "last"

    mood: str = ""


class CallbackNotebook(Notebook):
    """When to call them back."""

    UPDATE = on_demand
    PLACE = "before"

    day: str = ""
    calls: Count = 0


def of_scope(scope: str, *pages: Any) -> list[Any]:
    """The same notebooks with another scope."""
    return [type(page.__name__, (page,), {"SCOPE": scope, "__doc__": page.__doc__}) for page in pages]


KNOWN = say("", call("CustomerNotebook", name="Ann", product="X100"))


def note(**fields: Any) -> Any:
    """An answer that patches the ticket."""
    return say("", call("TicketNotebook", **fields))


class AgentModel(ScriptedModel):
    """Knows by its prompt what it is asked: "fill", "reply", "update" or "condense"."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        bound = self.model_copy(update={"job": [tool["function"]["name"] for tool in tools]})
        bound.script, bound.calls, bound._stock = self.script, self.calls, self._stock
        return bound

    def _answer(self, messages: list[BaseMessage]) -> Any:
        told = sections_of(messages)
        sections = {"<due>\n": "update", "<missing>\n": "fill", "You keep the running summary": "condense"}
        kind = next((job for mark, job in sections.items() if mark in told), "reply")
        after = {"Facts": "facts", "Questions": "question", "Reflection": "conclude"}
        kind = next((job for tool, job in after.items() if tool in self.job), kind)
        self._stock.update(fill=say("Who are you?"), reply=say("I see."))
        tools, self.job = self.job, kind
        try:
            return super()._answer(messages)
        finally:
            self.job = tools


class Desk:
    """One thread of an agent on a scripted model, in RAM."""

    def __init__(self, *notebooks: Any, saver: Any = None, store: Any = None, **description: Any) -> None:
        self.model = description.setdefault("model", AgentModel())
        self.saver, self.store = saver or InMemorySaver(), store or InMemoryStore()
        self.builder = build_agent(notebooks, **description)
        self.app: Any = self.builder.compile(checkpointer=self.saver, store=self.store)
        self.config: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}

    async def say(self, words: Any, *, config: Any = None, **answers: Any) -> str:
        for job, queued in answers.items():
            self.model.queue(job, *(queued if isinstance(queued, list) else [queued]))
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        values = await self.app.ainvoke(update, config or self.config, durability="sync")
        return values["messages"][-1].text

    @property
    def values(self) -> dict[str, Any]:
        return self.app.get_state(self.config).values

    @property
    def notices(self) -> list[str]:
        return [notice["text"] for notice in self.values["notices"]]

    def prompts(self, job: str) -> list[str]:
        """The sections of each question of a kind."""
        return [sections_of(asked) for asked in self.model.asked(job)]

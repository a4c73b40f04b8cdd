"""A companion in RAM: one thread on a scripted model, or on the offline one."""

from __future__ import annotations

import uuid

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.companion.context import Context
from graphs.companion.graph import build_graph
from graphs.history import History
from notebooks import CoreNotebook


class Talk:
    """One thread of the companion.

    Args:
        scripted: Says what a test queues; None: the offline assistant answers.
        saver: Checkpointer; the default is one in RAM.
        store: Store; the default is one in RAM.
        settings: Fields of its context.
    """

    def __init__(self, scripted=None, saver=None, store=None, **settings):
        self.model = scripted
        self.saver, self.store = saver or InMemorySaver(), store or InMemoryStore()
        self.settings = {"model": "scripted" if scripted else "offline", **settings}
        self.config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self.app = build_graph().compile(checkpointer=self.saver, store=self.store)

    async def say(self, words, *answers, **settings):
        if self.model:
            self.model.queue("companion", *answers)
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        await self.app.ainvoke(update, self.config, context={**self.settings, **settings}, durability="sync")
        return self.reply

    @property
    def context(self):
        return Context.of(self.settings)

    @property
    def history(self):
        return History(self.app, self.config, self.context)

    @property
    def values(self):
        return self.app.get_state(self.config).values

    @property
    def human(self):
        return CoreNotebook.load(self.values["core"]).sections["human"].value

    @property
    def reply(self):
        return self.values["messages"][-1].text

    @property
    def results(self):
        return [message for message in self.values["messages"] if isinstance(message, ToolMessage)]

    def records(self, what):
        place = (self.context.user, self.context.campaign, what)
        return sorted((item.value for item in self.store.search(place, limit=100)), key=lambda value: value["turn"])

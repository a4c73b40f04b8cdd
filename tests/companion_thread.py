"""A thread of the companion as a test drives it: its model says what it is told to, or it is the offline one."""

import uuid
from functools import cache

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, sections_of

from questbook import CoreNotebook
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.graph import build_graph
from questbook.graphs.history.history import History
from questbook.memory.facts.validity import keep_valid
from questbook.memory.timeline.timeline import list_visible

ARCHIVE = ("adventurer", "companion", "archive")
EXCHANGES = ("adventurer", "companion", "exchanges")


companion = cache(build_graph)  # once: what it is compiled with differs, the machine does not


class Companion:
    """One thread on a scripted model (or the offline one), in RAM."""

    def __init__(self, scripted=None, saver=None, store=None, **settings):
        self.model = scripted
        self.saver, self.store = saver or InMemorySaver(), store or InMemoryStore()
        self.settings = {"model": "scripted" if scripted else "offline", **settings}
        self.config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        self.app = companion().compile(checkpointer=self.saver, store=self.store)

    async def say(self, words, *answers, **settings):
        if self.model:
            self.model.queue("companion", *answers)
        update = {"messages": [HumanMessage(words)]} if isinstance(words, str) else words
        await self.app.ainvoke(update, self.config, context={**self.settings, **settings}, durability="sync")
        return self.reply

    @property
    def context(self):
        return CompanionContext.of(self.settings)

    @property
    def history(self):
        return History(self.app, self.config, self.context)

    def records(self, what):
        place = (self.context.user, self.context.campaign, what)
        return sorted((item.value for item in self.store.search(place, limit=100)), key=lambda value: value["turn"])

    async def holding(self):
        """The texts of the facts that hold on the thread's timeline, sorted."""
        timeline = [tuple(segment) for segment in self.values["timeline"]]
        items = await list_visible(self.store, (self.context.user, self.context.campaign, "facts"), timeline)
        return sorted(item.value["text"] for item in await keep_valid(self.store, items, timeline=timeline))

    @property
    def values(self):
        return self.app.get_state(self.config).values

    @property
    def memories(self):
        """What was recalled into the last prompt."""
        return sections_of(self.model.asked("companion")[-1]).partition("<memories>")[2].partition("</memories>")[0]

    @property
    def core(self):
        return CoreNotebook.load(self.values["core"])

    @property
    def human(self):
        return self.core.sections["human"].value

    @property
    def reply(self):
        return self.values["messages"][-1].text

    @property
    def results(self):
        return [m for m in self.values["messages"] if isinstance(m, ToolMessage)]


def note(text, label="human", **more):
    return call("core_memory_append", label=label, content=text, **more)

"""The timeline model: a campaign that is played, and for each of its places a list of what that place knows.

The lists are kept by the moves alone (`timeline_moves`), without a look at the timeline or the store: a place's list is
that of the place it was played from and one exchange more. What the game may see from there must be that list, exactly.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from typing import Any, NamedTuple

from faulty_stores import Hooked
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from scripted import ScriptedModel, call, say

from graphs.dungeon_master.graph import build_graph
from memory.namespaces import campaign_namespace
from memory.recall import recall
from memory.timeline import visible

Exchange = tuple[int, str, str]
WORDS = ["heron", "lamp", "door", "sister", "gold", "keeper", "ring", "sea", "tower", "song", "rope", "cat", "ferry"]
OPENING = ("recall", "run_quest")
"""Nodes before the reply: run again, they make a new one."""


class Place(NamedTuple):
    """The end of a turn: its checkpoint, what is stored of its past, and what could not be stored yet."""

    config: Any
    stored: tuple[Exchange, ...] = ()
    pending: tuple[Exchange, ...] = ()


class Middle(NamedTuple):
    """A checkpoint within a turn: the node that is next, where the turn began, what was said, what was answered."""

    config: Any
    node: str
    base: Place
    said: str
    reply: str


class Promise(NamedTuple):
    """What was recalled from a place, which it must recall for ever."""

    place: Place
    query: str
    keys: list[str]


class CrashError(RuntimeError):
    """The fault that is injected."""


class Campaign:
    """One campaign on a scripted model: what was played, what each place knows, and where the next fault happens.

    Args:
        store: Where records go; emptied by nobody, so give each campaign a name of its own.
        seed: Of the words that are said.
        campaign: Its name.
    """

    def __init__(self, store: BaseStore, seed: int = 0, campaign: str = "default") -> None:
        self.store, self.saver, self.random = Hooked(store), InMemorySaver(), random.Random(seed)
        self.exchanges = campaign_namespace("adventurer", campaign, "exchanges")
        self.context: Any = {"model": "scripted", "seed": 7, "buffer_tokens": 200, "campaign": campaign}
        self.places: list[Place] = []
        self.middles: list[Middle] = []
        self.promises: list[Promise] = []
        self.head: tuple[Exchange, ...] = ()
        self.counter = itertools.count(1)
        self.replies: list[str] = []
        self.fault: tuple[str, str, str] | None = None
        self.task: asyncio.Task[Any] | None = None
        self.model = ScriptedModel()
        self.model._stock |= {"quest": self._reply, "update": self._notes}
        self.app = self.compiled()

    def compiled(self) -> Any:
        builder = build_graph()
        for name, spec in builder.nodes.items():
            spec.runnable.function = self._faulty(name, spec.runnable.function)
        return builder.compile(checkpointer=self.saver, store=self.store)

    def answered_by_model(self, patch: Any) -> None:
        """Let the graph's nodes ask this world's model; `patch` is monkeypatch.setattr or one like it."""
        patch("graphs.model.load_chat_model", lambda *_, **__: self.model)

    # What must hold

    async def seen(self, place: Place) -> list[Exchange]:
        """What can be seen from a place, by the filters of its timeline."""
        state = self._values(place)
        timeline = [(branch, turn) for branch, turn in state["timeline"]]
        found = []
        for segment in visible(timeline, _through(state) + 1):
            items = await self.store.asearch(self.exchanges, filter=segment, limit=1000)
            found += [(item.value["turn"], item.value["player"], item.value["reply"]) for item in items]
        return sorted(found)

    async def recalled(self, place: Place, query: str) -> list[str]:
        state = self._values(place)
        timeline = [(branch, turn) for branch, turn in state["timeline"]]
        found = await recall(self.store, self.exchanges, [(query, 1.0)], timeline=timeline, before=_through(state) + 1)
        return [record.key for record in found]

    async def timeline(self, place: Place) -> list[Any]:
        found: list[Any] = self._values(place)["timeline"]
        return found

    async def faults(self, place: Place) -> Counter[str]:
        """Count what a place sees and should not, does not see and should, and sees more than once."""
        seen, due = Counter(await self.seen(place)), Counter(place.stored)
        return Counter(
            leaked=sum(1 for told in seen if told not in due),
            missing=sum(1 for told in due if told not in seen),
            doubled=sum(count - 1 for count in seen.values()),
        )

    async def broken(self) -> int:
        """Count the promises that are not kept."""
        return sum([await self.recalled(p.place, p.query) != p.keys for p in self.promises])

    # What the moves are made of

    def _values(self, place: Place) -> Any:
        found = self.saver.get_tuple(place.config)
        assert found is not None
        return found.checkpoint["channel_values"]

    async def _run(self, given: Any, config: Any) -> list[dict[str, Any]]:
        async def events() -> list[dict[str, Any]]:
            stream = self.app.astream(given, config, context=self.context, stream_mode="checkpoints", durability="sync")
            return [event async for event in stream]

        self.store.hook = self._at_write
        self.model.calls.clear()  # it grows for ever, and tracing writes it out at each call
        self.task = asyncio.create_task(events())
        try:
            return await self.task
        finally:
            self.store.hook = None

    def _arrive(self, events: list[Any], base: Place, told: Exchange, *, resumed: bool = False) -> None:
        stored = (*base.stored, *base.pending, told)
        self.places.append(Place(_checkpoint(events[-1]), stored))
        self.head = stored
        if not resumed:
            _, said, reply = told
            middles = [Middle(_checkpoint(e), e["next"][0], base, said, reply) for e in events if e["next"]]
            self.middles += [middle for middle in middles if middle.node != "__start__"]

    def _told(self, base: Place, said: str, middle: Middle | None = None) -> Exchange:
        reply = self.replies[-1] if middle is None or middle.node in (*OPENING, "build_character") else middle.reply
        return (len(base.stored) + len(base.pending) + 1, said, reply)

    def _say(self) -> str:
        return f"I say {next(self.counter)}: {' '.join(self.random.choices(WORDS, k=4))}"

    def _reply(self, _: Any) -> AIMessage:
        told = " ".join(self.random.choices(WORDS, k=30))
        self.replies.append(f"Reply {next(self.counter)}: {told}.")
        return say(self.replies[-1])

    def _notes(self, _: Any) -> AIMessage:
        return say("", call("StateNotebook", location=self.random.choice(WORDS)))

    def _faulty(self, name: str, function: Any) -> Any:
        async def node(state: Any, runtime: Any) -> Any:
            await self._at(name, "before")
            result = await function(state, runtime)
            await self._at(name, "after")
            return result

        return node

    async def _at_write(self, when: str, written: set[str]) -> None:
        for what in ("claims", "exchanges"):
            if what in written:
                await self._at(what, when)

    async def _at(self, what: str, when: str) -> None:
        if self.fault is None or self.fault[:2] != (what, when):
            return
        kind, self.fault = self.fault[2], None
        if kind == "raise":
            raise CrashError(f"{when} {what}")
        assert self.task is not None
        self.task.cancel()
        await asyncio.sleep(60)


def _through(state: Any) -> int:
    return int(state["remembered_through"])


def _checkpoint(event: dict[str, Any]) -> Any:
    where = event["config"]["configurable"]
    return {"configurable": {name: where[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}}

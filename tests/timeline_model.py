"""The timeline model: a campaign that is played, and for each of its places a list of what that place knows.

The lists are kept by the moves alone (`timeline_moves`), without a look at the timeline or the store: a place's list is
that of the place it was played from, one exchange more, and the facts of that turn. What the game may see from there
must be that list, exactly, and so must what the next turn's prompt tells of it (`faults_of`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from faulty_stores import Hooked
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, SearchItem, SearchOp
from scripted import ScriptedModel, call, say, sections_of

from questbook.graphs.dungeon_master.graph import build_graph
from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import Segment, visible_filters

WORDS = ["heron", "lamp", "door", "sister", "gold", "keeper", "ring", "sea", "tower", "song", "rope", "cat", "ferry"]
OPENING = ("recall", "run_quest")
"""Nodes before the reply: run again, they make a new one."""
ANSWERED = ("update_state", "remember")
WRITES = ("claims", "exchanges", "facts")
"""Namespaces that `remember` writes to, in this order."""


HOUSES = ["mill", "crypt", "ford"]
"""So few that they come again: told on another branch, a fact is new there."""


class Exchange(NamedTuple):
    """What was said in a turn."""

    turn: int
    player: str
    reply: str


class Fact(NamedTuple):
    """What a turn taught. "Goran's home is the mill." fills a slot, of which one value holds at a time."""

    turn: int
    kind: str
    text: str

    @property
    def slot(self) -> tuple[str, str] | None:
        about, fills, _ = self.text.partition(" is the ")
        return (self.kind, about) if fills else None

    def handed(self) -> dict[str, str]:
        """The fact as the model hands it over."""
        subject, _, rest = self.text.rstrip(".").partition("'s ")
        attribute, _, value = rest.partition(" is the ")
        filled = {"subject": subject, "attribute": attribute, "value": value} if self.slot else {}
        return {"text": self.text, "kind": self.kind, **filled}


Record: TypeAlias = Exchange | Fact


def teach(said: random.Random, number: int) -> list[Fact]:
    """Facts for a turn that has no number yet: none, one or two of plain, secret, changing, secret and changing."""
    facts = [
        Fact(0, "event", f"Oda paid {number} crowns."),
        Fact(0, "secret", f"Oda stole {number} rubies."),
        Fact(0, "trait", f"Goran's home is the {said.choice(HOUSES)}."),
        Fact(0, "secret", f"Isolde's lair is the {said.choice(HOUSES)}."),
    ]
    return said.sample(facts, said.choice([0, 1, 1, 2]))


def learnt(known: Iterable[Record], taught: Sequence[Fact], turn: int) -> list[Fact]:
    """Those of a turn's facts that are written: what only says what its slot holds already is not."""
    held, new = {fact.slot: fact.text for fact in facts_of(known)}, []
    for fact in taught:
        if fact.slot is None or held.get(fact.slot) != fact.text:
            new.append(fact._replace(turn=turn))
        held[fact.slot] = fact.text
    return new


def holding(known: Iterable[Record]) -> set[Fact]:
    """The facts that hold: the last of each slot, and all that fill none."""
    return set({fact.slot or fact: fact for fact in facts_of(known)}.values())


def facts_of(known: Iterable[Record]) -> list[Fact]:
    return [one for one in known if isinstance(one, Fact)]


def exchanges_of(known: Iterable[Record]) -> list[Exchange]:
    return [one for one in known if isinstance(one, Exchange)]


def read(value: Mapping[str, Any]) -> Record:
    """Read what a store holds, or what a prompt tells of it."""
    if "reply" in value:
        return Exchange(value["turn"], value["player"], value["reply"])
    kind = value.get("kind") or next(name for name in value if name not in ("turn", "age"))
    return Fact(value["turn"], kind, value["text"] if "text" in value else value[kind])


class Place(NamedTuple):
    """The end of a turn: its checkpoint, what is stored of its past, and what could not be stored yet."""

    config: Any
    stored: tuple[Record, ...] = ()
    pending: tuple[Record, ...] = ()

    @property
    def turn(self) -> int:
        """Number of the next turn."""
        return len(exchanges_of((*self.stored, *self.pending))) + 1

    @property
    def late(self) -> tuple[Record, ...]:
        """What is pending of turns that stand: whoever plays on from here writes it where this place sees it."""
        written = len(exchanges_of(self.stored))
        return tuple(one for one in self.pending if one.turn <= written)

    def after(self, told: Sequence[Record], written: tuple[type, ...] = (Exchange, Fact), config: Any = None) -> Place:
        """The place one turn on, if of it and of what was pending so much could be written."""
        known = (*self.pending, *told)
        stored = tuple(one for one in known if isinstance(one, written))
        return Place(config, (*self.stored, *stored), tuple(one for one in known if not isinstance(one, written)))


class Middle(NamedTuple):
    """A checkpoint within a turn: the node that is next, where the turn began, what was said, answered and taught."""

    config: Any
    node: str
    base: Place
    said: str
    reply: str
    taught: Sequence[Fact]


class Promise(NamedTuple):
    """What was recalled from a place, which it must recall for ever."""

    place: Place
    query: str
    keys: list[str]


class CrashError(RuntimeError):
    """The fault that is injected."""


MOST = 48  # memories that a prompt recalls; where there are as many, others may have had no room


def recalled_in(prompt: Sequence[BaseMessage]) -> list[Record]:
    """What the prompt's memories tell."""
    _, _, after = sections_of(prompt).partition("<memories>\n")
    lines, _, _ = after.partition("\n</memories>")
    return [read(json.loads(line)) for line in lines.splitlines()]


def faults_of(prompt: Sequence[BaseMessage], stored: Sequence[Record], late: Sequence[Record]) -> Counter[str]:
    """Count what a prompt tells and should not, tells twice, does not tell and should, and tells though it is over.

    Args:
        prompt: The messages, the system's first.
        stored: What stands in the store of the past.
        late: What may have come to stand there since; of a past that waits for some, nothing is sure to hold.
    """
    told, holds = Counter(recalled_in(prompt)), holding(stored)
    words = "\n".join(message.text for message in prompt[1:] if not isinstance(message, HumanMessage))
    here = {one.turn for one in exchanges_of(stored) if one.reply in words}
    exchanges = {one for one in exchanges_of(stored) if one.turn not in here}
    due = exchanges | {fact for fact in holds if fact.kind == "secret" or fact.turn not in here}
    sure = not late and told.total() < MOST
    return Counter(
        leaked=sum(1 for one in told if one not in stored and one not in late),
        missing=sum(1 for one in due if one not in told) if sure else 0,
        doubled=told.total() - len(told) + sum(1 for one in exchanges_of(told) if one.turn in here),
        outdated=0 if late else sum(1 for one in facts_of(told) if one in stored and one not in holds),
    )


class Campaign:
    """One campaign on a scripted model: what was played, what each place knows, and where the next fault happens.

    Args:
        store: Where records go; emptied by nobody, so give each campaign a name of its own.
        seed: Of the words that are said.
        campaign: Its name.
    """

    def __init__(self, store: BaseStore, seed: int = 0, campaign: str = "default") -> None:
        self.store, self.saver, self.random = Hooked(store), InMemorySaver(), random.Random(seed)
        self.exchanges, self.facts = (campaign_namespace("adventurer", campaign, of) for of in ("exchanges", "facts"))
        # Few turns stand in a prompt, and all that is recalled has room in it.
        room = {"buffer_tokens": 200, "recall_tokens": 8000}
        self.context: Any = {"model": "scripted", "seed": 7, "campaign": campaign, **room}
        self.places: list[Place] = []
        self.middles: list[Middle] = []
        self.promises: list[Promise] = []
        self.prompts = Counter[str]()
        self.head = Place(None)
        self.counter = itertools.count(1)
        self.replies: list[str] = []
        self.taught: Sequence[Fact] = ()
        self.base = Place(None)
        self.fault: tuple[str, str, str] | None = None
        self.task: asyncio.Task[Any] | None = None
        self.model = ScriptedModel()
        self.model._stock |= {"quest": self._answer, "update": self._notes}
        self.app = self.compiled()

    def compiled(self) -> Any:
        builder = build_graph()
        for name, spec in builder.nodes.items():
            spec.runnable.function = self._faulty(name, spec.runnable.function)
        return builder.compile(checkpointer=self.saver, store=self.store)

    def answered_by_model(self, patch: Any) -> None:
        """Let the graph's nodes ask this world's model; `patch` is monkeypatch.setattr or one like it."""
        patch("questbook.graphs.models.chat_models.load_chat_model", lambda *_, **__: self.model)

    # What must hold

    async def seen(self, place: Place) -> list[SearchItem]:
        """What can be seen from a place, by the filters of its timeline."""
        timeline, before = self._reach(place)
        spaces = (self.exchanges, self.facts)
        found = await self.store.abatch(
            [SearchOp(space, filter=only, limit=1000) for only in visible_filters(timeline, before) for space in spaces]
        )
        return [item for items in found for item in items]

    async def recalled(self, place: Place, query: str) -> list[str]:
        timeline, before = self._reach(place)
        spaces, holds = (self.exchanges, self.facts), partial(keep_valid, self.store, timeline=timeline, before=before)
        found = await recall(
            self.store, spaces, Query(query, timeline=timeline, before=before, visibility="all", refine=holds)
        )
        return [record.key for record in found]

    async def timeline(self, place: Place) -> list[Any]:
        found: list[Any] = self._values(place)["timeline"]
        return found

    async def faults(self, place: Place) -> Counter[str]:
        """Count what a place sees and should not, does not see and should, sees twice, and sees though it is over."""
        timeline, before = self._reach(place)
        items = await self.seen(place)
        seen, due = Counter(read(item.value) for item in items), Counter(place.stored)
        facts = [item for item in items if item.namespace == self.facts]
        holds = {read(item.value) for item in await keep_valid(self.store, facts, timeline=timeline, before=before)}
        return Counter(
            leaked=sum(1 for told in seen if told not in due and told not in place.late),
            missing=sum(1 for told in due if told not in seen),
            doubled=seen.total() - len(seen),
            outdated=0 if place.late else len(holds ^ holding(place.stored)),
        )

    async def broken(self) -> int:
        """Count the promises that are not kept."""
        return sum([await self.recalled(p.place, p.query) != p.keys for p in self.promises])

    # What the moves are made of

    def _values(self, place: Place) -> Any:
        found = self.saver.get_tuple(place.config)
        assert found is not None
        return found.checkpoint["channel_values"]

    def _reach(self, place: Place) -> tuple[list[Segment], int]:
        """The place's timeline, and the first turn of it that is not written."""
        state = self._values(place)
        return [(branch, turn) for branch, turn in state["timeline"]], int(state.get("remembered_through", 0)) + 1

    async def _run(self, given: Any, config: Any, base: Place) -> list[dict[str, Any]]:
        """Run from a checkpoint; `base` is the past that its prompt may tell."""

        async def events() -> list[dict[str, Any]]:
            stream = self.app.astream(given, config, context=self.context, stream_mode="checkpoints", durability="sync")
            return [event async for event in stream]

        self.base, self.store.hook = base, self._at_write
        self.model.calls.clear()  # it grows for ever, and tracing writes it out at each call
        self.task = asyncio.create_task(events())
        try:
            return await self.task
        finally:
            self.store.hook = None

    def _arrive(self, events: list[Any], base: Place, told: Sequence[Record], *, resumed: bool = False) -> None:
        self.head = base.after(told, config=checkpoint_of(events[-1]))
        self.places.append(self.head)
        if not resumed:
            self._enter(events, base, told)

    def _enter(self, events: list[Any], base: Place, told: Sequence[Record]) -> None:
        """Keep the checkpoints within a turn."""
        [(_, said, reply)] = exchanges_of(told)
        within = [Middle(checkpoint_of(e), e["next"][0], base, said, reply, self.taught) for e in events if e["next"]]
        self.middles += [middle for middle in within if middle.node != "__start__"]

    def _told(self, base: Place, said: str, middle: Middle | None = None, *, noted: bool = True) -> list[Record]:
        """What the turn after a place leaves behind, begun anew or gone on with from within."""
        reply = middle.reply if middle and middle.node in ANSWERED else self.replies[-1]
        if middle and middle.node == "remember":
            self.taught = middle.taught
        facts = learnt((*base.stored, *base.pending), self.taught, base.turn) if noted else []
        return [Exchange(base.turn, said, reply), *facts]

    def _say(self) -> str:
        return f"I say {next(self.counter)}: {' '.join(self.random.choices(WORDS, k=4))}"

    def _answer(self, prompt: list[BaseMessage]) -> AIMessage:
        self.prompts += faults_of(prompt, self.base.stored, self.base.late)
        return self._reply()

    def _reply(self) -> AIMessage:
        told = " ".join(self.random.choices(WORDS, k=30))
        self.replies.append(f"Reply {next(self.counter)}: {told}.")
        return say(self.replies[-1])

    def _notes(self, _: Any) -> AIMessage:
        self.taught = teach(self.random, next(self.counter))
        facts = [call("Facts", facts=[fact.handed() for fact in self.taught])] if self.taught else []
        return say("", call("StateNotebook", location=self.random.choice(WORDS)), *facts)

    def _faulty(self, name: str, function: Any) -> Any:
        async def node(state: Any, runtime: Any) -> Any:
            await self._at(name, "before")
            result = await function(state, runtime)
            await self._at(name, "after")
            return result

        return node

    async def _at_write(self, when: str, written: set[str]) -> None:
        for what in WRITES:
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


def checkpoint_of(event: dict[str, Any]) -> Any:
    where = event["config"]["configurable"]
    return {"configurable": {name: where[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}}

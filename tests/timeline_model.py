"""Worlds: a game that is played, forked, replayed, edited and crashed, and for each place a list of what it knows.

The lists are kept by the moves alone, without a look at the timeline or the store: a place's list is that of the place
it was played from and one exchange more. What the game may see from there must be that list, exactly.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple, TypedDict

from conftest import MIRA
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, Op, PutOp, Result
from scripted import ScriptedModel, call, say

from graphs.dungeon_master.graph import build_graph
from memory.buffer import spoken, turns_of
from memory.namespaces import campaign_namespace
from memory.recall import recall
from memory.timeline import visible

Exchange = tuple[int, str, str]
WORDS = ["heron", "lamp", "door", "sister", "gold", "keeper", "ring", "sea", "tower", "song", "rope", "cat", "ferry"]
OPENING = ("recall", "run_quest")
"""Nodes before the reply: run again, they make a new one."""
CRASHES = [
    (node, when)
    for node in ("recall", "run_quest", "update_state", "remember", "condense", "claims", "exchanges")
    for when in ("before", "after")
]
"""Where a turn can be cut short: about a node, or about a write of `remember`."""


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


class Hooked(BaseStore):
    """A store that calls `hook(moment, namespaces written)` about each batch of writes."""

    supports_ttl = True

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner
        self.hook: Callable[[str, set[str]], Any] | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.inner.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        written = {label for op in ops if isinstance(op, PutOp) for label in op.namespace}
        if self.hook and written:
            await self.hook("before", written)
        results = await self.inner.abatch(ops)
        if self.hook and written:
            await self.hook("after", written)
        return results


class World:
    """One campaign on a scripted model.

    Args:
        store: Where records go; emptied by nobody, so give each world a campaign of its own.
        seed: Of the words that are said.
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

    # Moves

    async def begin(self) -> None:
        self.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        events = await self._run({"messages": [HumanMessage("I'm Mira.")]}, config)
        _, messages = turns_of(events[-1]["values"]["messages"], 1)[-1]
        self._arrive(events, Place(None), (1, *spoken(messages)))

    async def turn(self, place: Place) -> None:
        """Play on from any place: at a tip that is a turn, elsewhere a fork."""
        said = self._say()
        events = await self._run({"messages": [HumanMessage(said)]}, place.config)
        self._arrive(events, place, self._told(place, said))

    async def undo(self, place: Place) -> None:
        """Go back by a copy of a checkpoint, as `/undo` does, and play on."""
        await self.app.aupdate_state(place.config, None, as_node="__copy__")
        said = self._say()
        events = await self._run({"messages": [HumanMessage(said)]}, _thread(place.config))
        self._arrive(events, place, self._told(place, said))

    async def replay(self, middle: Middle) -> None:
        """Run on from within a turn."""
        events = await self._run(None, middle.config)
        self._arrive(events, middle.base, self._told(middle.base, middle.said, middle))

    async def edit(self, middle: Middle) -> None:
        """Rewrite a message within a turn, under its id, and run on: what was said, or, once it stands, the reply."""
        state = await self.app.aget_state(middle.config)
        said, reply = middle.said, middle.reply
        messages = state.values["messages"]
        if middle.node in OPENING:
            said = self._say()
            heard = [message for message in messages if isinstance(message, HumanMessage)]
            change: AnyMessage = HumanMessage(said, id=heard[-1].id)
        else:
            reply = f"Rewritten {next(self.counter)}."
            change = AIMessage(reply, id=messages[-1].id)
        opened = "__start__" if isinstance(messages[-1], HumanMessage) else "build_character"
        before = {"recall": opened, "run_quest": "recall", "update_state": "run_quest", "remember": "update_state"}
        config = await self.app.aupdate_state(middle.config, {"messages": [change]}, as_node=before[middle.node])
        events = await self._run(None, config)
        edited = middle._replace(said=said, reply=reply)
        self._arrive(events, middle.base, self._told(middle.base, said, edited))

    async def edit_page(self, place: Place) -> None:
        """Edit the quest's page at the end of a turn, and play on."""
        page = {"quest": {"location": self.random.choice(WORDS), "gold": next(self.counter)}}
        config = await self.app.aupdate_state(place.config, page, as_node="condense")
        await self.turn(place._replace(config=config))

    async def edit_page_within(self, middle: Middle) -> None:
        """Edit the quest's page after the reply and before it is remembered, and run on."""
        page = {"quest": {"location": self.random.choice(WORDS), "gold": next(self.counter)}}
        config = await self.app.aupdate_state(middle.config, page, as_node="update_state")
        events = await self._run(None, config)
        self._arrive(events, middle.base, self._told(middle.base, middle.said, middle))

    async def crash(self, place: Place, where: tuple[str, str], *, cancel: bool, resume: bool) -> None:
        """Play a turn that is cut short; then run it on, or say something else instead."""
        said = self._say()
        known = len(self.replies)
        self.fault = (*where, "cancel" if cancel or where[0] in ("claims", "exchanges") else "raise")
        given = {"messages": [HumanMessage(said)]}
        try:
            events = await self._run(given, place.config)
        except (CrashError, asyncio.CancelledError):
            events = []
        self.fault, finished = None, bool(events)
        answered = len(self.replies) > known
        if finished:  # the turn never came to that node
            self._arrive(events, place, self._told(place, said))
            return
        # Exactly one batch holds the records, and the head moves with it.
        first = self._told(place, said) if answered else None
        if first and where in (
            ("remember", "after"),
            ("exchanges", "after"),
            ("condense", "before"),
            ("condense", "after"),
        ):
            self.head = (*place.stored, *place.pending, first)
        if resume:
            events = await self._run(None, _thread(place.config))
            self._arrive(events, place, self._told(place, said), resumed=True)
            return
        more = self._say()
        events = await self._run({"messages": [HumanMessage(more)]}, _thread(place.config))
        if first and where != ("run_quest", "after"):
            between = Place(None, (*place.stored, *place.pending, first))
            self._arrive(events, between, self._told(between, more), resumed=True)
        else:
            self._arrive(events, place, self._told(place, f"{said}\n{more}"), resumed=True)

    async def store_fails(self, place: Place) -> None:
        """Play a turn whose record cannot be written; a later turn must write it too."""
        said = self._say()
        self.fault = ("exchanges", "before", "raise")
        events = await self._run({"messages": [HumanMessage(said)]}, place.config)
        self.fault = None
        told = self._told(place, said)
        self.places.append(Place(events[-1]["config"], place.stored, (*place.pending, told)))

    async def new_thread(self) -> None:
        """Begin a thread on the campaign: it goes on from the head."""
        said = self._say()
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        events = await self._run({"messages": [HumanMessage(said)]}, config)
        head = Place(None, self.head)
        self._arrive(events, head, self._told(head, said))

    async def first_message_again(self, middle: Middle) -> None:
        """Run a thread's first message again, from before anything was answered."""
        if not middle.base.stored:
            self.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        await self.replay(middle)

    async def copy_thread(self, place: Place) -> None:
        """Copy a thread with all of its checkpoints, and play on in the copy."""
        source, target = place.config["configurable"]["thread_id"], str(uuid.uuid4())
        for space, kept in list(self.saver.storage[source].items()):
            self.saver.storage[target][space].update(kept)
        for (thread, *rest), kept in list(self.saver.writes.items()):
            if thread == source:
                self.saver.writes[(target, *rest)] = dict(kept)
        for (thread, *rest), blob in list(self.saver.blobs.items()):
            if thread == source:
                self.saver.blobs[(target, *rest)] = blob
        where = {**place.config["configurable"], "thread_id": target}
        await self.turn(place._replace(config={"configurable": where}))

    async def promise(self, place: Place) -> None:
        """Recall something from a place, and hold the place to it."""
        query = " ".join(self.random.choices(WORDS, k=3))
        self.promises.append(Promise(place, query, await self.recalled(place, query)))

    def within(self, *nodes: str) -> list[Middle]:
        """The checkpoints at which one of some nodes is next."""
        return [middle for middle in self.middles if middle.node in nodes]

    async def step(self, choice: random.Random) -> None:
        """Make a random move."""
        place = self.places[-1] if choice.random() < 0.5 else choice.choice(self.places)
        inside = self.within(*OPENING, "update_state", "remember")
        first = self.within("build_character")
        moves: list[Callable[[], Any]] = [
            lambda: self.turn(place),
            lambda: self.turn(choice.choice(self.places)),
            lambda: self.undo(choice.choice(self.places)),
            lambda: self.replay(choice.choice(inside)),
            lambda: self.edit(choice.choice(inside)),
            lambda: self.edit_page(place),
            lambda: self.edit_page_within(choice.choice(self.within("remember"))),
            lambda: self.crash(
                place, choice.choice(CRASHES), cancel=choice.random() < 0.5, resume=choice.random() < 0.5
            ),
            lambda: self.store_fails(place),
            self.new_thread,
            lambda: self.first_message_again(choice.choice(first)) if first else self.turn(place),
            lambda: self.copy_thread(place),
        ]
        await choice.choice(moves)()
        if choice.random() < 0.3:
            await self.promise(choice.choice(self.places))

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

    # Inside

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


class PlainState(TypedDict):
    """State of the baseline."""

    messages: Annotated[list[AnyMessage], add_messages]
    quest: dict[str, Any]


class PlainWorld(World):
    """The baseline: the same moves on a graph whose remember-node puts each exchange under a new key, as most do."""

    def compiled(self) -> Any:
        async def recall(state: PlainState) -> dict[str, Any]:
            return {}

        async def run_quest(state: PlainState) -> dict[str, Any]:
            return {"messages": [self._reply(None).model_copy(update={"id": str(uuid.uuid4())})]}

        async def update_state(state: PlainState) -> dict[str, Any]:
            return {"quest": {"location": self.random.choice(WORDS)}}

        async def remember(state: PlainState, runtime: Runtime[Any]) -> dict[str, Any]:
            turns = turns_of(state["messages"], 0)
            said, reply = spoken(turns[-1][1])
            assert runtime.store is not None
            value = {"text": f"{said}\n{reply}", "turn": len(turns), "player": said, "reply": reply}
            await runtime.store.aput(self.exchanges, str(uuid.uuid4()), value)
            return {}

        async def condense(state: PlainState) -> dict[str, Any]:
            return {}

        def faulty(name: str, function: Any) -> Any:
            if name == "remember":

                async def storing(state: PlainState, runtime: Runtime[Any]) -> Any:
                    await self._at(name, "before")
                    try:
                        await function(state, runtime)
                    except CrashError:
                        return {}
                    await self._at(name, "after")
                    return {}

                return storing

            async def node(state: PlainState) -> Any:
                await self._at(name, "before")
                result = await function(state)
                await self._at(name, "after")
                return result

            return node

        builder = StateGraph(PlainState)
        nodes = [recall, run_quest, update_state, remember, condense]
        for node in nodes:
            builder.add_node(node.__name__, faulty(node.__name__, node))
        names = [START, *(node.__name__ for node in nodes), END]
        for one, other in itertools.pairwise(names):
            builder.add_edge(one, other)
        return builder.compile(checkpointer=self.saver, store=self.store)

    async def seen(self, place: Place) -> list[Exchange]:
        items = await self.store.asearch(self.exchanges, limit=1000)
        return sorted((item.value["turn"], item.value["player"], item.value["reply"]) for item in items)

    async def recalled(self, place: Place, query: str) -> list[str]:
        return [item.key for item in await self.store.asearch(self.exchanges, query=query, limit=12)]

    async def faults(self, place: Place) -> Counter[str]:
        """As for ours, but turns are not numbered alike in a thread without a past: what was told is compared."""
        seen, due = Counter(e[1:] for e in await self.seen(place)), {e[1:] for e in place.stored}
        return Counter(
            leaked=sum(1 for told in seen if told not in due),
            missing=sum(1 for told in due if told not in seen),
            doubled=sum(count - 1 for count in seen.values()),
        )


def _through(state: Any) -> int:
    return int(state["remembered_through"])


def _thread(config: Any) -> Any:
    return {"configurable": {"thread_id": config["configurable"]["thread_id"]}}


def _checkpoint(event: dict[str, Any]) -> Any:
    where = event["config"]["configurable"]
    return {"configurable": {name: where[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}}

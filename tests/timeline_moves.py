"""The moves of the timeline model: a game is played, forked, replayed, edited and crashed, as LangGraph lets it."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable
from typing import Any

from conftest import MIRA
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from scripted import call, say
from timeline_model import (
    OPENING,
    WORDS,
    WRITES,
    Campaign,
    CrashError,
    Exchange,
    Fact,
    Middle,
    Place,
    Promise,
    checkpoint_of,
)

CRASHES = [
    (node, when)
    for node in ("recall", "run_quest", "update_state", "remember", "condense", *WRITES)
    for when in ("before", "after")
]
"""Where a turn can be cut short: about a node, or about a write of `remember`."""
LEFT = {
    ("exchanges", "after"): (Exchange,),
    ("facts", "before"): (Exchange,),
    ("facts", "after"): (Exchange, Fact),
    ("remember", "after"): (Exchange, Fact),
    ("condense", "before"): (Exchange, Fact),
    ("condense", "after"): (Exchange, Fact),
}
"""What a turn that was cut short there has written."""


class World(Campaign):
    """A campaign with all of its moves."""

    async def begin(self) -> None:
        self.model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        events = await self._run({"messages": [HumanMessage("I'm Mira.")]}, config, Place(None))
        self._arrive(events, Place(None), self._told(Place(None), "I'm Mira."))

    async def turn(self, place: Place) -> None:
        """Play on from any place: at a tip that is a turn, elsewhere a fork."""
        said = self._say()
        events = await self._run({"messages": [HumanMessage(said)]}, place.config, place)
        self._arrive(events, place, self._told(place, said))

    async def undo(self, place: Place) -> None:
        """Go back by a copy of a checkpoint, as `/undo` does, and play on."""
        await self.app.aupdate_state(place.config, None, as_node="__copy__")
        said = self._say()
        events = await self._run({"messages": [HumanMessage(said)]}, _thread(place.config), place)
        self._arrive(events, place, self._told(place, said))

    async def replay(self, middle: Middle) -> None:
        """Run on from within a turn."""
        events = await self._run(None, middle.config, middle.base)
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
        events = await self._run(None, config, middle.base)
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
        events = await self._run(None, config, middle.base)
        self._arrive(events, middle.base, self._told(middle.base, middle.said, middle))

    async def crash(self, place: Place, where: tuple[str, str], *, cancel: bool, resume: bool) -> None:
        """Play a turn that is cut short; then run it on, or say something else instead."""
        said = self._say()
        known = len(self.replies)
        self.fault = (*where, "cancel" if cancel or where[0] in WRITES else "raise")
        given = {"messages": [HumanMessage(said)]}
        try:
            events = await self._run(given, place.config, place)
        except (CrashError, asyncio.CancelledError):
            events = []
        self.fault, finished = None, bool(events)
        answered = len(self.replies) > known
        if finished:  # the turn never came to that node
            self._arrive(events, place, self._told(place, said))
            return
        first = self._told(place, said, noted=where[0] != "update_state") if answered else None
        if first and where in LEFT:  # the head moves with the exchange
            self.head = place.after(first, LEFT[where])
        if resume:
            events = await self._run(None, _thread(place.config), place)
            self._arrive(events, place, self._told(place, said), resumed=True)
            return
        more = self._say()
        # The checkpoint knows what is written only once `remember` has returned.
        between = place.after(first, LEFT[where] if where[0] == "condense" else ()) if first else place
        events = await self._run({"messages": [HumanMessage(more)]}, _thread(place.config), between)
        if first and where != ("run_quest", "after"):
            self._arrive(events, between, self._told(between, more), resumed=True)
        else:
            self._arrive(events, place, self._told(place, f"{said}\n{more}"), resumed=True)

    async def store_fails(self, start: Place | Middle, what: str) -> None:
        """Play a turn, or run on from within one, of which the exchange or the facts have to wait for a later turn."""
        self.fault = (what, "before", "raise")
        if isinstance(start, Middle):
            base, said, within = start.base, start.said, start
            events = await self._run(None, start.config, base)
        else:
            base, said, within = start, self._say(), None
            events = await self._run({"messages": [HumanMessage(said)]}, start.config, base)
        failed, self.fault = self.fault is None, None
        told = self._told(base, said, within)
        if not failed:  # there was no fact to write
            self._arrive(events, base, told)
            return
        self._enter(events, base, told)
        self.places.append(base.after(told, (Exchange,) if what == "facts" else (), checkpoint_of(events[-1])))
        if what == "facts":
            self.head = self.places[-1]

    async def new_thread(self) -> None:
        """Begin a thread on the campaign: it goes on from the head."""
        said = self._say()
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        head = self.head
        events = await self._run({"messages": [HumanMessage(said)]}, config, head)
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
        """Recall something from a place, and hold the place to it, unless it waits for facts that may come to stand."""
        if place.late:
            return
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
            lambda: self.store_fails(
                choice.choice([place, choice.choice(inside)]), choice.choice(["exchanges", "facts"])
            ),
            self.new_thread,
            lambda: self.first_message_again(choice.choice(first)) if first else self.turn(place),
            lambda: self.copy_thread(place),
        ]
        await choice.choice(moves)()
        if choice.random() < 0.3:
            await self.promise(choice.choice(self.places))


def _thread(config: Any) -> Any:
    return {"configurable": {"thread_id": config["configurable"]["thread_id"]}}

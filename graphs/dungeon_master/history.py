"""History: going back, trying again, and moving between the lines of a game.

Everything here is LangGraph's checkpoints underneath: going somewhere writes a new checkpoint like the one gone to, so
Studio shows what was done, and nothing that was played is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from graphs.dungeon_master.context import Context
from graphs.errors import HistoryError
from memory.buffer import spoken, turns_of
from memory.namespaces import campaign_namespace
from memory.timeline import Segment, sees

_PAGE = 500
Graph = CompiledStateGraph[Any, Any, Any, Any]


class Place(NamedTuple):
    """A finished turn, somewhere in the tree of all that was played.

    Attributes:
        branch: The branch that owns it.
        turn: Its number.
        after: The branch of the turn before it; None for the first.
        line: The name of the line on which it was played.
        player: What the player said.
        reply: What was answered.
        location: Where the character was.
        thread: The thread that played it.
        checkpoint: The checkpoint from which it was remembered.
        said_at: When, ISO 8601 in UTC.
    """

    branch: str
    turn: int
    after: str | None
    line: str
    player: str
    reply: str
    location: str
    thread: str
    checkpoint: str
    said_at: str


class History:
    """What was played on a thread.

    Args:
        graph: The dungeon master, compiled with checkpointer and store.
        config: Names the thread; other keys are passed on to every run.
        context: The settings.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Context) -> None:
        self.graph, self.config, self.context = graph, config, context

    async def now(self) -> StateSnapshot:
        """Return the state as it stands.

        Raises:
            HistoryError: Nothing has been played yet.
        """
        state = await self.graph.aget_state(self._thread())
        if not state.values.get("turn"):
            raise HistoryError("Nothing has been played yet.")
        return state

    async def finished(self, turn: int) -> StateSnapshot:
        """Return the state at the end of an earlier turn of this line.

        Raises:
            HistoryError: This thread never finished such a turn on the way to where it stands.
        """
        reached = 0
        async for state in self._back():
            if not state.tasks and (reached := state.values.get("turn", 0)) == turn:
                return state
        first = f"this thread begins with turn {reached}" if reached else "there is none yet"
        raise HistoryError(f"There is no turn {turn} to go back to: {first}.")

    async def undo(self, turns: int = 1) -> StateSnapshot:
        """Go back to how it was `turns` turns ago; return the state there.

        Raises:
            HistoryError: There are not so many turns.
        """
        if turns < 1:
            raise HistoryError(f"Undo takes a number of turns from 1, got {turns}.")
        now = await self.now()
        return await self.rewind(now.values["turn"] - turns)

    async def rewind(self, turn: int) -> StateSnapshot:
        """Go back to the end of a turn; return the state there.

        Raises:
            HistoryError: There is no such turn on this line.
        """
        target = await self.finished(turn)
        await self.graph.aupdate_state(target.config, None, as_node="__copy__")
        return target

    async def retry(self, *, dice: bool = False) -> tuple[RunnableConfig, Context]:
        """Find where the last turn can be told again; run from that config with that context, without input.

        Args:
            dice: Also roll again; otherwise the rolls of the turn stand, and only the words are new.

        Raises:
            HistoryError: There is no reply to tell again.
        """
        now = await self.now()
        found: StateSnapshot | None = None
        async for state in self._back():
            if state.values.get("turn") != now.values["turn"]:
                break
            if _due(state) in (("run_quest",), ("build_character",)):
                found = state
                if not dice:
                    break
        if found is None:
            found = await self._opening(now)
        _, reply = spoken(turns_of(now.values["messages"], now.values["turn"])[-1][1])
        # The offline storyteller and seeded dice would say the same again; what was said makes them say something else.
        origin = f"{self.context.seed}/{now.values['turn']}/{dice}/{reply}"
        seed = int.from_bytes(hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()[:6])
        return found.config, self.context.model_copy(update={"seed": seed})

    async def before_last(self) -> tuple[RunnableConfig, str]:
        """Find where the last message was sent, to send another in its place; also return that message.

        Raises:
            HistoryError: There is no message, or it was the first of its thread.
        """
        now = await self.now()
        player, _ = spoken(turns_of(now.values["messages"], now.values["turn"])[-1][1])
        target = await self.finished(now.values["turn"] - 1)
        return target.config, player

    async def name(self, line: str) -> None:
        """Give the line from here on a name.

        Raises:
            HistoryError: The name is blank or taken.
        """
        line = " ".join(line.split())
        if not line or len(line) > 60:
            raise HistoryError(f"A line needs a name of 1 to 60 characters, got {line!r:.70}.")
        now = await self.now()
        if line == now.values.get("line", "main") or line in await self._named() or line == "main":
            raise HistoryError(f"There is a line named {line!r} already; /go {line} goes there.")
        branch, turn = now.values["timeline"][-1]
        await self._store().aput(self._namespace("lines"), line, {"branch": branch, "turn": turn}, index=False)
        await self.graph.aupdate_state(self._thread(), {"line": line}, as_node="condense")

    async def places(self) -> list[Place]:
        """Return every finished turn of the campaign, of all branches, the earliest first."""
        found: list[Place] = []
        while True:
            items = await self._store().asearch(self._namespace("exchanges"), limit=_PAGE, offset=len(found))
            found += [_place(item.value) for item in items]
            if len(items) < _PAGE:
                return sorted(found, key=lambda place: (place.turn, place.said_at, place.branch))

    async def find(self, where: str) -> Place:
        """Find a place by the name of a line (its last turn), a branch, or the number of a turn on this line.

        Raises:
            HistoryError: There is no such place; the message lists what there is.
        """
        places, where = await self.places(), where.strip()
        now = (await self.now()).values
        timeline: list[Segment] = [(branch, turn) for branch, turn in now["timeline"]]
        if where.isdecimal() and int(where) <= now["remembered_through"]:
            here = [place for place in places if place.turn == int(where) and sees(timeline, place.branch, place.turn)]
        else:
            here = [place for place in places if where in (place.line, place.branch)]
            named = (await self._named()).get(where)
            here = here or [place for place in places if (place.branch, place.turn) == named]
        if not here:
            lines = sorted({place.line for place in places} | set(await self._named()))
            raise HistoryError(f"There is no line, branch or turn {where!r}. Lines: {', '.join(lines) or 'none yet'}.")
        return max(here, key=lambda place: (place.said_at, place.turn))

    async def go(self, where: str) -> StateSnapshot:
        """Go to a place; return the state there.

        The turn is remembered again from its checkpoint, which writes the same records and makes it the newest state.

        Raises:
            HistoryError: There is no such place, or another thread played it.
        """
        place = await self.find(where)
        if place.thread != self._thread()["configurable"]["thread_id"]:
            raise HistoryError(f"Turn {place.turn} of {where!r} was played on thread {place.thread}; open it there.")
        await self.graph.ainvoke(None, self.at(place), context=self.context, durability="sync")
        if where in await self._named() and (await self.now()).values.get("line") != where:
            await self.graph.aupdate_state(self._thread(), {"line": where}, as_node="condense")
        return await self.now()

    def at(self, place: Place) -> RunnableConfig:
        """Return the config of a place's checkpoint."""
        where = {"thread_id": place.thread, "checkpoint_ns": "", "checkpoint_id": place.checkpoint}
        return {**self.config, "configurable": where}

    async def _back(self) -> AsyncIterator[StateSnapshot]:
        """Walk from the newest state back over its ancestors."""
        config: RunnableConfig | None = self._thread()
        while config is not None:
            state = await self.graph.aget_state(config)
            yield state
            config = state.parent_config

    async def _opening(self, now: StateSnapshot) -> StateSnapshot:
        async for state in self._back():
            if _due(state) == ("recall",) and state.values.get("turn", 0) in (
                now.values["turn"] - 1,
                now.values["turn"],
            ):
                return state
        raise HistoryError("There is no reply to tell again.")

    async def _named(self) -> dict[str, tuple[str, int]]:
        items = await self._store().asearch(self._namespace("lines"), limit=1000)
        return {item.key: (item.value["branch"], item.value["turn"]) for item in items}

    def _thread(self) -> RunnableConfig:
        return {**self.config, "configurable": {"thread_id": self.config["configurable"]["thread_id"]}}

    def _store(self) -> BaseStore:
        if not isinstance(self.graph.store, BaseStore):
            raise HistoryError("The graph was compiled without a store, so there are no lines to move between.")
        return self.graph.store

    def _namespace(self, what: str) -> tuple[str, ...]:
        return campaign_namespace(self.context.user, self.context.campaign, what)


def _due(state: StateSnapshot) -> tuple[str, ...]:
    # Not `next`: that leaves out a node that was killed after its writes were saved and before the checkpoint.
    return tuple(task.name for task in state.tasks)


def resend(text: str) -> dict[str, Any]:
    """Make the input that sends a message."""
    return {"messages": [HumanMessage(text)]}


def _place(value: dict[str, Any]) -> Place:
    fields: dict[str, Any] = {name: value.get(name) or (None if name == "after" else "") for name in Place._fields}
    return Place(**fields)

"""Chronicle: what was played on a thread, to look at. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from questbook.graphs.errors import HistoryError
from questbook.graphs.history.copies import origin_of, thread_of
from questbook.graphs.history.difference import Difference, difference, remembered
from questbook.graphs.history.places import Place, last_of_lines
from questbook.graphs.settings import Settings
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.turns import ASIDE, split_turns, turn_text
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import Segment, sees

_PAGE = 500
_KEPT = ("exchanges", "gaps", "retracted")  # a turn that was forgotten or retracted was played all the same
Graph = CompiledStateGraph[Any, Any, Any, Any]


class Spot(NamedTuple):
    """The turn at which a state stands.

    Attributes:
        turn: Its number; 0 before anything was said.
        player: What the player said.
        reply: What was answered; "" if nothing has been yet.
        line: The line of play.
    """

    turn: int
    player: str
    reply: str
    line: str


def spot_of(state: StateSnapshot) -> Spot:
    """Tell at which turn a state stands; one that was said but not taken up counts."""
    values = state.values
    turn, messages, line = values.get("turn", 0), values.get("messages") or [], values.get("line", "main")
    if not messages:
        return Spot(turn, "", "", line)
    _, last = split_turns(messages, turn)[-1]
    opened_by = next((message.id for message in last if isinstance(message, HumanMessage)), None)
    told = [message.text.strip() for message in last if isinstance(message, AIMessage) and message.name != ASIDE]
    reply = "\n\n".join(text for text in told if text)
    return Spot(turn + (opened_by != values.get("opened_by")), turn_text(last)[0], reply, line)


def due(state: StateSnapshot) -> tuple[str, ...]:
    """Name the nodes that a state waits for; none if its turn is finished.

    Not `state.next`, which leaves out a node that was killed after its writes were saved and before the checkpoint.
    """
    return tuple(task.name for task in state.tasks)


class Chronicle:
    """What was played on a thread.

    Args:
        graph: Compiled with checkpointer and store; its state is a `TurnState`.
        config: Names the thread; other keys are passed on to every run.
        context: The settings.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings) -> None:
        self.graph, self.config, self.context = graph, config, context

    async def now(self) -> StateSnapshot:
        """Return the state as it stands.

        Raises:
            HistoryError: Nothing has been played yet.
        """
        state = await self.graph.aget_state(self._thread())
        if not spot_of(state).turn:
            raise HistoryError("Nothing has been played yet.")
        return state

    async def finished(self, turn: int) -> StateSnapshot:
        """Return the state at the end of an earlier turn of this line.

        Raises:
            HistoryError: This thread never finished such a turn on the way to where it stands.
        """
        now = spot_of(await self.now()).turn
        if turn > now:
            raise HistoryError(
                f"There is no turn {turn} on the way to here: this is turn {now}. /branches shows the rest."
            )
        reached = 0
        # The turn after it was remembered from a checkpoint on the way: what lies between that and now is skipped.
        after = await self._on_this_line(turn + 1)
        async for state in self._back(self.at(after[0]) if after else self._thread()):
            if not due(state) and (reached := state.values.get("turn", 0)) == turn:
                return state
        if turn == now:
            raise HistoryError(f"Turn {turn} has no reply yet: /retry answers it, /undo takes it back.")
        if there := await self._on_this_line(turn):  # this thread has joined the campaign there
            return await self.end_of(there[0])
        first = f"this thread begins with turn {reached}" if reached else "none is finished yet"
        raise HistoryError(f"There is no turn {turn} to go back to: {first}.")

    async def named(self) -> dict[str, Segment]:
        """Return the lines that were given a name, each with the branch and turn at which it was."""
        items = await self._store().asearch(self._namespace("lines"), limit=1000)
        return {item.key: (item.value["branch"], item.value["turn"]) for item in items}

    async def places(self) -> list[Place]:
        """Return every finished turn of the campaign, of all branches, the earliest first."""
        spaces = [self._namespace(kept) for kept in _KEPT]
        found = [Place.of(item.value) for space in spaces async for item in items_under(self._store(), space)]
        return sorted(found, key=lambda place: (place.turn, place.age))

    async def here(self) -> Segment | None:
        """Return branch and number of the last turn that is remembered where one stands; None before the first.

        An interview is remembered once it is over, so who has gone back into it stands where nothing was yet; what was
        played on from there has remembered it since.
        """
        state = await self.graph.aget_state(self._thread())
        if timeline := remembered(state.values):
            return timeline[-1]
        spot = spot_of(state)
        since = await self._at_turn(spot.turn, state.values.get("timeline", ()))
        return next((place.key for place in since if place.player == spot.player), None)

    async def find(self, where: str) -> Place:
        """Find a place by the name of a line (its last turn), a branch, or the number of a turn on this line.

        Raises:
            HistoryError: There is no such place; the message lists what there is.
        """
        where = " ".join(where.split())
        if where.isdecimal():
            if found := await self._on_this_line(int(where)):
                return found[0]
            raise HistoryError(f"There is no turn {where!r} on this line.")
        places, named = await self.places(), await self.named()
        here = [place for place in places if where in (place.line, place.branch)]
        here = here or [place for place in places if place.key == named.get(where)]
        if not here:
            names = [*last_of_lines(places), *(name for name in sorted(named) if name not in last_of_lines(places))]
            some = f"{', '.join(names[:12])}{', …' if len(names) > 12 else ''}" or "none yet"
            raise HistoryError(f"There is no line, branch or turn {where!r:.70}. Lines: {some}.")
        return max(here, key=lambda place: place.age)

    async def end_of(self, place: Place) -> StateSnapshot:
        """Return the state with which a place's turn ended, later edits of it included, whichever thread played it.

        Raises:
            HistoryError: Its checkpoints are gone.
        """
        state = await self.graph.aget_state(self.at(place))
        if state.values.get("turn", 0) > place.turn:  # a later turn wrote it down, as it does for the interview
            async for earlier in self._back(self.at(place)):
                if not due(earlier) and earlier.values.get("turn") == place.turn:
                    return earlier
        while state.values and (after := await self._next_within(state)):
            state = after
        if not state.values or due(state):
            on = "" if place.thread == self._id else f", which was played on thread {place.thread},"
            raise HistoryError(f"The checkpoints of turn {place.turn} of {place.line!r}{on} are gone.")
        return state

    async def differ(self, one: str, other: str = "") -> Difference:
        """Tell what two places disagree on.

        Args:
            one: A line, a branch, or a turn of this line.
            other: Another; empty for where one stands.

        Raises:
            HistoryError: There is no such place.
        """
        before = await self.end_of(await self.find(one))
        after = await self.end_of(await self.find(other)) if other else await self.now()
        return difference(before.values, after.values, await self.places(), self._state.PAGES)

    def at(self, place: Place) -> RunnableConfig:
        """Return the config of a place's checkpoint."""
        where = {"thread_id": place.thread, "checkpoint_ns": "", "checkpoint_id": place.checkpoint}
        return {**self.config, "configurable": where}

    async def _on_this_line(self, turn: int) -> list[Place]:
        return await self._at_turn(turn, remembered((await self.graph.aget_state(self._thread())).values))

    async def _at_turn(self, turn: int, timeline: Sequence[Segment]) -> list[Place]:
        """Find where a turn was played that a timeline sees."""
        found = [
            Place.of(item.value)
            for kept in _KEPT
            for item in await self._store().asearch(self._namespace(kept), filter={"turn": turn}, limit=_PAGE)
        ]
        return [place for place in found if sees(timeline, *place.key)]

    async def _next_within(self, state: StateSnapshot) -> StateSnapshot | None:
        """Find what followed a state within its turn and line: the newest, if it was run, edited or copied anew."""
        step = (state.metadata or {}).get("step", 0)
        followed = [
            after
            for thread in {thread_of(state), self._id}
            async for after in self.graph.aget_state_history(
                {**self.config, "configurable": {"thread_id": thread}}, filter={"step": step + 1}
            )
            if _follows(after, state)
        ]
        alike = [
            after
            for after in followed
            if all(after.values.get(name) == state.values.get(name) for name in ("turn", "line"))
            and due(after) in ((), ("reflect",), ("condense",))
        ]
        return max(alike, key=lambda after: _id_of(after.config), default=None)

    async def _back(self, config: RunnableConfig | None) -> AsyncIterator[StateSnapshot]:
        """Walk from a state back over its ancestors, those on the thread that it was copied from included."""
        while config is not None:
            state = await self.graph.aget_state(config)
            if state.created_at is None and thread_of(state) != self._id:
                return  # that thread was deleted
            yield state
            origin = origin_of(state)
            config = {**self.config, "configurable": origin} if origin else state.parent_config

    def _from(self, state: StateSnapshot) -> RunnableConfig:
        return {**self.config, "configurable": state.config["configurable"]}

    @property
    def _id(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    def _thread(self) -> RunnableConfig:
        return {**self.config, "configurable": {"thread_id": self._id}}

    @property
    def _state(self) -> type[TurnState]:
        schema = self.graph.builder.state_schema
        if not issubclass(schema, TurnState):
            raise HistoryError(
                f"Only a graph whose state is a TurnState has a history; this one has {schema.__name__}."
            )
        return schema

    def _store(self) -> BaseStore:
        if not isinstance(self.graph.store, BaseStore):
            raise HistoryError("The graph was compiled without a store, so there are no lines to move between.")
        return self.graph.store

    def _namespace(self, what: str) -> tuple[str, ...]:
        return campaign_namespace(self.context.user, self.context.campaign, what)


def _follows(after: StateSnapshot, state: StateSnapshot) -> bool:
    """Whether a state was made from another one: by a run, by an edit, or as a copy for who has gone back to it."""
    itself = _id_of(state.config)
    if origin := origin_of(after):
        return bool(origin["checkpoint_id"] == itself)
    if after.parent_config is None or _id_of(after.parent_config) == itself:
        return after.parent_config is not None
    # LangGraph puts a copy beside what it is a copy of.
    beside = state.parent_config is not None and _id_of(after.parent_config) == _id_of(state.parent_config)
    return beside and (after.metadata or {}).get("source") == "fork" and after.values == state.values


def _id_of(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_id", ""))

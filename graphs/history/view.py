"""`HistoryView`: what was played, to look at, and what a single state says (`position_of`). Nothing here changes it."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.history.tree import PlayedTurn, branch_names, last_of_lines
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import upkeep_nodes
from questbook.graphs.turn.scope import check_owner, with_user
from questbook.graphs.turn.state import TurnState, opener_of
from questbook.memory.buffer.policies import split_turns, turn_text
from questbook.memory.store.any_store import items_under, with_async_methods
from questbook.memory.timeline.timeline import Segment, Timeline, read_timeline, remembered_timeline, sees
from questbook.notebooks import diff_patch
from questbook.types import JSON

ORIGIN: Literal["copied_from"] = "copied_from"
"""Field of a copy's metadata: thread and id of the checkpoint that was copied."""
_PAGE = 500
_TURNS = ("exchanges", "gaps", "retracted")  # a turn that was forgotten or retracted was still played
Graph = CompiledStateGraph[Any, Any, Any, Any]


class ChangedEntry(NamedTuple):
    """One entry of a page that differs between two states."""

    page: str  # the channel, as "quest"
    path: tuple[str, ...]  # field, then names within it: ("people", "Oda", "attitude")
    before: Any  # the value in the first state; None if it has none
    after: Any  # the value in the second state


class Difference(NamedTuple):
    """What two states disagree on, as far as the person may see."""

    pages: list[ChangedEntry]
    only_before: list[PlayedTurn]  # turns that only the first state remembers
    only_after: list[PlayedTurn]  # turns that only the second state remembers


class HistoryView:
    """What was played in a campaign, seen from one of its threads. See `History` for the arguments."""

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings | JSON) -> None:
        where = config.get("configurable") if isinstance(config, Mapping) else None
        if not (isinstance(where, Mapping) and where.get("thread_id") not in (None, "")):
            expected = 'the thread, such as {"configurable": {"thread_id": "1"}}'
            raise InputError(f"config: got {config!r:.80}; expected {expected}.")
        if not isinstance(context, Settings):
            own: Any = graph.builder.context_schema
            # An agent of LangChain's does not say which model may summarise.
            is_own = isinstance(own, type) and issubclass(own, Settings)
            context = own.of(context) if is_own else Settings.of({"summarizer": "extractive", **context})
        self.graph, self.config, self.context = graph, config, with_user(context, where)
        self._upkeep = upkeep_nodes(graph)

    async def current_state(self) -> StateSnapshot:
        """Return the thread's last state; an InputError says that it is another user's, or of another campaign."""
        state = self._own(await self.graph.aget_state(self._thread_config()))
        if not position_of(state).turn:
            raise HistoryError("Nothing has been said yet.")
        return state

    async def current_turn(self) -> Segment | None:
        """Return branch and number of the last remembered turn of the thread; None before the first."""
        state = await self.graph.aget_state(self._thread_config())
        if timeline := remembered_timeline(state.values):
            return timeline[-1]
        # Version 0.2 remembered the turns of an interview when it was over.
        position = position_of(state)
        played = await self._turns_numbered(position.turn, state.values.get("timeline", ()))
        return next((turn.key for turn in played if turn.player == position.player), None)

    async def _end_of_turn(self, number: int) -> StateSnapshot:
        """Return the state at the end of an earlier turn, on the way to where the thread is."""
        last = position_of(await self.current_state()).turn
        if number > last:
            here = f"this is turn {last}. /branches shows the rest."
            raise HistoryError(f"There is no turn {number} on the way to here: {here}")
        passed: list[int] = []
        async for state in self._ancestors(await self._config_after(number)):
            if not self._waiting(state) and (turn := state.values.get("turn", 0)):
                if turn == number:
                    return state
                passed.append(turn)
        if number == last:
            raise HistoryError(f"Turn {number} has no reply yet. Try again (/retry), or take it back (/undo).")
        if played := await self._turns_on_this_line(number):
            try:
                return await self._end_of(played[0])  # on another thread, before this one joined the campaign
            except HistoryError as error:
                raise HistoryError(f"{error}{_nearest(number, passed)}") from error
        reason = f"this thread begins with turn {min(passed)}" if passed else "none is finished yet"
        raise HistoryError(f"There is no turn {number} to go back to: {reason}.")

    async def _end_of(self, played: PlayedTurn) -> StateSnapshot:
        """Return the state with which a turn ended, with later edits of it, whichever thread played it."""
        state = self._own(await self.graph.aget_state(self._config_of(played)))
        if state.values.get("turn", 0) > played.turn:  # a later turn wrote its record
            async for earlier in self._ancestors(self._config_of(played)):
                if not self._waiting(earlier) and earlier.values.get("turn") == played.turn:
                    return earlier
        while state.values and (after := await self._successor_in_turn(state)):
            state = after
        if not state.values or self._waiting(state):
            on = "" if played.thread == self._thread_id else f", which thread {played.thread} wrote,"
            gone = "are gone: they were pruned, or deleted with their thread."
            raise HistoryError(f"The checkpoints of turn {played.turn} of {played.line!r}{on} {gone}")
        return state

    def _own(self, state: StateSnapshot) -> StateSnapshot:
        owner = state.values.get("thread_owner")
        check_owner([owner, self.context.campaign] if owner else state.values.get("campaign") or (), self.context)
        return state

    async def turns(self) -> list[PlayedTurn]:
        """Return every finished turn of the campaign, or of an agent's thread, of all branches, the earliest first."""
        spaces = [self.context.campaign_namespace(name) for name in _TURNS]
        turns = [PlayedTurn.of(item.value) for space in spaces async for item in items_under(self._store(), space)]
        if self._schema.SCOPE != "campaign":  # other threads of the user are conversations of their own
            here = remembered_timeline((await self.graph.aget_state(self._thread_config())).values)
            turns = [turn for turn in turns if turn.thread == self._thread_id or sees(here, *turn.key)]
        return sorted(turns, key=lambda turn: (turn.turn, turn.age))

    async def line_names(self) -> dict[str, Segment]:
        """Return the lines that a person has named, each with branch and turn from which the name holds."""
        items = await self._store().asearch(self.context.campaign_namespace("lines"), limit=1000)
        return {item.key: (item.value["branch"], item.value["turn"]) for item in items}

    async def find(self, where: str) -> PlayedTurn:
        """Find a turn by its number on the way to here, or the last turn of a line or branch by its name."""
        where = " ".join(where.split())
        if where.isdecimal() and len(where) < 16:
            if played := await self._turns_on_this_line(int(where)):
                return played[0]
            raise HistoryError(f"There is no turn {where!r} on this line.")
        turns, names = await self.turns(), await self.line_names()
        branches = branch_names(turns)
        matches = [turn for turn in turns if where == turn.line]
        matches = matches or [turn for turn in turns if where in (turn.branch, branches[turn.branch])]
        matches = matches or [turn for turn in turns if turn.key == names.get(where)]
        if not matches:
            lines = [*last_of_lines(turns), *(name for name in sorted(names) if name not in last_of_lines(turns))]
            some = f"{', '.join(lines[:12])}{', …' if len(lines) > 12 else ''}" or "none yet"
            raise HistoryError(f"There is no line, branch or turn {where!r:.70}. Lines: {some}.")
        return max(matches, key=lambda turn: turn.age)

    async def difference(self, one: str, other: str = "") -> Difference:
        """Return what two turns disagree on, each named as in `find`; without another one, a turn and the present."""
        before = (await self._end_of(await self.find(one))).values
        after = (await self._end_of(await self.find(other)) if other else await self.current_state()).values
        was, now, turns = remembered_timeline(before), remembered_timeline(after), await self.turns()
        # The person's view: secrets are left out before anything is compared.
        pages = [
            ChangedEntry(page, *entry)
            for page, kind in self._schema.PAGES.items()
            for entry in _entries(kind.load(before.get(page)).player_view(), kind.load(after.get(page)).player_view())
        ]
        only_before = [turn for turn in turns if sees(was, *turn.key) and not sees(now, *turn.key)]
        only_after = [turn for turn in turns if sees(now, *turn.key) and not sees(was, *turn.key)]
        return Difference(pages, only_before, only_after)

    def _config_of(self, played: PlayedTurn) -> RunnableConfig:
        return self._at({"thread_id": played.thread, "checkpoint_ns": "", "checkpoint_id": played.checkpoint})

    async def _turns_on_this_line(self, number: int) -> list[PlayedTurn]:
        state = await self.graph.aget_state(self._thread_config())
        return await self._turns_numbered(number, remembered_timeline(state.values))

    async def _config_after(self, number: int) -> RunnableConfig:
        """Return where to look back from for the end of a turn: in the next turn, unless its checkpoints are gone."""
        for played in await self._turns_on_this_line(number + 1):  # its record names a checkpoint of it
            if (await self.graph.aget_state(config := self._config_of(played))).created_at:
                return config
        return self._thread_config()

    async def _turns_numbered(self, number: int, timeline: Timeline) -> list[PlayedTurn]:
        store, spaces = self._store(), map(self.context.campaign_namespace, _TURNS)
        found = [await store.asearch(space, filter={"turn": number}, limit=_PAGE) for space in spaces]
        turns = (PlayedTurn.of(item.value) for items in found for item in items)
        return [turn for turn in turns if sees(timeline, *turn.key)]

    async def _successor_in_turn(self, state: StateSnapshot) -> StateSnapshot | None:
        """Return the newest state that was made from this one within its turn and line, by a run, an edit or a copy."""
        step = (state.metadata or {}).get("step", 0)
        within = [
            after
            for thread in {thread_of(state), self._thread_id}
            async for after in self.graph.aget_state_history(self._at({"thread_id": thread}), filter={"step": step + 1})
            if _is_successor(after, state) and not self._waiting(after)
            if all(after.values.get(name) == state.values.get(name) for name in ("turn", "line"))
        ]
        return max(within, key=lambda after: _checkpoint_id_of(after.config), default=None)

    async def _ancestors(self, config: RunnableConfig | None) -> AsyncIterator[StateSnapshot]:
        """Go from a state back over its ancestors, and on to the thread that it was copied from."""
        while config is not None:
            state = await self.graph.aget_state(config)
            if state.created_at is None and thread_of(state) != self._thread_id:
                return  # that thread was deleted
            yield state
            origin = origin_of(state)
            config = self._at(origin) if origin else state.parent_config

    def _waiting(self, state: StateSnapshot) -> tuple[str, ...]:
        """Return the nodes, but for the upkeep, that run next in a state before its turn is answered.

        Not `state.next`, which leaves out a node that was killed after its writes were saved and before the checkpoint.
        """
        return tuple(task.name for task in state.tasks if task.name not in self._upkeep)

    def _at(self, where: JSON) -> RunnableConfig:
        """Return the config of runs from a checkpoint, or at the end of a thread, by its `configurable`."""
        return {**self.config, "configurable": where}

    def _thread_config(self) -> RunnableConfig:
        return self._at({"thread_id": self._thread_id})

    @property
    def _thread_id(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    @property
    def _schema(self) -> type[TurnState]:
        schema = self.graph.builder.state_schema
        if not issubclass(schema, TurnState):
            only = "Only a graph whose state is a TurnState has a history"
            raise HistoryError(f"{only}; this one has {schema.__name__}.")
        return schema

    def _store(self) -> BaseStore:
        if not isinstance(self.graph.store, BaseStore):
            raise HistoryError("The graph was compiled without a store, so there are no lines to move between.")
        return with_async_methods(self.graph.store)


def _nearest(number: int, kept: Sequence[int]) -> str:
    nearest = sorted(turn for turn in kept if turn < number)[-1:] + sorted(turn for turn in kept if turn > number)[:1]
    return f" The nearest on the way to here: turn {' and turn '.join(map(str, nearest))}." if nearest else ""


def _entries(was: JSON, now: JSON, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    for name in diff_patch(was, now):
        old, new = was.get(name), now.get(name)
        both = isinstance(old, Mapping) and isinstance(new, Mapping)
        if both or (not path and (isinstance(old, Mapping) or isinstance(new, Mapping))):
            yield from _entries(dict(old or {}), dict(new or {}), (*path, name))
        else:
            yield (*path, name), old, new


class Position(NamedTuple):
    """Where in the conversation a state is: turn 0 is before anything was said, an empty reply is none yet."""

    turn: int
    player: str
    reply: str
    line: str


def position_of(state: StateSnapshot) -> Position:
    """Return where in the conversation a state is; a message that was sent and not processed yet counts as a turn."""
    values = state.values
    turn, messages, line = values.get("turn", 0), values.get("messages") or [], values.get("line", "main")
    if not messages:
        return Position(turn, "", "", line)
    last = split_turns(messages, turn)[-1].messages
    player, reply = turn_text(last)
    return Position(turn + (opener_of(last) != values.get("opened_by", "")), player, reply.strip(), line)


def is_at(state: StateSnapshot, head: Mapping[str, Any]) -> bool:
    """Whether a state is where a campaign's head is: at the same turn of the same timeline."""
    return bool(state.values["turn"] == head["turn"]) and read_timeline(state.values) == read_timeline(head)


def thread_of(state: StateSnapshot) -> str:
    """Return the thread of a state."""
    return str(state.config["configurable"]["thread_id"])


def origin_of(state: StateSnapshot) -> JSON | None:
    """Return the `configurable` of the checkpoint that a state was copied from; None if it is no copy."""
    metadata: JSON = {**(state.metadata or {})}
    return metadata.get(ORIGIN)


def _checkpoint_id_of(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_id", ""))


def _is_successor(after: StateSnapshot, state: StateSnapshot) -> bool:
    """Whether a state was made from another one: by a run, by an edit, or as the copy that going back to it makes."""
    state_id = _checkpoint_id_of(state.config)
    if origin := origin_of(after):
        return bool(origin["checkpoint_id"] == state_id)
    if after.parent_config is None or _checkpoint_id_of(after.parent_config) == state_id:
        return after.parent_config is not None
    # LangGraph makes a copy a sibling of the state that it copies.
    parent = state.parent_config
    siblings = parent is not None and _checkpoint_id_of(after.parent_config) == _checkpoint_id_of(parent)
    return siblings and (after.metadata or {}).get("source") == "fork" and after.values == state.values

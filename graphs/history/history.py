"""`History`: going back, trying again, and moving between the lines of a campaign; `SyncHistory` for sync callers.

Going somewhere writes a new checkpoint that is like the one gone to. The campaign's head goes along.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint import base
from langgraph.store.base import PutOp
from langgraph.types import Overwrite, StateSnapshot

from questbook.graphs.errors import HistoryError
from questbook.graphs.history.tree import branch_names
from questbook.graphs.history.view import ORIGIN, Graph, HistoryView, is_at, origin_of, position_of, thread_of
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import speaking_nodes
from questbook.graphs.turn.sessions import past_of
from questbook.graphs.turn.turn import head_of, move_head
from questbook.memory.store.any_store import SyncStore, put_all, refuse_own_loop
from questbook.memory.sync import run_sync
from questbook.types import JSON, storable

P = ParamSpec("P")
ResultT = TypeVar("ResultT")
_log = logging.getLogger(__name__)


class Replay(NamedTuple):
    """How to play the last turn again: run the graph from `config` with `context`, without input."""

    config: RunnableConfig
    context: Settings


class LastMessage(NamedTuple):
    """The person's last message, and how to replace it: run the graph from `config` with another message."""

    config: RunnableConfig
    text: str


class LastQuestion(NamedTuple):
    """The state from which the model was asked for the last reply, and the node that asked."""

    state: StateSnapshot
    node: str


class History(HistoryView):
    """What was played in a campaign, seen from one thread, and moves between its turns.

    It works with every graph whose state is a `TurnState`: the dungeon master, the companion, and what `build_agent`
    makes.

        history = History(graph, config, context)
        await history.undo()                       # go back one turn; what was played stays on its branch
        await history.name_line("the other road")
        await history.go("main")                   # to the end of the first line

    Args:
        graph: Compiled with checkpointer and store.
        config: Names the thread; its other keys are passed on to every run.
        context: The settings of the runs; user and campaign say where the records are.

    Raises:
        HistoryError: Of any method: what is asked for is not there, or cannot be done now. Nothing was changed.
    """

    async def undo(self, turns: int = 1) -> StateSnapshot:
        """Go back by a number of turns; return the state there."""
        if type(turns) is not int or turns < 1:
            raise HistoryError(f"Undo takes a number of turns from 1, got {turns!r}.")
        if turns == 1 and self._waiting(await self.graph.aget_state(self._thread_config())):
            return await self.take_back()
        turn = position_of(await self.current_state()).turn
        if turn == 1:
            raise HistoryError("The first turn cannot be taken back, but you can change your words (/edit).")
        if turns >= turn:
            raise HistoryError(f"This is turn {turn}, so {turns} turns cannot be taken back, but {turn - 1} can.")
        return await self.rewind(turn - turns)

    async def take_back(self) -> StateSnapshot:
        """Go back to before the last message if it has no reply; before the first one the thread is empty again."""
        state = before = self._own(await self.graph.aget_state(self._thread_config()))
        if not self._waiting(state):
            return state
        async for before in self._ancestors(state.parent_config):
            if before.created_at and not self._waiting(before):
                return await self._move_to(before)
        if (before.metadata or {}).get("step", 0) > -1:  # a thread begins with the step -1
            raise HistoryError("The checkpoints before this message are gone: they were pruned. Try it again instead.")
        await self._put(base.empty_checkpoint(), (state.metadata or {}).get("step", 0) + 1)
        return await self.graph.aget_state(self._thread_config())

    async def rewind(self, turn: int) -> StateSnapshot:
        """Go back to the end of a finished turn on the way to here; return the state there."""
        target = await self._end_of_turn(turn)
        state = await self._move_to(target)
        past = await past_of(self._store(), self.context, self._thread_id)
        if past is None or thread_of(target) == self._thread_id or not is_at(state, past):
            return state
        # This thread joined the campaign here: what it took over then counts, not what the other thread says today.
        carried: JSON = {name: past[name] for name in self._schema.CARRIED if name in past}
        carried |= {name: Overwrite(past[name]) for name in self._schema.PAGES if name in past}
        return await self.write(carried)

    async def retry(self, *, dice: bool = False) -> Replay:
        """Return how to play the last turn again, in other words, and with `dice` also with other rolls."""
        position = position_of(await self.current_state())
        start: StateSnapshot | None = None
        roles: dict[tuple[str, ...], str] = {(node,): role for node, role in speaking_nodes(self.graph).items()}
        async for state in self._ancestors(self._thread_config()):
            nodes = self._waiting(state)
            # A node that answers runs again after each roll; before its first run nothing was rolled.
            if nodes in roles and (start is None or (dice and roles[nodes] == "answers")):
                start = state
            if nodes == ("__start__",) or (not nodes and position_of(state).turn < position.turn):
                break  # before the turn
        if start is None:
            raise HistoryError("There is no reply to replace.")
        # With the same seed, the offline storyteller and the dice would repeat themselves: make another of the reply.
        origin = f"{self.context.seed}/{position.turn}/{dice}/{position.reply}"
        seed = int.from_bytes(hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()[:6])
        answers = roles[self._waiting(start)] == "answers"
        config = await (self._on_line(position.line, start, "recall") if answers else self._on_thread(start))
        return Replay(config, self.context.model_copy(update={"seed": seed}))

    async def before_upkeep(self) -> StateSnapshot | None:
        """Return the state right after the last reply, before anything was noted of it; None if it has none."""
        turn, start = position_of(await self.current_state()).turn, None
        async for state in self._ancestors(self._thread_config()):
            nodes = {task.name for task in state.tasks}
            if state.values.get("turn") != turn or nodes - self._upkeep:
                break
            start = state if nodes else start
        return start

    async def last_question(self) -> LastQuestion | None:
        """Return the state from which the model was asked for the last reply, and the node; None if there is none."""
        turn = position_of(await self.current_state()).turn
        speaking = {(node,) for node in speaking_nodes(self.graph)}
        async for state in self._ancestors(self._thread_config()):
            nodes = self._waiting(state)
            if nodes in speaking:
                return LastQuestion(state, nodes[0])
            if position_of(state).turn < turn:
                break
        return None

    async def last_message(self) -> LastMessage:
        """Return the person's last message, and how to send another in its place.

        The thread's first message can be replaced too: the thread then begins again from the past that it had. If it
        had none, the campaign's head is given up, because the new message begins the campaign.
        """
        position = position_of(await self.current_state())
        first: StateSnapshot | None = None
        async for state in self._ancestors(self._thread_config()):
            if not self._waiting(state) and position_of(state).turn == position.turn - 1:
                return LastMessage(await self._on_line(position.line, state, "condense"), position.player)
            first = state
        if first is None:
            raise HistoryError("There is no message to replace.")
        # If the thread joined the campaign with this message, it joins again, as it did then.
        joins = thread_of(first) == self._thread_id and self._waiting(first) == ("__start__",)
        if position.turn > 1 and not joins:
            before = await self._end_of_turn(position.turn - 1)
            return LastMessage(await self._on_line(position.line, before, "condense"), position.player)
        if position.turn == 1:
            await move_head(self._schema(), self._store(), self.context, self._thread_id)
        return LastMessage(await self._on_thread(first), position.player)

    async def name_line(self, name: str) -> None:
        """Give a name to the line from here on; not one that is in use, or would be read as a turn or a branch."""
        name = storable(" ".join(name.split()))
        if not name or len(name) > 60:
            raise HistoryError(f"A line needs a name of 1 to 60 characters, got {name!r:.70}.")
        if name.isdecimal():
            raise HistoryError(f"{name} would be read as a turn; give the line a name with a letter.")
        state, turns = await self.finished_state(), await self.turns()
        used = {*await self.line_names(), *(turn.line for turn in turns), *branch_names(turns).values(), "main"}
        if name in used or name == state.values.get("line", "main"):
            raise HistoryError(f"There is a line named {name!r} already; /go {name} goes there.")
        branch, turn = state.values["timeline"][-1]
        line = PutOp(self.context.campaign_namespace("lines"), name, {"branch": branch, "turn": turn}, index=False)
        await put_all(self._store(), [line])
        await self.write({"line": name})

    async def finished_state(self) -> StateSnapshot:
        """Return the thread's last state, whose turn must be finished."""
        state = await self.current_state()
        if self._waiting(state):
            remedy = "try it again, or take it back, first."
            raise HistoryError(f"Turn {position_of(state).turn} has no reply yet: {remedy}")
        return state

    async def write(self, update: Mapping[str, Any]) -> StateSnapshot:
        """Write channels after a finished turn, as an edit by a person, which can be undone; return the new state."""
        await self.finished_state()
        await self.graph.aupdate_state(self._thread_config(), dict(update), as_node="condense")
        return await self._take_head_along()

    async def go(self, where: str) -> StateSnapshot:
        """Go to a turn, or to the end of a line or branch, of any thread of the campaign; return the state there."""
        where = " ".join(where.split())
        is_turn = where.isdecimal() and len(where) < 16
        target = await self._end_of_turn(int(where)) if is_turn else await self._end_of(await self.find(where))
        is_line = where in await self.line_names()
        return await self._move_to(target, where if is_line else target.values.get("line", "main"))

    async def enter(self, threads: Sequence[str]) -> bool:
        """Bring an empty thread to where the campaign was left on another thread; return whether there is such a place.

        Without this, the first message takes over no buffer. `threads` are the campaign's others, the last one first.
        """
        head = await head_of(self._store(), self.context)
        last_thread = str((head or {}).get("thread"))
        for thread in sorted(threads, key=lambda thread: thread != last_thread):  # the head's own thread first
            state = await self._last_finished(thread)
            if state is not None and (head is None or is_at(state, head)):
                await self._on_thread(state)
                return True
        if head is None:
            return False
        try:
            [last] = await self._turns_numbered(head["turn"], head["timeline"])
            await self._on_thread(await self._end_of(last))
        except (HistoryError, ValueError) as error:
            _log.warning("Where campaign %r was left is in no checkpoint: %s", self.context.campaign, error)
            return False
        return True

    async def _last_finished(self, thread: str) -> StateSnapshot | None:
        async for state in self._ancestors(self._at({"thread_id": thread})):
            if not self._waiting(state):
                return self._own(state) if state.values.get("turn") else None
        return None

    async def _move_to(self, target: StateSnapshot, line: str | None = None) -> StateSnapshot:
        """Make a copy of a finished state the thread's last, and the campaign's head; return it."""
        if thread_of(target) == self._thread_id and origin_of(target) is None:
            await self.graph.aupdate_state(self._at(target.config["configurable"]), None, as_node="__copy__")
        else:
            await self._copy(target)
        if line is not None and line != target.values.get("line", "main"):
            await self.graph.aupdate_state(self._thread_config(), {"line": line}, as_node="condense")
        return await self._take_head_along()

    async def _take_head_along(self) -> StateSnapshot:
        state = await self.graph.aget_state(self._thread_config())
        if state.values.get("turn"):  # else the thread has not joined its campaign yet
            await move_head(self._schema.model_validate(state.values), self._store(), self.context, self._thread_id)
        return state

    async def _on_line(self, line: str, state: StateSnapshot, node: str) -> RunnableConfig:
        """Return the config to run from, on that line; its name may be younger than the state."""
        config = await self._on_thread(state)
        if state.values.get("line", "main") == line:
            return config
        return self._at((await self.graph.aupdate_state(config, {"line": line}, as_node=node))["configurable"])

    async def _on_thread(self, state: StateSnapshot) -> RunnableConfig:
        is_here = thread_of(state) == self._thread_id
        return self._at(state.config["configurable"]) if is_here else await self._copy(state)

    async def _copy(self, state: StateSnapshot) -> RunnableConfig:
        """Write a copy, without a parent, of a state of another thread to this one; return the config to run from."""
        saver = self.graph.checkpointer
        if not isinstance(saver, base.BaseCheckpointSaver):
            raise HistoryError("The graph was compiled without a checkpointer, so there is nothing to go to.")
        saved = await saver.aget_tuple(state.config)
        if saved is None:
            raise HistoryError(f"The checkpoint that was to be copied from thread {thread_of(state)} is gone.")
        step = saved.metadata.get("step", 0) + 1
        origin = {name: state.config["configurable"][name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
        return await self._put(base.create_checkpoint(saved.checkpoint, None, step), step, origin)

    async def _put(self, checkpoint: base.Checkpoint, step: int, origin: JSON | None = None) -> RunnableConfig:
        """Write a checkpoint without a parent as the thread's last; return its config. `origin` is what it copies."""
        saver = self.graph.checkpointer
        assert isinstance(saver, base.BaseCheckpointSaver)  # noqa: S101 (the state came from one)
        metadata: base.CheckpointMetadata = {"source": "fork", "step": step, "parents": {}}
        if origin is not None:
            metadata[ORIGIN] = origin  # type: ignore[typeddict-unknown-key]  # savers keep any field
        names = {"user": self.context.user, "campaign": self.context.campaign}  # so that forgetting finds the thread
        to = self._at({"thread_id": self._thread_id, "checkpoint_ns": ""})
        to["metadata"] = {**self.config.get("metadata", {}), **names}
        return self._at((await saver.aput(to, checkpoint, metadata, checkpoint["channel_versions"]))["configurable"])


def sync_method(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, ResultT]],
) -> Callable[Concatenate[Any, P], ResultT]:
    """Make a method of a sync class of an async class's; the object of that one is `_behind`."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run_sync(method(self._behind, *args, **kwargs))

    return call


class SyncHistory:
    """What was played in a campaign, and moves between its turns: `History` with sync methods of the same names.

        history = SyncHistory(graph, config, context)
        history.undo()
        replay = history.retry()
        graph.invoke(None, replay.config, context=replay.context)

    Its arguments are those of `History`, which is behind it as `history`. Where checkpointer or store belong to the
    event loop that is running, an asyncio.InvalidStateError says so.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings | JSON) -> None:
        self.history = self._behind = History(sync_graph(graph), config, context)

    current_state = sync_method(History.current_state)
    current_turn = sync_method(History.current_turn)
    before_upkeep = sync_method(History.before_upkeep)
    turns = sync_method(History.turns)
    line_names = sync_method(History.line_names)
    find = sync_method(History.find)
    difference = sync_method(History.difference)
    undo = sync_method(History.undo)
    take_back = sync_method(History.take_back)
    rewind = sync_method(History.rewind)
    retry = sync_method(History.retry)
    last_question = sync_method(History.last_question)
    last_message = sync_method(History.last_message)
    name_line = sync_method(History.name_line)
    finished_state = sync_method(History.finished_state)
    write = sync_method(History.write)
    go = sync_method(History.go)
    enter = sync_method(History.enter)


def sync_graph(graph: Graph) -> Graph:
    """Return a graph whose checkpointer and store are used by their sync methods alone."""
    saver, store = graph.checkpointer, graph.store
    through = {
        "checkpointer": _SyncSaver(saver) if isinstance(saver, base.BaseCheckpointSaver) else saver,
        "store": SyncStore(store) if store is not None else None,
    }
    return graph.copy(through)


class _SyncSaver(base.BaseCheckpointSaver[Any]):
    """A checkpointer as asynchronous code sees it, by its sync methods alone."""

    def __init__(self, saver: base.BaseCheckpointSaver[Any]) -> None:
        refuse_own_loop(saver, getattr(saver, "loop", None))
        super().__init__(serde=saver.serde)
        self._saver = saver

    @property
    def config_specs(self) -> list[Any]:
        return self._saver.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        return await asyncio.to_thread(self._saver.get_tuple, config)

    async def alist(self, *given: Any, **named: Any) -> AsyncIterator[base.CheckpointTuple]:
        # At once, and few: of one step. LangGraph's SqliteSaver lets nobody else in while a listing is open.
        for saved in await asyncio.to_thread(lambda: list(self._saver.list(*given, **named))):
            yield saved

    async def aput(self, *given: Any, **named: Any) -> RunnableConfig:
        return await asyncio.to_thread(self._saver.put, *given, **named)

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        await asyncio.to_thread(self._saver.put_writes, *given, **named)

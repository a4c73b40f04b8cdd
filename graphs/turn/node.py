"""What a graph of ours is built of: `Machine`, the graph; `Node` and `Edge`, for async and sync callers; upkeep.

Upkeep is what a turn does after its reply, such as taking notes. When the person's next message comes meanwhile,
`give_way` stops the model's call, and a later turn does what the channels say was not done. What else a node of the
upkeep does, above all its writes to the store, gives way to nothing: it is short, and must not be half done.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.config import get_config
from langgraph.graph import START, StateGraph
from langgraph.graph._branch import BranchSpec
from langgraph.runtime import Runtime, get_runtime
from pydantic import BaseModel

from questbook.graphs.errors import InputError
from questbook.graphs.settings import Settings
from questbook.graphs.turn import api_server
from questbook.graphs.turn.channels import is_edit
from questbook.graphs.turn.run_guard import GuardedGraph
from questbook.graphs.turn.scope import run_thread, settings_of
from questbook.memory.store.any_store import timed
from questbook.memory.sync import run_sync
from questbook.types import JSON

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

StateT = TypeVar("StateT", bound=BaseModel)
ContextT = TypeVar("ContextT", bound=Settings)
ResultT = TypeVar("ResultT")

_log = logging.getLogger(__name__)

SPEAKS = "speaks"  # key of a node's metadata, in its stream as well: the node speaks to the person
ASKS = {SPEAKS: "asks"}  # metadata of a node that asks for what a page still lacks
ANSWERS = {SPEAKS: "answers"}  # metadata of a node that answers, and is asked again after its tools have answered


class Node(Runnable[Any, Any], Generic[ContextT]):
    """Run `function(state, runtime)` whether the graph is called with `ainvoke` or with `invoke`.

    The runtime's context is completed by `context` on the way, and is that of the thread (`settings_of`), or the node
    is refused: who resumes a run has passed no edge that would have refused it. The custom stream says when a step
    begins: {"begins": its name}, with "upkeep": true after the reply.
    """

    def __init__(
        self,
        function: Callable[[Any, Runtime[ContextT]], Awaitable[Any]],
        context: Callable[[Any], ContextT],
        *,
        upkeep: bool = False,
    ) -> None:
        self.function, self.context, self.upkeep = function, context, upkeep
        self.name = getattr(function, "__name__", None)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ARG002
        """Run the node in the caller's event loop."""
        runtime: Runtime[Any] = get_runtime()
        # What a person is waiting for, or need not wait for.
        runtime.stream_writer({"begins": self.name} | ({"upkeep": True} if self.upkeep else {}))
        configurable = get_config().get("configurable")
        context = settings_of(self.context(runtime.context), input, run_thread(runtime), configurable).for_run(runtime)
        store = timed(runtime.store, context.store_timeout)
        with _counted(1) if self.upkeep else nullcontext():  # must not be stopped, but for the work of `give_way`
            return await self.function(input, runtime.override(context=context, store=store))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the node for a sync caller, and wait for it."""
        return run_sync(self.ainvoke(input, config, **kwargs))


class Edge(Runnable[Any, str]):
    """Run `route(state)`, a conditional edge, in the caller's event loop; LangGraph would take a thread for it.

    An edit by `update_state` whose state does not go together is refused here (`check_edit` of the state; `upkeep`:
    the edge leads away from the upkeep). If a turn `starts` with it, the message of a run that has ended before leaves
    (node "condense"). Of an edge to `only` one node the state is read for an edit alone.
    """

    def __init__(
        self, route: Callable[[Any], str], *, upkeep: bool = False, starts: bool = False, only: str | None = None
    ) -> None:
        self.route, self.upkeep, self.starts, self.only = route, upkeep, starts, only
        self.name = getattr(route, "__name__", None)

    def invoke(self, input: Callable[[], Any], config: RunnableConfig | None = None, **kwargs: Any) -> str:  # noqa: A002, ARG002
        """Choose the next node; `input` reads the state."""
        with set_config_context(ensure_config(config)) as context:
            edits = context.run(is_edit)
            if self.only is not None and not edits:
                return self.only
            state = input()
            if edits and hasattr(state, "check_edit"):
                state.check_edit(upkeep=self.upkeep)
            repeated = self.starts and context.run(lambda: state.is_repeated)
            return "condense" if repeated else context.run(self.route, state)

    async def ainvoke(self, input: Callable[[], Any], config: RunnableConfig | None = None, **kwargs: Any) -> str:  # noqa: A002
        """Choose the next node; `input` reads the state."""
        return self.invoke(input, config, **kwargs)


def _checked(route: Callable[[Any], str], settings_class: type[Settings], state: Any) -> str:
    """Begin a turn; settings that are not the thread's are refused, and a last message that cannot be played."""
    settings = settings_of_run(settings_class, state) or settings_class.of()
    if not state.messages or not isinstance(state.messages[-1], HumanMessage):
        problem = f"the last one has role {state.messages[-1].type!r}" if state.messages else "there is none"
        instead = ', or edit a page with as_node="remember"' if is_edit() else ""
        raise InputError(f"A turn begins with a message of role 'user', but {problem}. Send one{instead}.")
    settings.check_message(state.messages[-1].text)
    return route(state)


class _Branch(BranchSpec):
    """LangGraph's branch, which gives its edge the way to read the state: reading takes as long as a short node."""

    def run(self, writer: Any, reader: Callable[[RunnableConfig], Any] | None = None) -> Any:
        return super().run(writer, reader and (lambda config: partial(reader, config)))


class Machine(StateGraph[StateT, ContextT, Any, StateT]):
    """A graph whose state says the machine's name: `MACHINE`, without the part before a colon."""

    def add_steps(
        self, *steps: Callable[[Any, Runtime[Any]], Awaitable[Any]], upkeep: bool = False, speaks: JSON | None = None
    ) -> None:
        """Add a node for each function, under its name; `speaks` says whether it `ASKS` or `ANSWERS` the person."""
        context: Any = self.context_schema
        for step in steps:
            self.add_node(step.__name__, Node(step, context.of, upkeep=upkeep), metadata=speaks)

    def add_conditional_edges(self, source: str, path: Any, path_map: Any = None) -> Self:
        """Add edges as to any graph; each is an `Edge`. Their nodes come first."""
        node = getattr(self.nodes.get(source), "runnable", None)
        starts = source == START and hasattr(self.state_schema, "is_repeated")
        only = path_map[0] if len(path_map) == 1 and not starts else None
        if starts and self.context_schema:  # before any node has run: what is refused leaves the state untouched
            path = partial(_checked, path, self.context_schema)
        edge = Edge(path, upkeep=getattr(node, "upkeep", False), starts=starts, only=only)
        super().add_conditional_edges(source, edge, [*path_map, "condense"] if starts else path_map)
        self.branches[source] |= {name: _Branch(*branch) for name, branch in self.branches[source].items()}
        return self

    def add_edge(self, start_key: str | list[str], end_key: str) -> Self:
        """Add an edge that reads the state, too: what `update_state` writes and does not fit is refused there, unsaved.

        LangGraph calls nothing else of ours between an edit in the name of a node and its saving (`turn.channels`).
        """
        return self.add_conditional_edges(str(start_key), lambda _: end_key, [end_key])

    def compile(self, *args: Any, name: str | None = None, **options: Any) -> Any:
        """Compile as any graph; unless another name is given, it has the machine's."""
        timed(options.get("store"), 0)  # refuses what is none
        schema: Any = self.state_schema
        compiled = super().compile(*args, name=name or schema.MACHINE.rpartition(":")[2], **options)
        return GuardedGraph(**{name: value for name, value in vars(compiled).items() if name != "__orig_class__"})


def context_or_none() -> Any:
    """Return the context of the current run, for an edge; None in `update_state`, where there is none."""
    runtime: Runtime[Any] | None = get_runtime()
    return runtime.context if runtime else None


def speaking_nodes(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> dict[str, str]:
    """Return the nodes in which the model speaks to the person, each with how: "asks" or "answers"."""
    return {name: str(how) for name, node in graph.builder.nodes.items() if (how := (node.metadata or {}).get(SPEAKS))}


def settings_of_run(settings: type[ContextT], state: Any) -> ContextT | None:
    """Return the settings of the current run (`settings_of`); None in `update_state`, where nothing is run."""
    runtime: Runtime[Any] | None = get_runtime()
    if runtime is None:
        return None
    return settings_of(settings.of(runtime.context), state, run_thread(runtime), get_config().get("configurable"))


def upkeep_nodes(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> frozenset[str]:
    """Return the nodes that come after the reply."""
    nodes = graph.builder.nodes.items()
    return frozenset(name for name, node in nodes if isinstance(node.runnable, Node) and node.runnable.upkeep)


PATIENCE = 1.5  # seconds that the person's next message waits for upkeep to finish by itself
LONGEST_WRITE = 30.0  # seconds that it waits for what must not be stopped
_POLL = 0.5  # seconds between two looks at a server's queue


class Upkeep:
    """The upkeep of one run: the events that the next message waits, and that nothing unbroken is being done."""

    def __init__(self) -> None:
        self.next_message, self.stoppable = asyncio.Event(), asyncio.Event()
        self._unbroken = 0
        self.stoppable.set()

    def count(self, change: int) -> None:
        """Count what must not be stopped."""
        self._unbroken += change
        if self._unbroken > 0:
            self.stoppable.clear()
        else:
            self.stoppable.set()


_upkeep: ContextVar[Upkeep | None] = ContextVar("upkeep", default=None)


class GaveWay(Exception):  # noqa: N818 (no error: a later turn does the work)
    """Work of the upkeep was stopped, because the person's next message waits."""


def give_way_on(upkeep: Upkeep) -> None:
    """Have the upkeep of graphs that run in this task give way as soon as its `next_message` is set."""
    _upkeep.set(upkeep)


@contextmanager
def _counted(change: int) -> Iterator[None]:
    """Count what is done in here as one thing more, or less (-1), that must not be stopped."""
    upkeep = _upkeep.get() or Upkeep()
    upkeep.count(change)
    try:
        yield
    finally:
        upkeep.count(-change)


async def give_way(work: Coroutine[Any, Any, ResultT], runtime: Runtime[Any]) -> ResultT:
    """Do work of the upkeep that writes nothing, unless the person's next message waits: then a GaveWay stops it.

    Whether one waits is said by the event of `give_way_on`; on LangGraph Server, by the runs that the thread has in its
    queue. Elsewhere the work is never stopped.
    """
    upkeep = _upkeep.get()
    next_message = upkeep.next_message if upkeep else None
    if next_message is not None and next_message.is_set():
        work.close()
        raise GaveWay
    task, message = asyncio.create_task(work), asyncio.create_task(_message_waits(next_message, runtime))
    with _counted(-1):
        try:
            await asyncio.wait({task, message}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise GaveWay
            return task.result()
        finally:
            task.cancel()
            message.cancel()
            await asyncio.wait({task, message}, timeout=_POLL)  # work that does not stop is left behind


async def _message_waits(next_message: asyncio.Event | None, runtime: Runtime[Any]) -> None:
    """Return when the person's next message has waited long enough."""
    thread = run_thread(runtime)
    if next_message is None and api_server.has_queue(runtime) and thread:
        try:
            await _run_waits(thread)
        except Exception as error:  # noqa: BLE001 (a server's client has errors of many kinds; upkeep works without)
            _log.warning("Thread %s: whether a message waits is not known: %s", thread, error)
        else:
            await asyncio.sleep(PATIENCE - _POLL)
            return
    await (next_message or asyncio.Event()).wait()


async def _run_waits(thread: str) -> None:
    """Return when a run of the thread is due and waits in the server's queue."""
    async with api_server.client() as client:
        while True:
            runs = await client.runs.list(thread, status="pending", limit=10)
            # The time of a run that is to begin later (`after_seconds`) lies ahead.
            if any(datetime.fromisoformat(str(run["created_at"])) <= datetime.now(UTC) for run in runs):
                return
            await asyncio.sleep(_POLL)

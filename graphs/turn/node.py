"""What a graph of ours is built of: `Machine`, the graph; `Node` and `Edge`, for async and sync callers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime, get_runtime
from pydantic import BaseModel

from questbook.graphs.settings import Settings
from questbook.graphs.turn.scope import campaign_of, check_owner, with_user
from questbook.graphs.turn.upkeep import unbroken
from questbook.memory.store.any_store import with_async_methods
from questbook.memory.sync import run_sync

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

StateT = TypeVar("StateT", bound=BaseModel)
ContextT = TypeVar("ContextT", bound=Settings)

SPEAKS = "speaks"
"""Key of a node's metadata, in its stream as well: the node speaks to the person."""
ASKS = {SPEAKS: "asks"}
"""Metadata of a node that asks for what a page still lacks."""
ANSWERS = {SPEAKS: "answers"}
"""Metadata of a node that answers, and is asked again after its tools have answered."""


class Node(Runnable[Any, Any], Generic[ContextT]):
    """Run `function(state, runtime)` whether the graph is called with `ainvoke` or with `invoke`.

    LangGraph lets an async function run only in async calls. The runtime's context is completed by `context` on the
    way: None means the defaults, a parent graph's context of another class is read by its attributes. Its user is named
    (`questbook.graphs.turn.scope`), or the node is refused with a SettingsError. On the thread of another user or
    campaign it is refused with an InputError: who resumes a run has passed no edge that would have refused it.

    The writes of `upkeep`, a step after the reply (`questbook.graphs.turn.upkeep`), are not stopped. The custom stream
    says when a step begins: {"begins": its name}, with "upkeep": true.
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
        context = with_user(self.context(runtime.context), get_config().get("configurable"))
        check_owner(campaign_of(input), context)
        store = with_async_methods(runtime.store)
        with unbroken() if self.upkeep else nullcontext():
            return await self.function(input, runtime.override(context=context, store=store))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run the node for a sync caller, and wait for it."""
        return run_sync(self.ainvoke(input, config, **kwargs))


class Edge(Runnable[Any, str]):
    """Run `route(state)`, a conditional edge, in the caller's event loop; LangGraph would take a thread for it.

    It has no run of its own in traces: which node comes next is seen there anyway.

    Args:
        route: Returns the name of the next node, from the state and the run's context alone.
    """

    def __init__(self, route: Callable[[Any], str]) -> None:
        self.route = route
        self.name = getattr(route, "__name__", None)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:  # noqa: A002, ARG002
        """Choose the next node."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(self.route, input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> str:  # noqa: A002
        """Choose the next node."""
        return self.invoke(input, config, **kwargs)


class Machine(StateGraph[StateT, ContextT, Any, StateT]):
    """A graph whose state says the machine's name: `MACHINE`, without the part before a colon."""

    def compile(self, *args: Any, name: str | None = None, **options: Any) -> Any:
        """Compile as any graph; unless another name is given, it has the machine's."""
        schema: Any = self.state_schema
        return super().compile(*args, name=name or schema.MACHINE.rpartition(":")[2], **options)


def context_or_none() -> Any:
    """Return the context of the current run; None outside one.

    An edge cannot ask for the runtime in its signature: LangGraph also takes edges in `update_state`, where there
    is none.
    """
    runtime: Runtime[Any] | None = get_runtime()
    return runtime.context if runtime else None


def speaking_nodes(graph: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, str]:
    """Return the nodes in which the model speaks to the person, each with how: "asks" or "answers"."""
    nodes = {name: (node.metadata or {}).get(SPEAKS) for name, node in graph.builder.nodes.items()}
    return {name: str(how) for name, how in nodes.items() if how in (ASKS[SPEAKS], ANSWERS[SPEAKS])}


def settings_of_run(settings: type[ContextT]) -> ContextT | None:
    """Return the settings of the current run with their user named; None in `update_state`, where nothing is run.

    Raises:
        SettingsError: Nobody is named as the user, or two that differ are.
    """
    runtime: Runtime[Any] | None = get_runtime()
    return with_user(settings.of(runtime.context), get_config().get("configurable")) if runtime else None


def upkeep_nodes(graph: CompiledStateGraph[Any, Any, Any, Any]) -> frozenset[str]:
    """Return the nodes that come after the reply."""
    nodes = graph.builder.nodes.items()
    return frozenset(name for name, node in nodes if isinstance(node.runnable, Node) and node.runnable.upkeep)

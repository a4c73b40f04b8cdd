"""LangChain's middleware in an agent: its hooks are nodes of the graph, or wrap the model's and the tools' calls.

    begin ─ before_agent ─ recall ─ before_model ─ MODE ─ after_model ─┬─ use_tools ─► before_model
                                                                       └─ after_agent ─► upkeep
`before_model` and `wrap_model_call` are also for interviews. No hook sees the calls that take notes after the reply:
what a middleware did to the messages was done before.

Middleware is imported by whoever gives it: without any, LangChain's agents are not loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langgraph.channels import EphemeralValue
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import SkipValidation
from typing_extensions import ReadOnly

from questbook.graphs.turn.state import TurnState
from questbook.memory.buffer.turns import split_turns
from questbook.notebooks import DeclarationError, Notebook
from questbook.types import JSON

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware

Hook = Literal["before_agent", "before_model", "after_model", "after_agent"]
HOOKS: tuple[Hook, ...] = get_args(Hook)

_OWN = frozenset({"messages", "jump_to", "structured_response"})  # channels of every agent of LangChain's
_REFUSED = {
    "TimelineMemoryMiddleware": "build_agent has this memory already; leave it out",
    "SummarizationMiddleware": "it replaces the conversation, which build_agent keeps in turns; say with `buffer=` "
    "which turns the prompt has, such as LastTurns(6)",
}
ELSEWHERE = "take langchain's create_agent with TimelineMemoryMiddleware, where it works"
"""Ends what is said of a middleware that is refused."""


def overrides(middleware: AgentMiddleware[Any, Any], hook: str) -> bool:
    """Whether a middleware has a hook, for sync or async agents."""
    from langchain.agents.middleware import AgentMiddleware

    return any(getattr(type(middleware), name) is not getattr(AgentMiddleware, name) for name in (hook, f"a{hook}"))


def check_middleware(middleware: Sequence[Any], taken: Collection[str]) -> None:
    """Refuse what cannot work in an agent of `build_agent`.

    Args:
        middleware: What is given.
        taken: Names that the agent has given already.

    Raises:
        DeclarationError: It names the middleware, and what to do.
    """
    if not middleware:
        return
    from langchain.agents.middleware import AgentMiddleware

    for each in middleware:
        if not isinstance(each, AgentMiddleware):
            raise DeclarationError(
                f"middleware: got {each!r:.80}; expected an instance of LangChain's AgentMiddleware, such as "
                "ModelRetryMiddleware()."
            )
        for kind in type(each).__mro__:
            if kind.__name__ in _REFUSED:
                raise DeclarationError(
                    f"middleware: {each.name} does not work in build_agent: {_REFUSED[kind.__name__]}."
                )
        if getattr(each, "interrupt_mode", "") == "per_call":
            raise DeclarationError(
                f"middleware: {each.name}: interrupt_mode='per_call' stops in wrap_tool_call, and tools that had been "
                "called beside it would be called again. Take interrupt_mode='batched'."
            )
        for name in _channels_of(each):
            if name in taken:
                raise DeclarationError(
                    f"middleware: {each.name} has a channel {name!r} in its state_schema, and the agent has something "
                    f"of that name already. Rename it, or {ELSEWHERE}."
                )
    names = [each.name for each in middleware]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DeclarationError(f"middleware: {twice[0]} is there twice. Give one of them another `name`.")


def channels_of(middleware: Sequence[AgentMiddleware[Any, Any]]) -> dict[str, Any]:
    """Return the fields that a state needs for its middleware, as `create_model` takes them; None: nothing written."""
    fields: dict[str, Any] = {}
    for each in middleware:
        fields |= {name: (hint, None) for name, hint in _channels_of(each).items()}
    return fields | ({"jump_to": (Annotated[Any, EphemeralValue(Any)], None)} if middleware else {})


def nodes_of(middleware: Sequence[AgentMiddleware[Any, Any]], hook: Hook) -> list[str]:
    """Return the names of the nodes of a hook, in the order in which they run."""
    names = [f"{each.name}.{hook}" for each in middleware if overrides(each, hook)]
    return names if hook.startswith("before") else names[::-1]


def hook_node(middleware: AgentMiddleware[Any, Any], hook: Hook) -> Callable[[Any, Runtime[Any]], Awaitable[JSON]]:
    """Make the node of a hook."""

    async def run(state: Any, runtime: Runtime[Any]) -> JSON:
        with unstreamed():
            update = await _call(middleware, hook, values_of(state), runtime)
        check_update(update, state, f"{middleware.name}.{hook}")
        return dict(update or {})

    run.__name__ = f"{middleware.name}.{hook}"
    return run


def values_of(state: TurnState) -> JSON:
    """Return the state as middleware reads it: a mapping by channel, without those that nobody has written."""
    values = {name: getattr(state, name) for name in type(state).model_fields}
    values = {name: value.as_json() if isinstance(value, Notebook) else value for name, value in values.items()}
    return {name: value for name, value in values.items() if value is not None and name != "jump_to"}


def _channels_of(middleware: AgentMiddleware[Any, Any]) -> dict[str, Any]:
    hints = get_type_hints(middleware.state_schema, include_extras=True)
    return {name: _hint(hint) for name, hint in hints.items() if name not in _OWN}


def _hint(hint: Any) -> Any:
    """Return the type of a channel as a state declares it: what middleware writes there is its own business."""
    while get_origin(hint) in (Required, NotRequired, ReadOnly):
        hint = get_args(hint)[0]
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    reduces = bool(extras) and callable(extras[-1]) and not isinstance(extras[-1], type)
    annotated, unchecked = cast("Any", Annotated), cast("Any", SkipValidation)  # mypy reads only what is written out
    return annotated[unchecked[kind] if reduces else Any, *extras] if extras else Any


async def _call(middleware: AgentMiddleware[Any, Any], hook: str, values: JSON, runtime: Runtime[Any]) -> Any:
    from langchain.agents.middleware import AgentMiddleware

    name = f"a{hook}"
    if getattr(type(middleware), name) is not getattr(AgentMiddleware, name):
        return await getattr(middleware, name)(values, runtime)
    return await asyncio.to_thread(getattr(middleware, hook), values, runtime)


def check_update(update: Any, state: Any, hook: str) -> None:
    """Refuse what would break the agent's turns, before it is saved.

    Raises:
        DeclarationError: It names the hook, and what it may do.
    """
    if update is None:
        return
    if isinstance(update, Command) or not isinstance(update, Mapping):
        raise DeclarationError(f"{hook} returned {update!r:.80}; expected a mapping of channels, or None.")
    open_to_all = {"messages", "notices", "jump_to", *state.PAGES, *channels_of(state.AGENT.middleware)}
    if broken := sorted((type(state).model_fields.keys() & update.keys()) - open_to_all):
        raise DeclarationError(f"{hook} writes the channel {broken[0]!r}, which the agent alone writes.")
    written = update.get("messages", [])
    written = written if isinstance(written, list) else [written]
    known = {message.id: message for message in state.messages}
    _, current = split_turns(state.messages, state.turn)[-1]
    removable = {message.id for message in current if not isinstance(message, HumanMessage)}
    for message in written:
        if isinstance(message, RemoveMessage) and message.id not in removable:
            raise DeclarationError(
                f"{hook} removes messages of earlier turns, or the person's; build_agent keeps the conversation in "
                f"whole turns. Say with `buffer=` which turns the prompt has, or {ELSEWHERE}."
            )
        if isinstance(message, HumanMessage) and message.id not in known:
            raise DeclarationError(
                f"{hook} adds a message in the person's name, which would begin another turn. Write an AIMessage, or "
                "change what the model reads in wrap_model_call."
            )


@contextmanager
def with_config(config: RunnableConfig) -> Iterator[None]:
    """Run what is done in here with a config."""
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


@contextmanager
def unstreamed() -> Iterator[None]:
    """Keep what middleware asks a model of its own out of the stream of the reply."""
    config = ensure_config()
    with with_config({**config, "tags": [*(config.get("tags") or []), TAG_NOSTREAM]}):
        yield

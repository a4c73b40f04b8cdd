"""Agents of a team: each has its own conversation, and what they share are notebooks in the parent graph's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime
from langgraph.types import Command

from graphs.errors import InputError
from notebooks import difference

JSON = dict[str, Any]


def as_node(agent: Any) -> RunnableLambda[Any, Any]:
    """Make a compiled agent a node of a parent graph that shares notebooks with it.

    The parent has the channel `messages`, and one for each notebook in the agent's `shared`, by its channel's name:
    `Annotated[TicketNotebook, patches(TicketNotebook, bounded=False)]`. The agent is given the person's newest message
    and the shared pages as they are. The node returns what the agent said, and of each shared page the `difference`
    that the agent made: what others have written meanwhile, or write at the same time, is kept, and counts add up.

    An agent that hands over ends its own turn first, with its notes taken; then the parent goes on at the other's node,
    in the same step of the conversation.

    Args:
        agent: `build_agent(…).compile(…)`. With `checkpointer=True` it remembers its own conversation under the
            parent's thread; without, it begins anew in each call, and may run many times at once.
    """
    shared = {page.channel(): page for page in agent.builder.state_schema.AGENT.shared}

    def given(state: Any) -> tuple[JSON, JSON]:
        pages = {channel: page.load(_of(state, channel)).as_json() for channel, page in shared.items()}
        return {"messages": [_newest(_of(state, "messages"))], "handed": pages}, pages

    def came_of(before: JSON, after: Mapping[str, Any]) -> Any:
        patches = {
            channel: difference(page, before[channel], page.load(after[channel]).as_json())
            for channel, page in shared.items()
        }
        said = [after["messages"][-1]] if after["messages"][-1].type == "ai" else []
        update = {"messages": said, **{channel: patch for channel, patch in patches.items() if patch}}
        return Command(update=update, goto=after["handover"]) if after.get("handover") else update

    def run(state: Any, config: RunnableConfig) -> Any:
        message, before = given(state)
        return came_of(before, agent.invoke(message, config))

    async def arun(state: Any, config: RunnableConfig) -> Any:
        message, before = given(state)
        return came_of(before, await agent.ainvoke(message, config))

    return RunnableLambda(run, arun, name=agent.name)


def _newest(messages: Any) -> HumanMessage:
    """Return the person's newest message, under an id that is the same if the node is run again, and only then.

    Two agents may hand a person to and fro; each time it is a turn of its own.
    """
    found = next((message for message in reversed(messages or []) if isinstance(message, HumanMessage)), None)
    if found is None:
        raise InputError("There is no message of role 'user' to answer. Send one.")
    info = get_runtime().execution_info
    return found.model_copy(update={"id": f"{found.id}@{info.checkpoint_id}" if info and info.checkpoint_id else None})


def _of(state: Any, channel: str) -> Any:
    return state.get(channel) if isinstance(state, Mapping) else getattr(state, channel)

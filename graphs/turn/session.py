"""Sessions: a new thread on a campaign goes on from the campaign's head.

The head is what the last finished turn left: pages, summary, timeline. It is one item of the store; whoever finishes a
turn moves it. A thread that begins takes it over as its past; two threads that go on from one head part at their first
turn, because the turn claims its place (`questbook.memory.timeline.timeline`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.errors import PastUnknownError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.turns import ASIDE
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import Segment

JSON = dict[str, Any]
SettingsT = TypeVar("SettingsT", bound=Settings)

PASTS = "pasts"
"""Where is kept what each thread took over when it began, by its id."""

_KEY = "head"


def head_op(state: TurnState, timeline: list[Segment], context: Settings, thread: str | None) -> PutOp:
    """Make the write that moves the campaign's head to where this turn ends."""
    value = {
        "thread": thread,
        "turn": state.turn,
        "timeline": [list(segment) for segment in timeline],
        **state.carried(),
    }
    return PutOp(campaign_namespace(context.user, context.campaign, "head"), _KEY, value, index=False)


async def head_of(store: BaseStore, context: Settings) -> JSON | None:
    """Return the campaign's head; None if no turn of it was finished."""
    head = await store.aget(campaign_namespace(context.user, context.campaign, "head"), _KEY)
    return head.value if head else None


async def past_of(store: BaseStore, context: Settings, thread: str) -> JSON | None:
    """Return the head that a thread took over when it began; None if it took over none."""
    past = await store.aget(campaign_namespace(context.user, context.campaign, PASTS), thread)
    head: JSON | None = past.value["head"] if past else None
    return head


async def move_head(state: TurnState, store: BaseStore, context: Settings, thread: str | None) -> None:
    """Move the campaign's head to a state that a person has gone to, so that a new thread goes on from there.

    Where nothing has begun there is no past to take over: a new thread begins anew.
    """
    if state.begun:
        await store.abatch([head_op(state, list(state.timeline), context, thread)])
    else:
        await store.adelete(campaign_namespace(context.user, context.campaign, "head"), _KEY)


async def join(state: TurnState, runtime: Runtime[SettingsT], recap: Callable[[JSON], str]) -> JSON:
    """Return the channels with which a new thread takes over the campaign's past; nothing if there is none.

    What the past of a thread is, is decided once: gone back to its first message, a thread must not take over the head
    that its own abandoned future has left.

    Args:
        state: The thread's state.
        runtime: The run's.
        recap: Tells a person what the head says; "" tells nothing.

    Raises:
        PastUnknownError: The store cannot say whether there is a past.
    """
    if state.turn or state.timeline or runtime.store is None:
        return {}
    try:
        past = await _past(runtime.store, runtime)
    except Exception as error:  # any store may stand behind this; to begin anew instead would part the campaign
        raise PastUnknownError(
            f"Whether campaign {runtime.context.campaign!r} has a past cannot be read from the store: {error} "
            "The message is kept; mend the store and run the turn again."
        ) from error
    if past is None:
        return {}
    told = recap(past)
    return {
        "turn": past["turn"],
        "timeline": past["timeline"],
        "remembered_through": past["turn"],
        **{name: past[name] for name in (*state.CARRIED, *state.PAGES) if name in past},
        **({"messages": [AIMessage(told, name=ASIDE)]} if told else {}),
    }


async def _past(store: BaseStore, runtime: Runtime[SettingsT]) -> dict[str, Any] | None:
    """Return the head that this thread goes on from, and keep it for when its first message is run again."""
    campaign = (runtime.context.user, runtime.context.campaign)
    pasts = campaign_namespace(*campaign, PASTS)
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    if thread and (known := await store.aget(pasts, thread)):
        found: dict[str, Any] | None = known.value["head"]
        return found
    head = await head_of(store, runtime.context)
    if thread:
        await store.aput(pasts, thread, {"head": head}, index=False)
    return head

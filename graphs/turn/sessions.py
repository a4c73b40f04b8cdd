"""Sessions: a new thread on a campaign goes on from the campaign's head.

The head is what the last finished turn left: pages, summary, timeline. It is one item of the store; each finished turn
moves it. A new thread takes it over as its past. Two threads that go on from one head part at their first turn, because
the turn claims its place (`questbook.memory.timeline`).

Of a machine whose memories are not a campaign's (`questbook.graphs.turn.scope`), a new thread takes over the pages of
scope campaign alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.errors import PastUnknownError, SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.beginning import has_gone_back
from questbook.graphs.turn.scope import HEAD, run_thread
from questbook.graphs.turn.shared_pages import move_ops
from questbook.graphs.turn.state import TurnState
from questbook.memory.buffer.turns import ASIDE
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON

SettingsT = TypeVar("SettingsT", bound=Settings)

PASTS = "pasts"
"""Last label of the namespace that keeps what each thread took over when it began, by the thread's id."""

_PAGES = "pages"  # the key where only pages are a campaign's


def head_ops(state: TurnState, timeline: Sequence[Segment], settings: Settings, thread: str | None) -> list[PutOp]:
    """Make the write that moves the campaign's head to where this turn ends; none if nothing is a campaign's."""
    if not _has_head(state):
        return []
    value = {
        "machine": state.MACHINE,
        "thread": thread,
        "turn": state.turn,
        "timeline": [list(segment) for segment in timeline],
        **state.head_fields(),
    }
    return [PutOp(settings.campaign_namespace(HEAD), _key(state), value, index=False)]


async def head_of(store: BaseStore, settings: Settings, key: str = HEAD) -> JSON | None:
    """Return the campaign's head; None if no turn of it was finished."""
    head = await store.aget(settings.campaign_namespace(HEAD), key)
    return head.value if head else None


async def past_of(store: BaseStore, settings: Settings, thread: str) -> JSON | None:
    """Return the head that a thread took over when it began; None if it took over none."""
    past = await store.aget(settings.campaign_namespace(PASTS), thread)
    head: JSON | None = past.value["head"] if past else None
    return head


async def move_head(state: TurnState, store: BaseStore, settings: Settings, thread: str | None) -> None:
    """Move the campaign's head to a state that a person has gone to, so that a new thread goes on from there.

    A state in which nothing has begun has no past: the head is removed, and a new thread begins the campaign again.
    """
    if thread:
        await put_all(store, await move_ops(state, store, settings, thread))
    if state.has_past:
        await put_all(store, head_ops(state, state.timeline, settings, thread))
    elif _has_head(state):
        await store.adelete(settings.campaign_namespace(HEAD), _key(state))


async def join(state: TurnState, runtime: Runtime[SettingsT], recap: Callable[[JSON], str] | None = None) -> JSON:
    """Return the channels with which a new thread takes over the campaign's past; {} if there is none.

    The past of a thread is decided once: gone back to its first message, a thread must not take over the head that its
    own abandoned future has left. `recap` makes a text of the head that opens the thread; "": none.

    Raises:
        PastUnknownError: The store cannot say whether there is a past.
        SettingsError: The campaign is another machine's.
    """
    if state.turn or state.timeline or runtime.store is None or not _has_head(state):
        return {}
    try:
        past = await _past(state, runtime.store, runtime)
    except Exception as error:  # any store may be behind this; to start a new story instead would split the campaign
        raise PastUnknownError(
            f"Whether campaign {runtime.context.campaign!r} has a past cannot be read from the store: {error} "
            "The message is kept; mend the store and run the turn again."
        ) from error
    if past is None:
        return {}
    if (owner := past.get("machine", state.MACHINE)) != state.MACHINE:
        raise SettingsError(
            f"Campaign {runtime.context.campaign!r} belongs to {owner}, and {state.MACHINE} cannot go on with it. "
            "Nothing was changed; name another campaign."
        )
    if state.SCOPE != "campaign":
        return {name: past[name] for name in state.pages_of("campaign") if name in past}
    text = recap(past) if recap else ""
    return {
        "turn": past["turn"],
        "timeline": past["timeline"],
        "remembered_through": past["turn"],
        **{name: past[name] for name in (*state.CARRIED, *state.pages_of("campaign")) if name in past},
        **({"messages": [AIMessage(text, name=ASIDE)]} if text else {}),
    }


def _has_head(state: TurnState) -> bool:
    return state.SCOPE == "campaign" or bool(state.pages_of("campaign"))


def _key(state: TurnState) -> str:
    return HEAD if state.SCOPE == "campaign" else _PAGES


async def _past(state: TurnState, store: BaseStore, runtime: Runtime[SettingsT]) -> JSON | None:
    """Return the head that this thread goes on from, and keep it for when its first message is run again."""
    pasts = runtime.context.campaign_namespace(PASTS)
    thread = run_thread(runtime)
    kept = await store.aget(pasts, thread) if thread else None
    if thread and kept is not None:
        checkpoint = kept.value.get("checkpoint")
        if not checkpoint or await has_gone_back(thread, checkpoint):  # else its checkpoints are gone: it begins again
            past: JSON | None = kept.value["head"]
            return past
    head = await head_of(store, runtime.context, _key(state))
    if thread:
        info = runtime.execution_info
        began = {"head": head, "checkpoint": info.checkpoint_id if info else ""}
        await put_all(store, [PutOp(pasts, thread, began, index=False)])
    return head

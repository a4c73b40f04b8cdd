"""Sessions: a new thread on a campaign goes on from the campaign's head.

The head is what the last finished turn left: pages, summary, timeline. It is one item of the store; whoever finishes a
turn moves it. A thread that begins takes it over as its past; two threads that go on from one head part at their first
turn, because the turn claims its place (`memory.timeline`).
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.state import DungeonState
from graphs.errors import PastUnknownError
from graphs.player_view import PlayerView
from memory.buffer import ASIDE
from memory.namespaces import campaign_namespace
from memory.timeline import Segment

_KEY = "head"


def head_op(state: DungeonState, timeline: list[Segment], context: Context, thread: str | None) -> PutOp:
    """Make the write that moves the campaign's head to where this turn ends."""
    value = {
        "thread": thread,
        "turn": state.turn,
        "line": state.line,
        "timeline": [list(segment) for segment in timeline],
        "summary": state.summary,
        "character": state.character.as_json(),
        "quest": state.quest.as_json(),
        "noted_through": state.noted_through,
        "facts": state.facts,  # not in the store yet: a thread that goes on from here writes them, too
        "unreflected": state.unreflected,
    }
    return PutOp(campaign_namespace(context.user, context.campaign, "head"), _KEY, value, index=False)


async def move_head(state: DungeonState, store: BaseStore, context: Context, thread: str | None) -> None:
    """Move the campaign's head to a state that a person has gone to, so that a new thread goes on from there.

    Before the character is complete there is no past to take over: a new thread begins with the interview.
    """
    if state.character.complete:
        await store.abatch([head_op(state, list(state.timeline), context, thread)])
    else:
        await store.adelete(campaign_namespace(context.user, context.campaign, "head"), _KEY)


async def join(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Return the channels with which a new thread takes over the campaign's past; nothing if there is none.

    What the past of a thread is, is decided once: gone back to its first message, a thread must not take over the head
    that its own abandoned future has left.
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
    recap = recap_of(PlayerView.of(past))
    return {
        "turn": past["turn"],
        "line": past["line"],
        "timeline": past["timeline"],
        "summary": past["summary"],
        "character": past["character"],
        "quest": past["quest"],
        "noted_through": past["turn"],
        "remembered_through": past["turn"],
        "facts": past.get("facts", []),
        "unreflected": past.get("unreflected", 0),
        "messages": [AIMessage(recap, name=ASIDE)],
    }


async def _past(store: BaseStore, runtime: Runtime[Context]) -> dict[str, Any] | None:
    """Return the head that this thread goes on from, and keep it for when its first message is run again."""
    campaign = (runtime.context.user, runtime.context.campaign)
    pasts = campaign_namespace(*campaign, "pasts")
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    if thread and (known := await store.aget(pasts, thread)):
        found: dict[str, Any] | None = known.value["head"]
        return found
    head = await store.aget(campaign_namespace(*campaign, "head"), _KEY)
    if thread:
        await store.aput(pasts, thread, {"head": head.value if head else None}, index=False)
    return head.value if head else None


def recap_of(seen: PlayerView) -> str:
    """Tell a player where the story stands: the summary, the open quests, the last scene."""
    view = seen.quest
    open_quests = [
        f"{title}: {entry['notes']}" if entry.get("notes") else title
        for title, entry in view.get("quests", {}).items()
        if entry.get("status") == "open"
    ]
    where = (
        " ".join(part for part in (view["location"], _when(view.get("clock", {}))) if part)
        if "location" in view
        else ""
    )
    lines = [
        seen.summary,
        f"Open: {'; '.join(open_quests)}" if open_quests else "",
        f"Now: {view['scene']}" if view.get("scene") else "",
        f"You are at {where}." if where else "",
    ]
    told = "\n\n".join(line for line in lines if line)
    return f"**Previously on…**\n\n{told}" if told else "**Previously on…** nothing yet: the story is about to begin."


def _when(clock: dict[str, Any]) -> str:
    parts = [f"day {clock['day']}" if "day" in clock else "", clock.get("time", "")]
    told = ", ".join(part for part in parts if part)
    return f"({told})" if told else ""

"""Scopes: whose the memories of a machine are, and with which timeline it looks into the store.

"campaign": a new thread goes on from the campaign's head (`questbook.graphs.turn.sessions`). "thread": a new thread
begins with nothing. "user": a new thread begins with no past of its own, and sees what the user's other threads know
(`questbook.memory.timeline.timeline.UserTimeline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.settings import Settings
from questbook.graphs.turn.state import TurnState
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import Segment, UserTimeline

HEADS = "heads"
"""Last label of the namespace of the heads of a user's threads."""
HEAD = "head"
"""Last label of the namespace of the campaign's head, and its key."""


def thread_of(runtime: Runtime[Any], timeline: Sequence[Segment]) -> str:
    """Return the id of the run's thread; without a checkpointer, where each run is one, the branch that it began on."""
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    return thread or (timeline[0][0] if timeline else "")


def sight(state: TurnState, runtime: Runtime[Any], timeline: Sequence[Segment] | None = None) -> Sequence[Segment]:
    """Return the timeline with which a run reads and writes the store.

    Args:
        state: The thread's state.
        runtime: The run's.
        timeline: The thread's timeline; None: the state's.
    """
    segments = state.timeline if timeline is None else timeline
    return timeline_of(state, segments, runtime.context, thread_of(runtime, segments))


def timeline_of(
    state: TurnState, timeline: Sequence[Segment], settings: Settings, thread: str | None
) -> Sequence[Segment]:
    """Return a thread's timeline, which sees the user's other threads too if that is the machine's scope."""
    if state.SCOPE != "user" or isinstance(timeline, UserTimeline):
        return timeline
    return view_of_user(timeline, settings, thread)


def view_of_user(timeline: Sequence[Segment], settings: Settings, thread: str | None) -> UserTimeline:
    """Return a thread's timeline that sees the user's other threads; those of before heads by the campaign's head."""
    heads, head = (campaign_namespace(settings.user, settings.campaign, name) for name in (HEADS, HEAD))
    return UserTimeline(timeline, thread=thread or "", heads=heads, fallback=(head, HEAD))

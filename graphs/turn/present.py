"""What time it is when a turn is played, for what was said "yesterday" or "last session"."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from langgraph.runtime import Runtime

from questbook.graphs.settings import Settings
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.recall.query import Present
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.remember import session_number
from questbook.memory.timeline.timeline import branch_of, record_key

SettingsT = TypeVar("SettingsT", bound=Settings)


async def present_of(
    state: TurnState, runtime: Runtime[SettingsT], now: datetime, *, day: int | None = None
) -> Present:
    """Tell what time it is: the person's own, the story's day, the session that goes on or begins now.

    Args:
        state: The thread's state, its turn opened.
        runtime: The run's.
        now: Real time, in the zone whose midnight changes the day.
        day: Day of the story, if there is one.
    """
    last, past = min(state.turn - 1, state.remembered_through), None
    if last >= 1 and runtime.store is not None:
        exchanges = campaign_namespace(runtime.context.user, runtime.context.campaign, "exchanges")
        past = await runtime.store.aget(exchanges, record_key(branch_of(state.timeline, last), last, "exchange"))
    info = runtime.execution_info
    here = Stamp(thread=(info.thread_id if info else None) or "", said_at=now.isoformat())
    return Present(now, day, session_number(Stamp.from_json(past.value) if past else None, here))

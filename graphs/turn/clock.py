"""The clock in checkpoint ids, and what happens when this computer's clock goes back.

The latest checkpoint of a thread is the one with the greatest id, and an id begins with the time at which it was made.
So that ids grow when the clock goes back, a checkpointer calls `keep_ids_after` whenever a thread is loaded.
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import id as checkpoint_ids

if TYPE_CHECKING:
    from langgraph.runtime import Runtime  # slow to load, and not needed to open a database

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)  # RFC 9562: a UUID of version 6 counts 100 ns from here
_LAST = "_last_v6_timestamp"  # of LangGraph's uuid6, without a public way: it takes an id from no checkpointer
_ONE_SECOND = timedelta(seconds=1)


def keep_ids_after(checkpoint_id: str) -> None:
    """Make ids that this process makes from now on greater than this UUID of version 6; other texts change nothing."""
    ticks, state = _ticks(checkpoint_id), vars(checkpoint_ids)
    if ticks is not None and ticks > (state[_LAST] or 0):
        state[_LAST] = ticks


def time_of(checkpoint_id: str | None) -> datetime | None:
    """Return the time that a checkpoint's id says; None if it says none."""
    ticks = _ticks(checkpoint_id or "")
    return None if ticks is None else _EPOCH + timedelta(microseconds=ticks // 10)


def said_at(checkpoint_id: str | None) -> str:
    """Return when a reply was in a checkpoint, ISO 8601 in UTC: the same if the node is run again, at most now."""
    now = datetime.now(UTC)
    return min(time_of(checkpoint_id) or now, now).isoformat(timespec="seconds")


def clock_problem(runtime: "Runtime[Any]") -> str:
    """Say how far this computer's clock went back since the run's checkpoint; "" if it did not."""
    info = runtime.execution_info
    then, now = time_of(info.checkpoint_id if info else None), datetime.now(UTC)
    if then is None or then - now < _ONE_SECOND:
        return ""
    return (
        f"This computer's clock went back: the game was played at {then:%Y-%m-%d %H:%M:%S} already, and now it is "
        f"{now:%Y-%m-%d %H:%M:%S} (UTC). The order of turns is kept; what is said of their time may be wrong."
    )


def _ticks(checkpoint_id: str) -> int | None:
    try:
        identity = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    return int(identity.hex[:12] + identity.hex[13:16], 16) if identity.version == 6 else None

"""Sessions of a campaign: a new thread takes over its past, and opens with a recap."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.turn.session import head_op, move_head
from questbook.graphs.turn.session import join as join_past

__all__ = ["head_op", "join", "move_head", "recap_of"]


async def join(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Return the channels with which a new thread takes over the campaign's past; nothing if there is none.

    Raises:
        PastUnknownError: The store cannot say whether there is a past.
    """
    joined = await join_past(state, runtime, lambda past: recap_of(PlayerView.of(past)))
    # Turns that were not noted when the head was left are not in this thread, and cannot be noted any more.
    return joined | {"noted_through": joined["turn"]} if joined else {}


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

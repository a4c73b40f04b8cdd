"""remember: write the turn to the semantic store, once."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript
from graphs.dungeon_master.state import DungeonState
from graphs.exchanges import write_turns


async def remember(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Store each turn that is not stored yet as one record: the player's words and the reply together."""

    def content(told: dict[str, Any]) -> dict[str, Any]:
        now = told["turn"] == state.turn
        return {"location": state.quest.location, "noted": state.noted if now else {}}

    turns = transcript(state, state.remembered_through + 1, state.turn)
    return await write_turns(state, runtime, turns, content)

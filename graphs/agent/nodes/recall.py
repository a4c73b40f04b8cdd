"""recall: find what was said before that helps with the message."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.sections import conversation
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.earlier import Recall, earlier_exchanges
from questbook.graphs.turn.turn import notice

_log = logging.getLogger(__name__)


async def recall(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Recall for the turn; if the store fails, the conversation goes on without, and a notice says so."""
    try:
        return {"recalled": await memories_for(state, runtime)}
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the conversation goes on without)
        _log.warning("Nothing was recalled for turn %d: %s", state.turn, error, exc_info=True)
        text = f"Memory could not be searched, so nothing was recalled for this turn. {error}"
        return {"recalled": [], "notices": [notice(state.turn, "recall", text)]}


async def memories_for(state: AgentState, runtime: Runtime[Context]) -> list[dict[str, Any]]:
    """Recall the exchanges that fit the message best and do not stand in the prompt."""
    how = state.AGENT.recall or Recall.of(runtime.context)
    shown = conversation(state, runtime.context)
    return await earlier_exchanges(state, runtime, shown, datetime.now(UTC).astimezone(), how)

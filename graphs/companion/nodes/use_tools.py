"""use_tools: do what the companion asked its tools for."""

from __future__ import annotations

import logging
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import HEARTBEAT, SEARCHES, use
from questbook.graphs.turn.reply import rounds_of, tools_answered
from questbook.graphs.turn.tool_calls import Call, answer, calls_of
from questbook.graphs.turn.turn import notice
from questbook.memory.errors import BadQueryError
from questbook.notebooks import EditError

_MOST_CALLS = 10
_log = logging.getLogger(__name__)


async def use_tools(state: CompanionState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Answer each call of the last message, in order; one that does not fit changes nothing and is told why."""
    message: Any = state.messages[-1]  # an AIMessage that calls tools: `route_tools` leads here
    calls = calls_of(message)
    before, results, notices = state.core, list[ToolMessage](), list[dict[str, Any]]()
    for number, call in enumerate(calls):
        try:
            if number >= _MOST_CALLS:
                raise EditError(f"That is more than {_MOST_CALLS} calls at once; this one was not done.")
            used = await use(call, state, runtime)
        except (EditError, BadQueryError) as error:
            results.append(answer(call, str(error), ok=False))
            continue
        except Exception as error:  # noqa: BLE001 (any store may stand behind this; the talk goes on without)
            _log.warning("%s failed in turn %d: %s", call.name, state.turn, error, exc_info=True)
            notices.append(notice(state.turn, "use_tools", f"{call.name} could not be done. {error}"))
            results.append(answer(call, f"{call.name} failed, and nothing was changed: {error!s:.1000}", ok=False))
            continue
        results.append(answer(call, used.text))
        state = state.model_copy(update={"core": used.core})
        if used.archived:
            archived = [*state.archived, used.archived]
            state = state.model_copy(update={"archived": archived, "archive_count": state.archive_count + 1})
    spent = rounds_of(state) >= runtime.context.max_tool_rounds
    again = _goes_on(state, calls, results, spent=spent)
    return {
        "messages": tools_answered(message, results, again=again, spent=spent),
        "core": state.core.patch_from(before),
        "archived": state.archived,
        "archive_count": state.archive_count,
        "notices": notices,
    }


def _goes_on(state: CompanionState, calls: list[Call], results: list[ToolMessage], *, spent: bool) -> bool:
    """Whether the model is asked again: it has said nothing yet, searched, failed with a call, or wishes to go on."""
    if not state.messages[-1].text.strip():
        return True
    failed = any(result.status == "error" for result in results)
    wanted = any(call.name in SEARCHES or call.args.get(HEARTBEAT) is True for call in calls)
    return (failed or wanted) and not spent

"""reflect: when enough has been noted since the last time, look back on it, in the turn or in the background.

The channel `unreflected` says when a reflection may be due, so that an ordinary turn asks no store; whether it is, the
store says. The channel goes back to 0 only after a reflection's writes.
"""

from __future__ import annotations

import logging
import uuid
import warnings
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.reflect.context import Context as ReflectContext
from questbook.graphs.reflect.context import namespaces_of
from questbook.graphs.reflect.graph import build_graph
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.upkeep import GaveWay
from questbook.memory.facts.reflection import find_backlog
from questbook.types import JSON

_QUIET_SECONDS = 5  # that a run in the background waits for the player's next turn
# A reflection that failed is tried again after another fifth of what was due has been noted. What waits is read each
# time, so a model that can never reflect is asked less and less often.
_AGAIN = 5
# LangGraph warns about a graph that has no checkpointer by choice; see `reflect` for why it gets a durability anyway.
warnings.filterwarnings("ignore", "`durability` has no effect", UserWarning, r"langgraph\.pregel\.main")
_inline: Any = build_graph().compile(checkpointer=False, name="reflect")
_log = logging.getLogger(__name__)


def reflection_due(state: DungeonState, context: Context) -> bool:
    """Whether facts of enough importance were noted since the last reflection."""
    return context.reflection != "off" and state.unreflected >= context.reflection_importance


async def reflect(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Reflect, or have it done in the background on LangGraph Server.

    If it fails, nothing that was noted is lost, a notice says so, and the reflection is tried again later; by the next
    turn, if the player's next message comes meanwhile.
    """
    notices: list[JSON] = []
    start = {"timeline": state.timeline, "turn": state.turn, "through": _through(state)}
    if runtime.context.reflection == "background":
        try:
            if runtime.server_info is not None:
                return await _in_background(start, state, runtime)
            reason = "this is no LangGraph Server"
        except Exception as error:  # noqa: BLE001 (a server's client has errors of many kinds; here it works as well)
            reason = f"the server did not take the run. {error}"
        _log.warning("Turn %d: no reflection in the background, because %s", state.turn, reason)
        text = f"The reflection was made at the end of the turn, not in the background, because {reason}"
        notices.append(notice(state.turn, "reflect", text))
    try:
        # LangGraph would pass on the turn's "sync", and then wait for a checkpoint that this graph does not make.
        result = await _inline.ainvoke(start, context=runtime.context, durability="async")
    except GaveWay:
        return {"notices": notices}
    except Exception as error:  # noqa: BLE001 (the turn is played, even if the reflection fails)
        _log.warning("Turn %d was not reflected on: %s", state.turn, error, exc_info=True)
        text = f"The reflection was not finished; nothing is lost, and it will be taken up again. {error}"
        result = {"failed": text, "notices": [notice(state.turn, "reflect", text)]}
    left = int(result.get("pending", 0))
    if result.get("failed"):
        most = runtime.context.reflection_importance
        left = min(state.unreflected, most - max(1, max(most, left) // _AGAIN))
    return {"unreflected": left, "notices": [*notices, *result.get("notices", [])]}


async def _in_background(start: JSON, state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Start a run of `reflect` on a thread of its own, unless one waits or runs, or nothing is due any more.

    The notices of the last run, above all that it failed, are in its thread, where nobody looks. They are shown here,
    once: by the first turn after the run's end that may start the next one.
    """
    namespaces = namespaces_of(runtime.context)
    own = runtime.execution_info.thread_id if runtime.execution_info else None
    thread = str(uuid.uuid5(uuid.NAMESPACE_URL, f"questbook:reflect:{own or namespaces.facts}"))
    async with get_client() as client:
        await client.threads.create(thread_id=thread, if_exists="do_nothing", graph_id="reflect")
        for status in ("pending", "running"):
            if await client.runs.list(thread, status=status, limit=1):
                return {}
        last = next((run["run_id"] for run in await client.runs.list(thread, limit=1)), "")  # the newest comes first
        new = last != state.reflection_told
        notices = _run_notices(await client.threads.get(thread), state.turn) if new else []
        if runtime.store is not None:
            pending = await find_backlog(
                runtime.store, namespaces.facts, namespaces.reflections, state.timeline, start["through"]
            )
            if pending.importance < runtime.context.reflection_importance:
                return {"unreflected": pending.importance, "reflection_told": last, "notices": notices}
        await client.runs.create(
            thread,
            "reflect",
            input=start,
            context=runtime.context.model_dump(mode="json", include=set(ReflectContext.model_fields)),
            after_seconds=_QUIET_SECONDS,
            multitask_strategy="enqueue",
        )
    return {"reflection_told": last, "notices": notices}


def _run_notices(thread: Mapping[str, Any], turn: int) -> list[JSON]:
    """Return the notices of the last run on a reflection's thread, as the server has it."""
    values = thread.get("values")
    values = values if isinstance(values, Mapping) else {}
    notices = [entry for entry in values.get("notices") or [] if entry["turn"] == values.get("turn")]
    if thread.get("status") == "error":
        text = "The reflection in the background broke off; nothing is lost, and it will be taken up again."
        notices.append(notice(turn, "reflect", text))
    return notices


def _through(state: DungeonState) -> int:
    """Return the last turn whose facts are all in the store: what waits to be written is for the next reflection."""
    return min([state.turn, *(int(entry["turns"][0]) - 1 for entry in state.facts)])

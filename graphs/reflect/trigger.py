"""When a machine reflects: enough was noted since the last time. Then its node `reflect` looks back on it.

In the turn, or in the background.

The channel `unreflected` says when a reflection may be due, so that an ordinary turn asks no store; whether it is, the
store says. The channel goes back to 0 only after a reflection's writes.
"""

from __future__ import annotations

import logging
import uuid
import warnings
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from questbook.graphs.reflect.context import Context, MachineContext, namespaces_of
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
_inline: Any = build_graph().compile(checkpointer=False)
_log = logging.getLogger(__name__)
ContextT = TypeVar("ContextT", bound=MachineContext)


class Reflecting(Protocol):
    """What a reflection needs of a machine's state."""

    @property
    def turn(self) -> int:
        """Number of the current turn."""

    @property
    def timeline(self) -> list[tuple[str, int]]:
        """The branches that the checkpoint descends from."""

    @property
    def unreflected(self) -> int:
        """Importance of the facts that were written since the last reflection."""

    @property
    def reflection_told(self) -> str:
        """Id of the last run in the background whose notices were shown."""

    @property
    def facts_through(self) -> int:
        """Last turn whose facts are all in the store: what is not there yet is for the next reflection."""


def reflection_due(state: Reflecting, context: MachineContext) -> bool:
    """Whether facts of enough importance were noted since the last reflection."""
    return context.reflection != "off" and state.unreflected >= context.reflection_importance


async def reflect(state: Reflecting, runtime: Runtime[ContextT]) -> JSON:
    """Reflect, or have it done in the background on LangGraph Server.

    If it fails, nothing that was noted is lost, a notice says so, and the reflection is tried again later; by the next
    turn, if the player's next message comes meanwhile.
    """
    notices: list[JSON] = []
    start = {"timeline": state.timeline, "turn": state.turn, "through": state.facts_through}
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


async def _in_background(start: JSON, state: Reflecting, runtime: Runtime[ContextT]) -> JSON:
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
            context=runtime.context.model_dump(mode="json", include=set(Context.model_fields)),
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

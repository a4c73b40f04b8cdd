"""When a machine reflects: enough was noted since the last time. Then its node `reflect` looks back on it.

The channel `unreflected` says when a reflection may be due, so that an ordinary turn asks no store; whether it is, the
store says. The channel goes back to 0 only after a reflection's writes.
"""

import logging
import uuid
from collections.abc import Awaitable
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import Runtime

from questbook.graphs.reflect.background import NoBackgroundError, queue_of
from questbook.graphs.reflect.graph import build_graph
from questbook.graphs.reflect.nodes import MOST_TURNS, backlog_of, noted_through
from questbook.graphs.turn import facts
from questbook.graphs.turn.api_server import DURABILITY
from questbook.graphs.turn.node import GaveWay
from questbook.graphs.turn.recall import FACTS
from questbook.graphs.turn.scope import run_thread
from questbook.graphs.turn.state import FactState, Notice, ReflectingState, failure_notice, notice
from questbook.types import JSON

# A reflection that failed is tried again after another fifth of what was due has been noted. What waits is read each
# time, so a model that can never reflect is asked less and less often.
_AGAIN = 5
_inline: Any = build_graph().compile(checkpointer=False)
_log = logging.getLogger(__name__)


async def reflect(state: ReflectingState, runtime: Runtime[Any]) -> JSON:
    """Reflect, or have it done in the background; if it fails, a notice says so."""
    notices: list[Notice] = []
    start = _start(state, runtime, through=state.learned_through)
    if runtime.context.reflection == "background":
        background = await _background(_begin_run(start, state, runtime))
        if isinstance(background, dict):
            return background
        text = f"The reflection was made at the end of the turn, not in the background, because {background}"
        notices.append(notice(state.turn, "reflect", text))
    try:
        # LangGraph would pass on the turn's "sync", and then wait for a checkpoint that this graph does not make.
        config = get_config()
        config = {**config, "configurable": {**config["configurable"], DURABILITY: "async"}}
        result = await _inline.ainvoke(start, config, context=runtime.context)
    except GaveWay:
        return {"notices": notices}
    except Exception as error:  # noqa: BLE001 (the turn is done, even if the reflection fails)
        text = "The reflection was not finished; nothing is lost, and it will be taken up again."
        result = {"failed": text, "notices": [failure_notice(state.turn, "reflect", text, error)]}
    left = int(result.get("pending", 0))
    if result.get("failed"):
        most = runtime.context.reflection_importance
        left = min(state.unreflected, most - max(1, max(most, left) // _AGAIN))
    return {"unreflected": left, "notices": [*notices, *result.get("notices", [])]}


async def learn(state: FactState, runtime: Runtime[Any]) -> JSON:
    """Note what the turns taught that are not noted yet: now, or in the background, as the setting `noting` says.

    There a run of `reflect` notes it and reflects on it, and `facts_through` follows next turn. Where there is no
    background it is `turn.facts.learn`, and a notice says so.
    """
    context, store = runtime.context, runtime.store
    if context.noting != "background" or store is None or state.remembered_through < state.turn:
        return await facts.learn(state, runtime)
    noted = state.facts_through

    async def begin() -> JSON:
        nonlocal noted
        due = range(max(noted + 1, state.turn - MOST_TURNS), state.turn + 1)
        noted = max(noted, await noted_through(store, context, state.timeline, due))
        start = _start(state, runtime, note_from=noted + 1, notes_only=context.reflection == "off")
        return {"facts_through": noted, **await _begin_run(start, state, runtime)}

    background = await _background(begin())
    if isinstance(background, dict):
        return background
    text = f"What was said was noted at the end of the turn, not in the background, because {background}"
    update = await facts.learn(state.model_copy(update={"facts_through": noted}), runtime)
    notices = [notice(state.turn, "learn", text), *update.get("notices", [])]
    return {"facts_through": noted, **update, "notices": notices}


async def _background(begin: Awaitable[JSON]) -> JSON | str:
    """Begin a run in the background; return the channels to write, or why there is none."""
    try:
        return await begin
    except NoBackgroundError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 (a server's client has errors of many kinds; here it works as well)
        reason = f"the run was not taken. {error}"
    _log.warning("Nothing is done in the background, because %s", reason)
    return reason


def _start(state: ReflectingState, runtime: Runtime[Any], **given: Any) -> JSON:
    """Return the input of a run: all of it, since a thread in the background keeps what it was given before."""
    fields: JSON = {"timeline": state.timeline, "turn": state.turn, "through": 0, "note_from": 0, "notes_only": False}
    fields |= {"thread": run_thread(runtime) or "", "of_user": state.SCOPE == "user", "viewer_page": state.VIEWER}
    return fields | given


async def _begin_run(start: JSON, state: ReflectingState, runtime: Runtime[Any]) -> JSON:
    """Start a run of `reflect` on a thread of its own, unless one waits or runs, or nothing is due any more.

    A run that notes facts is started in any case, behind one that waits: it knows of a turn that the other does not.
    The notices of the last run, in whose thread nobody looks, are shown here, once.
    """
    whose = (
        *runtime.context.campaign_namespace(FACTS),
        start["thread"],
    )  # agents of one thread have facts of their own
    thread = str(uuid.uuid5(uuid.NAMESPACE_URL, f"questbook:reflect:{whose}"))
    async with queue_of(runtime) as queue:
        update: JSON = {}
        if (last := await queue.last_run(thread, state.turn)) is not None:
            run, notices = last
            update = {"reflection_told": run, "notices": notices if run != state.reflection_told else []}
        elif not start["note_from"]:
            return {}
        if runtime.store is not None and not start["note_from"]:
            pending = await backlog_of(state.timeline, start["through"], runtime.store, runtime.context)
            if pending.importance < runtime.context.reflection_importance:
                return {"unreflected": pending.importance, **update}
        await queue.begin(thread, start, runtime)
    return update

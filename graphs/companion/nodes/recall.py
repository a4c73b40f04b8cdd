"""recall: open the turn, and find what was said before that helps with it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.ltm import character_memories, ltm_of
from questbook.graphs.companion.sections import conversation
from questbook.graphs.companion.shared import fetch_shared
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.earlier import Recall, earlier_exchanges
from questbook.graphs.turn.session import join
from questbook.graphs.turn.turn import notice, open_turn
from questbook.memory.archive.results import find_timezone
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.recall.age import phrase_age
from questbook.memory.timeline.remember import PAUSE
from questbook.notebooks import CoreNotebook, sections_of

_log = logging.getLogger(__name__)


async def recall(state: CompanionState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Open the turn: take over the past or the configured sections, see what others shared, recall.

    Raises:
        LtmConfigError: The settings of the character's memory are wrong; the message is kept, and the turn can be run
            again.
    """
    began = state.core
    past = await join(state, runtime, lambda _: "")
    core = began if state.turn else CoreNotebook.load(past.pop("core", None) or sections_of(runtime.context.core))
    state = state.model_copy(update={**past, "core": core})
    # Settings that are wrong are told before anything is done with them.
    await ltm_of(runtime.context, runtime.server_info)
    opened = open_turn(state, runtime)
    opened |= _clock(state, runtime.context) if opened["turn"] != state.turn else {}
    now = state.model_copy(update=opened)
    update: dict[str, Any] = {**past, **opened, "recalled": [], "notices": []}
    try:
        core = await fetch_shared(now.core, runtime.store, runtime.context.user)
        update["recalled"] = await memories_for(now, runtime)
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the talk goes on without)
        _log.warning("Nothing was recalled for turn %d: %s", now.turn, error, exc_info=True)
        text = f"Memory could not be searched, so nothing was recalled for this turn. {error}"
        update["notices"] = [notice(now.turn, "recall", text)]
    return update | {"core": core.patch_from(began)}


async def memories_for(state: CompanionState, runtime: Runtime[Context]) -> list[dict[str, Any]]:
    """Recall the exchanges that fit the message best and do not stand in the prompt, as `earlier_exchanges` does.

    With `ltm_config` what the character remembers is recalled in their place (`questbook.graphs.companion.ltm`).
    """
    context = runtime.context
    shown = conversation(state, context)
    if (ltm := await ltm_of(context, runtime.server_info)) is not None:
        query, _ = turn_text(split_turns(state.messages, state.turn)[-1][1])
        return await character_memories(state, runtime, ltm, query, [message.text for message in shown])
    return await earlier_exchanges(
        state, runtime, shown, datetime.now(find_timezone(context.timezone)), Recall.of(context)
    )


def _clock(state: CompanionState, context: Context) -> dict[str, Any]:
    now = datetime.now(UTC)
    began = now.isoformat(timespec="seconds")
    away = phrase_age(state.opened_at, now.astimezone(find_timezone(context.timezone))) if state.opened_at else ""
    goes_on = state.session and now - datetime.fromisoformat(state.opened_at) <= PAUSE
    return {"opened_at": began, "away": away, "session": state.session if goes_on else now.isoformat()}

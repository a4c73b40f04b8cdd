"""How a step of a reflection fails: nothing is written that says it was done, and a person is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.reflect.state import ReflectState
from questbook.graphs.turn.turn import notice

Step = Callable[[ReflectState, Runtime[Context]], Awaitable[dict[str, Any]]]
_log = logging.getLogger(__name__)


def failing(name: str) -> Callable[[Step], Step]:
    """Make a step that ends the reflection, instead of the run that it is part of, if the model or the store fails.

    It may take `update_timeout` seconds.
    """

    def wrap(step: Step) -> Step:
        @wraps(step)
        async def safe(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
            try:
                async with asyncio.timeout(runtime.context.update_timeout):
                    return await step(state, runtime)
            except Exception as error:  # noqa: BLE001 (any model or store may stand behind this; the turn is over)
                reason = str(error) or f"no answer within {runtime.context.update_timeout:g} seconds"
                _log.warning("The reflection of turn %d was not finished: %s", state.turn, reason, exc_info=True)
                text = f"The reflection was not finished; nothing is lost, and it will be taken up again. {reason}"
                return {"failed": reason, "notices": [notice(state.turn, "reflect", f"{name}: {text}")]}

        return safe

    return wrap

"""condense: fold the oldest turns of a full buffer into the running summary."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.model import chat_model
from graphs.dungeon_master.sections import condense_prompt, transcript
from graphs.dungeon_master.state import DungeonState
from graphs.dungeon_master.turn import notice
from graphs.errors import QuestbookError
from graphs.models import ask
from memory.buffer import overflow
from memory.summary import clip, extract

_log = logging.getLogger(__name__)


def leaving(state: DungeonState, context: Context) -> list[tuple[int, list[AnyMessage]]]:
    """Return the turns that must leave the buffer; none leaves before it is noted and remembered."""
    done = min(state.noted_through, state.remembered_through)
    return overflow(state.messages, last_turn=state.turn, budget=context.buffer_tokens, may_leave=done)


async def condense(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Summarise the turns that leave; if the model fails, sentences of theirs stand in, and a notice says so."""
    turns = leaving(state, runtime.context)
    told = transcript(state, turns[0][0], turns[-1][0])
    budget = runtime.context.summary_tokens
    update: dict[str, Any] = {}
    try:
        async with asyncio.timeout(runtime.context.update_timeout):
            model = await chat_model(runtime.context)
            prompt = condense_prompt(state.summary, told, budget)
            reply = await ask(model, prompt, model_name=runtime.context.model, tags=[TAG_NOSTREAM])
        summary = clip(reply.text, budget)
    except (QuestbookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {runtime.context.update_timeout:g} seconds"
        _log.warning("Turns to %d were summarised without the model: %s", turns[-1][0], reason)
        summary = extract(state.summary, [f"{turn['player']}. {turn['reply']}" for turn in told], budget)
        text = f"Older turns were summarised by taking sentences from them, not by the model. {reason}"
        update["notices"] = [notice(state.turn, "condense", text)]
    gone = [RemoveMessage(message.id) for _, turn in turns for message in turn if message.id]
    return update | {"summary": summary, "messages": gone}

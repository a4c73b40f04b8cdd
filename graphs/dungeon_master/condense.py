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
    summary, failure = await fold(state.summary, told, runtime.context)
    update: dict[str, Any] = {"notices": [notice(state.turn, "condense", failure)]} if failure else {}
    gone = [RemoveMessage(message.id) for _, turn in turns for message in turn if message.id]
    return update | {"summary": summary, "messages": gone}


async def fold(summary: str, told: list[dict[str, Any]], context: Context) -> tuple[str, str]:
    """Fold turns, as `transcript` tells them, into a summary.

    Returns:
        The new summary; and, if the model failed and sentences of the turns stand in, a line that says so.
    """
    budget = context.summary_tokens
    try:
        async with asyncio.timeout(context.update_timeout):
            model = await chat_model(context)
            prompt = condense_prompt(summary, told, budget)
            reply = await ask(model, prompt, model_name=context.model, tags=[TAG_NOSTREAM])
        return clip(reply.text, budget), ""
    except (QuestbookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {context.update_timeout:g} seconds"
        _log.warning("Turns to %d were summarised without the model: %s", told[-1]["turn"], reason)
        extracted = extract(summary, [f"{turn['player']}. {turn['reply']}" for turn in told], budget)
        return extracted, f"Older turns were summarised by taking sentences from them, not by the model. {reason}"

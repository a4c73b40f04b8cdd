"""update_state: after the reply, note on the quest's page what changed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.sections import transcript, update_prompt
from graphs.dungeon_master.state import DungeonState
from graphs.errors import QuestbookError
from graphs.model import chat_model
from graphs.models import ask
from graphs.tool_calls import write_page
from graphs.turn import notice
from notebooks import NotebookError, StateNotebook, diff_patch, render_value

_ATTEMPTS = 2
_log = logging.getLogger(__name__)


async def update_state(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the model for a patch of the quest's page that covers every turn not noted yet; no call means no change.

    A patch that does not fit is sent back once with the reason. If it still does not, or the model fails, the page
    stays as it was, a notice says so, and the next turn's update covers this turn too: the reply is never at risk.
    """
    turns = _within(transcript(state, state.noted_through + 1, state.turn), runtime.context.buffer_tokens)
    if not turns:
        return {"noted_through": state.turn, "noted": {}}
    try:
        async with asyncio.timeout(runtime.context.update_timeout):
            page, notes = await _noted(state, turns, runtime.context)
        patch = diff_patch(state.quest.as_json(), page.as_json())
        state.quest.patched(patch)  # the reducer will do the same: nothing may go wrong there
    except (QuestbookError, NotebookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {runtime.context.update_timeout:g} seconds"
        _log.warning("Turn %d was not noted: %s", state.turn, reason)
        text = f"The quest notes were not updated; the next turn will catch up. {reason}"
        return {"notices": [notice(state.turn, "update_state", text)], "noted": {}}
    noted = {"from": turns[0]["turn"], "through": turns[-1]["turn"], "patch": patch}
    update: dict[str, Any] = {"noted_through": turns[-1]["turn"], "noted": noted}
    if patch:
        update["quest"] = patch
    if notes:
        update["notices"] = [notice(state.turn, "update_state", note) for note in notes]
    return update


async def _noted(state: DungeonState, turns: list[dict[str, Any]], context: Context) -> tuple[StateNotebook, list[str]]:
    model = (await chat_model(context)).bind_tools([StateNotebook.tool()])
    prompt, page, notes = update_prompt(state, turns), state.quest, list[str]()
    problems: list[str] = []
    for _ in range(_ATTEMPTS):
        reply = await ask(model, prompt, model_name=context.model, tags=[TAG_NOSTREAM])
        written = write_page(page, reply)
        page, problems = written.page, written.problems
        notes += written.notes
        if not problems:
            return page, notes
        prompt = [*prompt, reply, *written.results]
    raise NotebookError(" ".join(problems))


def _within(turns: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Take the oldest turns that fit in a prompt, at least one: after a long failure, notes catch up in portions."""
    taken: list[dict[str, Any]] = []
    for turn in turns:
        budget -= count_tokens_approximately([render_value(turn)])
        if taken and budget < 0:
            break
        taken.append(turn)
    return taken

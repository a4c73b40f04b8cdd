"""update_state: after the reply, note on the quest's page what changed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.known import known_attributes
from graphs.dungeon_master.note_facts import gather
from graphs.dungeon_master.recall import memories_for
from graphs.dungeon_master.sections import transcript, update_prompt
from graphs.dungeon_master.state import DungeonState
from graphs.errors import QuestbookError
from graphs.model import chat_model
from graphs.models import ask
from graphs.tool_calls import calls_of, write_page
from graphs.turn import notice
from graphs.withheld import on_record
from memory.facts import TOOL as FACTS
from memory.facts import facts_tool
from notebooks import NotebookError, StateNotebook, diff_patch, render_value

_ATTEMPTS = 2
_PROSE = 200  # characters of an answer without a call, up to which it only says that nothing changed
_log = logging.getLogger(__name__)


async def update_state(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the model, once, for a patch of the quest's page and for the facts of every turn not noted yet.

    No call means no change. The facts wait in state until `remember` has written them. A patch that does not fit is
    sent back once with the reason. If it still does not, or the model fails, the page stays as it was, a notice says
    so, and the next turn's update covers this turn too: the reply is never at risk. Of turns that the player asked not
    to be remembered the model is not told.
    """
    due = on_record(transcript(state, state.noted_through + 1, state.turn))
    turns = _within(due, runtime.context.buffer_tokens)
    if not turns:
        return {"noted_through": state.turn, "noted": {}}
    recalled, known, notes = await _known(state, runtime, turns)
    try:
        async with asyncio.timeout(runtime.context.update_timeout):
            page, told, given = await _noted(state, turns, known, runtime.context)
        patch = diff_patch(state.quest.as_json(), page.as_json())
        state.quest.patched(patch)  # the reducer will do the same: nothing may go wrong there
    except (QuestbookError, NotebookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {runtime.context.update_timeout:g} seconds"
        _log.warning("Turn %d was not noted: %s", state.turn, reason)
        text = f"The quest notes were not updated; the next turn will catch up. {reason}"
        return {"notices": [notice(state.turn, "update_state", told) for told in (*notes, text)], "noted": {}}
    gathered = gather(state, turns, given, recalled)
    noted = {"from": turns[0]["turn"], "through": turns[-1]["turn"], "patch": patch}
    if gathered.digest:  # two attempts at a turn that differ in their facts alone are two futures
        noted["facts"] = gathered.digest
    through = state.turn if len(turns) == len(due) else turns[-1]["turn"]  # what is withheld behind them needs no notes
    update: dict[str, Any] = {"noted_through": through, "noted": noted}
    if given:
        update["facts"] = gathered.facts
    if patch:
        update["quest"] = patch
    if notes := [*notes, *told, *gathered.notices]:
        update["notices"] = [notice(state.turn, "update_state", note) for note in notes]
    return update


async def _noted(
    state: DungeonState, turns: list[dict[str, Any]], known: str, context: Context
) -> tuple[StateNotebook, list[str], list[Any]]:
    """Return the page after the patch, notes on it, and the arguments of the calls that handed over facts."""
    model = (await chat_model(context)).bind_tools([StateNotebook.tool(), facts_tool()])
    prompt, page, notes, facts = update_prompt(state, turns, known), state.quest, list[str](), list[Any]()
    problems: list[str] = []
    for _ in range(_ATTEMPTS):
        reply = await ask(model, prompt, model_name=context.model, tags=[TAG_NOSTREAM])
        written = write_page(page, reply, besides=[FACTS])
        page, problems = written.page, written.problems
        notes += written.notes
        calls = calls_of(reply)
        facts += [call.args for call in calls if call.name == FACTS and not call.problem]
        if not calls and (len(reply.text) > _PROSE or "{" in reply.text):
            notes.append("The model answered with prose instead of calling a tool; nothing was noted of it.")
        if not problems:
            return page, notes, facts
        prompt = [*prompt, reply, *written.results]
    unread = [call for call in calls if call.problem]
    if len(unread) == len(problems) and all(call.name == FACTS for call in unread):
        notes.append("The facts that the model sent could not be read; the page's notes stand.")
        return page, notes, facts
    raise NotebookError(" ".join(problems))


async def _known(
    state: DungeonState, runtime: Runtime[Context], turns: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Return what was recalled for the turn, which attributes are known, and what a person should know of that.

    A run that was resumed recalls anew, since no checkpoint holds it.
    """
    recalled = state.recalled or []
    try:
        if state.recalled is None:
            recalled = await memories_for(state, runtime)
        return recalled, await known_attributes(state, runtime, turns, recalled), []
    except Exception as error:  # noqa: BLE001 (any store may stand behind this; the turn can be noted without)
        _log.warning("What is known was not looked up for turn %d: %s", state.turn, error, exc_info=True)
        return recalled, "", [f"Memory could not be searched for what is known, so it may be noted anew. {error}"]


def _within(turns: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Take the oldest turns that fit in a prompt, at least one: after a long failure, notes catch up in portions."""
    taken: list[dict[str, Any]] = []
    for turn in turns:
        budget -= count_tokens_approximately([render_value(turn)])
        if taken and budget < 0:
            break
        taken.append(turn)
    return taken

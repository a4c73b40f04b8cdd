"""update_state: after the reply, note on the quest's page what changed."""

from __future__ import annotations

import logging
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.known import known_attributes
from questbook.graphs.dungeon_master.nodes.recall import memories_for
from questbook.graphs.dungeon_master.note_facts import gather
from questbook.graphs.dungeon_master.sections import transcript, update_prompt
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import QuestbookError
from questbook.graphs.turn.noting import note, within
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.withheld import on_record
from questbook.memory.facts.fact import facts_tool
from questbook.notebooks import NotebookError, StateNotebook

_log = logging.getLogger(__name__)


async def update_state(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the model, once, for a patch of the quest's page and for the facts of every turn not noted yet.

    No call means no change. The facts wait in state until `remember` has written them. A patch that does not fit is
    sent back once with the reason. If it still does not, or the model fails, the page stays as it was, a notice says
    so, and the next turn's update covers this turn too: the reply is never at risk. Of turns that the player asked not
    to be remembered the model is not told.
    """
    if not state.quest.UPDATE.due(state.turn, state.noted_through):
        return _noted(state, state.quest, {})
    due = on_record(transcript(state, state.noted_through + 1, state.turn))
    turns = within(due, runtime.context.buffer_tokens)
    if not turns:
        return {"noted_through": state.turn} | _noted(state, state.quest, {})
    recalled, known, notes = await _known(state, runtime, turns)
    try:
        said = await note([state.quest], update_prompt(state, turns, known), runtime.context, [facts_tool()])
        if said.problems:
            raise NotebookError(" ".join(said.problems))
        [page], told = said.pages, said.notes
        patch = page.patch_from(state.quest)
        state.quest.apply(patch)  # the reducer will do the same: nothing may go wrong there
    except (QuestbookError, NotebookError) as error:
        _log.warning("Turn %d was not noted: %s", state.turn, error)
        text = f"The quest notes were not updated; the next turn will catch up. {error}"
        notices = [notice(state.turn, "update_state", told) for told in (*notes, text)]
        return {"notices": notices} | _noted(state, state.quest, {})
    given = [call.args for call in said.besides]
    gathered = gather(state, turns, given, recalled)
    noted = {"from": turns[0]["turn"], "through": turns[-1]["turn"], "patch": patch}
    through = state.turn if len(turns) == len(due) else turns[-1]["turn"]  # what is withheld behind them needs no notes
    update: dict[str, Any] = {"noted_through": through} | _noted(state, page, noted)
    if given:
        update["facts"] = gathered.facts
    if patch:
        update["quest"] = patch
    if notes := [*notes, *told, *gathered.notices]:
        update["notices"] = [notice(state.turn, "update_state", note) for note in notes]
    return update


def _noted(state: DungeonState, page: StateNotebook, noted: dict[str, Any]) -> dict[str, Any]:
    """The channel `noted` after this turn's notes: turns that `remember` could not write keep theirs."""
    waiting = {
        turn: kept for turn, kept in state.noted.items() if turn.isdigit() and int(turn) > state.remembered_through
    }
    now = {"noted": noted, "location": page.location, "day": page.clock.day}
    return {"noted": waiting | {str(state.turn): now}}


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

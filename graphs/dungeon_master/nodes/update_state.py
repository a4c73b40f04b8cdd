"""update_state: after the reply, note what changed on the quest's page."""

from __future__ import annotations

import logging
from typing import NamedTuple

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.deletions import deletion_notice
from questbook.graphs.dungeon_master.facts import known_attributes, read_new_facts
from questbook.graphs.dungeon_master.nodes.recall import memories_for
from questbook.graphs.dungeon_master.prompts import update_prompt
from questbook.graphs.dungeon_master.secrets import add_secrets, with_secrets
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import PastUnknownError, PromptTooLongError, QuestbookError
from questbook.graphs.turn.exchanges import transcript_through
from questbook.graphs.turn.notes import IN_SHORT, in_short, oldest_within, take_notes
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.turn import notice, public_turns
from questbook.graphs.turn.upkeep import GaveWay, give_way
from questbook.memory.facts.fact import facts_tool
from questbook.notebooks import StateNotebook
from questbook.types import JSON

_NOT_UPDATED = "The quest notes were not updated; the next turn will catch up."
_log = logging.getLogger(__name__)


async def update_state(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Ask the model, once, for a patch of the quest's page and for the facts of every turn not noted yet.

    No call means no change. The facts wait in state until `remember` has written them. What fits of a patch is noted;
    for the rest the model is asked twice more. If some still does not fit, or the model fails, a notice says so, and
    the next turn's update covers this turn too: the reply is never at risk. The same, without a notice, if the player's
    next message comes meanwhile. The model does not see private turns.

    What the narrator handed over as secret is written first, whatever becomes of the notes.
    """
    with_new = with_secrets(state)
    return add_secrets(state, with_new, await _note(with_new, runtime))


async def _note(
    state: DungeonState, runtime: Runtime[Context], most: int | None = None, *, short: bool = False
) -> JSON:
    """Take the notes of the oldest turns that fit in `most` tokens; None: as many as the buffer has.

    Args:
        state: The state.
        runtime: The run's.
        most: Tokens.
        short: Whether long texts of them are cut.
    """
    if not state.quest.UPDATE.due(state.turn, state.noted_through):
        return _noted(state, state.quest, {})
    try:
        due = public_turns(await transcript_through(state, runtime, state.noted_through + 1))
    except PastUnknownError as error:
        return {"notices": [_notice(state, f"{_NOT_UPDATED} {error}")]} | _noted(state, state.quest, {})
    budget = state.fit_tokens(runtime.context.buffer_tokens, runtime.context.model) if most is None else most
    turns = [in_short(turn) if short else turn for turn in oldest_within(due, budget)]
    if not turns:
        return {"noted_through": state.turn} | _noted(state, state.quest, {})
    known = await _known(state, runtime, turns)
    notices = [_notice(state, remark) for remark in (known.remark, IN_SHORT if short else "") if remark]
    try:
        prompt = update_prompt(state, turns, known.attributes)
        notes = await give_way(take_notes([state.quest], prompt, runtime.context, [facts_tool()]), runtime)
    except GaveWay:
        return {"notices": notices} | _noted(state, state.quest, {})
    except QuestbookError as error:  # a model's or a provider's, in plain words
        if isinstance(error, PromptTooLongError) and not short:
            return await _note(state, runtime, 0, short=len(turns) == 1)
        _log.warning("Turn %d was not noted: %s", state.turn, error)
        return {"notices": [*notices, _notice(state, f"{_NOT_UPDATED} {error}")]} | _noted(state, state.quest, {})
    [page], [patch] = notes.pages, notes.patches
    notices += [_notice(state, remark) for remark in notes.remarks]
    if dropped := deletion_notice(state.quest, page, turns):
        notices.append(_notice(state, dropped))
    arguments = [call.args for call in notes.other_calls]
    noted = {"from": turns[0]["turn"], "through": turns[-1]["turn"], "patch": patch}
    through = state.turn if len(turns) == len(due) else turns[-1]["turn"]  # private turns behind them need no notes
    update: JSON = {"noted_through": through} | _noted(state, page, noted)
    if notes.problems:
        _log.warning("Not all was noted of turn %d: %s", state.turn, notes.problems)
        update["noted_through"] = state.noted_through
        what = "Not all of this turn was noted" if patch or arguments else "The quest notes were not updated"
        notices.append(_notice(state, f"{what}; the next turn will catch up.", " ".join(notes.problems)))
    if arguments:
        update["facts"], odd = read_new_facts(state, turns, arguments, known.recalled)
        notices += [_notice(state, *remark) for remark in odd]
    if patch:
        update["quest"] = patch
    return update | ({"notices": notices} if notices else {})


class _Known(NamedTuple):
    """What is known before the notes: the turn's memories, attributes, and a remark if they could not be read."""

    recalled: list[JSON]
    attributes: str
    remark: str = ""


async def _known(state: DungeonState, runtime: Runtime[Context], turns: list[JSON]) -> _Known:
    try:
        state = await with_recalled(state, runtime, memories_for)
        recalled = state.recalled or []
        return _Known(recalled, await known_attributes(state, runtime, turns, recalled))
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the turn can be noted without)
        _log.warning("What is known was not looked up for turn %d: %s", state.turn, error, exc_info=True)
        remark = f"Memory could not be searched for what is known, so it may be noted again. {error}"
        return _Known(state.recalled or [], "", remark)


def _noted(state: DungeonState, page: StateNotebook, noted: JSON) -> JSON:
    """Return the channel `noted` after this turn's notes: turns that `remember` could not write keep theirs."""
    waiting = {
        turn: entry for turn, entry in state.noted.items() if turn.isdigit() and int(turn) > state.remembered_through
    }
    now = {"noted": noted, "location": page.location, "day": page.clock.day}
    if "sheet" in (interview := state.noted.get(str(state.turn), {})):
        now["sheet"] = interview["sheet"]
    return {"noted": waiting | {str(state.turn): now}}


def _notice(state: DungeonState, text: str, detail: str = "") -> JSON:
    return notice(state.turn, "update_state", text, detail)

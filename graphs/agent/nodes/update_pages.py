"""update_pages: after the reply, note on the pages that are due what changed."""

from __future__ import annotations

import logging
from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.sections import update_prompt
from questbook.graphs.agent.state import AgentState
from questbook.graphs.errors import QuestbookError
from questbook.graphs.turn.noting import note, within
from questbook.graphs.turn.turn import notice, spoken_turns
from questbook.graphs.turn.withheld import on_record
from questbook.notebooks import Notebook

_log = logging.getLogger(__name__)


def due_pages(state: AgentState) -> list[str]:
    """Return the channels of the pages that are written after this turn, as their policies say."""
    kept = state.AGENT.kept.items()
    return [name for name, page in kept if page.UPDATE.due(state.turn, state.noted.get(name, 0))]


async def update_pages(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Ask the model, once for all pages that are due, for patches of them; no call means no change.

    A patch that does not fit is sent back once with the reason. If it still does not, its page stays as it was, and so
    do all if the model fails; a notice says so, and the next turn's update covers this turn too. Of turns that the
    person asked not to be remembered the model is not told.
    """
    due = due_pages(state)
    first = min(state.noted.get(name, 0) for name in due) + 1
    told = on_record(spoken_turns(state, first, state.turn))
    turns = within(told, runtime.context.buffer_tokens)
    last = state.turn if len(turns) == len(told) else turns[-1]["turn"]  # what is withheld needs no notes
    due = [name for name in due if state.noted.get(name, 0) < last]
    if not turns:
        return {"noted": state.noted | dict.fromkeys(due, last)}
    before: list[Notebook] = [getattr(state, name) for name in due]
    try:
        noted = await note(before, update_prompt(state, due, turns), runtime.context)
    except QuestbookError as error:
        _log.warning("Turn %d was not noted: %s", state.turn, error)
        text = f"The pages ({', '.join(due)}) were not updated; the next turn will catch up. {error}"
        return {"notices": [notice(state.turn, "update_pages", text)]}
    update: dict[str, Any] = {"noted": dict(state.noted)}
    notices = list(noted.notes)
    if noted.problems:
        _log.warning("Not all was noted of turn %d: %s", state.turn, noted.problems)
        left = [name for name, page in zip(due, before, strict=True) if type(page).__name__ in noted.refused]
        what = (
            f"Not all was noted; the next turn will catch up ({', '.join(left)})."
            if left
            else "A call that is no page's was not done; no later turn will come back to it."
        )
        notices.append(f"{what} {' '.join(noted.problems)}")
    for name, old, new in zip(due, before, noted.pages, strict=True):
        if type(old).__name__ in noted.refused:
            continue
        update["noted"][name] = last
        if patch := new.patch_from(old):
            update[name] = patch
    return update | {"notices": [notice(state.turn, "update_pages", text) for text in notices]}

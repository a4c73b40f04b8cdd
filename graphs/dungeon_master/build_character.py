"""build_character: the interview that fills the CharacterNotebook."""

from __future__ import annotations

import logging
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from graphs.dungeon_master import prompts
from graphs.dungeon_master.context import Context
from graphs.dungeon_master.entrance import enter
from graphs.dungeon_master.sections import interview_prompt
from graphs.dungeon_master.session import join
from graphs.dungeon_master.state import DungeonState
from graphs.model import chat_model
from graphs.models import ask
from graphs.tool_calls import refuse_page, write_page
from graphs.turn import notice, open_turn
from graphs.withheld import REFUSED, private
from notebooks import CharacterNotebook, diff_patch

_ROUNDS = 3
_log = logging.getLogger(__name__)


async def build_character(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Talk with the player and note what they said; a complete page is filled up by the rules and opens the quest.

    A new thread on a campaign that has been played already takes over its head instead, and opens with a recap.
    The model is asked again, at most twice, when it noted something without a word to the player or when a note did
    not fit; what it said to the player is kept in any case. Of what the player asks not to be remembered, nothing is
    noted.
    """
    if joined := await join(state, runtime):
        past = {name: joined[name] for name in ("turn", "timeline")}
        return joined | open_turn(state.model_copy(update=past), runtime)
    opened = open_turn(state, runtime)
    model = (await chat_model(runtime.context)).bind_tools([CharacterNotebook.tool()])
    page, said, notices = state.character, list[AnyMessage](), list[dict[str, Any]]()
    spoke, silent = False, private(state)
    for _ in range(_ROUNDS):
        now = state.model_copy(update={"character": page, "messages": [*state.messages, *said]})
        prompt = interview_prompt(now, runtime.context)
        runtime.stream_writer(prompt.told("build_character", opened["turn"]))
        reply = await ask(
            model,
            prompt.messages,
            model_name=runtime.context.model,
            tags=[TAG_NOSTREAM] if spoke else [],
            timeout=runtime.context.model_timeout,
        )
        if spoke:  # this round only mends a note: the player has had an answer
            reply = reply.model_copy(update={"content": ""})
        written = refuse_page(page, reply, REFUSED) if silent else write_page(page, reply)
        page = written.page
        said += _in_order(reply, written.results, last=not page.complete)
        notices += [notice(opened["turn"], "build_character", problem) for problem in written.problems]
        spoke = spoke or bool(reply.text.strip())
        if page.complete or (spoke and not written.problems):
            break
    if not spoke and not page.complete:
        _log.warning("The model noted %s but said nothing to the player.", ", ".join(state.character.missing))
        said.append(AIMessage(f"Tell me more about your character: what is their {page.missing[0]}?"))
        notices.append(notice(opened["turn"], "build_character", "The model asked nothing; a stock question was used."))
    update = {
        **opened,
        "messages": said,
        "notices": notices,
        "quest": {},
    }  # an empty patch: state holds JSON from the first turn
    update["character"] = diff_patch(state.character.as_json(), page.as_json())
    if page.complete:
        said[-1] = said[-1].model_copy(update={"content": prompts.OPENING})
        update |= enter(state.character, page, state.quest)
        if state.quest.condition.max_hp is None:
            update["noted_through"] = state.turn
    return update


def _in_order(reply: AIMessage, results: list[ToolMessage], *, last: bool) -> list[AnyMessage]:
    """Put what was said to the player last, after calls and their results: it is what the turn ends with."""
    if not results:
        return [reply] if reply.text.strip() else []
    if not last or not reply.text.strip():
        return [reply, *results]
    calls = reply.model_copy(update={"content": "", "id": f"{reply.id}-calls" if reply.id else None})
    return [calls, *results, AIMessage(reply.text, id=reply.id)]

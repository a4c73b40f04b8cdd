"""build_character: the interview that fills the CharacterNotebook."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.rules.entrance import enter
from questbook.graphs.dungeon_master.sections import interview_prompt
from questbook.graphs.dungeon_master.session import join
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.interview import interview
from questbook.graphs.turn.prompt_stack import Prompt
from questbook.graphs.turn.turn import open_turn
from questbook.graphs.turn.withheld import private
from questbook.notebooks import CharacterNotebook


async def build_character(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Talk with the player and note what they said; a complete page is filled up by the rules and opens the quest.

    A new thread on a campaign that has been played already takes over its head instead, and opens with a recap.
    Of what the player asks not to be remembered, nothing is noted.
    """
    if joined := await join(state, runtime):
        past = {name: joined[name] for name in ("turn", "timeline")}
        return joined | open_turn(state.model_copy(update=past), runtime)
    opened = open_turn(state, runtime)

    def prompt(page: CharacterNotebook, said: list[AnyMessage]) -> Prompt:
        now = {"character": page, "messages": [*state.messages, *said]}
        return interview_prompt(state.model_copy(update=now), runtime.context)

    page, said, notices = await interview(
        state.character,
        runtime,
        prompt,
        node="build_character",
        turn=opened["turn"],
        question=prompts.QUESTION,
        silent=private(state),
    )
    update = {
        **opened,
        "messages": said,
        "notices": notices,
        "quest": {},
    }  # an empty patch: state holds JSON from the first turn
    update["character"] = page.patch_from(state.character)
    if page.complete:
        said[-1] = said[-1].model_copy(update={"content": prompts.OPENING})
        update |= enter(state.character, page, state.quest)
        if state.quest.condition.max_hp is None:
            update["noted_through"] = state.turn
    return update

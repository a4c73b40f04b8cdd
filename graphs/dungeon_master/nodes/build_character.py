"""build_character: the interview that fills the CharacterNotebook."""

from __future__ import annotations

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.rules.completion import begin_tool, complete
from questbook.graphs.dungeon_master.rules.sheet import fill_sheet
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.interview import Done, interview
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.sessions import join
from questbook.graphs.turn.turn import is_private, open_turn
from questbook.notebooks import CharacterNotebook
from questbook.types import JSON


async def build_character(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Talk with the player and note what they said; the rules fill up a complete page, which opens the quest.

    A new thread on a campaign that has been played already takes over its head instead, and opens with a recap.
    Nothing is noted of a private turn.

    Raises:
        ModelError: The model failed or said nothing. The player's message is kept; the turn can be run again.
        PastUnknownError: The store cannot say whether the campaign has a past.
    """
    if past := await join(state, runtime, lambda head: PlayerView.of(head).recap()):
        opened = open_turn(state.model_copy(update={name: past[name] for name in ("turn", "timeline")}), runtime)
        # The first release's head does not say how far notes got.
        return {"noted_through": past["turn"]} | past | opened
    opened = open_turn(state, runtime)

    def make_prompt(page: CharacterNotebook, messages: list[AnyMessage]) -> Prompt:
        now = {"character": page, "messages": [*state.messages, *messages]}
        return prompts.interview_prompt(state.model_copy(update=now), runtime.context)

    page, messages, notices, window = await interview(
        state,
        state.character,
        runtime,
        make_prompt,
        node="build_character",
        turn=opened["turn"],
        question=prompts.QUESTION,
        private=is_private(state),
        done=Done(begin_tool(), complete),
    )
    # An empty patch of the quest: state holds JSON from the first turn on.
    update: JSON = {**opened, "messages": messages, "notices": [*opened["notices"], *notices], "quest": {}, **window}
    if said := page.patch_from(state.character):
        update["noted"] = state.noted | {str(opened["turn"]): {"sheet": said}}
    if not page.complete:
        return update | {"character": page.patch_from(state.character)}
    messages[-1] = messages[-1].model_copy(update={"content": prompts.OPENING})
    if state.quest.condition.max_hp is None:
        update["noted_through"] = state.turn
    return update | fill_sheet(state.character, page, state.quest)

"""build_character: the interview that fills the CharacterNotebook."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.sheet import ancestry_of, ancestry_said, fill_sheet
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.interview import Done, interview
from questbook.graphs.turn.player_view import PlayerView
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.scope import run_thread
from questbook.graphs.turn.sessions import begin
from questbook.graphs.turn.state import notice
from questbook.memory.buffer.policies import ASIDE
from questbook.notebooks import CharacterNotebook, NotebookError
from questbook.notebooks.schema import own_names
from questbook.types import JSON

BEGIN = "BeginAdventure"
_DEFAULTS = {  # what fits any character
    "name": "Wren Ashdown",
    "ancestry": "human",
    "class": "fighter",
    "background": "has worked on many roads and is known on none",
    "goal": "to earn a name and see what lies beyond the next hill",
}


async def build_character(state: DungeonState, runtime: Runtime[Context]) -> JSON:
    """Talk with the player and note what they said; the rules fill up a complete page, which opens the quest.

    A new thread on a campaign that has been played already takes over its head instead, and opens with a recap.
    """
    now, opened, past = await begin(state, runtime, recap=partial(_recap, context=runtime.context))
    if past:  # the first release's head does not say how far notes got
        return {"noted_through": past["turn"], **opened}

    def make_prompt(page: CharacterNotebook, messages: list[AnyMessage]) -> Prompt:
        said = {"character": page, "messages": [*state.messages, *messages]}
        return prompts.interview_prompt(state.model_copy(update=said), runtime.context)

    ancestry = ancestry_said(message.text for message in state.messages if isinstance(message, HumanMessage))
    done = Done(begin_tool(), partial(complete, ancestry=ancestry))
    page, messages, notices, window = await interview(
        now, state.character, runtime, make_prompt, node="build_character", question=prompts.QUESTION, done=done
    )
    if ancestry and page.ancestry != state.character.ancestry and ancestry_of(page.ancestry) not in (None, ancestry):
        text = prompts.AS_SAID.format(said=ancestry, noted=page.ancestry)
        notices.append(notice(opened["turn"], "build_character", text))
        page = page.apply({"ancestry": ancestry}).page
    if not state.turn and runtime.context.campaign == (state.new_campaign(run_thread(runtime)) or None):
        messages.insert(0, AIMessage(prompts.NEW_GAME.format(campaign=runtime.context.campaign), name=ASIDE))
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


def _recap(head: JSON, context: Context) -> str:
    """Tell where the story is; and if nobody named the campaign, which one it is and how to begin another."""
    text, named = PlayerView.of(head).recap(), "campaign" in context.model_fields_set
    return text if named else f"{text}\n\n{prompts.GOES_ON.format(campaign=context.campaign)}"


def begin_tool() -> JSON:
    """Return the tool by which the model says that a character is done."""
    fields = {name: {"type": "string"} for name in CharacterNotebook.REQUIRED}
    text = (
        "The character is done: the player wants to begin although something is missing, or nothing more needs to be "
        "asked. Fill in all that is in <missing> with what suits what the player has said. The player is told what "
        "you filled in, and the adventure begins."
    )
    parameters = {"type": "object", "properties": fields, "additionalProperties": False}
    return {"type": "function", "function": {"name": BEGIN, "description": text, "parameters": parameters}}


def complete(
    page: CharacterNotebook, invented: Mapping[str, Any], ancestry: str | None = None
) -> tuple[CharacterNotebook, str]:
    """Fill in what is missing on a character's page; return it, and what to tell the player, "" if nothing was missing.

    What the model thought of (`invented`, by field) and is empty or does not fit is replaced. The `ancestry` that the
    player has said goes before the model's.
    """
    missing, invented = page.missing, own_names(CharacterNotebook, invented)
    for field in missing:
        for value in (ancestry if field == "ancestry" else None, invented.get(field), _DEFAULTS[field]):
            try:
                page = page.apply({field: value}, by_model=True).page
            except NotebookError:  # a number, a text that is too long
                continue
            if field not in page.missing:
                break
    fields = page.as_json()
    filled = "; ".join(f"{field}: {fields[field]}" for field in missing)
    return page, f"What you left open was filled in for you: {filled}." if filled else ""

"""The dungeon master's prompts: the instructions, and the sections that go with them."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files

from langchain_core.messages import BaseMessage

from questbook.graphs.dungeon_master.sheet import modifiers
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.settings import Settings
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.prompt import (
    INSTRUCTIONS,
    MARKDOWN,
    Prompt,
    Section,
    escape,
    opening_sections,
    page_sections,
    prompt_about_turns,
    stack,
)
from questbook.graphs.turn.recall import memory_lines
from questbook.graphs.turn.state import Turn
from questbook.notebooks import render_value
from questbook.types import JSON

_TEXTS: JSON = tomllib.loads(files("questbook.graphs.dungeon_master").joinpath("prompts.toml").read_text("utf-8"))
INTERVIEW, QUEST = (_TEXTS[name].replace("{MARKDOWN}", MARKDOWN) for name in ("INTERVIEW", "QUEST"))
UPDATE, CONDENSE = _TEXTS["UPDATE"], _TEXTS["CONDENSE"]
OPENING = "The page is complete. Open the adventure now."  # what the tool then answers
NEW_GAME = "*A new game. Its campaign is “{campaign}”.*"  # what a thread opens with after the words “new game”
GOES_ON = "*This thread goes on with the campaign “{campaign}”. For another game, begin a new thread with “new game”.*"
"""What ends the recap of a thread whose caller named no campaign."""
AS_SAID = "You said {said}, and the model noted {noted}: your word is on the sheet."
QUESTION = "Tell me more about your character: what is their {missing}?"  # what is asked if the model asks nothing


def interview_prompt(state: DungeonState, settings: Settings) -> Prompt:
    """Make the prompt of the interview: what is known, what is missing, the conversation."""
    notes = [Section("character", state.character.render()), Section("missing", ", ".join(state.character.missing))]
    return stack([Section(INSTRUCTIONS, INTERVIEW)], conversation(state, settings), settings, notes)


def quest_prompt(state: DungeonState, settings: Settings) -> Prompt:
    """Make the prompt of a quest turn: character, summary, conversation, and last quest and memories."""
    sections = [*opening_sections(QUEST, state), Section("summary", escape(state.summary))]
    at = next(number for number, section in enumerate(sections) if section.name == "character")
    sections[at] = Section("character", f"{sections[at].text}\nmodifiers: {render_value(modifiers(state.character))}")
    memories = Section("memories", memory_lines(state.recalled))
    last = [*page_sections(state, "last"), memories, Section("wish", escape(state.wish))]
    return stack(sections, conversation(state, settings), settings, last)


def update_prompt(state: DungeonState, turns: Sequence[Turn], known: str = "") -> list[BaseMessage]:
    """Make the prompt that notes turns on the quest's page, and facts of them; `known` is `facts.story_attributes`."""
    last = [*page_sections(state, "last"), Section("known", known), Section("room", f"<quest>: {state.quest.fullness}")]
    return prompt_about_turns(opening_sections(UPDATE, state), turns, last)

"""The dungeon master's prompts: which sections they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.pages import page_sections, told_pages
from questbook.graphs.turn.prompt_stack import Prompt, Section, escaped, stack, system_message, tagged
from questbook.graphs.turn.summarize import policy_of
from questbook.graphs.turn.turn import spoken_turns
from questbook.memory.buffer.policies import Buffer
from questbook.memory.lore.documents import LorePiece
from questbook.notebooks import render_value

JSON = dict[str, Any]


def interview_prompt(state: DungeonState, context: Context) -> Prompt:
    """Make the prompt of the interview: what is known, what is missing, the conversation."""
    sections = [
        Section("instructions", prompts.INTERVIEW),
        Section("character", state.character.render()),
        Section("missing", ", ".join(state.character.missing)),
    ]
    return stack(sections, conversation(state, context), context)


def quest_prompt(state: DungeonState, context: Context) -> Prompt:
    """Make the prompt of a quest turn: both pages, the summary, the memories, the conversation."""
    sections = [
        *told_pages(prompts.QUEST, state),
        Section("summary", escaped(state.summary)),
        Section("memories", "\n".join(memory_line(memory) for memory in state.recalled or [])),
    ]
    return stack(sections, conversation(state, context), context, page_sections(state, "last"))


def update_prompt(state: DungeonState, turns: Sequence[JSON], known: str = "") -> list[BaseMessage]:
    """Make the prompt that notes `turns` (as `transcript` tells them) on the quest's page, and facts of them.

    `known` tells by which names attributes have been noted, as `known_attributes` does.
    """
    sections = [Section("instructions", prompts.UPDATE), *page_sections(state), Section("known", known)]
    told = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(sections), HumanMessage(tagged(told))]


def transcript(state: DungeonState, first: int, last: int) -> list[JSON]:
    """Tell turns `first` to `last`, those that still stand in the buffer, as JSON objects.

    Each is {"turn", "player", "rolls", "reply"}; rolls are left out where there were none.
    """
    told = []
    for said in spoken_turns(state, first, last):
        rolled = [roll for roll in state.rolls if roll.get("turn") == said["turn"]]
        rolls = [{name: value for name, value in roll.items() if name != "turn"} for roll in rolled]
        reply = said.pop("reply")
        told.append(said | ({"rolls": rolls} if rolls else {}) | {"reply": reply})
    return told


def memory_line(memory: JSON) -> str:
    """Render one recalled memory on one line.

    An exchange as it was, lore with its source and page, anything else under the name of its kind.
    """
    lore = LorePiece.from_json(memory)
    if lore.citation:
        return render_value({"source": lore.citation, "text": lore.body})
    told = dict(memory)
    if (kind := told.get("kind", "exchange")) != "exchange":
        told[kind] = told.pop("text", None)
    shown = ("turn", "age", "player", "reply", kind, "story_time", "claimed_by")
    return render_value({key: told[key] for key in shown if told.get(key) is not None})


def conversation(state: DungeonState, context: Context) -> list[AnyMessage]:
    """Return the turns that stand in the prompt word for word, as the buffer policy says."""
    policy = policy_of(context, prompts.CONDENSE)
    return policy.select(Buffer(state.messages, state.turn, state.summarised_through))

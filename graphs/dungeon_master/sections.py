"""The prompt as a stack of named sections, so that a person can see what the model saw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from graphs.dungeon_master import prompts
from graphs.dungeon_master.context import Context
from graphs.dungeon_master.state import DungeonState
from memory.buffer import latest, spoken, turns_of
from memory.citation import citation, lore_text
from notebooks import render_value

JSON = dict[str, Any]


class Section(NamedTuple):
    """A named part of the system message. The first, "instructions", stands without tags."""

    name: str
    text: str


def interview_prompt(state: DungeonState, context: Context) -> tuple[list[Section], list[AnyMessage]]:
    """Make the prompt of the interview: what is known, what is missing, the conversation."""
    sections = [
        Section("instructions", prompts.INTERVIEW),
        Section("character", state.character.render()),
        Section("missing", ", ".join(state.character.missing)),
    ]
    return _said(sections), latest(state.messages, context.buffer_tokens)


def quest_prompt(state: DungeonState, context: Context) -> tuple[list[Section], list[AnyMessage]]:
    """Make the prompt of a quest turn: both pages, the summary, the memories, the conversation."""
    sections = [
        Section("instructions", prompts.QUEST),
        Section("character", state.character.render()),
        Section("quest", state.quest.render()),
        Section("summary", _escaped(state.summary)),
        Section("memories", "\n".join(memory_line(memory) for memory in state.recalled or [])),
    ]
    return _said(sections), latest(state.messages, context.buffer_tokens)


def update_prompt(state: DungeonState, turns: Sequence[JSON]) -> list[BaseMessage]:
    """Make the prompt that notes `turns` (as `transcript` tells them) on the quest's page."""
    sections = [
        Section("instructions", prompts.UPDATE),
        Section("character", state.character.render()),
        Section("quest", state.quest.render()),
    ]
    told = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(_said(sections)), HumanMessage(_tagged(told))]


def condense_prompt(summary: str, turns: Sequence[JSON], budget: int) -> list[BaseMessage]:
    """Make the prompt that folds `turns` into the summary of at most `budget` tokens."""
    instructions = prompts.CONDENSE.format(words=max(40, budget * 6 // 10))  # three tokens for two words, and a margin
    sections = [Section("instructions", instructions), Section("summary", _escaped(summary))]
    told = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(_said(sections)), HumanMessage(_tagged(told))]


def transcript(state: DungeonState, first: int, last: int) -> list[JSON]:
    """Tell turns `first` to `last`, those that still stand in the buffer, as JSON objects.

    Each is {"turn", "player", "rolls", "reply"}; rolls are left out where there were none.
    """
    told = []
    for turn, messages in turns_of(state.messages, state.turn):
        if first <= turn <= last:
            player, reply = spoken(messages)
            rolls = [{k: v for k, v in roll.items() if k != "turn"} for roll in state.rolls if roll.get("turn") == turn]
            told.append({"turn": turn, "player": player} | ({"rolls": rolls} if rolls else {}) | {"reply": reply})
    return told


def memory_line(memory: JSON) -> str:
    """Render one recalled memory on one line.

    An exchange as it was, lore with its source and page, anything else under the name of its kind.
    """
    if source := citation(memory):
        return render_value({"source": source, "text": lore_text(memory)})
    told = dict(memory)
    if (kind := told.get("kind", "exchange")) != "exchange":
        told[kind] = told.pop("text", None)
    shown = ("turn", "age", "player", "reply", kind, "story_time", "claimed_by")
    return render_value({key: told[key] for key in shown if told.get(key) is not None})


def system_message(sections: Iterable[Section]) -> SystemMessage:
    """Put sections together; each but the instructions stands between tags of its name."""
    return SystemMessage("\n\n".join(s.text if s.name == "instructions" else _tagged(s) for s in sections))


def weigh(sections: Iterable[Section], conversation: Sequence[AnyMessage]) -> list[JSON]:
    """Count tokens by section, about four characters each: [{"section", "tokens", "text"}, …]."""
    weighed: list[JSON] = [{"section": s.name, "tokens": math.ceil(len(s.text) / 4), "text": s.text} for s in sections]
    said = "\n".join(f"{message.type}: {message.text}" for message in conversation)
    return [*weighed, {"section": "messages", "tokens": count_tokens_approximately(conversation), "text": said}]


def _said(sections: Iterable[Section]) -> list[Section]:
    return [section for section in sections if section.text]


def _tagged(section: Section) -> str:
    return f"<{section.name}>\n{section.text}\n</{section.name}>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

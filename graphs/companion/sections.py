"""The companion's prompt: which sections it is made of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from langchain_core.messages import AnyMessage

from questbook.graphs.companion import prompts
from questbook.graphs.companion.context import Context
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.earlier import exchange_line
from questbook.graphs.turn.prompt_stack import INSTRUCTIONS, Prompt, Section, escaped, stack
from questbook.graphs.turn.summarize import policy_of
from questbook.graphs.turn.withheld import private
from questbook.memory.archive.results import find_timezone
from questbook.memory.buffer.policies import Buffer
from questbook.notebooks import render_fields


def assist_prompt(state: CompanionState, context: Context) -> Prompt:
    """Make the prompt of a turn: core memory, what is known about now, the summary, memories, the conversation."""
    sections = [
        Section(INSTRUCTIONS, prompts.ASSIST),
        Section("core_memory", state.core.render()),
        Section("summary", escaped(state.summary)),
        Section("memories", "\n".join(exchange_line(memory) for memory in state.recalled or [] if "player" in memory)),
        Section("about", render_fields(_about(state, context))),
    ]
    return stack(sections, conversation(state, context), context)


def conversation(state: CompanionState, context: Context) -> list[AnyMessage]:
    """Return the turns that stand in the prompt word for word, as the buffer policy says."""
    policy = policy_of(context, prompts.CONDENSE)
    return policy.select(Buffer(state.messages, state.turn, state.summarised_through))


def _about(state: CompanionState, context: Context) -> dict[str, Any]:
    now = datetime.now(find_timezone(context.timezone))
    return {
        "now": f"{now:%A, %Y-%m-%d %H:%M}",
        "you_last_spoke": state.away,
        "earlier_turns": state.turn - 1,
        "archival_memory_entries": state.archive_count,
        **(
            {"asked": "not to remember this turn; earlier ones stay until they have them forgotten"}
            if private(state)
            else {}
        ),
    }

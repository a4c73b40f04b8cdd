"""An agent's prompts: which sections they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from questbook.graphs.agent import prompts
from questbook.graphs.agent.description import Mode
from questbook.graphs.agent.state import AgentState
from questbook.graphs.settings import Settings
from questbook.graphs.turn.earlier import exchange_line
from questbook.graphs.turn.pages import page_sections, told_pages
from questbook.graphs.turn.prompt_stack import INSTRUCTIONS, Prompt, Section, escaped, stack, system_message, tagged
from questbook.graphs.turn.summarize import policy_of
from questbook.graphs.turn.withheld import private
from questbook.memory.buffer.policies import Buffer
from questbook.notebooks import Notebook, render_value

JSON = dict[str, Any]


def reply_prompt(state: AgentState, settings: Settings, mode: Mode) -> Prompt:
    """Make the prompt of a reply: instructions, pages, the summary, the memories, the conversation."""
    agent = state.AGENT
    pages = ", ".join(f"<{channel}> ({page.__name__})" for channel, page in agent.on_demand.items())
    writes = [prompts.WRITES.format(pages=pages)] if pages and not private(state) else []
    rules = "\n".join([prompts.RULES, *writes])
    sections = [
        *told_pages(_told(agent.instructions, mode.instructions, rules), state),
        Section("summary", escaped(state.summary)),
        Section("memories", "\n".join(exchange_line(memory) for memory in state.recalled or [])),
    ]
    return stack(sections, conversation(state, settings), settings, page_sections(state, "last"))


def interview_prompt(state: AgentState, settings: Settings, mode: Mode, page: Notebook) -> Prompt:
    """Make the prompt of an interview: the same without memories, and what is missing on the page."""
    how = prompts.INTERVIEW.format(page=page.channel(), tool=type(page).__name__)
    sections = [
        *told_pages(_told(state.AGENT.instructions, mode.instructions, how, prompts.RULES), state),
        Section("missing", ", ".join(page.missing)),
        Section("summary", escaped(state.summary)),
    ]
    return stack(sections, conversation(state, settings), settings, page_sections(state, "last"))


def update_prompt(state: AgentState, due: Sequence[str], turns: Sequence[JSON]) -> list[BaseMessage]:
    """Make the prompt that brings pages up to date, given their channels, and turns as `spoken_turns` tells them."""
    last = turns[-1]["turn"]
    lines = [
        f"{state.PAGES[channel].__name__}: page <{channel}>, turns {state.noted.get(channel, 0) + 1} to {last}"
        for channel in due
    ]
    sections = [Section(INSTRUCTIONS, prompts.UPDATE), *page_sections(state), Section("due", "\n".join(lines))]
    told = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(sections), HumanMessage(tagged(told))]


def conversation(state: AgentState, settings: Settings) -> list[AnyMessage]:
    """Return the turns that stand in the prompt word for word, as the buffer policy says."""
    policy = state.AGENT.buffer or policy_of(settings, prompts.CONDENSE)
    return policy.select(Buffer(state.messages, state.turn, state.summarised_through))


def _told(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())

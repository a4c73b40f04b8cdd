"""The companion's prompts: the instructions, and the sections that go with them."""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files

from langchain_core.messages.utils import count_tokens_approximately

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.prompt import INSTRUCTIONS, MARKDOWN, Prompt, Section, escape, stack
from questbook.graphs.turn.recall import OPENING, memory_lines
from questbook.graphs.turn.turn import is_private
from questbook.memory.facts.supersession import EndedFact
from questbook.notebooks import render_fields, render_value
from questbook.types import JSON

_TEXTS: JSON = tomllib.loads(files("questbook.graphs.companion").joinpath("prompts.toml").read_text("utf-8"))
ASSIST, MEMORY = _TEXTS["ASSIST"].replace("{MARKDOWN}", MARKDOWN), _TEXTS["MEMORY"]


def assist_prompt(state: CompanionState, context: CompanionContext, outdated: Mapping[str, list[EndedFact]]) -> Prompt:
    """Make the prompt of a turn; `outdated` has sections of core memory that tell what facts have ended, with these."""
    ended = [
        {"section": label, "says": fact.old["text"], "until": fact.until, "now": fact.new["text"]}
        for label, facts in outdated.items()
        for fact in facts
    ]
    sections = [
        Section(INSTRUCTIONS, ASSIST),
        Section("core_memory", state.core.render()),
        Section("outdated", "\n".join(render_value(entry) for entry in ended)),
        Section("summary", escape(state.summary)),
    ]
    last = [
        Section("memories", memory_lines([m for m in state.recalled or [] if m["kind"] != "memory"], OPENING)),
        Section("about", render_fields(_about(state, context))),
    ]
    return stack(sections, conversation(state, context), context, last)


def _about(state: CompanionState, context: CompanionContext) -> JSON:
    about: JSON = {
        "now": f"{datetime.now(context.zone):%A, %Y-%m-%d %H:%M}",
        "you_last_spoke": state.away,
        "earlier_turns": state.turn - 1,
        "archival_memory_entries": state.archive_count,
    }
    used = (f"{label} {section.used:,} of {section.limit:,}" for label, section in state.core.sections.items())
    about["core_memory_characters"] = ", ".join(used)
    tokens = count_tokens_approximately(conversation(state, context))
    room = state.fit_tokens(context.buffer_tokens, context.model)
    of = f" of {room:,}, then older turns go into <summary>" if context.buffer == "tokens" else ""
    about["conversation_tokens"] = f"{tokens:,}{of}"
    if is_private(state):
        about["asked"] = "not to remember this turn; earlier ones stay until they have them forgotten"
    return about

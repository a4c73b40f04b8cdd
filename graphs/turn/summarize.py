"""Folding turns into the running summary, by the summarizer and the buffer policy that the settings name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.errors import QuestbookError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.prompt_stack import INSTRUCTIONS, Section, escaped, system_message, tagged
from questbook.memory.buffer.policies import BufferPolicy, LastTurns, RunningSummary, TokenBudget, Unbounded
from questbook.memory.buffer.summary import ExtractiveSummarizer, Summarizer, clip_summary
from questbook.notebooks import render_value

_log = logging.getLogger(__name__)


class ByModel(NamedTuple):
    """Summarises by the settings' model.

    Attributes:
        settings: Name the model.
        instructions: What it is told, with {words} for how many it may write.
    """

    settings: Settings
    instructions: str

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Ask the model.

        Raises:
            QuestbookError: It cannot be loaded, failed or said nothing.
        """
        prompt = summary_prompt(summary, turns, tokens, self.instructions)
        model = await chat_model(self.settings)
        reply = await ask(model, prompt, model_name=self.settings.model, tags=[TAG_NOSTREAM])
        return clip_summary(reply.text, tokens)


def summary_prompt(
    summary: str, turns: Sequence[Mapping[str, Any]], tokens: int, instructions: str
) -> list[BaseMessage]:
    """Make the prompt that folds turns into the summary of at most so many tokens."""
    words = max(40, tokens * 6 // 10)  # three tokens for two words, and a margin
    sections = [Section(INSTRUCTIONS, instructions.format(words=words)), Section("summary", escaped(summary))]
    told = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(sections), HumanMessage(tagged(told))]


def summarizer_of(settings: Settings, instructions: str) -> Summarizer:
    """Return the summarizer that the settings name."""
    return ByModel(settings, instructions) if settings.summarizer == "model" else ExtractiveSummarizer()


def policy_of(settings: Settings, instructions: str) -> BufferPolicy:
    """Return the buffer policy that the settings name, with their summarizer."""
    if settings.buffer == "unbounded":
        return Unbounded()
    if settings.buffer == "turns":
        return LastTurns(settings.buffer_turns)
    if settings.buffer == "summary":
        return RunningSummary(settings.summary_offset, summarizer_of(settings, instructions))
    return TokenBudget(settings.buffer_tokens, summarizer_of(settings, instructions))


async def fold(
    summary: str, told: Sequence[Mapping[str, Any]], settings: Settings, summarizer: Summarizer
) -> tuple[str, str]:
    """Fold turns into a summary; if the summarizer fails, sentences of theirs stand in.

    Args:
        summary: The summary so far.
        told: Turns as {"turn", "player", "reply", …}, at least one.
        settings: Say how long the summary may be and how long it may take.
        summarizer: What folds.

    Returns:
        The new summary; and, if the summarizer failed, a line that says so.
    """
    budget = settings.summary_tokens
    try:
        async with asyncio.timeout(settings.update_timeout):
            return await summarizer.fold(summary, told, budget), ""
    except (QuestbookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {settings.update_timeout:g} seconds"
        _log.warning("Turns to %d were summarised without the model: %s", told[-1]["turn"], reason)
        extracted = await ExtractiveSummarizer().fold(summary, told, budget)
        return extracted, f"Older turns were summarised by taking sentences from them, not by the model. {reason}"

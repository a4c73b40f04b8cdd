"""The model's window: a prompt that is too long for the model is made shorter, and the thread remembers it.

How long a prompt may be is known from the model's profile, where LangChain has one, or from the provider's refusal. The
oldest turns leave the prompt, a few sentences of them stay in its summary, and the channel `window` keeps how much of
the conversation fits, and of memories as much, so that the next prompts are short enough and the buffer lets go of what
no prompt can hold.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from questbook.graphs.errors import PromptTooLongError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.models.guardrail import Guard
from questbook.graphs.settings import Settings
from questbook.graphs.turn.prompt import Prompt, Section, escape
from questbook.graphs.turn.turn import notice
from questbook.memory.buffer.policies import latest_messages, split_turns, turn_text
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.recall.intents import off_record
from questbook.memory.text.words import count_tokens
from questbook.types import JSON

_FILLED = 0.9  # of a window; tokens are only estimated, at four characters each
_OF_THE_PAST = ("summary", "memories", "character_memories")  # sections that grow as turns leave the conversation

_log = logging.getLogger(__name__)


class FittedAnswer(NamedTuple):
    """An answer; the channel `window`, {} if it stays as it is; notices of what was left out of its prompt."""

    message: AIMessage
    window: JSON
    notices: list[JSON]


async def ask_fitted(
    runtime: Runtime[Any],
    prompt: Prompt,
    *,
    node: str,
    turn: int,
    guard: Guard,
    tools: Sequence[JSON],
    tags: Sequence[str] = (),
    more: Sequence[BaseMessage] = (),
) -> FittedAnswer:
    """Ask the settings' model for what a person reads; a prompt that is too long for it is made shorter, once.

    A report of each prompt goes out on the stream before it is sent. `node` asks in this turn; `tags` are those of the
    model's run; the messages `more` come behind the prompt.

    Raises:
        PromptTooLongError: The prompt is too long even with the last turn alone.
        ModelError: The model failed or said nothing.
    """
    settings: Settings = runtime.context
    loaded = await chat_model(settings)
    model = bind_tools(loaded, tools, settings)
    most, window = _tokens_that_fit(prompt, getattr(loaded, "profile", None), tools, settings), {}
    if most is not None:
        prompt, window = shorten(prompt, most, settings), {"model": settings.model, "tokens": most}
    notices: list[JSON] = []
    for attempt in range(2):
        runtime.stream_writer(prompt.report(node, turn))
        try:
            message = await ask(
                model,
                [*prompt.messages, *more],
                model_name=settings.model,
                tools=tools,
                tags=tags,
                timeout=settings.model_timeout,
                guard=guard,
            )
            break
        except PromptTooLongError as error:
            shorter = _replace_sections(shorten(prompt, 0, settings), lambda s: s.name in _OF_THE_PAST[1:], [])
            if attempt or shorter == prompt:
                raise
            _log.warning("Turn %d: the prompt was too long, so older turns are left out: %s", turn, error)
            prompt, window = shorter, {"model": settings.model, "tokens": _tokens_after_refusal(prompt)}
            text = "The conversation was too long for the model, so it was given older turns in short."
            notices.append(notice(turn, node, text, str(error)))
    return FittedAnswer(message, window, notices)


def shorten(prompt: Prompt, tokens: int, settings: Settings) -> Prompt:
    """Return a prompt with the latest turns that fit in so many tokens, at least the last; the rest in short.

    Of each turn that leaves, the summary gets the first sentences of the reply; the oldest are dropped if they are too
    many.
    """
    kept = latest_messages(prompt.conversation, tokens)
    turns = split_turns(prompt.conversation, 0)
    gone = [turn_text(turn.messages) for turn in turns[: len(turns) - len(split_turns(kept, 0))]]
    if not gone:
        return prompt
    public = [text._asdict() for text in gone if not off_record(text.player)]
    said = [escape(sentence) for text in public for sentence in extract(text, quote=False)]
    parts = [*prompt.sections, *prompt.behind]
    before = next((section.text for section in parts if section.name == "summary"), "")
    summary = Section("summary", extend_summary(before, said, settings.summary_tokens))
    if not before:
        return Prompt([*prompt.sections, *([summary] if summary.text else [])], kept, prompt.behind)
    return _replace_sections(prompt._replace(conversation=kept), lambda section: section.name == "summary", [summary])


def _replace_sections(prompt: Prompt, wanted: Callable[[Section], bool], new: list[Section]) -> Prompt:
    """Return a prompt with other sections, or none, in the place of each of some."""
    places = (prompt.sections, prompt.behind)
    sections, behind = ([s for section in place for s in (new if wanted(section) else [section])] for place in places)
    return Prompt(sections, prompt.conversation, behind)


def _tokens_after_refusal(prompt: Prompt) -> int:
    """Return how many tokens the conversation, and the memories, may have after a refusal: half of what they had.

    A short conversation with long memories leaves them half together, so that a later prompt has memories again.
    """
    conversation, past = count_tokens_approximately(prompt.conversation), _tokens_of_the_past(prompt)
    return max(conversation // 2, (conversation + past) // 4)


def _tokens_of_the_past(prompt: Prompt) -> int:
    parts = [*prompt.sections, *prompt.behind]
    return sum(count_tokens(section.text) for section in parts if section.name in _OF_THE_PAST)


def _tokens_that_fit(prompt: Prompt, profile: Any, tools: Sequence[JSON], settings: Settings) -> int | None:
    """Return how many tokens the conversation may have, by the model's profile; None if the prompt is short enough."""
    most = (profile or {}).get("max_input_tokens")
    if not isinstance(most, int) or most <= 0:
        return None
    used = count_tokens_approximately(prompt.messages) + len(json.dumps(list(tools))) // 4
    if used <= (room := int(most * _FILLED)):
        return None
    fixed = used - count_tokens_approximately(prompt.conversation) - _tokens_of_the_past(prompt)
    return max(0, (room - fixed - settings.summary_tokens) // 2)  # the other half is for memories

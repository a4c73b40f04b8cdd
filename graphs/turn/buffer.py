"""The message buffer: which turns are in the prompt, which leave after a reply, and the running summary."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langgraph.constants import END, TAG_NOSTREAM
from langgraph.runtime import Runtime

from questbook.graphs.errors import QuestbookError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import GaveWay, context_or_none, give_way
from questbook.graphs.turn.prompt import INSTRUCTIONS, Section, escape, prompt_about_turns
from questbook.graphs.turn.state import Turn, TurnState, notice
from questbook.graphs.turn.tool_calls import without_calls
from questbook.graphs.turn.turn import public_turns
from questbook.memory.buffer import policies
from questbook.memory.buffer.summary import ExtractiveSummarizer, Summarizer, append_extract, clip_summary, extract
from questbook.types import JSON

CONDENSE = """\
You keep the running summary of a conversation. Rewrite <summary> so that it also covers <turns>: who said what that
matters, with names, dates, decisions, promises and open questions; no style, no advice. Leave out what no longer
matters. Answer with the summary alone, in at most {words} words."""
_log = logging.getLogger(__name__)
NotedFacts = Callable[[Any, Runtime[Any], int, int], Awaitable[Mapping[int, Sequence[str]]]]
"""Returns what was noted of turns, given the state, the runtime, the first and the last: sentences by turn."""


class ModelSummarizer(NamedTuple):
    """Summarises by the settings' model; the instructions have {words} for how many it may write."""

    settings: Settings
    instructions: str

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Ask the model; a QuestbookError says that it cannot be loaded, failed or said nothing."""
        prompt = summary_prompt(summary, turns, tokens, self.instructions)
        model = await chat_model(self.settings)
        reply = await ask(model, prompt, model_name=self.settings.model, tags=[TAG_NOSTREAM])
        return clip_summary(reply.text, tokens)


def summary_prompt(summary: str, turns: Sequence[Mapping[str, Any]], tokens: int, template: str) -> list[BaseMessage]:
    """Make the prompt that folds turns into the summary of at most so many tokens."""
    words = max(40, tokens * 6 // 10)  # three tokens for two words, and a margin
    sections = [Section(INSTRUCTIONS, template.format(words=words)), Section("summary", escape(summary))]
    return prompt_about_turns(sections, turns)


def summarizer_of(settings: Settings, instructions: str) -> Summarizer:
    """Return the summarizer that the settings name."""
    return ModelSummarizer(settings, instructions) if settings.summarizer == "model" else ExtractiveSummarizer()


def policy_of(settings: Settings, instructions: str = "") -> policies.BufferPolicy:
    """Return the buffer policy that the settings name; only a summarizing model needs instructions."""
    if settings.buffer == "unbounded":
        return policies.Unbounded()
    if settings.buffer == "turns":
        return policies.LastTurns(settings.buffer_turns)
    if settings.buffer == "summary":
        return policies.RunningSummary(settings.summary_offset, summarizer_of(settings, instructions))
    return policies.TokenBudget(settings.buffer_tokens, summarizer_of(settings, instructions))


def conversation(state: TurnState, settings: Settings) -> list[AnyMessage]:
    """Return the turns that are in the prompt word for word, as the buffer policy says; interviews without calls."""
    past = len(state.messages) - len(state.current_turn)
    past_messages = without_calls(state.messages[:past], lambda call: call.name in state.INTERVIEW)
    messages = [*past_messages, *state.current_turn]
    selected = _policy(state, settings).select(policies.Buffer(messages, state.turn, state.summarised_through))
    most = state.fit_tokens(sys.maxsize, settings.model)
    return selected if most == sys.maxsize else policies.latest_messages(selected, most)


def eviction(state: TurnState, settings: Settings) -> policies.Eviction:
    """Return what is to be done about the buffer once the last turn is answered; falsy if nothing is."""
    policy = _policy(state, settings)
    return policy.evict(policies.Buffer(state.messages, state.turn, state.summarised_through, state.may_leave))


def upkeep_edge(context: type[Settings], *, reflects: bool = False) -> Callable[[Any], str]:
    """Make the route to "condense" when the buffer's policy says so; with `reflects`, a due reflection goes first."""

    def route_upkeep(state: Any) -> str:
        settings: Any = context.of(context_or_none())
        if reflects and settings.reflects_at(state.unreflected):
            return "reflect"
        return "condense" if eviction(state, settings) else END

    return route_upkeep


def _policy(state: TurnState, settings: Settings, instructions: str = "") -> policies.BufferPolicy:
    policy = state.BUFFER or policy_of(settings, instructions)
    if isinstance(policy, policies.TokenBudget):
        return replace(policy, tokens=state.fit_tokens(policy.tokens, settings.model))
    return policy


def condense(
    instructions: str = CONDENSE, noted: NotedFacts | None = None
) -> Callable[[TurnState, Runtime[Any]], Awaitable[JSON]]:
    """Make the node that lets turns leave the buffer, as its policy says; private ones without a word in the summary.

    If the summarizer fails, `fold` says what becomes of the summary. If the person's next message comes meanwhile, all
    turns stay until the next turn's end. A message that the server's queue brings again leaves
    (`TurnState.is_repeated`). `instructions` to a summarizing model have {words} for how many it may write.
    """

    async def condense(state: TurnState, runtime: Runtime[Any]) -> JSON:
        if state.is_repeated:
            return {"messages": [RemoveMessage(message.id or "") for message in state.current_turn]}
        settings: Settings = runtime.context
        folded, dropped = eviction(state, settings)
        update: JSON = {"messages": [RemoveMessage(m.id) for _, turn in dropped for m in turn if m.id]}
        summarizer = _policy(state, settings, instructions).summarizer
        if folded and summarizer:
            first, last = folded[0][0], folded[-1][0]
            if turns := public_turns(state.transcript(first, last)):
                try:
                    facts = partial(noted, state, runtime, first, last) if noted else None
                    folding = fold(state.summary, turns, settings, summarizer, facts)
                    update["summary"], failure = await give_way(folding, runtime)
                except GaveWay:
                    return {}
                update |= {"notices": [notice(state.turn, "condense", failure)]} if failure else {}
            update["summarised_through"] = last
        return update

    return condense


async def fold(
    summary: str,
    turns: Sequence[Turn],
    settings: Settings,
    summarizer: Summarizer,
    noted: Callable[[], Awaitable[Mapping[int, Sequence[str]]]] | None = None,
) -> tuple[str, str]:
    """Fold turns, at least one, into a summary; return it, and if the summarizer failed, a line that says so.

    Then sentences of the replies, and the facts that were `noted` of the turns, are behind the summary that was.
    """
    try:
        async with asyncio.timeout(settings.update_timeout):
            return await summarizer.fold(summary, turns, settings.summary_tokens), ""
    except (QuestbookError, TimeoutError) as error:
        reason = str(error) or f"no answer within {settings.update_timeout:g} seconds"
        _log.warning("Turns to %d were summarised without the model: %s", turns[-1]["turn"], reason)
    facts: Mapping[int, Sequence[str]] = {}
    try:
        facts = await noted() if noted else {}
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the replies' sentences are enough)
        _log.warning("The facts of turns that are summarised could not be read: %s", error, exc_info=True)
    with_facts = (turn | {"facts": facts[turn["turn"]]} if turn["turn"] in facts else turn for turn in turns)
    sentences = [sentence for turn in with_facts for sentence in extract(turn, quote=False)]
    extracted = append_extract(summary, sentences, settings.summary_tokens)
    return extracted, f"Older turns were summarised by taking sentences from them, not by the model. {reason}"

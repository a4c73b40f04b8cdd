"""An interview: the model talks with a person and notes on a page what they say, until nothing is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from questbook.graphs.settings import Settings
from questbook.graphs.turn.disclosure import guard_notices, guard_of
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.reply import calls_of, edit_pages, refuse_edits, take_out
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, notice
from questbook.graphs.turn.window import ask_fitted
from questbook.notebooks import Notebook
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)
SettingsT = TypeVar("SettingsT", bound=Settings)

_ROUNDS = 3
_log = logging.getLogger(__name__)


class InterviewTurn(NamedTuple, Generic[PageT]):
    """The outcome of one turn of an interview.

    Attributes:
        page: The page after it.
        messages: What was said and noted, without calls that failed; what was said to the person comes last, unless the
            page is complete.
        notices: What people should know: notes that were refused, a reply that was cut.
        window: The channel `window`, if it changes.
    """

    page: PageT
    messages: list[AnyMessage]
    notices: list[JSON]
    window: JSON


class Done(NamedTuple, Generic[PageT]):
    """How the model decides that a page is done before all was said.

    Attributes:
        tool: The tool by which it says so.
        complete: Fills in what is missing, given the page and the call's arguments; says what to tell the person.
    """

    tool: JSON
    complete: Callable[[PageT, JSON], tuple[PageT, str]]


async def interview(
    state: TurnState,
    page: PageT,
    runtime: Runtime[SettingsT],
    make_prompt: Callable[[PageT, list[AnyMessage]], Prompt],
    *,
    node: str,
    turn: int,
    question: str,
    private: bool,
    done: Done[PageT] | None = None,
) -> InterviewTurn[PageT]:
    """Talk with the person, and note what they said.

    The model is asked again, at most twice, when it noted something without a word to the person or when some of a note
    did not fit; what it said to the person, and what fits, is kept in any case.

    Args:
        state: The thread's state.
        page: The page to fill.
        runtime: The run's.
        make_prompt: Makes the prompt, given the page and what was said in this turn so far.
        node: Name of the node that interviews.
        turn: Number of the turn.
        question: What is asked if the model asks nothing, with {missing} for the first missing field.
        private: Whether the person asked that this turn not be remembered: then nothing is noted of it.
        done: Lets the model decide that the page is done; None: only full pages are.

    Raises:
        ModelError: The model failed or said nothing. The person's message is kept; the turn can be run again.
    """
    settings = runtime.context
    tools = [page.tool(), *([done.tool] if done else [])]
    done_name = done.tool["function"]["name"] if done else ""
    messages, notices = list[AnyMessage](), list[JSON]()
    spoke, missing, problems, window = False, page.missing, list[str](), dict[str, Any]()
    for _ in range(_ROUNDS):
        prompt = make_prompt(page, messages)
        guard = guard_of(state, prompt, settings)
        tags = [TAG_NOSTREAM] if spoke or page.complete else []
        fitted = await ask_fitted(runtime, prompt, node=node, turn=turn, guard=guard, tools=tools, tags=tags)
        reply, window = fitted.message, fitted.window or window
        notices += fitted.notices
        notices += guard_notices(guard, settings, turn, node)
        if spoke or page.complete:  # this round only mends a note: the person has had an answer, or gets another one
            reply = reply.model_copy(update={"content": ""})
        edits = (
            refuse_edits([page], reply, PRIVATE_REFUSAL)
            if private
            else edit_pages([page], reply, other_tools=[done_name] if done else [])
        )
        [page] = edits.pages
        for call in calls_of(reply) if done and not private else ():
            if done and call.name == done_name and not call.problem:
                page, remark = done.complete(page, call.args)
                notices += [notice(turn, node, remark)] if remark else []
        messages += _in_order(reply, edits.results, last=not page.complete)
        spoke = spoke or bool(reply.text.strip())
        problems = edits.problems if edits.results else problems
        if not problems and (page.complete or spoke):
            break
    if problems:  # not mended
        _log.warning("Not all was noted on the page: %s", problems)
        text = "Not all that you said could be noted; say it again in other words if it is missing."
        notices.append(notice(turn, node, text, " ".join(problems)))
    if not spoke and not page.complete:
        _log.warning("The model noted some of %s but said nothing to the person.", ", ".join(missing))
        messages.append(AIMessage(question.format(missing=page.missing[0])))
        notices.append(notice(turn, node, "The model asked nothing, so an ordinary question was asked."))
    if spoke and not page.complete:  # a note may have been mended behind the words that the turn ends with
        words = next(i for i, message in enumerate(messages) if message.type == "ai" and message.text.strip())
        messages.append(messages.pop(words))
    if page.complete and messages and isinstance(messages[-1], ToolMessage):  # it says what comes now
        messages[-1] = messages[-1].model_copy(update={"status": "success"})
    return InterviewTurn(page, _without_failures(messages), notices, {"window": window} if window else {})


def _without_failures(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Leave out calls that failed, with their results: they were mended, or are of no use to later prompts."""
    failed = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "error"}
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, AIMessage):
            rest, _ = take_out(message, lambda call: call.id in failed)
            kept += [rest] if rest.text.strip() or calls_of(rest) else []
        elif not isinstance(message, ToolMessage) or message.tool_call_id not in failed:
            kept.append(message)
    return kept


def _in_order(reply: AIMessage, results: list[ToolMessage], *, last: bool) -> list[AnyMessage]:
    """Put what was said to the person last, after calls and their results: it is what the turn ends with."""
    if not results:
        return [reply] if reply.text.strip() else []
    if not last or not reply.text.strip():
        return [reply, *results]
    calls = reply.model_copy(update={"content": "", "id": f"{reply.id}-calls" if reply.id else None})
    return [calls, *results, AIMessage(reply.text, id=reply.id)]

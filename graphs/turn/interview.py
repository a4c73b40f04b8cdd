"""An interview: the model talks with a person and notes on a page what they say, until nothing is missing."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from questbook.graphs.errors import ModelError
from questbook.graphs.turn.prompt import Prompt
from questbook.graphs.turn.reply import ask_fitted, guard_notices, guard_of
from questbook.graphs.turn.scope import SettingsT
from questbook.graphs.turn.state import Notice, TurnState, notice
from questbook.graphs.turn.tool_calls import PageT, calls_of, edit_pages, refuse_edits, without_calls
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private
from questbook.notebooks import Notebook
from questbook.types import JSON

_ROUNDS = 3


class InterviewTurn(NamedTuple, Generic[PageT]):
    """The outcome of one turn of an interview."""

    page: PageT  # the page after it
    messages: list[AnyMessage]  # what was said and noted; last what was said to the person, unless the page is complete
    notices: list[Notice]  # what people should know: notes that were refused, a reply that was cut
    window: JSON  # the channel `window`, if it changes


class Done(NamedTuple, Generic[PageT]):
    """How the model decides that a page is done before all was said."""

    tool: JSON  # the tool by which it says so
    complete: Callable[[PageT, JSON], tuple[PageT, str]]  # given its arguments, fills in the page; what to tell of it


async def interview(
    state: TurnState,
    page: PageT,
    runtime: Runtime[SettingsT],
    make_prompt: Callable[[PageT, list[AnyMessage]], Prompt],
    *,
    node: str,
    question: str,
    done: Done[PageT] | None = None,
) -> InterviewTurn[PageT]:
    """Talk with the person, and note on the page what they said.

    The model is asked again, at most twice, when it noted something without a word to the person, and when some of a
    note did not fit; what it said to the person, and what fits, is kept in any case. Nothing is noted of a private
    turn. If the model asks nothing, `question` is asked, with {missing} for the first missing field.
    """
    turn, private, done_tools = state.turn, is_private(state), [done.tool] if done else []
    done_names = [tool["function"]["name"] for tool in done_tools]
    messages, notices = list[AnyMessage](), list[Notice]()
    spoke, problems, window = False, list[str](), dict[str, Any]()
    for _ in range(_ROUNDS):
        prompt = make_prompt(page, messages)
        guard, tools = guard_of(state, prompt, runtime.context), [page.tool(), *done_tools]
        mends = spoke or page.complete  # this round only mends a note: the person has had an answer, or gets another
        tags = [TAG_NOSTREAM] if mends else []
        try:
            fitted = await ask_fitted(runtime, prompt, node=node, turn=turn, guard=guard, tools=tools, tags=tags)
        except ModelError as error:
            if not mends:
                raise
            problems = [*problems, str(error)]
            break  # what was said and noted before stays
        reply, window = fitted.message, fitted.window or window
        notices += [*fitted.notices, *guard_notices(guard, runtime.context, turn, node)]
        if mends:
            reply = reply.model_copy(update={"content": ""})
        refused = refuse_edits([page], reply, PRIVATE_REFUSAL) if private else None
        edits = refused or edit_pages([page], reply, other_tools=done_names)
        [page] = edits.pages
        for call in calls_of(reply) if done and not private else ():
            if done and call.name in done_names and not call.problem:
                page, remark = done.complete(page, call.args)
                notices += [notice(turn, node, remark)] if remark else []
        messages += _in_order(reply, edits.results, last=not page.complete)
        spoke = spoke or bool(reply.text.strip())
        problems = edits.problems if edits.results else problems
        if (mends and not edits.results) or (not problems and (page.complete or spoke)):
            break  # who answers a refusal in words would be asked the same, word for word
    if problems:  # not mended
        text = "Not all that you said could be noted; say it again in other words if it is missing."
        notices.append(notice(turn, node, text, " ".join(problems)))
    if not spoke and not page.complete:
        messages.append(AIMessage(question.format(missing=page.missing[0])))
        notices.append(notice(turn, node, "The model asked nothing, so an ordinary question was asked."))
    return InterviewTurn(page, _as_kept(messages, page), notices, {"window": window} if window else {})


def _as_kept(messages: list[AnyMessage], page: Notebook) -> list[AnyMessage]:
    if page.complete and messages and isinstance(messages[-1], ToolMessage):  # it says what comes now
        messages[-1] = messages[-1].model_copy(update={"status": "success"})
    elif not page.complete:  # a note may have been mended behind the words that the turn ends with
        words = next(i for i, message in enumerate(messages) if message.type == "ai" and message.text.strip())
        messages.append(messages.pop(words))
    failed = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "error"}
    return without_calls(messages, lambda call: call.id in failed)  # mended, or of no use to later prompts


def _in_order(reply: AIMessage, results: list[ToolMessage], *, last: bool) -> list[AnyMessage]:
    if not results:
        return [reply] if reply.text.strip() else []
    if not last or not reply.text.strip():
        return [reply, *results]
    calls = reply.model_copy(update={"content": "", "id": f"{reply.id}-calls" if reply.id else None})
    return [calls, *results, AIMessage(reply.text, id=reply.id)]

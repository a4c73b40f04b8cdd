"""An interview: the model talks with a person and notes on a page what they say, until nothing is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.runtime import Runtime

from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.prompt_stack import Prompt
from questbook.graphs.turn.tool_calls import refuse_pages, write_pages
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.withheld import REFUSED
from questbook.notebooks import Notebook

JSON = dict[str, Any]
PageT = TypeVar("PageT", bound=Notebook)
SettingsT = TypeVar("SettingsT", bound=Settings)

_ROUNDS = 3
_log = logging.getLogger(__name__)


class Interviewed(NamedTuple, Generic[PageT]):
    """What a turn of an interview came to.

    Attributes:
        page: The page after it.
        messages: What was said and noted; what was said to the person stands last, unless the page is complete.
        notices: Notes that did not fit, for people.
    """

    page: PageT
    messages: list[AnyMessage]
    notices: list[JSON]


async def interview(
    page: PageT,
    runtime: Runtime[SettingsT],
    prompt_of: Callable[[PageT, list[AnyMessage]], Prompt],
    *,
    node: str,
    turn: int,
    question: str,
    silent: bool,
) -> Interviewed[PageT]:
    """Talk with the person, and note what they said.

    The model is asked again, at most twice, when it noted something without a word to the person or when a note did
    not fit; what it said to the person is kept in any case.

    Args:
        page: The page to fill.
        runtime: The run's.
        prompt_of: Makes the prompt, given the page and what was said in this turn so far.
        node: Whose turn it is.
        turn: Its number.
        question: What is asked if the model asks nothing, with {missing} for the first missing field.
        silent: Whether the person asked that this turn not be remembered: then nothing is noted of it.

    Raises:
        ModelError: The model failed or said nothing. The person's message is kept; the turn can be run again.
    """
    settings = runtime.context
    model = bind_tools(await chat_model(settings), [page.tool()], settings)
    said, notices = list[AnyMessage](), list[JSON]()
    spoke, missing = False, page.missing
    for _ in range(_ROUNDS):
        prompt = prompt_of(page, said)
        runtime.stream_writer(prompt.told(node, turn))
        reply = await ask(
            model,
            prompt.messages,
            model_name=settings.model,
            tags=[TAG_NOSTREAM] if spoke else [],
            timeout=settings.model_timeout,
        )
        if spoke:  # this round only mends a note: the person has had an answer
            reply = reply.model_copy(update={"content": ""})
        written = refuse_pages([page], reply, REFUSED) if silent else write_pages([page], reply)
        [page] = written.pages
        said += _in_order(reply, written.results, last=not page.complete)
        notices += [notice(turn, node, problem) for problem in written.problems]
        spoke = spoke or bool(reply.text.strip())
        if page.complete or (spoke and not written.problems):
            break
    if not spoke and not page.complete:
        _log.warning("The model noted some of %s but said nothing to the person.", ", ".join(missing))
        said.append(AIMessage(question.format(missing=page.missing[0])))
        notices.append(notice(turn, node, "The model asked nothing; a stock question was used."))
    if spoke and not page.complete:  # a note may have been mended behind the words that the turn ends with
        words = next(place for place, message in enumerate(said) if message.type == "ai" and message.text.strip())
        said.append(said.pop(words))
    return Interviewed(page, said, notices)


def _in_order(reply: AIMessage, results: list[ToolMessage], *, last: bool) -> list[AnyMessage]:
    """Put what was said to the person last, after calls and their results: it is what the turn ends with."""
    if not results:
        return [reply] if reply.text.strip() else []
    if not last or not reply.text.strip():
        return [reply, *results]
    calls = reply.model_copy(update={"content": "", "id": f"{reply.id}-calls" if reply.id else None})
    return [calls, *results, AIMessage(reply.text, id=reply.id)]

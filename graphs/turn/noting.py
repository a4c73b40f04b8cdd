"""Noting: after the reply, one question to the model for patches of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.errors import ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.tool_calls import Call, calls_of, write_pages
from questbook.notebooks import Notebook, render_value

JSON = dict[str, Any]
PageT = TypeVar("PageT", bound=Notebook)

_ATTEMPTS = 2
_PROSE = 200  # characters of an answer without a call, up to which it only says that nothing changed


class Noted(NamedTuple, Generic[PageT]):
    """What the model noted.

    Attributes:
        pages: The pages after it, in the order given.
        notes: What a person should know: values that code corrected, answers that nothing could be made of.
        besides: Readable calls of the other tools that were offered.
        problems: Why calls were refused even when they were sent again; empty if all fitted in the end.
        refused: Names of the tools whose calls those were; of such a page, what fitted is in `pages` all the same.
    """

    pages: list[PageT]
    notes: list[str]
    besides: list[Call]
    problems: list[str]
    refused: set[str]


async def note(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, besides: Sequence[JSON] = ()
) -> Noted[PageT]:
    """Ask the model for patches of pages, all in one answer; no call means no change.

    A patch that does not fit is sent back once, with the reason.

    Args:
        pages: The pages that may be patched.
        prompt: What the model is given.
        settings: Name the model, and how long it may take.
        besides: Other tools to offer. If only calls of theirs cannot be read, what the pages say stands.

    Raises:
        QuestbookError: The model cannot be loaded, failed, said nothing, or took too long.
    """
    try:
        async with asyncio.timeout(settings.update_timeout):
            return await _note(pages, prompt, settings, besides)
    except TimeoutError as error:
        raise ModelError(f"no answer within {settings.update_timeout:g} seconds") from error


async def _note(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, besides: Sequence[JSON]
) -> Noted[PageT]:
    others = {tool["function"]["name"] for tool in besides}
    tools = [*(page.tool() for page in pages), *besides]
    model = bind_tools(await chat_model(settings), tools, settings)
    noted: Noted[PageT] = Noted(list(pages), [], [], [], set())
    for _ in range(_ATTEMPTS):
        reply = await ask(model, prompt, model_name=settings.model, tags=[TAG_NOSTREAM])
        written = write_pages(noted.pages, reply, besides=others)
        noted = noted._replace(pages=written.pages)
        noted.notes.extend(written.notes)
        calls = calls_of(reply)
        noted.besides.extend(call for call in calls if call.name in others and not call.problem)
        if not calls and (len(reply.text) > _PROSE or "{" in reply.text):
            noted.notes.append("The model answered with prose instead of calling a tool; nothing was noted of it.")
        if not written.problems:
            return noted
        prompt = [*prompt, reply, *written.results]
    unread = [call for call in calls if call.problem]
    if len(unread) == len(written.problems) and all(call.name in others for call in unread):
        names = ", ".join(sorted({call.name for call in unread}))
        noted.notes.append(f"The {names} that the model sent could not be read; the page's notes stand.")
        return noted
    return noted._replace(problems=written.problems, refused=written.refused)


def within(turns: Sequence[JSON], budget: int) -> list[JSON]:
    """Take the oldest turns that fit in a prompt, at least one: after a long failure, notes catch up in portions."""
    taken: list[JSON] = []
    for turn in turns:
        budget -= count_tokens_approximately([render_value(turn)])
        if taken and budget < 0:
            break
        taken.append(turn)
    return taken

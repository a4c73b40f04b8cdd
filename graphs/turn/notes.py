"""Notes: after the reply, one question to the model for patches of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.errors import ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.reply import Call, calls_of, edit_pages
from questbook.notebooks import Notebook, render_value
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)

_ATTEMPTS = 2
_NO_CHANGE = 200  # characters of an answer without a call, up to which it only says that nothing changed


class Notes(NamedTuple, Generic[PageT]):
    """What the model noted.

    Attributes:
        pages: The pages after it, in the order given.
        patches: What changed on each page: a merge patch from the page that was given, {} for no change. The page has
            applied the model's own patches, so the reducer, which applies this one, cannot refuse it.
        remarks: What a person should know: values that code corrected, answers that could not be used.
        other_calls: Readable calls of the other tools that were offered.
        problems: Why calls were refused even when they were sent again; empty if none was in the end.
        refused: Names of the tools whose calls were refused; other calls for the same page have been applied.
    """

    pages: list[PageT]
    patches: list[JSON]
    remarks: list[str]
    other_calls: list[Call]
    problems: list[str]
    refused: set[str]


async def take_notes(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, other_tools: Sequence[JSON] = ()
) -> Notes[PageT]:
    """Ask the model for patches of pages, all in one answer; no call means no change.

    A patch that does not fit is sent back once, with the reason.

    Args:
        pages: The pages that may be patched.
        prompt: What the model is given.
        settings: Name the model, and how long it may take.
        other_tools: Other tools to offer. If only calls of these cannot be read, the patches count all the same.

    Raises:
        QuestbookError: The model cannot be loaded, failed, said nothing, or took too long.
    """
    try:
        async with asyncio.timeout(settings.update_timeout):
            return await _take_notes(pages, prompt, settings, other_tools)
    except TimeoutError as error:
        raise ModelError(f"no answer within {settings.update_timeout:g} seconds") from error


async def _take_notes(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, other_tools: Sequence[JSON]
) -> Notes[PageT]:
    others = {tool["function"]["name"] for tool in other_tools}
    tools = [*(page.tool() for page in pages), *other_tools]
    model = bind_tools(await chat_model(settings), tools, settings)
    edited, remarks, other_calls = list(pages), list[str](), list[Call]()
    problems, refused = list[str](), set[str]()
    for _ in range(_ATTEMPTS):
        reply = await ask(model, prompt, model_name=settings.model, tools=tools, tags=[TAG_NOSTREAM])
        edits = edit_pages(edited, reply, other_tools=others, stored=pages)
        edited, problems, refused = edits.pages, edits.problems, edits.refused
        remarks += edits.notes
        calls = calls_of(reply)
        other_calls += [call for call in calls if call.name in others and not call.problem]
        if not calls and (len(reply.text) > _NO_CHANGE or "{" in reply.text):
            remarks.append("What the model answered could not be read as notes; nothing was noted of it.")
        if not problems:
            break
        prompt = [*prompt, reply, *edits.results]
    unread = [call.name for call in calls if call.problem]
    if problems and len(unread) == len(problems) and others.issuperset(unread):
        names = ", ".join(sorted(set(unread)))
        remarks.append(f"The {names} that the model sent could not be read; the page's notes are kept.")
        problems, refused = [], set()
    patches = [new.patch_from(old) for old, new in zip(pages, edited, strict=True)]
    return Notes(edited, patches, remarks, other_calls, problems, refused)


def oldest_within(turns: Sequence[JSON], budget: int) -> list[JSON]:
    """Return the oldest turns that fit in so many tokens, at least one: after a failure, notes catch up in portions."""
    portion: list[JSON] = []
    for turn in turns:
        budget -= count_tokens_approximately([render_value(turn)])
        if portion and budget < 0:
            break
        portion.append(turn)
    return portion

"""Notes: after the reply, one question to the model for patches of pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.errors import ModelError, PromptTooLongError, QuestbookError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.reply import Call, calls_of, edit_pages
from questbook.memory.text.words import count_tokens
from questbook.notebooks import Notebook, render_value
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)
AnswerT = TypeVar("AnswerT")

_RETRIES = 2  # times that the model is asked again for what did not fit; for text in the place of calls, once
_SIDE = 1000  # characters that are left of either side of a text that is too long for the window
IN_SHORT = "A turn was too long for the model that takes notes: it got the beginning and the end of it."
_SHORT = 200  # characters of an answer in which a word such as "no" is enough to say that nothing changed
_SAYS_NO = re.compile(r"\b(?:no|not|nothing|none|unchanged|n/a)\b", re.IGNORECASE)
_SAYS_NO_CHANGE = re.compile(r"\bno(?:thing)?(?: (?:has|have|was|is))? chang|\bunchanged\b", re.IGNORECASE)
_NO_CALL = "The answer was text in the place of a call."


class Notes(NamedTuple, Generic[PageT]):
    """What the model noted.

    Attributes:
        pages: The pages after it, in the order given.
        patches: What changed on each page: a merge patch from the page that was given, {} for no change. The page has
            applied the model's own patches, so the reducer, which applies this one, cannot refuse it.
        remarks: What a person should know: values that code corrected, facts that could not be read.
        other_calls: Readable calls of the other tools that were offered.
        problems: Why not all was noted, even when it was asked for again; empty if all was. What did fit is noted.
        refused: Names of the tools of which not all was noted.
    """

    pages: list[PageT]
    patches: list[JSON]
    remarks: list[str]
    other_calls: list[Call]
    problems: list[str]
    refused: set[str]


class _Draft(Generic[PageT]):
    """What has been noted while the model is asked again: it counts even if the model then fails."""

    def __init__(self, pages: Sequence[PageT]) -> None:
        self.pages = list(pages)
        self.remarks: list[str] = []
        self.other_calls: list[Call] = []
        self.problems: list[str] = []
        self.refused: set[str] = set()
        self.unread: list[str] = []
        self.answered = False


async def take_notes(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, other_tools: Sequence[JSON] = ()
) -> Notes[PageT]:
    """Ask the model for patches of pages, all in one answer; no call means no change.

    What fits is noted; for the rest the model is asked twice more, with all that is wrong and what would fit.

    Args:
        pages: The pages that may be patched; none: only the other tools are offered.
        prompt: What the model is given.
        settings: Name the model, and how long it may take.
        other_tools: Other tools to offer. If only calls of these cannot be read, the patches of pages count all the
            same.

    Raises:
        QuestbookError: The model cannot be loaded, failed, said nothing, or took too long, before anything was noted.
    """
    draft = _Draft(pages)
    try:
        async with asyncio.timeout(settings.update_timeout):
            await _take_notes(pages, prompt, settings, other_tools, draft)
    except (TimeoutError, QuestbookError) as error:
        reason = str(error) or f"no answer within {settings.update_timeout:g} seconds"
        if not draft.answered:
            raise (error if isinstance(error, QuestbookError) else ModelError(reason)) from error
        draft.problems.append(reason)
    others = {tool["function"]["name"] for tool in other_tools}
    if pages and draft.problems and len(draft.unread) == len(draft.problems) and others.issuperset(draft.unread):
        names = ", ".join(sorted(set(draft.unread)))
        draft.remarks.append(f"The {names} that the model sent could not be read; the page's notes are kept.")
        draft.problems, draft.refused = [], set()
    patches = [new.patch_from(old) for old, new in zip(pages, draft.pages, strict=True)]
    return Notes(draft.pages, patches, draft.remarks, draft.other_calls, draft.problems, draft.refused)


async def _take_notes(
    pages: Sequence[PageT],
    prompt: Sequence[BaseMessage],
    settings: Settings,
    other_tools: Sequence[JSON],
    draft: _Draft[PageT],
) -> None:
    tools = [*(page.tool() for page in pages), *other_tools]
    others = {tool["function"]["name"] for tool in other_tools}
    model = bind_tools(await chat_model(settings), tools, settings)
    for _ in range(1 + _RETRIES):
        reply = await ask(model, prompt, model_name=settings.model, tools=tools, tags=[TAG_NOSTREAM])
        edits, calls = edit_pages(draft.pages, reply, other_tools=others, stored=pages), calls_of(reply)
        was_text, no_call = draft.problems == [_NO_CALL], not calls and not _says_no_change(reply.text)
        draft.answered = True
        draft.pages, draft.problems, draft.refused = edits.pages, edits.problems, edits.refused
        draft.unread = [call.name for call in calls if call.problem]
        draft.remarks += edits.notes
        draft.other_calls += [call for call in calls if call.name in others and not call.problem]
        if no_call:
            draft.problems, draft.refused = [_NO_CALL], {type(page).__name__ for page in pages}
        if not draft.problems or (no_call and was_text):
            return
        names = ", ".join(tool["function"]["name"] for tool in tools)
        again = HumanMessage(f'{_NO_CALL} Call {names} with what is to be noted, or answer "no change".')
        prompt = [*prompt, reply, *([again] if no_call else edits.results)]


def _says_no_change(text: str) -> bool:
    """Whether an answer without a call says that there is nothing to note; "Noted." claims what was not done."""
    return "{" not in text and bool((_SAYS_NO if len(text) <= _SHORT else _SAYS_NO_CHANGE).search(text))


class OfOldest(NamedTuple, Generic[AnswerT]):
    """What came of a question about the oldest turns.

    Attributes:
        answer: The answer.
        turns: The turns that it is about.
        short: Whether the model got the beginning and the end of long texts.
    """

    answer: AnswerT
    turns: list[JSON]
    short: bool


async def ask_of_oldest(
    turns: Sequence[JSON], budget: int, ask: Callable[[list[JSON]], Awaitable[AnswerT]]
) -> OfOldest[AnswerT]:
    """Ask about the oldest turns that fit in so many tokens; too long: of the oldest alone, then of that in short.

    Args:
        turns: The turns, the oldest first, at least one.
        budget: Tokens.
        ask: Asks the model about turns.

    Raises:
        QuestbookError: As `ask`.
    """
    portion = oldest_within(turns, budget)
    for shown in [portion, *([portion[:1]] if len(portion) > 1 else [])]:
        try:
            return OfOldest(await ask(shown), shown, short=False)
        except PromptTooLongError:
            continue
    return OfOldest(await ask([in_short(portion[0])]), portion[:1], short=True)


def oldest_within(turns: Sequence[JSON], budget: int) -> list[JSON]:
    """Return the oldest turns that fit in so many tokens, at least one: after a failure, notes catch up in portions."""
    portion: list[JSON] = []
    for turn in turns:
        budget -= count_tokens(render_value(turn))
        if portion and budget < 0:
            break
        portion.append(turn)
    return portion


def in_short(turn: JSON) -> JSON:
    """Return a turn with the beginning and the end of long texts: whole, it is too long for the model's window.

    Without this, notes would get no farther than such a turn.
    """

    def clip(value: object) -> object:
        is_long = isinstance(value, str) and len(value) > 2 * _SIDE
        return f"{value[:_SIDE]} … {value[-_SIDE:]}" if is_long and isinstance(value, str) else value

    return {name: clip(value) for name, value in turn.items()}

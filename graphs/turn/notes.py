"""Notes: after the reply, one question to the model for patches of pages; and how notes catch up."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.store.base import BaseStore

from questbook.graphs.errors import ModelError, PromptTooLongError, QuestbookError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import GaveWay
from questbook.graphs.turn.state import Notice, Turn, TurnState, failure_notice
from questbook.graphs.turn.tool_calls import Call, PageT, calls_of, edit_pages
from questbook.memory.facts.lookup import Slot, find_slots, subjects_in
from questbook.memory.text.words import count_tokens
from questbook.memory.timeline.timeline import Timeline
from questbook.notebooks import render_value
from questbook.types import JSON

AnswerT = TypeVar("AnswerT")

_RETRIES = 2  # times that the model is asked again for what did not fit; for text in the place of calls, once
_SIDE = 1000  # characters that are left of either side of a text that is too long for the window
IN_SHORT = "A turn was too long for the model that takes notes: it got the beginning and the end of it."
CATCH_UP = "the next turn will catch up"  # what becomes of a turn that could not be noted
GIVEN_UP = "what does not fit is left out, so that later turns can be noted"  # and if too many wait for it
KNOWN_TOKENS = 240  # tokens that the known attributes may cost, in a conversation of any length
_SHORT = 200  # characters of an answer in which a word such as "no" is enough to say that nothing changed
_SAYS_NO = re.compile(r"\b(?:no|not|nothing|none|unchanged|n/a)\b", re.IGNORECASE)
_SAYS_NO_CHANGE = re.compile(r"\bno(?:thing)?(?: (?:has|have|was|is))? chang|\bunchanged\b", re.IGNORECASE)
_NO_CALL = "The answer was text in the place of a call."


@contextmanager
def catching_up(
    state: TurnState, node: str, failed: str, failures: type[Exception] = QuestbookError
) -> Iterator[list[Notice]]:
    """Take notes of `turns_to_note`; if they fail, or the person's next message comes meanwhile, the next turn does it.

    Gives the notices: after a failure one that begins with `failed`, else none.
    """
    notices = list[Notice]()
    try:
        yield notices
    except GaveWay:
        pass
    except failures as error:
        notices.append(failure_notice(state.turn, node, f"{failed}; {CATCH_UP}.", error))


def is_given_up(state: TurnState, node: str, first: int, *, is_all: bool) -> bool:
    """Whether what does not fit is left out: not all turns from `first` on were shown, and it did not fit before."""
    told = (entry for entry in state.notices if entry["node"] == node and first <= entry["turn"] < state.turn)
    return not is_all and any(CATCH_UP in entry["text"] for entry in told)


class OfOldest(NamedTuple, Generic[AnswerT]):
    """What came of a question about the oldest turns."""

    answer: AnswerT
    turns: list[Turn]  # those that it is about
    short: bool  # whether the model got the beginning and the end of long texts


async def ask_of_oldest(
    turns: Sequence[Turn], budget: int, ask: Callable[[list[Turn]], Awaitable[AnswerT]]
) -> OfOldest[AnswerT]:
    """Ask about the oldest turns that fit in so many tokens; too long: of the oldest alone, then of that in short."""
    portion = oldest_within(turns, budget)
    for shown in [portion, *([portion[:1]] if len(portion) > 1 else [])]:
        try:
            return OfOldest(await ask(shown), shown, short=False)
        except PromptTooLongError:
            continue
    return OfOldest(await ask([in_short(portion[0])]), portion[:1], short=True)


def oldest_within(turns: Sequence[Turn], budget: int) -> list[Turn]:
    """Return the oldest turns that fit in so many tokens, at least one: after a failure, notes catch up in portions."""
    portion: list[Turn] = []
    for turn in turns:
        budget -= count_tokens(render_value(turn))
        if portion and budget < 0:
            break
        portion.append(turn)
    return portion


@dataclass
class Notes(Generic[PageT]):
    """What the model noted."""

    pages: list[PageT]  # the pages after it, in the order given
    remarks: list[str] = field(default_factory=list)  # for a person: values that code corrected, unreadable facts
    other_calls: list[Call] = field(default_factory=list)  # readable calls of the other tools that were offered
    problems: list[str] = field(default_factory=list)  # why not all was noted, even when it was asked for again
    refused: set[str] = field(default_factory=set)  # names of the tools of which not all was noted
    unread: list[str] = field(default_factory=list)  # names of tools whose last arguments could not be read
    is_answer: bool = False  # whether the model has answered at all
    patches: list[JSON] = field(default_factory=list)  # merge patches of the pages that were given, {}: no change


async def take_notes(
    pages: Sequence[PageT], prompt: Sequence[BaseMessage], settings: Settings, other_tools: Sequence[JSON] = ()
) -> Notes[PageT]:
    """Ask the model for patches of pages, all in one answer; no call means no change.

    What fits is noted; for the rest the model is asked twice more, with all that is wrong and what would fit. If only
    calls of `other_tools` cannot be read, the patches of pages count all the same. A QuestbookError says that the model
    failed, or took longer than `settings.update_timeout`, before anything was noted.
    """
    notes, tools = Notes(list(pages)), [*(page.tool() for page in pages), *other_tools]
    others = {tool["function"]["name"] for tool in other_tools}
    try:
        async with asyncio.timeout(settings.update_timeout):
            model = bind_tools(await chat_model(settings), tools, settings)
            for _ in range(1 + _RETRIES):
                reply = await ask(model, prompt, model_name=settings.model, tools=tools, tags=[TAG_NOSTREAM])
                edits, calls = edit_pages(notes.pages, reply, other_tools=others, stored=pages), calls_of(reply)
                was_text, no_call = notes.problems == [_NO_CALL], not calls and not _says_no_change(reply.text)
                notes.pages, notes.problems, notes.refused = edits.pages, edits.problems, edits.refused
                notes.unread = [call.name for call in calls if call.problem]
                notes.remarks += edits.notes
                notes.other_calls += [call for call in calls if call.name in others and not call.problem]
                if no_call:
                    notes.problems, notes.refused = [_NO_CALL], {type(page).__name__ for page in pages}
                notes.is_answer = True  # it counts even if the model then fails
                if not notes.problems or (no_call and was_text):
                    break
                names = ", ".join(tool["function"]["name"] for tool in tools)
                again = HumanMessage(f'{_NO_CALL} Call {names} with what is to be noted, or answer "no change".')
                prompt = [*prompt, reply, *([again] if no_call else edits.results)]
    except (TimeoutError, QuestbookError) as error:
        reason = str(error) or f"no answer within {settings.update_timeout:g} seconds"
        if not notes.is_answer:
            raise (error if isinstance(error, QuestbookError) else ModelError(reason)) from error
        notes.problems.append(reason)
    if pages and notes.problems and len(notes.unread) == len(notes.problems) and others.issuperset(notes.unread):
        names = ", ".join(sorted(set(notes.unread)))
        notes.remarks.append(f"The {names} that the model sent could not be read; the page's notes are kept.")
        notes.problems, notes.refused = [], set()
    notes.patches = [new.patch_from(old) for old, new in zip(pages, notes.pages, strict=True)]
    return notes


def _says_no_change(text: str) -> bool:
    """Whether an answer without a call says that there is nothing to note; "Noted." claims what was not done."""
    return "{" not in text and bool((_SAYS_NO if len(text) <= _SHORT else _SAYS_NO_CHANGE).search(text))


def in_short(turn: Turn) -> Turn:
    """Return a turn with the beginning and the end of long texts: notes would get no farther than such a turn."""
    long = {name: text for name, text in turn.items() if isinstance(text, str) and len(text) > 2 * _SIDE}
    return cast("Turn", turn | {name: f"{text[:_SIDE]} … {text[-_SIDE:]}" for name, text in long.items()})


async def known_slots(
    store: BaseStore,
    namespace: tuple[str, ...],
    turns: Sequence[Turn],
    subjects: Sequence[str],
    *,
    keys: Sequence[str] = (),
    timeline: Timeline | None = None,
    before: int | None = None,
) -> list[Slot]:
    """Return the slots of the first of these subjects, of all that turns name, and of the facts with these keys.

    Only facts count that the timeline sees (None: all) and that are from before the turn `before`.
    """
    text = "\n".join(str(turn[part]) for turn in turns for part in ("player", "reply"))
    slots = await find_slots(store, namespace, text, subjects=subjects, keys=keys, timeline=timeline, before=before)
    named = subjects_in(f"{text}\n{subjects[0] if subjects else ''}", [slot.subject for slot in slots])
    return [slot for slot in slots if slot.key in keys or slot.subject in named]


def attribute_lines(slots: Iterable[Slot]) -> list[str]:
    """Return lines {"subject", "attributes"}, in the order in which subjects come, as many as fit in `KNOWN_TOKENS`."""
    groups: dict[str, JSON] = {}
    left = KNOWN_TOKENS
    for known in slots:
        name = known.slot.partition("|")[0]
        group = groups.get(name, {"subject": known.subject, "attributes": []})
        if known.attribute in group["attributes"]:  # as a secret or a claim, too
            continue
        grown = group | {"attributes": [*group["attributes"], known.attribute]}
        cost = count_tokens(render_value(grown)) - (count_tokens(render_value(group)) if name in groups else 0)
        if cost <= left:
            left -= cost
            groups[name] = grown
    return [render_value(group) for group in groups.values()]

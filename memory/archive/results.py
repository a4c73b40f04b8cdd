"""Which results of a search are shown: those of some days, scored by their words, a page at a time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from questbook.memory.errors import BadQueryError
from questbook.memory.recall.choice import choose
from questbook.memory.recall.query import Passage, Query, Recalled, said_in
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.passages import cut_messages, lead
from questbook.memory.text.words import query_words
from questbook.types import JSON

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT")
_LEAST_WORDS = 15  # of a result


class Days(NamedTuple):
    """A range of whole days in a timezone, both ends included; None leaves an end open."""

    first: date | None
    last: date | None
    zone: tzinfo

    def contains(self, time: str) -> bool:
        """Whether a time, ISO 8601, is in the range; without an offset it is UTC. Text that is no time is in none."""
        if self.first is None and self.last is None:
            return True
        try:
            moment = datetime.fromisoformat(time)
        except ValueError:
            return False
        day = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(self.zone).date()
        return (self.first is None or day >= self.first) and (self.last is None or day <= self.last)


def find_timezone(name: str) -> tzinfo:
    """Return the timezone with an IANA name; "" is this machine's own.

    Raises:
        BadQueryError: There is no such timezone.
    """
    if not name:
        return datetime.now().astimezone().tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadQueryError(
            f"There is no timezone {name!r:.60}; expected an IANA name, such as Europe/Berlin."
        ) from error


def read_days(first: str | None, last: str | None, now: datetime, names: tuple[str, str] = ("start", "end")) -> Days:
    """Read a range of days as a model or a person writes them, given the present in the person's timezone.

    A day is "2026-03-14", a time in ISO 8601, "today", "now" or "yesterday"; None or blank leaves an end open. `names`
    is what the caller calls the two days, for errors.

    Raises:
        BadQueryError: One is not a day, or the range ends before it begins.
    """
    start, end = _read_day(first, names[0], now), _read_day(last, names[1], now)
    if start and end and end < start:
        raise BadQueryError(f"{names[1]}: got {end}, which is before {names[0]}, {start}; give the earlier day first.")
    return Days(start, end, now.tzinfo or UTC)


def _read_day(text: str | None, argument: str, now: datetime) -> date | None:
    word = (text or "").strip().casefold()
    if not word:
        return None
    if word in ("today", "now", "yesterday"):
        return now.date() - timedelta(days=word == "yesterday")
    try:
        if _ISO_DAY.fullmatch(word):
            return date.fromisoformat(word)
        moment = datetime.fromisoformat(word.upper())
        return (moment.astimezone(now.tzinfo) if moment.tzinfo else moment).date()
    except ValueError as error:
        raise BadQueryError(
            f"{argument}: got {text!r:.40}; expected a day as YYYY-MM-DD, such as {now.date()}, which is today."
        ) from error


class Page(NamedTuple, Generic[ItemT]):
    """A page of results: its number, from 1, of how many, where its first is among all, and how many there are."""

    items: list[ItemT]
    first: int
    total: int
    number: int
    pages: int

    @property
    def heading(self) -> str:
        """Say which of how many results are shown."""
        if not self.total:
            return "Nothing was found: 0 of 0."
        last = self.first + len(self.items) - 1
        return f"Showing {self.first}–{last} of {self.total} (page {self.number} of {self.pages})."


def cut_page(results: Sequence[ItemT], number: int, size: int) -> Page[ItemT]:
    """Return one page, from 1, of all results in order, with so many on a page.

    Raises:
        BadQueryError: There is no such page; the message says how many there are.
    """
    pages = max(1, -(-len(results) // size))
    if not 1 <= number <= pages:
        raise BadQueryError(
            f"page: got {number}; there are {pages} pages with {len(results)} results: send 1 to {pages}."
        )
    start = (number - 1) * size
    items = list(results[start : start + size])
    return Page(items, start + 1 if items else 0, len(results), number, pages)


async def fit_excerpts(
    items: Sequence[JSON], query: str, tokens: int, cost: Callable[[Recalled], int]
) -> list[Recalled]:
    """Return what some records show within a budget of tokens: the passages with a query's words, else how they begin.

    Each may take an equal share, and what those before it have left. Of one whose share is too small the first words
    are shown. `cost` returns the tokens of a record as far as it is shown.
    """
    spans = [list(cut_messages(*said_in(item)).spans) for item in items]
    texts = {(n, span): said_in(items[n]).text[span.start : span.end] for n, of in enumerate(spans) for span in of}
    scores = await score_words(texts, query)
    shown: list[Recalled] = []
    for number, (item, of) in enumerate(zip(items, spans, strict=True)):
        best = sorted((Passage(span, scores[number, span]) for span in of), key=lambda one: (-one.weight, one.span))
        record = Recalled("", item, None, best[0].weight if best else 0.0, passages=tuple(best))
        share = tokens // (len(items) - number)
        fitting = choose([record], Query("", budget=share, cost=cost))
        first = lead(said_in(item).text, _LEAST_WORDS, _LEAST_WORDS)
        shown += fitting or [record._replace(shown=(first,))]
        tokens = max(0, tokens - cost(shown[-1]))
    return shown


async def score_words(texts: Mapping[KeyT, str], query: str) -> dict[KeyT, float]:
    """Score texts by the words of a query (BM25 over these texts alone); 0 for a text with none of them."""
    table = await asyncio.to_thread(WordTable, list(texts.values()), [query_words(query)])
    return dict(zip(texts, table.scores()[0].tolist(), strict=True))

"""Archive: texts that an assistant stored on purpose, and the whole conversation, both searched by the model.

An entry waits in state until its turn has claimed its place on the timeline, so that other branches never see what an
abandoned turn stored. Until then a search takes the waiting entries beside those in the store.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Generic, NamedTuple, TypeVar

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.errors import BadQueryError
from questbook.memory.recall.choice import choose
from questbook.memory.recall.query import Passage, Query, Recalled, said_in
from questbook.memory.recall.recall import recall
from questbook.memory.store.any_store import Namespace, put_all
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.passages import cut_messages, lead
from questbook.memory.text.words import query_words
from questbook.memory.timeline.records import WITHHELD, Stamp, read_time
from questbook.memory.timeline.timeline import Timeline, branch_of, list_visible, record_key
from questbook.types import JSON

MAX_CHARS = 20_000  # characters of one entry; a longer one could not be shown to a model in one piece
ROLES = ("user", "assistant")

_FIELDS = {"user": "player", "assistant": "reply"}
_RECALLED = 64  # entries or exchanges that are ranked by meaning too
_BY_MEANING = 10  # of the exchanges, the first match without a word in common
_WAITING = "waiting "  # begins the key of a waiting entry; no key of a record has a blank
_LEAST_WORDS = 15  # of a result
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT")


class Days(NamedTuple):
    """A range of whole days in a timezone, both ends included; None leaves an end open."""

    first: date | None
    last: date | None
    zone: tzinfo

    def contains(self, time: str) -> bool:
        """Whether a time, ISO 8601, is in the range; without an offset it is UTC. Text that is no time is in none."""
        if self.first is None and self.last is None:
            return True
        moment = read_time(time)
        day = moment.astimezone(self.zone).date() if moment else None
        return day is not None and (self.first or day) <= day <= (self.last or day)


def read_days(first: str | None, last: str | None, now: datetime, names: tuple[str, str] = ("start", "end")) -> Days:
    """Read a range of days as a model or a person writes them, given the present in the person's timezone.

    A day is "2026-03-14", a time in ISO 8601, "today", "now" or "yesterday"; None or blank leaves an end open. `names`
    is what the caller calls the two days, for errors: what is no day, or an earlier end, is a BadQueryError.
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
    except (ValueError, OverflowError) as error:
        expected = f"expected a day as YYYY-MM-DD, such as {now.date()}, which is today"
        raise BadQueryError(f"{argument}: got {text!r:.40}; {expected}.") from error


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
    """Return one page, from 1, of all results in order, with so many on a page; another number is a BadQueryError."""
    if size < 1:
        raise BadQueryError(f"size: got {size}; expected 1 or more results on a page.")
    pages = max(1, -(-len(results) // size))
    if not 1 <= number <= pages:
        found = f"{pages} pages with {len(results)} results"
        raise BadQueryError(f"page: got {number}; there are {found}: send 1 to {pages}.")
    items = list(results[(number - 1) * size : number * size])
    return Page(items, (number - 1) * size + 1 if items else 0, len(results), number, pages)


@dataclass(frozen=True)
class ArchiveQuery:
    """What to search archival memory for."""

    text: str = ""  # what to look for; blank: the newest entries first
    tags: Sequence[str] = ()  # only entries with one of these tags; case does not count
    every_tag: bool = False  # only entries with all of the tags
    days: Days | None = None  # only entries of these days; None: of all days
    page: int = 1  # page of the results, from 1
    size: int = 5  # results on a page

    def __post_init__(self) -> None:
        _check_tags(self.tags)

    def matches(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry has the tags and is of one of the days."""
        required = {tag.strip().casefold() for tag in self.tags if tag.strip()}
        tags = {str(tag).casefold() for tag in entry.get("tags") or ()}
        if required and not (required <= tags if self.every_tag else required & tags):
            return False
        return self.days is None or self.days.contains(str(entry.get("said_at") or ""))


def _check_tags(tags: object) -> None:
    if isinstance(tags, str):
        raise BadQueryError(f"tags: got {tags!r:.40}; expected a list of texts, such as [{tags!r:.40}].")


def new_entry(text: str, tags: Iterable[str] = ()) -> JSON:
    """Return an entry of archival memory, without its turn and time; a blank or too long text is a BadQueryError."""
    _check_tags(tags)
    if not text.strip():
        raise BadQueryError("content: got a blank text; send the text to keep.")
    if len(text) > MAX_CHARS:
        raise BadQueryError(f"content: has {len(text):,} characters of at most {MAX_CHARS:,}; send it in parts.")
    return {"kind": "archive", "text": text, "tags": sorted({tag.strip() for tag in tags if tag.strip()})}


def entry_writes(namespace: Namespace, entries: Iterable[JSON], timeline: Timeline, turn: int) -> list[PutOp]:
    """Return the writes of a turn's entries, made by `new_entry`, with their provenance; the turn has its place."""
    branch = branch_of(timeline, turn)
    values = (entry | Stamp(branch, turn).to_json() for entry in entries)
    return [PutOp(namespace, record_key(branch, turn, "archive", n), value) for n, value in enumerate(values)]


async def add_entry(
    store: BaseStore, namespace: Namespace, text: str, tags: Iterable[str] = (), *, timeline: Timeline
) -> str:
    """Store an entry by hand, as of the last turn of a timeline; return its key. The same text is stored once."""
    if not timeline:
        raise BadQueryError("timeline: got an empty one; expected the timeline of a turn, such as [('main', 1)].")
    entry, turn = new_entry(text, tags), timeline[-1][1]
    branch, at = branch_of(timeline, turn), datetime.now(UTC)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    key = record_key(branch, turn, f"hand.{digest}")  # of no entry that the turn itself may store yet
    origin = {"by": "hand", "said_at": at.isoformat(timespec="seconds")}
    await put_all(store, [PutOp(namespace, key, entry | Stamp(branch, turn).to_json() | origin)])
    return key


def waiting_entries(waiting: Iterable[Mapping[str, Any]]) -> dict[str, JSON]:
    """Return entries of turns that are not written yet by the keys that searches give them until then."""
    return {f"{_WAITING}{number}": dict(entry) for number, entry in enumerate(waiting)}


async def search_archive(
    store: BaseStore | None,
    namespace: Namespace,
    query: ArchiveQuery,
    *,
    timeline: Timeline,
    before: int | None = None,
    waiting: Sequence[JSON] = (),
) -> Page[JSON]:
    """Return a page of all entries that match the query's tags and days, each with its key, the best fitting first.

    First come waiting entries that share words with the text, then the best by meaning and words, then the others by
    words, and of equals the newest. Only what earlier turns than `before` wrote is searched: a turn in progress has no
    place yet, and what is in the store under its number may be another branch's. Without a store only the waiting
    entries are.
    """
    items = await list_visible(store, namespace, timeline, before) if store else []
    entries: dict[str, JSON] = {item.key: dict(item.value) for item in items} | waiting_entries(waiting)
    entries = {key: {**entry, "key": key} for key, entry in entries.items()}
    matches = {key: entry for key, entry in reversed(entries.items()) if query.matches(entry)}  # the newest first
    if not query.text.strip():
        return cut_page(list(matches.values()), query.page, query.size)
    words = await score_words({key: str(entry["text"]) for key, entry in matches.items()}, query.text)
    by_meaning = Query(query.text, timeline=timeline, before=before, limit=_RECALLED)
    ranks = {hit.key: rank for rank, hit in enumerate(await recall(store, namespace, by_meaning) if store else [])}

    def order(key: str) -> tuple[bool, int, float]:
        # A waiting entry has no vector yet: its words alone say whether it fits, and if so it is the newest.
        first = key.startswith(_WAITING) and words[key] > 0
        return not first, ranks.get(key, len(ranks)), -words[key]

    return cut_page([matches[key] for key in sorted(matches, key=order)], query.page, query.size)


@dataclass(frozen=True)
class ConversationQuery:
    """What to search the conversation for."""

    # Exchanges with one of its words match, and a few that are nearest to it in meaning, the best fitting first;
    # without a text all, the oldest first.
    text: str = ""
    roles: Sequence[str] = ROLES  # the speakers whose words are searched and shown: "user", "assistant"
    days: Days | None = None  # only exchanges of these days; None: of all days
    page: int = 1  # of the results, from 1
    size: int = 5  # exchanges on a page


async def search_conversation(
    store: BaseStore, namespace: Namespace, query: ConversationQuery, *, timeline: Timeline, before: int | None = None
) -> Page[JSON]:
    """Find exchanges; return a page of {"turn", "said_at", "user", "assistant"}. A wrong role or page: BadQueryError.

    Only turns before `before` are searched. Exchanges that the person asked not to remember are left out.
    """
    unknown = [role for role in query.roles if role not in ROLES]
    if unknown or not query.roles:
        raise BadQueryError(f"roles: got {unknown or 'none'}; there are {', '.join(ROLES)}.")
    exchanges, texts = dict[str, JSON](), dict[str, str]()
    for item in await list_visible(store, namespace, timeline, before):
        dated = query.days is None or query.days.contains(str(item.value.get("said_at") or ""))
        text = "\n".join(str(item.value.get(_FIELDS[role]) or "") for role in query.roles)
        if dated and text.strip() and not item.value.get(WITHHELD):
            exchanges[item.key], texts[item.key] = item.value, text
    keys = list(exchanges)
    if query.text.strip():
        scores = await score_words(texts, query.text)
        hits = await recall(store, namespace, Query(query.text, timeline=timeline, before=before, limit=_RECALLED))
        ranks = {hit.key: rank for rank, hit in enumerate(hits)}
        # A record's vector is of both sides, so it says nothing of one of them.
        both = hits[:_BY_MEANING] if set(query.roles) == set(ROLES) else []
        near = {hit.key for hit in both if hit.reason.by_meaning is not None}
        matches = [key for key in keys if scores[key] > 0 or key in near]
        keys = sorted(matches, key=lambda key: (ranks.get(key, len(ranks)), -scores[key]))
    shown = {role: field for role, field in _FIELDS.items() if role in query.roles}
    found = [
        {"turn": exchange["turn"], "said_at": exchange.get("said_at")}
        | {role: exchange[field] for role, field in shown.items() if exchange.get(field)}
        for exchange in (exchanges[key] for key in keys)
    ]
    return cut_page(found, query.page, query.size)


async def fit_excerpts(items: list[JSON], query: str, tokens: int, cost: Callable[[Recalled], int]) -> list[Recalled]:
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
        fitting = choose([record], Query("", budget=tokens // (len(items) - number), cost=cost))
        shown += fitting or [record._replace(shown=(lead(said_in(item).text, _LEAST_WORDS, _LEAST_WORDS),))]
        tokens = max(0, tokens - cost(shown[-1]))
    return shown


async def score_words(texts: Mapping[KeyT, str], query: str) -> dict[KeyT, float]:
    """Score texts by the words of a query (BM25 over these texts alone); 0 for a text with none of them."""
    table = await asyncio.to_thread(WordTable, list(texts.values()), [query_words(query)])
    return dict(zip(texts, table.scores()[0].tolist(), strict=True))

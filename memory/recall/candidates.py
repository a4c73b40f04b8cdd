"""Candidates: the records that one recall chooses from.

The store proposes some for each text; then come the neighbours of the best, looked up by their keys: an answer often
shares no word with the question that it answers.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from questbook.memory.recall.names import has_name
from questbook.memory.recall.query import Namespace, WeightedText
from questbook.memory.store.any_store import NEWEST_LIMIT, get_values, is_own, items_under, newest_items, search_all
from questbook.memory.text.words import query_words
from questbook.memory.timeline.records import Record, order_of
from questbook.memory.timeline.timeline import (
    Timeline,
    UserTimeline,
    branch_of,
    may_see,
    read_heads,
    record_key,
    visible_filters,
)
from questbook.types import JSON

RecordId = tuple[Namespace, str]  # namespace and key of a record

_OFFSETS = (-1, 1, -2, 2)  # distances of neighbours in turns
_WIDTH = 64  # candidates of a text: several times what is shown, so that the order made of them has a choice
_NARROW_WIDTH = 32  # further candidates of the time that the question names
_EXPANDED = 20  # candidates of a text whose neighbours become candidates too
_LEAST_SHARE = 0.25  # of both numbers, for a text that weighs little
_MOST_HEADS = 64  # words of a question that are looked for where the store cannot rank
_WIDER, _WIDEST = 4, 4096  # where what may not be seen fills a search: how many times as many items, how many at most


class Scope(NamedTuple):
    """A namespace, and what of it may be seen."""

    namespace: Namespace
    timeline: Timeline | None = None  # only what it sees; None: everything
    before: int | None = None  # only from before this turn; of a `UserTimeline`, by its own thread
    narrow: Sequence[JSON] = ()  # further store filters; what meets one is proposed too, so that it is not crowded out

    @property
    def of_user(self) -> bool:
        """Whether heads of other threads decide, too, which no store filter says."""
        return isinstance(self.timeline, UserTimeline)

    def filters(self, *, joined: bool = False) -> list[JSON]:
        """Return filters that together match what may be seen, of a user's thread its own; `joined`: one for all."""
        if self.timeline is None:
            return [{} if self.before is None else {"order": {"$lte": order_of(self.before - 1)}}]
        return visible_filters(self.timeline, self.before, joined=joined)

    def sees(self, value: Mapping[str, Any]) -> bool:
        """Return whether a record may be seen, as it is stored; the heads of its threads have been read."""
        branch, turn, thread = value.get("branch"), value.get("turn"), value.get("thread")
        place = branch if isinstance(branch, str) else "", turn if isinstance(turn, int) else 0
        return may_see(self.timeline, *place, thread if isinstance(thread, str) else "", self.before)

    def latest(self, count: int) -> set[RecordId]:
        """Return the ids of the latest exchanges that may be seen; none without a timeline."""
        if not self.timeline:
            return set()
        last = self.timeline[-1][1] if self.before is None else min(self.timeline[-1][1], self.before - 1)
        turns = range(max(last - count, 0) + 1, last + 1)
        return {(self.namespace, record_key(branch_of(self.timeline, turn), turn, "exchange")) for turn in turns}


class Candidates:
    """Records that may be seen, each once, numbered as they were added; an exchange is found by its thread and turn."""

    def __init__(self, timeline: Timeline | None, texts: int) -> None:
        self.ids: list[RecordId] = []
        self.records: list[Record] = []
        self.cosines: list[dict[int, float]] = [{} for _ in range(texts)]
        """For each text the cosines by the candidates' numbers, as far as the store gave some."""
        self._timeline = timeline
        self.numbers: dict[RecordId, int] = {}
        self._exchanges: dict[tuple[Namespace, str, int], int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, record_id: RecordId, record: Record) -> int:
        """Add a record, unless it is there, and return its number."""
        number = self.numbers.setdefault(record_id, len(self.ids))
        if number == len(self.ids):
            self.ids.append(record_id)
            self.records.append(record)
            if _is_exchange(record_id, record):
                line = record.stamp.branch if self._timeline is None else self.thread(number)
                self._exchanges[record_id[0], line, record.stamp.turn] = number
        return number

    def thread(self, number: int) -> str:
        """Return the other thread whose turns a candidate's turn is counted with; "" for those of the timeline."""
        stamp = self.records[number].stamp
        if not isinstance(self._timeline, UserTimeline):
            return ""
        return self._timeline.other_thread(stamp.thread, stamp.branch, stamp.turn)

    def rows(self) -> list[list[int]]:
        """Return the candidates' numbers by rows of turns that follow each other; what is no exchange is alone."""
        rows: list[list[int]] = []
        last = None
        for place, number in sorted(self._exchanges.items()):
            if last is None or place != (*last[:2], last[2] + 1):
                rows.append([])
            rows[-1].append(number)
            last = place
        in_rows = set(self._exchanges.values())
        return rows + [[number] for number in range(len(self.ids)) if number not in in_rows]


async def gather_candidates(
    store: BaseStore,
    scopes: Sequence[Scope],
    texts: Sequence[WeightedText],
    *,
    wanted: set[RecordId],
    timeline: Timeline | None,
    before: int | None,
    may_show: Callable[[Mapping[str, Any]], bool],
) -> Candidates:
    """Ask the store for candidates, and add the neighbours of the best.

    The less a text weighs, the fewer candidates it brings. One of weight 0 is a name, and brings only records that have
    it word for word. Records whose ids are `wanted` are candidates whatever they say. `may_show` says of a record as it
    is stored whether the viewer may know it.
    """
    heaviest = max(text.weight for text in texts)
    shares = [max(text.weight / heaviest, _LEAST_SHARE) for text in texts]
    widths = [math.ceil(_WIDTH * share) for share in shares]
    candidates, wanted = Candidates(timeline, len(texts)), set(wanted)
    proposed = await propose_candidates(store, scopes, [text.text for text in texts], widths)
    for scope, lists in zip(scopes, proposed, strict=True):
        for text, cosines, share, items in zip(texts, candidates.cosines, shares, lists, strict=True):
            for rank, item in enumerate(items):
                record_id = (scope.namespace, item.key)
                known = candidates.numbers.get(record_id)
                if known is None and not may_show(item.value):
                    continue
                record = Record.from_json(item.value) if known is None else candidates.records[known]
                if not text.weight and not has_name(record.text, [text.text]):
                    continue
                number = candidates.add(record_id, record)
                if item.score is not None:
                    cosines[number] = item.score
                if rank < _EXPANDED * share:
                    wanted.update(_neighbours(record_id, record, timeline))
    missing = sorted(record_id for record_id in wanted if candidates.numbers.get(record_id) is None)
    values = await get_values(store, missing)
    await read_heads(store, timeline, values.values())
    for record_id, value in values.items():
        record = Record.from_json(value)
        stamp = record.stamp
        # Neighbours and keys of accesses may be those of later turns; those of other threads, of their forks.
        line = timeline if isinstance(timeline, UserTimeline) else None
        if stamp.turn > 0 and may_see(line, stamp.branch, stamp.turn, stamp.thread, before) and may_show(value):
            candidates.add(record_id, record)
    return candidates


async def propose_candidates(
    store: BaseStore, scopes: Sequence[Scope], texts: Sequence[str], widths: Sequence[int]
) -> list[list[list[SearchItem]]]:
    """Return the store's best for each scope and text that may be seen: in one batch, so in one embedding.

    A store that joins filters (its attribute `filters_any`) is asked for all segments at once; items of others are
    filtered here, and where too few are left, each segment is searched by itself. Each text brings as many as its width
    says, best first; what a scope's further filters bring for the first text follows its own.
    """
    takes_or, ranks_words = (bool(getattr(store, name, False)) for name in ("filters_any", "ranks_words"))
    searches = [_searches(scope, texts, widths, takes_or=takes_or) for scope in scopes]
    results = iter(await search_all(store, [op for ops in searches for op in ops]))
    proposed: list[list[list[SearchItem]]] = []
    narrow: list[list[SearchItem]] = []
    short: dict[tuple[int, int], SearchOp | None] = {}  # for which scopes and texts too few may be seen; what to widen
    for number, (scope, ops) in enumerate(zip(scopes, searches, strict=True)):
        read = [next(results) for _ in ops]
        if any(read) and not (ranks_words or any(item.score is not None for items in read for item in items)):
            # The store has put what it found in no order.
            proposed.append([await _best_worded(store, scope, texts)] * len(texts))
            narrow.append([])
            continue
        exact = _is_exact(scope, takes_or=takes_or)
        kept = [await _visible(store, scope, items, exact=exact) for items in read]
        for text, width in enumerate(widths if ops else ()):
            if len(kept[text]) < width and len(read[text]) >= ops[text].limit:
                crowded = scope.of_user or not all(is_own(item, scope.namespace) for item in read[text])
                short[number, text] = ops[text] if crowded else None
        best = [items[:width] for items, width in zip(kept, widths, strict=False)] or [[] for _ in texts]
        proposed.append(best)
        narrow.append([item for items in kept[len(texts) :] for item in items])
    await _search_again(store, scopes, texts, widths, short, proposed)
    for best, items in zip(proposed, narrow, strict=True):
        keys = {item.key for item in best[0]}
        best[0] += list({item.key: item for item in items if item.key not in keys}.values())
    return proposed


def _is_exchange(record_id: RecordId, record: Record) -> bool:
    """Return whether a record was written as one of a row, one for each turn, so that it has neighbours."""
    stamp = record.stamp
    return record.kind == "exchange" and record_id[1] == record_key(stamp.branch, stamp.turn, "exchange")


def _neighbours(record_id: RecordId, record: Record, timeline: Timeline | None) -> list[RecordId]:
    """Return the ids of a record's neighbours on the timeline; without one, those on its own branch."""
    if not _is_exchange(record_id, record):
        return []
    stamp = record.stamp
    if isinstance(timeline, UserTimeline) and (other := timeline.other_thread(stamp.thread, stamp.branch, stamp.turn)):
        timeline = timeline.head_of(other)
    line = timeline or [(stamp.branch, stamp.turn + max(_OFFSETS))]
    turns = [turn for offset in _OFFSETS if 1 <= (turn := stamp.turn + offset) <= line[-1][1]]
    return [(record_id[0], record_key(branch_of(line, turn), turn, "exchange")) for turn in turns]


def _searches(scope: Scope, texts: Sequence[str], widths: Sequence[int], *, takes_or: bool) -> list[SearchOp]:
    """Make a scope's searches: one for each text, then those that its further filters add to the first text."""
    exact, namespace = _is_exact(scope, takes_or=takes_or), scope.namespace
    filters = [{}] if scope.of_user else scope.filters(joined=exact)
    if not filters:
        return []
    whole: JSON = {}
    if exact:
        [whole] = filters
    elif len(filters) == 1 and not scope.of_user:
        whole = {"branch": filters[0]["branch"]}
    searches = [
        SearchOp(namespace, filter=whole or None, limit=width if exact else 2 * width, query=text)
        for text, width in zip(texts, widths, strict=True)
    ]
    narrower, limit = [{**part, **narrow} for narrow in scope.narrow for part in filters], _NARROW_WIDTH
    if takes_or and exact and narrower:  # what narrows is few, and comes before a timeline's many segments
        narrower, limit = [whole | {"$or": scope.narrow}], _NARROW_WIDTH * len(scope.narrow)
    return searches + [SearchOp(namespace, filter=one, limit=limit, query=texts[0]) for one in narrower]


def _is_exact(scope: Scope, *, takes_or: bool) -> bool:
    """Return whether the filter of a search leaves out all that may not be seen."""
    return scope.timeline is None or (takes_or and not scope.of_user)


async def _search_again(
    store: BaseStore,
    scopes: Sequence[Scope],
    texts: Sequence[str],
    widths: Sequence[int],
    short: Mapping[tuple[int, int], SearchOp | None],
    proposed: list[list[list[SearchItem]]],
) -> None:
    """Search wider where others crowd the rest out, such as deeper namespaces or forks of a user's threads.

    Then search each segment alone. What the wider search has found stays.
    """
    searches = {place: op for place, op in short.items() if op is not None}
    while wider := [place for place, op in searches.items() if op.limit < _WIDEST]:
        for place in wider:
            searches[place] = searches[place]._replace(limit=min(_WIDER * searches[place].limit, _WIDEST))
        results = await search_all(store, [searches[place] for place in wider])
        for (scope, text), items in zip(wider, results, strict=True):
            kept = await _visible(store, scopes[scope], items)
            proposed[scope][text] = kept[: widths[text]]
            if len(kept) >= widths[text] or len(items) < searches[scope, text].limit:
                del searches[scope, text]
    left = [place for place, op in short.items() if op is None or place in searches]
    alone = [
        SearchOp(scopes[scope].namespace, filter=segment, limit=widths[text], query=texts[text])
        for scope, text in left
        for segment in scopes[scope].filters()
    ]
    found = iter(await search_all(store, alone))
    for scope, text in left:
        known = proposed[scope][text] if short[scope, text] else []
        own = [i for _ in scopes[scope].filters() for i in next(found) if is_own(i, scopes[scope].namespace)]
        items = list({item.key: item for item in [*known, *own]}.values())
        items.sort(key=lambda item: -(item.score if item.score is not None else -1.0))
        proposed[scope][text] = items[: widths[text]]


async def _visible(
    store: BaseStore, scope: Scope, items: Sequence[SearchItem], *, exact: bool = False
) -> list[SearchItem]:
    """Return those of a search's items that may be seen; those of deeper namespaces may not.

    `exact`: the search's filter has left out all others that may not.
    """
    own = [item for item in items if is_own(item, scope.namespace)]
    if exact:
        return own
    await read_heads(store, scope.timeline, (item.value for item in own))
    return [item for item in own if scope.sees(item.value)]


async def _best_worded(store: BaseStore, scope: Scope, texts: Sequence[str]) -> list[SearchItem]:
    """Return many items of a store that cannot rank, those that share most words with the texts, the newest of equals.

    Inflected words are compared by their first letters, as far as a text is not too long to look at all of it.
    """
    if scope.of_user:  # turns of several threads have no order
        every = [item async for item in items_under(store, scope.namespace, refresh_ttl=False)]
        every = await _visible(store, scope, sorted(every, key=lambda item: item.created_at))
    else:
        every = await newest_items(store, scope.namespace, scope.filters(), sys.maxsize)
    if len(every) <= NEWEST_LIMIT:
        return every
    words = {word for text in texts for word in query_words(text)}
    heads = sorted({word[: max(4, len(word) - 2)] for word in words})[:_MOST_HEADS]

    def shared(item: SearchItem) -> int:
        said = str(item.value.get("text", "")).casefold()
        return sum(head in said for head in heads)

    best = set(sorted(range(len(every)), key=lambda n: (shared(every[n]), n))[-NEWEST_LIMIT:])
    return [item for number, item in enumerate(every) if number in best]

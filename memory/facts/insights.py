"""Insights: the records that they rest on, and how they come along with what is recalled.

An insight cites the records that it was drawn from. If it is drawn again from other records, it is not written again;
the second drawing is a record of its own beside the facts, so that nothing is changed that another branch can see. When
the sources of the first one are removed, the second one takes its place.

A question often has its words in common with a turn, and none with what a reflection concluded from it. And nobody said
an insight: one that was written in a turn which the prompt holds word for word is not there, though its turn is. The
same is so of a fact that a person wrote by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.store.base import BaseStore, Item, PutOp, SearchItem, SearchOp

from questbook.memory.facts.ledger import ALL_MARKS, Namespace
from questbook.memory.facts.reflection import INSIGHT
from questbook.memory.facts.validity import keep_valid
from questbook.memory.facts.writing import BY_HAND
from questbook.memory.recall.order import fits
from questbook.memory.recall.query import Reason, Recalled
from questbook.memory.store.any_store import AnyItem, search_all
from questbook.memory.timeline.timeline import Segment, search_visible
from questbook.types import JSON

SOURCES = "sources"
"""Last label of the namespaces, beside those of facts, that hold second drawings of insights."""
_SAME_AS = "same_as"


class Dependents(NamedTuple):
    """What rests on records that are removed: insights drawn from them or from such insights, and second drawings.

    `replacements` are the writes by which second drawings from other sources take the place of removed insights.
    """

    items: list[Item]
    replacements: list[PutOp]


def second_drawing_op(facts: Namespace, key: str, insight: str, value: Mapping[str, object]) -> PutOp:
    """Make the write that says that an insight was drawn again, with the key and record that it would have had."""
    return PutOp((*facts[:-1], SOURCES), key, {**value, _SAME_AS: insight}, index=False)


async def find_sources(
    store: BaseStore,
    facts: Namespace,
    insights: Iterable[AnyItem],
    *,
    timeline: Sequence[Segment] | None = None,
) -> dict[str, list[str]]:
    """Return the keys of all records that insights rest on, by the insight's key."""
    asked = list(insights)
    namespace = (*facts[:-1], SOURCES)
    searches = [SearchOp(namespace, filter={_SAME_AS: insight.key}, limit=ALL_MARKS) for insight in asked]
    sources: dict[str, list[str]] = {}
    for insight, found in zip(asked, await search_visible(store, searches, timeline), strict=True):
        again = sorted((item.value for item in found.items), key=lambda value: str(value.get("at")))
        drawings = [insight.value, *again]
        sources[insight.key] = list(dict.fromkeys(key for value in drawings for key in value.get("cites") or []))
    return sources


def find_dependents(facts: Namespace, removed: Collection[str], known: Sequence[Item]) -> Dependents:
    """Find what rests on records with these keys, among insights and second drawings of every branch."""
    keys = set(removed)
    items: list[Item] = []
    while resting := [item for item in known if item.key not in keys and keys & set(item.value.get("cites") or [])]:
        items += resting
        keys |= {item.key for item in resting}
    insights = {item.key for item in known if item.key in keys and item.namespace == facts}
    drawings = [item for item in known if item.key not in keys and item.value.get(_SAME_AS) in insights]
    replacements: list[PutOp] = []
    heirs: dict[tuple[str, str], str] = {}  # by insight and branch: the first second drawing becomes the insight
    for item in sorted(drawings, key=lambda item: (str(item.value.get("at")), item.key)):
        insight, branch = str(item.value[_SAME_AS]), str(item.value.get("branch"))
        heir = heirs.setdefault((insight, branch), item.key)
        if heir == item.key:
            value: JSON = {name: part for name, part in item.value.items() if name != _SAME_AS}
            replacements += [PutOp(facts, item.key, value), PutOp(item.namespace, item.key, None)]
        else:
            replacements.append(PutOp(item.namespace, item.key, {**item.value, _SAME_AS: heir}, index=False))
    return Dependents(items, replacements)


_SOURCES = 8  # recalled records, best first, whose insights come along
_REACH = 100  # turns after a record in which a reflection cites it; one is due about every 24 turns
_READ = 32  # records of some turns in a row that are read
_OF_ONE = 2  # insights that one record brings
_UNSAID = 3  # insights and facts by hand of the turns in the prompt


async def add_insights(
    store: BaseStore,
    recalled: Sequence[Recalled],
    facts: Namespace,
    *,
    question: str,
    timeline: Sequence[Segment],
    since: int,
) -> list[Recalled]:
    """Return the records, each of the best followed by what was concluded from it, or from a fact of its turn.

    What was concluded or written by hand from turn `since` on, which the prompt holds word for word, comes first, as
    far as it fits the question. Nothing is embedded.
    """
    filters = [only | {"kind": INSIGHT} for only in _filters(_spans(recalled, since), timeline)]
    filters += [only | {"by": BY_HAND} for only in _filters([(since, None)], timeline)]
    records = await _valid(store, facts, filters, timeline)
    insights = [item for item in records if item.value.get("kind") == INSIGHT]
    in_prompt = [item for item in records if int(item.value.get("turn") or 0) >= since]
    texts = [str(item.value.get("text", "")) for item in in_prompt]
    fitting = await asyncio.to_thread(fits, question, texts) if texts else []
    first = [item for item, fit in zip(in_prompt, fitting, strict=True) if fit][-_UNSAID:]
    because = "fits, and nobody has said it in the conversation"
    added = {(tuple(item.namespace), item.key): _as_recalled(item, because) for item in first}
    for number, record in enumerate(recalled):
        added.setdefault((record.namespace, record.key), record)
        drawn = [item for item in insights if _is_drawn_from(item.value, record)] if number < _SOURCES else []
        for item in drawn[-_OF_ONE:]:
            insight = _as_recalled(item, f"concluded from turn {record.value.get('turn')}, which came")
            added.setdefault((insight.namespace, insight.key), insight)
    return list(added.values())


def _spans(recalled: Sequence[Recalled], since: int) -> list[tuple[int, int | None]]:
    """Return the turns, first and last, in which insights of the best records were written, and those in the prompt."""
    spans: list[tuple[int, int | None]] = []
    for turn in sorted({int(record.value.get("turn") or 0) for record in recalled[:_SOURCES]} - {0}):
        if spans and (last := spans[-1])[1] is not None and turn <= last[1] + 1:
            spans[-1] = (last[0], turn + _REACH)
        else:
            spans.append((turn, turn + _REACH))
    if spans and (last := spans[-1])[1] is not None and since <= last[1] + 1:
        return [*spans[:-1], (min(last[0], since), None)]
    return [*spans, (since, None)]


def _filters(spans: Sequence[tuple[int, int | None]], timeline: Sequence[Segment]) -> list[JSON]:
    """Return store filters for the records of some turns that a timeline sees; each record meets one at the most."""
    filters: list[JSON] = []
    reached = 0
    for branch, through in timeline:
        for first, last in spans:
            begin, end = max(first, reached + 1), through if last is None else min(through, last)
            if begin <= end:
                filters.append({"branch": branch, "order": {"$gte": f"{begin:08}", "$lte": f"{end:08}"}})
        reached = max(reached, through)
    return filters


async def _valid(
    store: BaseStore, facts: Namespace, filters: Sequence[JSON], timeline: Sequence[Segment]
) -> list[SearchItem]:
    """Return the records that meet a filter and hold, the oldest first."""
    lists = await search_all(store, [SearchOp(facts, filter=only, limit=_READ) for only in filters])
    unique = {item.key: item for items in lists for item in items}
    ordered = sorted(unique.values(), key=lambda item: (str(item.value.get("at")), item.key))
    return await keep_valid(store, ordered, timeline=timeline) if ordered else []


def _is_drawn_from(insight: JSON, record: Recalled) -> bool:
    """Return whether an insight cites a record, or of an exchange a fact that its turn taught."""
    cited = [str(key) for key in insight.get("cites") or ()]
    if record.value.get("kind", "exchange") != "exchange":
        return record.key in cited
    of_turn = f"{record.value.get('branch')}-{record.value.get('turn')}-"
    return any(key.startswith(of_turn) for key in cited)


def _as_recalled(item: SearchItem, because: str) -> Recalled:
    return Recalled(item.key, item.value, None, 0.0, tuple(item.namespace), Reason(because=because))

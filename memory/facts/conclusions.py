"""Conclusions: the insights that come along with the records that they were drawn from.

A question often has its words in common with a turn, and none with what a reflection concluded from it. And nobody said
an insight: one that was written in a turn which the prompt holds word for word is not there, though its turn is. The
same is so of a fact that a person wrote by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore, SearchItem

from questbook.memory.facts.by_hand import BY_HAND
from questbook.memory.facts.marks import Namespace
from questbook.memory.facts.reflection import INSIGHT
from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.coverage import fits
from questbook.memory.recall.query import Recalled
from questbook.memory.store.any_store import newest_items
from questbook.memory.timeline.timeline import Segment, visible_filters
from questbook.types import JSON

_SOURCES = 8  # recalled records, best first, whose insights come along
_REACH = 100  # turns after a record in which a reflection cites it; one is due about every 24 turns
_READ = 64  # records that are read
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

    What was concluded or written by hand in turns that the prompt holds word for word comes first, as far as it fits
    the question.

    Args:
        store: Any store. Nothing is embedded.
        recalled: Records of any namespaces, best first.
        facts: Namespace of the campaign's facts.
        question: What was asked.
        timeline: The timeline that asks, up to what is written.
        since: The first turn that the prompt holds word for word.
    """
    insights = await _valid(store, facts, {"kind": INSIGHT}, _spans(recalled, since), timeline)
    by_hand = await _valid(store, facts, {"by": BY_HAND}, [(since, None)], timeline)
    unsaid = [item for item in [*insights, *by_hand] if int(item.value.get("turn") or 0) >= since]
    fitting = fits(question, [str(item.value.get("text", "")) for item in unsaid])
    first = [item for item, fit in zip(unsaid, fitting, strict=True) if fit][-_UNSAID:]
    added = {(record.namespace, record.key): record for record in map(_as_recalled, first)}
    for number, record in enumerate(recalled):
        added.setdefault((record.namespace, record.key), record)
        drawn = [item for item in insights if _is_drawn_from(item.value, record)] if number < _SOURCES else []
        for item in drawn[-_OF_ONE:]:
            insight = record._replace(
                key=item.key, value=item.value, namespace=tuple(item.namespace), question=None, folded=()
            )
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


async def _valid(
    store: BaseStore,
    facts: Namespace,
    only: JSON,
    spans: Sequence[tuple[int, int | None]],
    timeline: Sequence[Segment],
) -> list[SearchItem]:
    """Return the records of some turns that hold and meet a filter, the oldest first."""
    filters: list[JSON] = []
    for segment in visible_filters(timeline):
        through = segment["order"]["$lte"]
        for first, last in spans:
            begin, end = f"{max(first, 0):08}", through if last is None else min(through, f"{last:08}")
            if begin <= end:
                filters.append({**segment, **only, "order": {"$gte": begin, "$lte": end}})
    return await keep_valid(store, await newest_items(store, facts, filters, _READ), timeline=timeline)


def _is_drawn_from(insight: JSON, record: Recalled) -> bool:
    """Return whether an insight cites a record, or of an exchange a fact that its turn taught."""
    cited = [str(key) for key in insight.get("cites") or ()]
    if record.value.get("kind", "exchange") != "exchange":
        return record.key in cited
    of_turn = f"{record.value.get('branch')}-{record.value.get('turn')}-"
    return any(key.startswith(of_turn) for key in cited)


def _as_recalled(item: SearchItem) -> Recalled:
    return Recalled(item.key, item.value, None, 0.0, tuple(item.namespace))

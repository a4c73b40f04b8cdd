"""Neighbours: what was said just before and just after a record, as far as the timeline sees it.

An answer often shares no word with the question that it answers. Records are immutable, so none can carry what came
after it, and a copy of what came before would have to be forgotten with it; both are looked up by key instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from questbook.memory.recall.candidates import Scope
from questbook.memory.timeline.timeline import Segment, branch_of, record_key

Place = tuple[tuple[str, ...], str]
"""Namespace and key of a record."""

OFFSETS = (-1, 1, -2, 2)
"""Distances in turns, in the order of `Weights.neighbours`."""


def neighbours_of(
    place: Place, value: Mapping[str, Any], timeline: Sequence[Segment] | None, before: int | None
) -> dict[int, Place]:
    """Return where a record's neighbours are kept, by their distance in turns; only those that may be seen.

    Args:
        place: Where the record is kept.
        value: The record. What was not written as one of a row (a fact, a page of lore) has no neighbours.
        timeline: As in `recall`; None: the record's own branch.
        before: As in `recall`.
    """
    if not is_exchange(place, value):
        return {}
    namespace, branch, turn = place[0], value["branch"], value["turn"]
    last = timeline[-1][1] if timeline else None
    found = {}
    for offset in OFFSETS:
        other = turn + offset
        if other < 1 or (last is not None and other > last) or (before is not None and other >= before):
            continue
        found[offset] = (
            namespace,
            record_key(branch_of(timeline, other) if timeline else branch, other, "exchange"),
        )
    return found


def is_exchange(place: Place, value: Mapping[str, Any]) -> bool:
    """Whether a record was written as one of a row: one for each turn, so that it has neighbours."""
    branch, turn = value.get("branch"), value.get("turn")
    if value.get("kind") != "exchange" or not isinstance(turn, int) or not isinstance(branch, str):
        return False
    return place[1] == record_key(branch, turn, "exchange")


def latest_of(scope: Scope, count: int) -> set[Place]:
    """Return where the latest exchanges are kept that a scope with a timeline may see."""
    if not scope.timeline:
        return set()
    last = scope.timeline[-1][1] if scope.before is None else min(scope.timeline[-1][1], scope.before - 1)
    turns = range(last, max(last - count, 0), -1)
    return {(scope.namespace, record_key(branch_of(scope.timeline, turn), turn, "exchange")) for turn in turns}

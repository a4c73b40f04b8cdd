"""When a timeline last used what it recalled, for the scoring of Generative Agents.

Each turn leaves one record with the last accesses of all records that were used lately, its own and those of its past.
So the latest one tells all, a fork has the accesses of its own past, and no record that another branch can see is
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.store.any_store import get_values
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, record_key

_KEPT = 256  # accesses; older ones have faded like their records
_LOOK_BACK = 8  # turns in which the latest accesses are looked for: a turn that used nothing leaves none


async def last_accesses(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], turn: int
) -> dict[str, str]:
    """Return when the records that earlier turns used last were used, ISO 8601, by their key; the 256 latest."""
    reached = timeline[-1][1] if timeline else 0
    turns = [past for past in range(turn - 1, max(turn - 1 - _LOOK_BACK, 0), -1) if past <= reached]
    places = [(namespace, record_key(branch_of(timeline, past), past, "access")) for past in turns]
    values = await get_values(store, places)
    latest = next((values[place] for place in places if place in values), None)
    return dict(latest["accessed"]) if latest else {}


def access_op(
    namespace: tuple[str, ...],
    timeline: Sequence[Segment],
    turn: int,
    known: Mapping[str, str],
    used: Iterable[str],
    at: str,
) -> PutOp:
    """Make the write that notes when a turn, which the timeline reaches, has used records, by their keys.

    `known` is what `last_accesses` returned for it.
    """
    accessed = {**known, **dict.fromkeys(sorted(set(used)), at)}
    kept = dict(sorted(accessed.items(), key=itemgetter(1))[-_KEPT:])
    branch = branch_of(timeline, turn)
    value = {"kind": "access", "accessed": kept} | Stamp(branch, turn).to_json()
    return PutOp(namespace, record_key(branch, turn, "access"), value, index=False)

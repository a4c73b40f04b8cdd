"""Timelines: the checkpoint decides which records a run may see.

A timeline lists branches, oldest first, each with the last turn of it that the checkpoint descends from. A record
carries the branch and the turn that wrote it, and is visible if a segment has its branch and reaches its turn. State
holds the timeline, so it goes back and forth with the checkpoint, and what another future wrote stays out of sight.

A turn claims its place before it writes: two runs that start from one checkpoint, after a rewind or side by side, must
not write as one. `BaseStore` knows no compare-and-swap, so a claim is a note of one's own and then a look at who else
left one: whoever finds another's note goes on a new branch. Two may both give way, which costs a name; two can never
both stay, because of any two notes the later one is followed by a look that finds the earlier one.
"""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from langgraph.store.base import BaseStore

from questbook.memory.timeline.records import order_of

Segment = tuple[str, int]
"""A branch and the last turn of it that can be seen."""

_CLAIMS_IN_A_NAMESPACE = 64  # turns whose claims lie together: neither a namespace a turn, nor one that grows for ever


def branch_name(origin: str) -> str:
    """Name a branch after what it grew from (40 bits of its SHA-256): grown again, it has the same name.

    Eight letters and digits: a timeline of a hundred forks stays under 2 KB.
    """
    digest = hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest[:5]).decode("ascii").lower()


def branch_of(timeline: Sequence[Segment], turn: int) -> str:
    """Return the branch that owns a turn: the first segment that reaches it.

    Raises:
        ValueError: The timeline does not reach that turn.
    """
    place = bisect_left(timeline, turn, key=itemgetter(1))
    if place < len(timeline):
        return timeline[place][0]
    raise ValueError(f"Turn {turn} lies beyond the timeline {list(timeline)!r}; open the turn first.")


def record_key(branch: str, turn: int, kind: str, ordinal: int = 0) -> str:
    """Return a record's key, the same whenever the same turn writes it: writing twice is writing once."""
    return f"{branch}-{turn}-{kind}-{ordinal}"


def until(turn: int) -> dict[str, Any]:
    """Return the store filter for the records of all branches up to a turn."""
    return {"order": {"$lte": order_of(turn)}}


def visible(timeline: Sequence[Segment], before: int | None = None) -> list[dict[str, Any]]:
    """Return one store filter for each segment; together they match exactly the records that can be seen.

    Records are found by the fields of their `Stamp`.

    Args:
        timeline: The checkpoint's timeline.
        before: Leave out records of this turn and later ones.
    """
    filters: list[dict[str, Any]] = []
    reached = 0
    for branch, through in timeline:
        last = through if before is None else min(through, before - 1)
        if last > reached:
            filters.append({"branch": branch} | until(last))
            reached = last
    return filters


def sees(timeline: Sequence[Segment], branch: str, turn: int) -> bool:
    """Whether a record of that branch and turn can be seen from a checkpoint with this timeline."""
    return any(name == branch and turn <= through for name, through in timeline)


def as_of(timeline: Sequence[Segment], turn: int) -> list[Segment]:
    """Return the timeline as far as a turn: with it, nothing can be seen of later ones."""
    kept = [(name, min(through, turn)) for name, through in timeline]
    return [segment for segment, before in zip(kept, [0, *(t for _, t in kept)], strict=False) if segment[1] > before]


def fork(timeline: Sequence[Segment], turn: int, branch: str) -> list[Segment]:
    """Return the timeline on which `turn` and what follows belong to a new branch."""
    return [*as_of(timeline, turn - 1), (branch, timeline[-1][1] if timeline else turn)]


async def claim(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], turn: int, owner: str
) -> list[Segment]:
    """Claim a turn's place on the timeline's last branch; return the timeline, forked if somebody else has been there.

    Args:
        store: Any store; it must let a write be read at once by everybody.
        namespace: Where the campaign keeps its claims.
        timeline: The checkpoint's timeline; it reaches `turn`.
        turn: The turn that is about to write.
        owner: What tells this attempt at the turn from every other, and stays the same if its node is run again.
    """
    branch = branch_of(timeline, turn)
    place = (*namespace, f"{branch}-{turn // _CLAIMS_IN_A_NAMESPACE}")
    mine = await store.aget(place, f"{turn}-{owner}")
    if mine is None or not mine.value["kept"]:
        await store.aput(place, f"{turn}-{owner}", {"turn": turn, "owner": owner, "kept": False}, index=False)
        noted = await store.asearch(place, filter={"turn": turn}, limit=2)
        if any(item.value["owner"] != owner for item in noted):
            return fork(timeline, turn, branch_name(f"{branch}/{turn}/{owner}"))
        await store.aput(place, f"{turn}-{owner}", {"turn": turn, "owner": owner, "kept": True}, index=False)
    return list(timeline)

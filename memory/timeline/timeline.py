"""Timelines: the checkpoint decides which records a run may see.

A timeline lists branches, oldest first, each with the last turn of it that the checkpoint descends from:
`[("a", 2), ("b", 4)]` sees turns 1 and 2 of branch a, then turns 3 and 4 of branch b. A record carries the branch and
the turn that wrote it, and is visible if a segment has its branch and reaches its turn. Keep the timeline in your
graph's state: it goes back and forth with the checkpoint, and what another future wrote stays out of sight.

A turn claims its place before it writes (`claim`): two runs that start from one checkpoint, after a rewind or side by
side, must not write as one. `BaseStore` has no compare-and-swap. So a run leaves a note and then looks for other notes;
a run that finds another's note goes on a new branch. Two runs may both give way, which costs a name. Two can never both
stay: of any two notes the later one is followed by a look that finds the earlier one.

A `UserTimeline` sees what the user's other threads know as well.
"""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Self

from langgraph.store.base import BaseStore, Item, PutOp

from questbook.memory.store.any_store import get_values, items_under, put_all
from questbook.memory.timeline.records import order_of
from questbook.types import JSON

Segment = tuple[str, int]
"""A branch and the last turn of it that can be seen."""

_CLAIMS_IN_A_NAMESPACE = 64  # turns: one namespace for each turn would be too many, one for all would grow for ever


class UserTimeline(list[Segment]):
    """A thread's timeline that also sees what the user's other threads know: for records of scope "user".

    Pass it wherever a timeline goes (`remember`, `Query`, `note_facts`, `keep_valid`). The thread's own records are
    seen as by any timeline. Another thread's are seen if that thread's *head* sees them: the timeline with which it
    last wrote, kept beside the records under the thread's id. So threads see what others learn later, and nobody sees
    what a fork took back. Make a new one for each turn: heads that it has read stay as they were.

        timeline = UserTimeline(state["timeline"], thread=thread_id, heads=("ann", "chat", "heads"))

    Args:
        segments: The checkpoint's timeline.
        thread: Id of its thread.
        heads: Namespace of the heads of the user's threads.
        fallback: Namespace and key of an item whose `timeline` is the head of threads that have none, because they last
            wrote before heads were kept.
    """

    def __init__(
        self,
        segments: Iterable[Segment] = (),
        *,
        thread: str,
        heads: tuple[str, ...],
        fallback: tuple[tuple[str, ...], str] | None = None,
    ) -> None:
        super().__init__((branch, turn) for branch, turn in segments)
        self.thread, self.heads, self.fallback = thread, heads, fallback
        self._head_of: dict[str, list[Segment]] = {}

    def with_segments(self, segments: Iterable[Segment]) -> Self:
        """Return the same view of other threads, from another place of this one."""
        other = type(self)(segments, thread=self.thread, heads=self.heads, fallback=self.fallback)
        other._head_of = self._head_of
        return other

    def other_thread(self, thread: str, branch: str, turn: int) -> str:
        """Return the id of another thread whose head decides about a record; "" if this thread's timeline decides."""
        return "" if thread in ("", self.thread) or sees(self, branch, turn) else thread

    def head_of(self, thread: str) -> list[Segment]:
        """Return the timeline of another thread's head, as `read_heads` read it; [] if it has none."""
        return self._head_of.get(thread, [])

    def head_op(self) -> PutOp:
        """Make the write that moves this thread's head here."""
        value = {"timeline": [list(segment) for segment in self]}
        return PutOp(self.heads, self.thread, value, index=False)

    async def read_heads(self, store: BaseStore, threads: Iterable[str]) -> None:
        """Read the heads of other threads that are not read yet, in one batch."""
        missing = sorted({thread for thread in threads if thread not in ("", self.thread)} - self._head_of.keys())
        values = await get_values(store, [(self.heads, thread) for thread in missing])
        heads = {thread: values[self.heads, thread] for thread in missing if (self.heads, thread) in values}
        if self.fallback is not None and len(heads) < len(missing):
            head = (await get_values(store, [self.fallback])).get(self.fallback, {})
            heads = dict.fromkeys(missing, head) | heads
        self._head_of |= {thread: read_timeline(heads.get(thread, {})) for thread in missing}


async def read_heads(
    store: BaseStore, timeline: Sequence[Segment] | None, records: Iterable[Mapping[str, Any]]
) -> None:
    """Read what a `UserTimeline` has to know before it is asked whether it sees records; else do nothing.

    Args:
        store: Where the records are.
        timeline: The timeline that will be asked.
        records: The records, with their stamps.
    """
    if isinstance(timeline, UserTimeline):
        await timeline.read_heads(store, {str(record.get("thread") or "") for record in records})


def branch_name(origin: str) -> str:
    """Return a branch's name, derived from what it grew from (40 bits of its SHA-256), so that a retry gets the same.

    Eight letters and digits: a timeline of a hundred forks stays under 2 KB.
    """
    digest = hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest[:5]).decode("ascii").lower()


def branch_of(timeline: Sequence[Segment], turn: int) -> str:
    """Return the branch of a turn: that of the first segment that reaches it.

    Raises:
        ValueError: The timeline does not reach that turn.
    """
    place = bisect_left(timeline, turn, key=itemgetter(1))
    if place < len(timeline):
        return timeline[place][0]
    raise ValueError(f"Turn {turn} lies beyond the timeline {list(timeline)!r}; call extend(timeline, {turn}) first.")


def read_timeline(values: Mapping[str, Any]) -> list[Segment]:
    """Return the timeline of a state's or a head's values, which hold it as JSON; empty if there is none."""
    return [(str(branch), int(turn)) for branch, turn in values.get("timeline") or ()]


def record_key(branch: str, turn: int, kind: str, ordinal: int = 0) -> str:
    """Return the key of a record: the same if the turn writes it again, so that writing twice is writing once.

    Args:
        branch: The branch that writes it.
        turn: The turn.
        kind: What it is: "exchange", "fact", "insight" …
        ordinal: Number of the record among those of this kind and turn, from 0.
    """
    return f"{branch}-{turn}-{kind}-{ordinal}"


def extend(timeline: Sequence[Segment], turn: int, first_branch: str = "main") -> list[Segment]:
    """Return the timeline with its last branch reaching a turn; an empty one begins with `first_branch`."""
    *past, (branch, _) = timeline or [(first_branch, turn)]
    return [*past, (branch, turn)]


def filter_through(turn: int) -> JSON:
    """Return the store filter for the records of all branches through a turn."""
    return {"order": {"$lte": order_of(turn)}}


def visible_filters(timeline: Sequence[Segment], before: int | None = None) -> list[JSON]:
    """Return one store filter for each segment; together they match exactly the records that can be seen.

    Args:
        timeline: The checkpoint's timeline; of a `UserTimeline`, what its own thread sees.
        before: Leave out records of this turn and later ones.
    """
    filters: list[JSON] = []
    reached = 0
    for branch, through in timeline:
        last = through if before is None else min(through, before - 1)
        if last > reached:
            filters.append({"branch": branch} | filter_through(last))
            reached = last
    return filters


async def list_visible(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], before: int | None = None
) -> list[Item]:
    """Return all records of a namespace that a timeline sees, by turn and by their order in it.

    Args:
        store: Any store; its records carry the fields of `questbook.memory.timeline.records.Stamp`.
        namespace: Where the records are.
        timeline: The checkpoint's timeline. What a `UserTimeline` sees comes in the order in which it was said.
        before: Leave out records of this turn and later ones, of the timeline's own thread.
    """
    if isinstance(timeline, UserTimeline):
        every = [item async for item in items_under(store, namespace)]
        await read_heads(store, timeline, (item.value for item in every))
        visible = [item for item in every if is_visible(timeline, item.value, before)]
        return sorted(visible, key=lambda item: (str(item.value.get("said_at", "")), item.value["turn"], item.key))
    filters = visible_filters(timeline, before)
    items = {item.key: item for one in filters async for item in items_under(store, namespace, one)}
    return sorted(items.values(), key=lambda item: (item.value["turn"], _ordinal(item.key), item.key))


def sees(timeline: Sequence[Segment], branch: str, turn: int) -> bool:
    """Return whether a timeline sees the records of a turn of a branch."""
    for name, through in timeline:  # noqa: SIM110 (asked of a thousand records; a generator takes three times as long)
        if name == branch and turn <= through:
            return True
    return False


def is_visible(timeline: Sequence[Segment] | None, record: Mapping[str, Any], before: int | None = None) -> bool:
    """Whether a timeline may see a record. A record without a branch belongs to every timeline.

    Args:
        timeline: The checkpoint's timeline; None: everything is visible. Of a `UserTimeline`, `read_heads` comes first.
        record: The record, with its stamp.
        before: Hide records of this turn and later ones; of a `UserTimeline`, those of its own thread.
    """
    turn = int(record.get("turn", 0))
    if "branch" not in record:
        return before is None or turn < before
    return may_see(timeline, record["branch"], turn, str(record.get("thread") or ""), before)


def may_see(
    timeline: Sequence[Segment] | None, branch: str, turn: int, thread: str = "", before: int | None = None
) -> bool:
    """Whether a timeline may see what a thread wrote in a turn of a branch, as `is_visible` says it of a record."""
    if isinstance(timeline, UserTimeline) and (other := timeline.other_thread(thread, branch, turn)):
        return sees(timeline.head_of(other), branch, turn)
    if before is not None and turn >= before:
        return False
    return timeline is None or sees(timeline, branch, turn)


def as_of(timeline: Sequence[Segment], turn: int) -> list[Segment]:
    """Return the timeline as far as a turn: with it, nothing can be seen of later ones of its thread."""
    segments: list[Segment] = []
    reached = 0
    for branch, through in timeline:
        if (last := min(through, turn)) > reached:
            segments.append((branch, last))
            reached = last
    return timeline.with_segments(segments) if isinstance(timeline, UserTimeline) else segments


def fork(timeline: Sequence[Segment], turn: int, branch: str) -> list[Segment]:
    """Return the timeline on which `turn` and what follows belong to a new branch."""
    return [*as_of(timeline, turn - 1), (branch, timeline[-1][1] if timeline else turn)]


async def claim(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], turn: int, owner: str
) -> list[Segment]:
    """Claim a turn before it writes; return the timeline, forked at this turn if another run has claimed it.

    Args:
        store: Any store; a write must be readable at once by everyone.
        namespace: Where the campaign keeps its claims.
        timeline: The checkpoint's timeline; it reaches `turn` (see `extend`).
        turn: The turn that is about to write.
        owner: Tells this attempt at the turn from every other, and stays the same if the node is run again: for
            example the id of the reply.

    Raises:
        ValueError: The timeline does not reach the turn.
    """
    segments, keep = await claim_to_keep(store, namespace, timeline, turn, owner)
    await put_all(store, keep)
    return segments


async def claim_to_keep(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], turn: int, owner: str
) -> tuple[list[Segment], list[PutOp]]:
    """Claim a turn like `claim`; return the write that keeps the claim as well, for the batch of what the turn writes.

    If that batch is never written, nothing of the turn was, and the next attempt claims again.
    """
    branch = branch_of(timeline, turn)
    place = (*namespace, f"{branch}-{turn // _CLAIMS_IN_A_NAMESPACE}")
    key, note = f"{turn}-{owner}", {"turn": turn, "owner": owner}
    mine = await store.aget(place, key)
    if mine is None or not mine.value["kept"]:
        await put_all(store, [PutOp(place, key, {**note, "kept": False}, index=False)])
        notes = await store.asearch(place, filter={"turn": turn})
        if any(item.value["owner"] != owner for item in notes):
            return fork(timeline, turn, branch_name(f"{branch}/{turn}/{owner}")), []
        return list(timeline), [PutOp(place, key, {**note, "kept": True}, index=False)]
    return list(timeline), []


def _ordinal(key: str) -> int:
    last = key.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0

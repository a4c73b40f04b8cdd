"""Timelines: the checkpoint decides which records a run may see.

A timeline lists branches, oldest first, each with the last turn of it that the checkpoint descends from:
`[("a", 2), ("b", 4)]` sees turns 1 and 2 of branch a, then turns 3 and 4 of branch b. A record carries the branch and
the turn that wrote it, and is visible if a segment has its branch and reaches its turn. Keep the timeline in your
graph's state: it goes back and forth with the checkpoint, and what another future wrote stays out of sight.

A turn claims its place before it writes (`claim`): two runs that start from one checkpoint must not write as one. A run
leaves a note, then looks for other notes, and goes on a new branch if it finds one. Two may both give way, but never
both stay: of any two notes the later one is followed by a look that finds the earlier one.

A `UserTimeline` sees what the user's other threads know as well.
"""

import asyncio
import base64
import hashlib
import json
import re
import sys
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, Self

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp

from questbook.memory.store.any_store import (
    JointReads,
    Namespace,
    get_all,
    get_values,
    is_own,
    items_under,
    put_all,
    search_all,
    sync_twin,
)
from questbook.memory.timeline.namespaces import check_namespace, escape_label
from questbook.memory.timeline.records import (
    Exchange,
    Stamp,
    check_record,
    check_segments,
    order_of,
    session_number,
    utc_date,
)
from questbook.types import JSON, check_number, storable

Segment = tuple[str, int]
"""A branch and the last turn of it that can be seen."""
Timeline = Sequence[Segment]  # what a checkpoint sees: its branches, oldest first

_LIFE = "+"  # between the mark of a thread's life and the rest of a branch's name
_KEY = re.compile(r"((?:[a-z2-7]{8}\+)?[a-z2-7]{8})-(\d+-.+)")  # as `record_key` makes it of a `branch_name`
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
        life: Mark, without "+", of a thread that begins again with the id of one whose checkpoints were deleted: its
            branches carry the mark, and what the id left before is seen as another thread's. Without one, what it left
            before counts as taken back, and nobody sees it. The branches of a thread that has begun tell its mark.
    """

    def __init__(
        self,
        segments: Iterable[Segment] = (),
        *,
        thread: str,
        heads: Namespace,
        fallback: tuple[Namespace, str] | None = None,
        life: str = "",
    ) -> None:
        check_namespace(heads, "UserTimeline.heads")
        if not isinstance(thread, str):
            raise ValueError(f"UserTimeline.thread: got {thread!r:.80}; expected a text, such as str(thread_id).")
        super().__init__((branch, turn) for branch, turn in segments)
        self.thread, self.heads, self.fallback = thread, heads, fallback
        self.life = life_of(self[0][0]) if self else life
        self._own_key = self._key(thread, self.life)
        self._head_of: dict[str, list[Segment]] = {}

    def with_segments(self, segments: Iterable[Segment], life: str | None = None) -> Self:
        """Return the same view of other threads, from another place of this one, or of one that begins with a mark."""
        life = self.life if life is None else life
        other = type(self)(segments, thread=self.thread, heads=self.heads, fallback=self.fallback, life=life)
        other._head_of = self._head_of
        return other

    @property
    def first_branch(self) -> str:
        """Name of the branch on which the thread begins: the same one if the first turn is run again."""
        return _grown(self.life, branch_name(self.thread))

    @property
    def head_place(self) -> tuple[Namespace, str]:
        """Namespace and key of this thread's head."""
        return self._place(self._own_key)

    def other_thread(self, thread: str, branch: str, turn: int) -> str:
        """Return the thread, or life of one, whose head decides about a record; "" if this timeline decides."""
        if not thread:
            return ""
        key = self._key(thread, life_of(branch))
        return "" if key == self._own_key or sees(self, branch, turn) else key

    def head_of(self, thread: str) -> list[Segment]:
        """Return the timeline of the head of what `other_thread` returned, as `read_heads` read it; [] if none."""
        return self._head_of.get(thread, [])

    def head_op(self) -> PutOp:
        """Make the write that moves this thread's head here."""
        value = {"timeline": [list(segment) for segment in self]} | ({"thread": self.thread} if self.life else {})
        return PutOp(*self.head_place, value, index=False)

    async def _read_heads(self, store: BaseStore, records: Iterable[Mapping[str, Any]]) -> None:
        of_threads = [one for one in records if one.get("thread")]
        keys = {self._key(str(one["thread"]), life_of(str(one.get("branch") or ""))) for one in of_threads}
        missing = sorted(keys - {self._own_key} - self._head_of.keys())
        values = await get_values(store, [self._place(key) for key in missing])
        heads = {key: values[place] for key in missing if (place := self._place(key)) in values}
        if self.fallback is not None and len(heads) < len(missing):
            head = (await get_values(store, [self.fallback])).get(self.fallback, {})
            heads = dict.fromkeys(missing, head) | heads
        self._head_of |= {key: read_timeline(heads.get(key, {})) for key in missing}

    def _key(self, thread: str, life: str) -> str:
        return f"{thread}\0{life}" if life else thread  # no store takes a NUL in an id

    def _place(self, key: str) -> tuple[Namespace, str]:
        thread, _, life = key.partition("\0")
        return ((*self.heads, escape_label(thread)), life) if life else (self.heads, thread)


async def read_heads(store: BaseStore, timeline: Timeline | None, records: Iterable[Mapping[str, Any]]) -> None:
    """Read what a `UserTimeline` has to know before it is asked whether it sees these records; else do nothing."""
    if isinstance(timeline, UserTimeline):
        await timeline._read_heads(store, records)


def branch_name(origin: str) -> str:
    """Return a branch's name, made of what it grew from (40 bits of its SHA-256): a retry gets the same."""
    digest = hashlib.sha256(origin.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest[:5]).decode("ascii").lower()


@lru_cache(maxsize=4096)  # a recall asks for each candidate
def life_of(branch: str) -> str:
    """Return the mark of the thread's life from a branch's name; "" if the thread has not begun again."""
    return branch.rpartition(_LIFE)[0]


def branch_of(timeline: Timeline, turn: int) -> str:
    """Return the branch of a turn: that of the first segment that reaches it; if none does, it is a ValueError."""
    place = bisect_left(timeline, turn, key=itemgetter(1))
    if place < len(timeline):
        return timeline[place][0]
    if not timeline:
        raise ValueError(f"The timeline is empty, so it has no turn {turn}: give the one that remember() returned.")
    end = timeline[-1][1]
    raise ValueError(f"Turn {turn} lies beyond the timeline, which reaches turn {end}; call extend(timeline, {turn}).")


def check_timeline(timeline: Sequence[Any], *, beside: bool = False) -> Sequence[Any]:
    """Return a timeline; a ValueError says which segment of another list is wrong.

    `beside`: also of runs side by side, whose branches have one last turn.
    """
    reached = int(beside)
    for segment in timeline:
        match segment:
            case [str(branch), int(turn)] if branch and not isinstance(turn, bool) and turn >= reached + (not beside):
                reached = turn
            case _:
                expected = "segments [branch, last turn], each of a later turn than the one before, from 1"
                raise ValueError(f"expected {expected}; got {segment!r:.60}")
    return timeline


def read_timeline(values: Mapping[str, Any]) -> list[Segment]:
    """Return the timeline of a state's or a head's values, which hold it as JSON; empty if there is none."""
    return [(str(branch), int(turn)) for branch, turn in values.get("timeline") or ()]


def remembered_timeline(values: Mapping[str, Any]) -> list[Segment]:
    """Return a state's timeline as far as its `remembered_through`.

    Until a turn claims its place, the record under its number may be that of another future.
    """
    return as_of(read_timeline(values), int(values.get("remembered_through", 0)))


def record_key(branch: str, turn: int, kind: str, ordinal: int = 0) -> str:
    """Return the key of a record: the same if the turn writes it again, so that writing twice is writing once.

    `kind` is what it is ("exchange", "fact", "insight" …), `ordinal` its number among those of this kind and turn.
    """
    return f"{branch}-{turn}-{kind}-{ordinal}"


def exchange_key(timeline: Timeline, turn: int) -> str:
    """Return the key of the record of a turn on a timeline, which reaches it."""
    return record_key(branch_of(timeline, turn), turn, "exchange")


def shown_key(key: str) -> str:
    """Return a record's key as people see and type it: "12-fact-0.k3fa", of which the end stands for the branch."""
    match = _KEY.fullmatch(key)
    return f"{match[2]}.{branch_name(match[1])[:4]}" if match else key


def extend(timeline: Timeline, turn: int, first_branch: str = "main") -> list[Segment]:
    """Return the timeline with its last branch reaching a turn; an empty one begins with `first_branch`.

    After runs side by side (`merge_timelines`) a new branch goes on, whose name is derived from theirs.
    """
    *past, (branch, reached) = timeline or [(first_branch, turn)]
    if past and past[-1][1] == reached < turn:
        return [*timeline, (_grown(life_of(branch), branch_name(f"{branch}/{turn}")), turn)]
    return [*past, (branch, turn)]


def merge_timelines(timelines: Sequence[Timeline]) -> list[Segment]:
    """Return the timeline that sees what several do which went on from one at the same time.

    Their branches have one last turn; that of the last timeline comes first (`branch_of`).
    """
    merged = [(branch, turn) for branch, turn in timelines[-1]]
    for segment in (each for timeline in timelines[:-1] for each in timeline):
        if not sees(merged, *segment):
            merged.append((segment[0], segment[1]))
    return sorted(merged, key=itemgetter(1))


def visible_filters(
    timeline: Timeline, before: int | None = None, *, first: int = 0, joined: bool = False
) -> list[JSON]:
    """Return store filters of what a thread sees of turns `first` to before `before`; `joined`: one, for our stores."""
    segments = [each for each in as_of(timeline, sys.maxsize if before is None else before - 1) if each[1] >= first]
    since = {"$gte": order_of(first)} if first > 0 else {}
    if joined and len(segments) > 1:
        through = {branch: order_of(last) for branch, last in segments}
        return [{"$through": ["branch", "order", through]} | ({"order": since} if since else {})]
    return [{"branch": branch, "order": {"$lte": order_of(last)} | since} for branch, last in segments]


class Found(NamedTuple):
    """What a search found that may be seen, and whether it is all: the search was not full."""

    items: list[SearchItem]
    is_all: bool


async def search_visible(
    store: BaseStore, searches: Sequence[SearchOp], timeline: Timeline | None, before: int | None = None
) -> list[Found]:
    """Search namespaces in one batch; return of each search what a timeline may see, nothing of deeper ones."""
    results = await search_all(store, searches)
    own = [[i for i in items if is_own(i, op.namespace_prefix)] for op, items in zip(searches, results, strict=True)]
    await read_heads(store, timeline, (item.value for items in own for item in items))
    return [
        Found([item for item in items if is_visible(timeline, item.value, before)], len(all_items) < search.limit)
        for search, items, all_items in zip(searches, own, results, strict=True)
    ]


async def list_visible(store: BaseStore, space: Namespace, timeline: Timeline, before: int | None = None) -> list[Item]:
    """Return all records of a namespace that a timeline sees, by turn and by their order in it.

    What a `UserTimeline` sees comes in the order in which it was said. `before` is as for `is_visible`.
    """
    if isinstance(timeline, UserTimeline):
        every = [item async for item in items_under(store, space) if is_own(item, space)]
        await read_heads(store, timeline, (item.value for item in every))
        visible = [item for item in every if is_visible(timeline, item.value, before)]
        return sorted(visible, key=lambda item: (str(item.value.get("said_at", "")), item.value["turn"], item.key))
    filters = visible_filters(timeline, before, joined=getattr(store, "filters_any", False))
    items = {item.key: item for one in filters async for item in items_under(store, space, one) if is_own(item, space)}

    def place(item: Item) -> tuple[int, int, str]:
        ordinal = item.key.rpartition("-")[2]
        return item.value["turn"], int(ordinal) if ordinal.isdecimal() else 0, item.key

    return sorted(items.values(), key=place)


def sees(timeline: Timeline, branch: str, turn: int) -> bool:
    """Return whether a timeline sees the records of a turn of a branch."""
    for name, through in timeline:  # noqa: SIM110 (asked of a thousand records; a generator takes three times as long)
        if name == branch and turn <= through:
            return True
    return False


def is_visible(timeline: Timeline | None, record: Mapping[str, Any], before: int | None = None) -> bool:
    """Return whether a timeline may see a record; None sees all. A record without a branch belongs to every timeline.

    For a `UserTimeline`, `read_heads` comes first. Turn `before` and later ones of the timeline's thread are hidden.
    """
    turn = int(record.get("turn", 0))
    if "branch" not in record:
        return before is None or turn < before
    return may_see(timeline, record["branch"], turn, str(record.get("thread") or ""), before)


def may_see(timeline: Timeline | None, branch: str, turn: int, thread: str = "", before: int | None = None) -> bool:
    """Whether a timeline may see what a thread wrote in a turn of a branch, as `is_visible` says it of a record."""
    if isinstance(timeline, UserTimeline) and (other := timeline.other_thread(thread, branch, turn)):
        return sees(timeline.head_of(other), branch, turn)
    if before is not None and turn >= before:
        return False
    return timeline is None or sees(timeline, branch, turn)


def as_of(timeline: Timeline, turn: int) -> list[Segment]:
    """Return the timeline as far as a turn: with it, nothing can be seen of later ones of its thread."""
    segments: list[Segment] = []
    reached = 0
    for branch, through in timeline:
        if (last := min(through, turn)) > reached or (last == through == reached):  # the second: runs side by side
            segments.append((branch, last))
            reached = last
    return timeline.with_segments(segments) if isinstance(timeline, UserTimeline) else segments


def fork(timeline: Timeline, turn: int, branch: str) -> list[Segment]:
    """Return the timeline on which `turn` and what follows belong to a new branch.

    Of runs side by side in that turn, the one that `branch_of` names is replaced.
    """
    beside = [one for before, one in pairwise(timeline) if before[1] == one[1] == turn]
    new = (branch, timeline[-1][1] if timeline else turn)
    return [*as_of(timeline, turn - 1), *sorted([new, *beside], key=itemgetter(1))]


async def claim(store: BaseStore, namespace: Namespace, timeline: Timeline, turn: int, owner: str) -> list[Segment]:
    """Claim a turn before it writes; return the timeline, forked at this turn if another run has claimed it.

    The store must show a write to everyone at once, the timeline reach the turn (see `extend`). The owner tells this
    attempt at the turn from every other, and stays the same if the node is run again: for example the id of the reply.

    Raises:
        ValueError: The timeline does not reach the turn.
    """
    segments, keep = await claim_to_keep(store, namespace, timeline, turn, owner)
    await put_all(store, keep)
    return segments


async def claim_to_keep(
    store: BaseStore, namespace: Namespace, timeline: Timeline, turn: int, owner: str
) -> tuple[list[Segment], list[PutOp]]:
    """Claim a turn like `claim`; return the write that keeps the claim as well, for the batch of what the turn writes.

    If that batch is never written, nothing of the turn was, and the next attempt claims again.
    """
    branch = branch_of(timeline, turn)
    place = (*namespace, escape_label(f"{branch}-{turn // _CLAIMS_IN_A_NAMESPACE}"))
    key, note = f"{turn}-{owner}", {"turn": turn, "owner": owner}
    mine = await store.aget(place, key)
    if mine is not None and mine.value["kept"]:
        return list(timeline), []
    await put_all(store, [PutOp(place, key, {**note, "kept": False}, index=False)])
    if any(item.value["owner"] != owner for item in await store.asearch(place, filter={"turn": turn})):
        return fork(timeline, turn, _grown(life_of(branch), branch_name(f"{branch}/{turn}/{owner}"))), []
    return list(timeline), [PutOp(place, key, {**note, "kept": True}, index=False)]


def _grown(life: str, name: str) -> str:
    return f"{life}{_LIFE}{name}" if life else name


# Remembering

Said = str | Mapping[str, Any] | Exchange
"""What was said in one turn: a text, an `Exchange`, or its fields as JSON with any others."""


async def remember(
    store: BaseStore,
    namespace: Namespace,
    exchange: Said | Sequence[Said],
    *,
    turn: int | None = None,
    timeline: Timeline | None = None,
    claims: Namespace | None = None,
    provenance: Mapping[str, Any] | None = None,
    also: Callable[[list[Segment]], Iterable[PutOp]] = lambda _: (),
) -> list[Segment]:
    """Write exchanges as records, one for each turn, all in one batch; return the timeline.

    It is forked where another future had claimed a turn. A record that is there is not written again. It holds what the
    exchange says, its stamp, its provenance, `date` and `month` of `said_at` (in UTC), and the number of the `session`.

    Args:
        store: Any store.
        namespace: Where the records go.
        exchange: One exchange or several in a row. Each needs `text`, or `player` and `reply`. Useful are also
            `speaker`, `said_at` (ISO 8601), `session` (from 1; else it is counted), `day` (of the app's calendar) and
            `taught` (a text that differs wherever what else is written of the turn does).
        turn: Number of the first one, from 1; None: the turn after the timeline's last one.
        timeline: The timeline of the checkpoint that writes, to be extended; None or empty: a new one. With a
            `UserTimeline` the user's other threads see what this thread's head sees, and the head is moved here.
        claims: Where turns are claimed: a fork gets a branch of its own. None: what it says in a written turn is lost.
        provenance: Fields of every record that tell where and when it was written: `thread`, `checkpoint`, `said_at`.
        also: Returns further writes of the same batch, given the timeline after the claims.

    Raises:
        ValueError: A namespace is a text, an exchange has none, a field of the wrong type, or turns between the
            timeline's last one and `turn` are missing. Nothing was written.
    """
    for place in (namespace, claims or ()):
        check_namespace(place)
    check_segments("timeline", timeline)
    contents = list(map(_content, [exchange] if isinstance(exchange, str | Mapping | Exchange) else exchange))
    segments, of_user = list(timeline or ()), timeline if isinstance(timeline, UserTimeline) else None
    through = segments[-1][1] if segments else 0
    turn = through + 1 if turn is None else turn
    check_number("turn", turn, 1)
    last = turn + len(contents) - 1
    origin = dict(provenance or {}) | ({} if of_user is None else {"thread": of_user.thread})
    # Threads that share a namespace do not begin on one branch.
    if contents and (not segments or turn - 1 <= through < last):
        segments = extend(segments, last, "main" if of_user is None else of_user.first_branch)
    writes: list[PutOp] = []
    past: Stamp | None = None  # of the turn before
    for number, content in enumerate(contents, turn):
        if number < last and claims is not None and await _is_written(store, namespace, segments, content, number):
            past = None
            continue
        turns = [number] if past or number == 1 else [number, number - 1]
        segments, keep, stored = await _claim_and_read(store, claims, namespace, segments, turns, content)
        past, ops = _exchange_op(namespace, segments, number, content | origin, stored, past)
        writes += [*keep, *ops]
    head = [] if of_user is None or not contents else [of_user.with_segments(segments).head_op()]
    await put_all(store, [*writes, *also(segments), *head])
    return segments


async def _claim_and_read(
    store: BaseStore, claims: Namespace | None, space: Namespace, timeline: list[Segment], turns: list[int], said: JSON
) -> tuple[list[Segment], list[PutOp], list[Item | None]]:
    """Claim the first turn like `claim_to_keep`, and meanwhile read the exchanges of all these turns."""
    reads = JointReads.of(store)

    def read(timeline: Timeline) -> Awaitable[list[Item | None]]:
        return get_all(reads, [GetOp(space, exchange_key(timeline, turn)) for turn in turns])

    reading = read(timeline)  # first: it says which turns the timeline lacks
    if claims is None:
        return timeline, [], await reading
    # All that the record says: messages that a person rewrites keep their ids.
    owner = hashlib.sha256(json.dumps(said, sort_keys=True).encode("ascii")).hexdigest()[:32]
    (claimed, keep), stored = await asyncio.gather(claim_to_keep(reads, claims, timeline, turns[0], owner), reading)
    return claimed, keep, stored if claimed == timeline else await read(claimed)


def _exchange_op(
    space: Namespace, timeline: Timeline, turn: int, content: JSON, stored: Sequence[Item | None], past: Stamp | None
) -> tuple[Stamp, list[PutOp]]:
    """Return the stamp of a turn and the write of its exchange, unless that is written already."""
    branch, after = branch_of(timeline, turn), branch_of(timeline, turn - 1) if turn > 1 else None
    written, *before = stored
    if written is not None:
        return Stamp.from_json(written.value), []
    past = past or next((Stamp.from_json(item.value) for item in before if item), None)
    record = Exchange.from_json({**content, "after": after})
    stamp = replace(record.stamp, branch=branch, turn=turn)
    stamp = replace(stamp, session=stamp.session or session_number(past, stamp))
    day = f"{utc_date(stamp.time):%Y%m%d}".zfill(8) if stamp.time else ""
    digits = {"date": day, "month": day[:6]} if day else {}  # as recall looks for them
    return stamp, [PutOp(space, exchange_key(timeline, turn), replace(record, stamp=stamp).to_json() | digits)]


def _content(exchange: Said) -> JSON:
    """Return the fields of an exchange without its stamp, with its text."""
    if isinstance(exchange, Exchange):
        exchange = exchange.to_json()
    content = storable({"text": exchange} if isinstance(exchange, str) else dict(exchange))
    if not content.get("text") and {"player", "reply"} <= content.keys():
        content["text"] = f"{content['player']}\n{content['reply']}"
    if not isinstance(content.get("text"), str) or (isinstance(exchange, str) and not exchange.strip()):
        raise ValueError(f"An exchange needs a text, or player and reply; got {sorted(content)}.")
    check_record(content)
    return {"kind": "exchange"} | content


async def _is_written(
    store: BaseStore, namespace: Namespace, timeline: Timeline, content: Mapping[str, Any], turn: int
) -> bool:
    """Return whether an earlier turn's exchange was written here, by a writer that was killed before its checkpoint.

    What it taught is compared, too: the facts of another attempt with the same words lie beside that one's exchange.
    """
    item = await store.aget(namespace, record_key(branch_of(timeline, turn), turn, "exchange"))
    return item is not None and all(item.value.get(one) == content.get(one) for one in ("text", "messages", "taught"))


claim_sync = sync_twin(claim)
"""Claim a turn before it writes; return the timeline, forked if another run has claimed it; see `claim`."""
remember_sync = sync_twin(remember)
"""Write exchanges as records; return the timeline, as it is now; see `remember`."""

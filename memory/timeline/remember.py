"""Remember: write what was said to any LangGraph store, once, with or without a graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import BaseStore, GetOp, PutOp

from questbook.memory.store.any_store import get_all, put_all
from questbook.memory.timeline.namespaces import check_namespace
from questbook.memory.timeline.records import Exchange, Stamp, utc_date
from questbook.memory.timeline.timeline import Segment, UserTimeline, branch_of, claim_to_keep, extend, record_key
from questbook.types import JSON, storable

Said = str | Mapping[str, Any] | Exchange
"""What was said in one turn: a text, an `Exchange`, or its fields as JSON with any others."""

PAUSE = timedelta(hours=3)
"""A longer pause, or a new thread, begins a new session."""


async def remember(
    store: BaseStore,
    namespace: tuple[str, ...],
    exchange: Said | Sequence[Said],
    *,
    turn: int | None = None,
    timeline: Sequence[Segment] | None = None,
    claims: tuple[str, ...] | None = None,
    provenance: Mapping[str, Any] | None = None,
    also: Callable[[list[Segment]], Iterable[PutOp]] = lambda _: (),
) -> list[Segment]:
    """Write exchanges as records, one for each turn, all in one batch; return the timeline.

    It is forked where another future had claimed a turn. A record's key follows from its branch and turn, and a record
    that is there is not written again: writing twice is writing once. A record holds what the exchange says, its stamp,
    its provenance, the `date` and `month` of its `said_at` (digits, in UTC) and the number of its `session`, counted if
    the exchange gives none.

    Args:
        store: Any store.
        namespace: Where the records go.
        exchange: One exchange or several in a row. Each needs `text`, or `player` and `reply`. Useful are also
            `speaker`, `said_at` (ISO 8601), `session` (from 1), `day` (of the app's calendar) and `taught` (what else
            is written of the turn: a text that differs wherever that does).
        turn: Number of the first one, from 1; None: the turn after the timeline's last one.
        timeline: The timeline of the checkpoint that writes, to be extended; None or empty: a new one. With a
            `UserTimeline` the user's other threads see what this thread's head sees, and the head is moved here.
        claims: Where turns are claimed; a turn that another future has claimed goes on a branch of its own.
        provenance: Fields of every record that tell where and when it was written: `thread`, `checkpoint`, `said_at`.
        also: Returns further writes of the same batch, given the timeline after the claims.

    Raises:
        ValueError: A namespace is a text, an exchange has none, or turns between the timeline's last one and `turn` are
            missing. Nothing was written.
    """
    for place in (namespace, claims or ()):
        check_namespace(place)
    contents = list(map(_content, [exchange] if isinstance(exchange, str | Mapping | Exchange) else exchange))
    segments = list(timeline or ())
    through = segments[-1][1] if segments else 0
    turn = through + 1 if turn is None else turn
    last = turn + len(contents) - 1
    of_user = timeline if isinstance(timeline, UserTimeline) else None
    origin = dict(provenance or {}) | ({} if of_user is None else {"thread": of_user.thread})
    if not segments or turn - 1 <= through < last:  # threads that share a namespace do not begin on one branch
        segments = extend(segments, last, "main" if of_user is None else of_user.first_branch)
    writes: list[PutOp] = []
    past: Stamp | None = None  # of the turn before
    for number, content in enumerate(contents, turn):
        if number < last and claims is not None and await _is_written(store, namespace, segments, content, number):
            past = None
            continue
        if claims is not None:
            segments, keep = await claim_to_keep(store, claims, segments, number, _digest(content))
            writes += keep
        past, ops = await _exchange_op(store, namespace, segments, number, content | origin, past)
        writes += ops
    moves = [] if of_user is None else [of_user.with_segments(segments).head_op()]
    await put_all(store, [*writes, *also(segments), *moves])
    return segments


def session_number(past: Stamp | None, now: Stamp) -> int:
    """Return the number of the session in which a turn is played, from 1, given the stamp of the turn before.

    A new thread, or a pause of more than three hours, begins a session.
    """
    if past is None:
        return 1
    number = max(past.session or 1, 1)
    paused = past.time is not None and now.time is not None and now.time - past.time > PAUSE
    return number + (paused or past.thread != now.thread)


async def _exchange_op(
    store: BaseStore,
    namespace: tuple[str, ...],
    timeline: Sequence[Segment],
    turn: int,
    content: Mapping[str, Any],
    past: Stamp | None,
) -> tuple[Stamp, list[PutOp]]:
    """Return the stamp of a turn and the write of its exchange, unless that is written already."""
    branch, after = branch_of(timeline, turn), branch_of(timeline, turn - 1) if turn > 1 else None
    key = record_key(branch, turn, "exchange")
    gets = [GetOp(namespace, key)]
    if past is None and after is not None and "session" not in content:
        gets.append(GetOp(namespace, record_key(after, turn - 1, "exchange")))
    written, *before = await get_all(store, gets)
    if written is not None:
        return Stamp.from_json(written.value), []
    past = next((Stamp.from_json(item.value) for item in before if item), past)
    record = Exchange.from_json({**content, "after": after})
    stamp = replace(record.stamp, branch=branch, turn=turn)
    stamp = replace(stamp, session=stamp.session or session_number(past, stamp))
    return stamp, [PutOp(namespace, key, replace(record, stamp=stamp).to_json() | _digits(stamp.time))]


def _digits(time: datetime | None) -> JSON:
    """Return the day and the month of a time, as recall looks for them."""
    if time is None:
        return {}
    day = f"{utc_date(time):%Y%m%d}".zfill(8)
    return {"date": day, "month": day[:6]}


def _content(exchange: Said) -> JSON:
    """Return the fields of an exchange without its stamp, with its text."""
    if isinstance(exchange, Exchange):
        exchange = exchange.to_json()
    content = storable({"text": exchange} if isinstance(exchange, str) else dict(exchange))
    if not content.get("text") and {"player", "reply"} <= content.keys():
        content["text"] = f"{content['player']}\n{content['reply']}"
    if not isinstance(content.get("text"), str):
        raise ValueError(f"An exchange needs a text, or player and reply; got {sorted(content)}.")
    return {"kind": "exchange"} | content


def _digest(content: Mapping[str, Any]) -> str:
    """Tell this attempt at a turn from every other, by all that its record says.

    The reply's id would not do: a person who rewrites a reply or a page before it is remembered, and runs on from
    there, has made another future, whose messages keep their ids.
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


async def _is_written(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], content: Mapping[str, Any], turn: int
) -> bool:
    """Return whether an earlier turn's exchange was written on this timeline, though its writer does not know.

    The writer was killed between the store's write and its own checkpoint, and has gone on with another message. Where
    the story was when it was written is past. So only the exchange is compared, and what it taught: the facts of
    another attempt with the same words lie beside that attempt's exchange.
    """
    item = await store.aget(namespace, record_key(branch_of(timeline, turn), turn, "exchange"))
    return item is not None and all(
        item.value.get(name) == content.get(name) for name in ("text", "messages", "taught")
    )

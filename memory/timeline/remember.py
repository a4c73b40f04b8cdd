"""Remember: write what was said to a store, once, over any LangGraph store, with or without a graph."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.recall.time_fit import moment, utc_date
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, claim, record_key

Exchange = str | Mapping[str, Any]
"""What was said in one turn: a text, or fields with at least `text`, or `player` and `reply`."""

PAUSE = timedelta(hours=3)
"""A longer one, or a new thread, begins a new session."""
_BRANCH = "main"


async def remember(
    store: BaseStore,
    namespace: tuple[str, ...],
    exchange: Exchange | Sequence[Exchange],
    *,
    turn: int | None = None,
    timeline: Sequence[Segment] | None = None,
    claims: tuple[str, ...] | None = None,
    provenance: Mapping[str, Any] | None = None,
    also: Callable[[list[Segment]], Iterable[PutOp]] = lambda _: (),
) -> list[Segment]:
    """Write exchanges as records, one for each turn, all in one batch.

    A record's key follows from its branch and turn, and a record that stands is never written again, so that doing it
    twice is doing it once. A record says what the exchange says, the fields of
    `questbook.memory.timeline.records.Stamp`, its provenance, the `date` and `month` of its `said_at` (digits, in
    UTC) and, unless the exchange gives one, the number of its `session`.

    Args:
        store: Any store.
        namespace: Where the records go.
        exchange: One exchange or several in a row. Useful fields: `text` (or `player` and `reply`), `speaker`,
            `said_at` (ISO 8601), `session` (from 1), `day` (of the story), `taught` (what else is written of the turn:
            a text that differs wherever that does).
        turn: Number of the first one, from 1; None: the turn after the timeline's last one.
        timeline: The timeline of the checkpoint that writes; it is carried on to the last turn that is written. None
            or empty: a new one.
        claims: Where turns are claimed; a turn that another future has taken goes on a branch of its own.
        provenance: Fields of every record that tell where and when it was written, and not what it says.
        also: Makes further writes of the same batch, given the timeline after the claims.

    Returns:
        The timeline, forked where a turn was taken.

    Raises:
        ValueError: An exchange has no text, or turns between the timeline's last one and `turn` are missing. Nothing
            was written.
    """
    several = [exchange] if isinstance(exchange, str | Mapping) else exchange
    contents = [_content(one) for one in several]
    line = list(timeline or [])
    turn = turn if turn is not None else line[-1][1] + 1 if line else 1
    last = turn + len(contents) - 1
    line = _carried_on(line, turn, last)
    writes: list[PutOp] = []
    past: Mapping[str, Any] | None = None
    for number, content in enumerate(contents, turn):
        if number < last and claims is not None and await _stands_already(store, namespace, line, content, number):
            past = None
            continue
        if claims is not None:
            line = await claim(store, claims, line, number, digest(content))
        branch = branch_of(line, number)
        key, after = record_key(branch, number, "exchange"), branch_of(line, number - 1) if number > 1 else None
        if (found := await store.aget(namespace, key)) is not None:
            past = found.value
            continue
        if past is None and after is not None and "session" not in content:
            before = await store.aget(namespace, record_key(after, number - 1, "exchange"))
            past = before.value if before else None
        record = content | {"after": after} | dict(provenance or {}) | Stamp(branch, number).to_json()
        if (said := moment(record)) is not None:
            record["date"] = f"{utc_date(said):%Y%m%d}".zfill(8)
            record["month"] = record["date"][:6]
        record.setdefault("session", session_of(past, record))
        writes.append(PutOp(namespace, key, record))
        past = record
    await put_all(store, [*writes, *also(line)])
    return line


def _carried_on(timeline: list[Segment], turn: int, last: int) -> list[Segment]:
    """Return a timeline that reaches the last turn, if it reaches the turn before the first."""
    if not timeline:
        return [(_BRANCH, last)]
    branch, through = timeline[-1]
    return [*timeline[:-1], (branch, max(through, last))] if through >= turn - 1 else timeline


def digest(content: Mapping[str, Any]) -> str:
    """Tell this attempt at a turn from every other, by all that its record says.

    The reply's id would not do: a person who rewrites a reply or a page before it is remembered, and runs on from
    there, has made another future, whose messages keep their ids.
    """
    told = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:32]


def session_of(past: Mapping[str, Any] | None, now: Mapping[str, Any]) -> int:
    """Return the number of the session in which a turn is played, from 1.

    Args:
        past: The record of the turn before; None if there is none.
        now: `thread` and `said_at` of this turn. A new thread, or a pause of more than three hours, begins a session.
    """
    if past is None:
        return 1
    number = past.get("session")
    number = number if isinstance(number, int) and number > 0 else 1
    before, then = moment(past), moment(now)
    paused = before is not None and then is not None and then - before > PAUSE
    return number + (paused or past.get("thread") != now.get("thread"))


def _content(exchange: Exchange) -> dict[str, Any]:
    given = {"text": exchange} if isinstance(exchange, str) else dict(exchange)
    if "text" not in given and {"player", "reply"} <= given.keys():
        given["text"] = f"{given['player']}\n{given['reply']}"
    if not isinstance(given.get("text"), str):
        raise ValueError(f"An exchange needs a text, or player and reply; got {sorted(given)}.")
    return {"kind": "exchange"} | given


async def _stands_already(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], content: Mapping[str, Any], turn: int
) -> bool:
    """Whether an earlier turn's exchange was written on this timeline, though its writer does not know.

    It was killed between the store's write and its own checkpoint, and has gone on with another message. Where the
    story stood when it was written is past, so the exchange alone is compared, and what it taught: the facts of another
    attempt with the same words lie beside that one's exchange.
    """
    found = await store.aget(namespace, record_key(branch_of(timeline, turn), turn, "exchange"))
    return found is not None and all(
        found.value.get(name) == content.get(name) for name in ("text", "messages", "taught")
    )

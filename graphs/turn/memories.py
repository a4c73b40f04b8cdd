"""Memories: what was recalled for a turn, as state, prompts and doors have it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict

from langgraph.runtime import Runtime

from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.state import TurnState
from questbook.memory.archive.results import cut_page
from questbook.memory.errors import BadQueryError
from questbook.memory.facts.days import line_date
from questbook.memory.lore.documents import LorePiece
from questbook.memory.recall.query import Recalled, said_in
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.any_store import get_values
from questbook.memory.text.passages import cut_pages
from questbook.memory.timeline.records import UNTIL, WITHHELD, may_know
from questbook.memory.timeline.timeline import (
    Segment,
    UserTimeline,
    as_of,
    branch_of,
    is_visible,
    read_heads,
    record_key,
)
from questbook.notebooks import render_value
from questbook.types import JSON, storable


class Memory(TypedDict, total=False):
    """A memory, as a prompt shows it (`memory_line`); of a long record only a part."""

    key: str  # its key in the store
    kind: str  # "exchange", "fact", "insight", "rumour", "secret", "lore" …
    turn: int | None  # the turn that wrote it; 0 if another thread did, which counts its own turns; None without one
    said_at: str | None  # when, ISO 8601
    age: str  # how long ago that was, in words; not of a fact that holds a slot, outside of games
    story_time: str | None  # when it was in the story: "day 3, dusk"
    when: str  # on which days what a fact tells is: "Mon 2026-12-14"
    until: str  # until when something that an exchange tells was so, ISO 8601
    score: float | None  # its cosine; None if it has none
    why: str  # why it was recalled, in ranks
    reason: JSON  # the same as data: the fields of `Reason`
    player: str  # the person's words, of an exchange; "…" stands where something is left out, here and below
    reply: str  # what they were answered
    text: str | None  # what it says, if it is no exchange
    claimed_by: str | None  # whose word it is alone
    rest: str  # its key, by which the rest can be opened, if something is left out and its `turn` does not name it
    source: str | None  # of lore: the file
    page: int | None  # of lore: the page
    section: str | None  # of lore: the heading
    row: int | None  # of lore: the row of a table


class Reader(NamedTuple):
    """For whom memories are made."""

    now: datetime  # real time, in the zone whose midnight changes the day
    timeline: Sequence[Segment] = ()  # what the turn may see
    session: int | None = None  # number of the session; None if sessions say nothing of how long ago something was
    character: str | None = None  # who plays: what they do not know is a secret. None: there is no story


def memory_of(record: Recalled, reader: Reader) -> JSON:
    """Make a memory of a record."""
    value, in_story = record.value, reader.character is not None
    kind = str(value.get("kind") or "exchange")
    if in_story and not may_know(value, [reader.character or ""]):
        kind = "secret"
    turn = 0 if is_elsewhere(record, reader.timeline) else value.get("turn")
    memory = Memory(key=record.key, kind=kind, turn=turn, score=record.score, why=str(record.reason))
    memory["reason"] = record.reason._asdict()
    memory["said_at"] = value.get("said_at")
    if record.is_cut and not (turn and kind == "exchange"):
        memory["rest"] = record.key
    if kind == "lore":
        lore = {name: value.get(name) for name in ("source", "page", "section", "row")}
        return {**memory, **lore, "text": record.excerpt}
    session = value.get("session")
    ago = reader.session - session if isinstance(session, int) and reader.session else None
    if in_story or not value.get("slot"):  # what holds a slot holds now, whenever it was noted
        memory["age"] = phrase_age(value.get("said_at"), reader.now, ago if in_story else None, of_story=in_story)
    if in_story:
        day = value.get("day")
        memory["story_time"] = value.get("story_time") or (None if day is None else f"day {day}")
    if str(value.get("kind") or "exchange") == "exchange":
        memory["player"], memory["reply"] = record.words
        if UNTIL in value:
            memory["until"] = str(value[UNTIL]) or "a later turn"
    else:
        memory["when"] = "" if in_story else line_date(value)
        memory["text"], memory["claimed_by"] = record.excerpt or None, value.get("claimed_by") or None
    return {**memory}


ASSISTANT = {"player": "user", "reply": "assistant"}
"""What the voices of an exchange are called where an assistant answers a user; in the game they are as in state."""
OPENING = ASSISTANT | {"rest": "key"}
"""The same where a tool opens the rest of a memory (`open_memory`)."""
_LONGEST_TURN = 9  # digits
_OWN_NAMES = frozenset({"insight", "rumour", "archive"})  # kinds that an assistant's prompt names; all else is a fact


def memory_line(memory: Mapping[str, object], voices: Mapping[str, str] | None = None) -> str:
    """Render a memory on one line: an exchange as it was, lore with its source, anything else under its kind.

    `voices` says what the voices of an exchange are called (`ASSISTANT`); None: as in state.
    """
    if memory.get("kind") == "lore" and (lore := LorePiece.from_json(memory)).citation:
        return render_value({"source": lore.citation, "text": lore.body})
    kind = str(memory.get("kind") or "exchange")
    label = kind if voices is None or kind in _OWN_NAMES else "fact"
    names = {name: name for name in ("turn", "age", "player", "reply")} | {"text": label}
    names |= {name: name for name in ("story_time", "when", "until", "claimed_by")} | dict(voices or {})
    return render_value({label: memory[name] for name, label in names.items() if memory.get(name)})


def memory_lines(memories: Sequence[Mapping[str, object]] | None, voices: Mapping[str, str] | None = None) -> str:
    """Render memories, each on a line."""
    return "\n".join(memory_line(memory, voices) for memory in memories or ())


def memory_tokens(memory: Mapping[str, object], voices: Mapping[str, str] | None = None) -> int:
    """Return about how many tokens the line of a memory takes, with its line break."""
    return math.ceil((len(memory_line(memory, voices)) + 1) / 4)


def is_elsewhere(record: Recalled, timeline: Sequence[Segment]) -> bool:
    """Return whether another thread of the user wrote a record."""
    if not isinstance(timeline, UserTimeline):
        return False
    value = record.value
    return bool(timeline.other_thread(str(value.get("thread") or ""), str(value.get("branch")), int(value["turn"])))


async def open_memory(
    state: TurnState,
    runtime: Runtime[Any],
    spaces: Sequence[tuple[str, ...]],
    key: str,
    page: int,
    *,
    waiting: Mapping[str, JSON] | None = None,
) -> str:
    """Return a page, from 1, of what a record says, of which a prompt or a search may have shown a part.

    `key` is the record's key in one of the namespaces `spaces`, or the number of a turn of the thread, whose exchange
    it is. `waiting` are records that are not in the store yet, by key.

    Raises:
        BadQueryError: The timeline sees no such record, nobody may know it, or there is no such page.
    """
    view, written = visible_timeline(state, runtime), min(state.turn - 1, state.remembered_through)
    name, known = storable(key.strip()), waiting or {}
    if name.isdecimal() and len(name) <= _LONGEST_TURN and 1 <= int(name) <= written:
        name = record_key(branch_of(state.timeline, int(name)), int(name), "exchange")
    if name not in known and runtime.store is not None and name:
        found = await get_values(runtime.store, [(space, name) for space in spaces])
        await read_heads(runtime.store, view, found.values())
        for value in found.values():
            if is_visible(view, value, before=written + 1) and may_know(value) and not value.get(WITHHELD):
                known = {name: dict(value)}
    if name not in known:
        raise BadQueryError(f"There is no memory with the id {key!r:.80}. Take a key or a turn from a line of memory.")
    pages = cut_page(cut_pages(*said_in(known[name])), page, 1)
    record = Recalled(name, known[name], None, 0.0, shown=tuple(pages.items))
    line = memory_line(memory_of(record, Reader(datetime.now(UTC).astimezone(), as_of(view, written))), ASSISTANT)
    return f"{name}, page {pages.number} of {pages.pages}: {line}"

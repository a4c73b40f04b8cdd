"""Greeting: how long it has been since a character and its user last talked, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.ltm.memories import MEMORIES
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import character_namespace
from questbook.memory.timeline.timeline import Segment, is_visible

SESSIONS = "sessions"


class LastTalk(NamedTuple):
    """When they last talked, ISO 8601, in how many sessions, and of what: "" and 0 if never."""

    said_at: str = ""
    sessions: int = 0
    speaker: str = ""
    text: str = ""


async def note_session(
    store: BaseStore,
    character: str,
    session: str,
    *,
    user: str | None = None,
    now: datetime | None = None,
    memory: str | None = None,
) -> None:
    """Note that they talk; to be called once a turn, since also a talk of which nothing is remembered was one.

    The one record here that is written over: it says when people talked, which no undo in a story takes back. The
    session is a thread's id, `memory` the key of what was remembered of it, if anything was.
    """
    at = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    place = character_namespace(character, SESSIONS, user=user)
    known = await store.aget(place, session)
    value = dict(known.value) if known else {"began": at, "memory": None}
    value |= {"last": max(at, str(value.get("last", ""))), "memory": memory or value["memory"]}
    await put_all(store, [PutOp(place, session, value, index=False)])


async def last_talk(
    store: BaseStore,
    character: str,
    *,
    user: str | None = None,
    session: str | None = None,
    timeline: Sequence[Segment] | None = None,
) -> LastTalk:
    """Find out when they last talked, before the session that is going on, which does not count.

    A memory that carries a branch and turn is used only if the timeline sees it.
    """
    place = character_namespace(character, SESSIONS, user=user)
    talks = [item.value async for item in items_under(store, place) if item.key != session]
    if not talks:
        return LastTalk()
    talks.sort(key=lambda talk: str(talk["last"]), reverse=True)
    talk = LastTalk(str(talks[0]["last"]), len(talks))
    for key in (talk["memory"] for talk in talks if talk["memory"]):
        memory = await store.aget(character_namespace(character, MEMORIES, user=user), str(key))
        if memory is None:  # deleted since
            continue
        value = memory.value
        if is_visible(timeline, value):
            return talk._replace(speaker=str(value["speaker"]), text=str(value["text"]))
    return talk


def greeting_line(talk: LastTalk, *, name1: str, name2: str, now: datetime) -> str:
    """Say for the prompt how long it has been, so that the character (name2) can greet the user (name1) accordingly."""
    if not talk.sessions:
        return f"{name1} and {name2} have not talked before."
    often = "once" if talk.sessions == 1 else f"{talk.sessions} times"
    line = f"{name1} and {name2} have talked {often} before, last {phrase_age(talk.said_at, now)}."
    return f"{line} Of what {talk.speaker} said then is remembered: “{talk.text[:300]}”" if talk.text else line

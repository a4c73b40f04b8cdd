"""The conversation of a campaign, searched by words and by days, whether or not it has left the buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore

from questbook.memory.archive.days import Days
from questbook.memory.archive.matching import matched
from questbook.memory.archive.page import Page, page_of
from questbook.memory.errors import BadQueryError
from questbook.memory.timeline.off_the_record import WITHHELD
from questbook.memory.timeline.seen import all_seen
from questbook.memory.timeline.timeline import Segment

JSON = dict[str, Any]

ROLES = ("user", "assistant")
_FIELDS = {"user": "player", "assistant": "reply"}


async def search_conversation(
    store: BaseStore,
    namespace: tuple[str, ...],
    query: str = "",
    *,
    timeline: Sequence[Segment],
    before: int | None = None,
    roles: Sequence[str] = ROLES,
    days: Days | None = None,
    page: int = 1,
    size: int = 5,
) -> Page[JSON]:
    """Find exchanges of this timeline.

    Args:
        store: Any store.
        namespace: Where the exchanges are: records with `player`, `reply`, `said_at`, and a place on the timeline.
        query: Words of which an exchange must have one; the best fitting come first. Blank: all, the oldest first.
        timeline: Only what it may see is found.
        before: Only turns before this one.
        roles: Whose words count, and are shown: "user", "assistant".
        days: Only exchanges of these days.
        page: From 1.
        size: Exchanges on a page.

    Raises:
        BadQueryError: There is no such role or page.
    """
    if not roles or (wrong := [role for role in roles if role not in ROLES]):
        raise BadQueryError(f"roles: got {wrong if roles else 'none'}; there are {', '.join(ROLES)}.")
    seen = {item.key: item.value for item in await all_seen(store, namespace, timeline, before)}
    told = {key: value for key, value in seen.items() if not value.get(WITHHELD)}
    kept = {key: value for key, value in told.items() if days is None or days.hold(str(value.get("said_at") or ""))}
    texts = {key: _words(value, roles) for key, value in kept.items()}
    order = [key for key, text in texts.items() if text.strip()]
    if query.strip():
        scores = await matched(texts, query)
        order = sorted((key for key in order if scores[key] > 0), key=lambda key: -scores[key])
    return page_of([_shown(kept[key], roles) for key in order], page, size)


def _words(value: Mapping[str, Any], roles: Sequence[str]) -> str:
    return "\n".join(str(value.get(_FIELDS[role]) or "") for role in roles)


def _shown(value: Mapping[str, Any], roles: Sequence[str]) -> JSON:
    said = {role: value[_FIELDS[role]] for role in ROLES if role in roles and value.get(_FIELDS[role])}
    return {"turn": value["turn"], "said_at": value.get("said_at")} | said

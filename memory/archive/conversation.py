"""The conversation of a campaign, searched by meaning, words, roles and days, also what has left the buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore

from questbook.memory.archive.results import Days, Page, cut_page, score_words
from questbook.memory.errors import BadQueryError
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import WITHHELD
from questbook.memory.timeline.timeline import Segment, list_visible
from questbook.types import JSON

ROLES = ("user", "assistant")
_RECALLED = 64  # exchanges that are ranked by meaning too
_BY_MEANING = 10  # of these, the first match without a word in common
_FIELDS = {"user": "player", "assistant": "reply"}


@dataclass(frozen=True)
class ConversationQuery:
    """What to search the conversation for.

    Exchanges with one of the text's words match, and a few that are nearest to it in meaning, the best fitting first;
    without a text all, the oldest first.
    """

    text: str = ""
    roles: Sequence[str] = ROLES  # the speakers whose words are searched and shown: "user", "assistant"
    days: Days | None = None  # only exchanges of these days; None: of all days
    page: int = 1  # of the results, from 1
    size: int = 5  # exchanges on a page


async def search_conversation(
    store: BaseStore,
    namespace: tuple[str, ...],
    query: ConversationQuery,
    *,
    timeline: Sequence[Segment],
    before: int | None = None,
) -> Page[JSON]:
    """Find exchanges; return a page of {"turn", "said_at", "user", "assistant"}.

    Only turns before `before` are searched. Exchanges that the person asked not to remember are left out.

    Raises:
        BadQueryError: There is no such role or page.
    """
    unknown = [role for role in query.roles if role not in ROLES]
    if unknown or not query.roles:
        raise BadQueryError(f"roles: got {unknown or 'none'}; there are {', '.join(ROLES)}.")
    exchanges: dict[str, JSON] = {}
    texts: dict[str, str] = {}
    for item in await list_visible(store, namespace, timeline, before):
        dated = query.days is None or query.days.contains(str(item.value.get("said_at") or ""))
        text = "\n".join(str(item.value.get(_FIELDS[role]) or "") for role in query.roles)
        if dated and text.strip() and not item.value.get(WITHHELD):
            exchanges[item.key], texts[item.key] = item.value, text
    keys = list(exchanges)
    if query.text.strip():
        scores = await score_words(texts, query.text)
        hits = await recall(store, namespace, Query(query.text, timeline=timeline, before=before, limit=_RECALLED))
        ranks = {hit.key: rank for rank, hit in enumerate(hits)}
        # A record's vector is of both sides, so it says nothing of one of them.
        both = hits[:_BY_MEANING] if set(query.roles) == set(ROLES) else []
        near = {hit.key for hit in both if hit.reason.by_meaning is not None}
        matches = [key for key in keys if scores[key] > 0 or key in near]
        keys = sorted(matches, key=lambda key: (ranks.get(key, len(ranks)), -scores[key]))
    return cut_page([_shown(exchanges[key], query.roles) for key in keys], query.page, query.size)


def _shown(exchange: Mapping[str, Any], roles: Sequence[str]) -> JSON:
    words = {role: exchange[_FIELDS[role]] for role in ROLES if role in roles and exchange.get(_FIELDS[role])}
    return {"turn": exchange["turn"], "said_at": exchange.get("said_at")} | words

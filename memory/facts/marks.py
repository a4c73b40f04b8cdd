"""Marks: small records beside the facts, by which what holds is found without looking through all of them.

A mark says that from a turn on a slot is held by a fact, or that a fact was said again. Marks are never changed, carry
a stamp as every record does, and are seen by the same timelines. They lie in a thousand places by what they are about,
so that each place stays small: a store reads one place to answer, not the campaign.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from langgraph.store.base import PutOp, SearchOp

from questbook.memory.timeline.timeline import Segment, sees

JSON = dict[str, Any]
Namespace = tuple[str, ...]
What = Literal["holds", "again"]

MARKS = "marks"
MOST = 64  # marks that are read of one slot before each branch is asked for its own
_PLACES = 1024


def digest(text: str) -> str:
    """Return 64 bits of a text's SHA-256: what a mark is about."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place_of(facts: Namespace, about: str) -> Namespace:
    """Return where the marks about something lie, given the namespace of the facts."""
    return (*facts[:-1], MARKS, f"{int(about, 16) % _PLACES:03x}")


def mark(facts: Namespace, what: What, about: str, key: str, stamped: JSON) -> PutOp:
    """Make the write of a mark.

    Args:
        facts: Namespace of the facts.
        what: "holds" or "again".
        about: Digest of the slot, or of the key of the fact that was said again.
        key: Key of the fact that holds, or under which the fact would have been written.
        stamped: The stamp and `at` of the fact.
    """
    # What does not rewind has no branch; there, the message says what the mark came of.
    kept = ("branch", "turn", "order", "at", "turns") if "branch" in stamped else ("turn", "at", "messages")
    stamps = {name: stamped[name] for name in kept if name in stamped}
    value = {"what": what, "about": about, "fact": key} | stamps
    return PutOp(place_of(facts, about), f"{key}-{what}", value, index=False)


def search(facts: Namespace, about: str, only: JSON | None = None, limit: int = MOST) -> SearchOp:
    """Make the search for the marks about something."""
    return SearchOp(place_of(facts, about), filter={"about": about, **(only or {})}, limit=limit)


def at(turn: int, ordinal: int) -> str:
    """Say when in a campaign a fact was noted: text of a fixed width that stores compare alike as text and number."""
    return f"{turn:08}.{min(ordinal, 999):03}"


def at_time(moment: datetime, turn: int, ordinal: int) -> str:
    """Say when a fact was noted of which turns tell nothing: what is known of the player, across campaigns."""
    return f"{max(0, int(moment.timestamp())):011}.{turn % 100:02}{min(ordinal, 999):03}"


def seen(timeline: Sequence[Segment] | None, value: Mapping[str, Any], before: int | None = None) -> bool:
    """Whether a record can be seen; without a timeline everything can, and what names no branch belongs to none."""
    if before is not None and int(value.get("turn", 0)) >= before:
        return False
    return timeline is None or "branch" not in value or sees(timeline, value["branch"], int(value.get("turn", 0)))

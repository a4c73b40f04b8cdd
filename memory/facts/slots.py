"""Slots that are known: of which subjects which attributes have been noted, as far as they matter to some text.

A second wording of an attribute ("lair" for "den") makes a second slot, and what was known of the first holds on beside
it. Whoever notes facts is therefore shown which wordings there are. The store proposes them, so that it costs the same
in a long campaign as in a short one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from questbook.memory.facts.validity import records
from questbook.memory.recall.candidates import Scope, candidates
from questbook.memory.text.wording import content_stems, names_in
from questbook.memory.timeline.timeline import Segment

Namespace = tuple[str, ...]

_MOST_NAMES = 6  # whose facts are searched for by themselves
_WIDTH = 32  # facts that are looked through for their slots
_LONGEST = 2000  # characters of a text by which the store is searched
_NAME = re.compile(r"[^\W\d_a-z][^\W_]+(?:[ ](?:of[ ]|the[ ])?[^\W\d_a-z][^\W_]+)*")


class KnownSlot(NamedTuple):
    """A slot that facts have held.

    Attributes:
        slot: As `questbook.memory.facts.facts.slot_of` makes it.
        subject: The subject, as it was written.
        attribute: The attribute, as it was written.
        key: Key of a fact that held it.
    """

    slot: str
    subject: str
    attribute: str
    key: str


async def known_slots(
    store: BaseStore,
    namespace: Namespace,
    text: str,
    *,
    subjects: Iterable[str] = (),
    keys: Sequence[str] = (),
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[KnownSlot]:
    """Find the slots that may matter to a text; whether their facts still hold does not count.

    Args:
        store: Any store; it should index the field `text`.
        namespace: Where the facts are.
        text: What facts are to be noted of.
        subjects: Subjects whose facts are looked for by themselves, besides those that the text names.
        keys: Keys of facts whose slots come first: what was recalled for the text.
        timeline: What can be seen; None: everything.
        before: Only what was written before this turn.

    Returns:
        Each once: those of `keys`, then by how well a fact of theirs fits the text.
    """
    asked = list(dict.fromkeys([*subjects, *_named(text)]))[:_MOST_NAMES]
    scope = Scope(namespace, timeline, before, [{"subject": name} for name in asked])
    [[found]] = await candidates(store, [scope], [text[:_LONGEST]], [_WIDTH]) if text.strip() else [[[]]]
    first = await records(store, namespace, keys)
    slots: dict[str, KnownSlot] = {}
    for key, value in [*first.items(), *((item.key, item.value) for item in found)]:
        if slot := _slot(key, value):
            slots.setdefault(slot.slot, slot)
    return list(slots.values())


def named_subjects(text: str, subjects: Iterable[str]) -> frozenset[str]:
    """Return the subjects that a text names: by all of their words, or by one that is written like a name in both."""
    words, capital = content_stems(text), set(names_in(text))
    return frozenset(
        subject
        for subject in set(subjects)
        if (own := content_stems(subject)) and (own <= words or capital & set(names_in(subject)))
    )


def _slot(key: str, value: Mapping[str, Any]) -> KnownSlot | None:
    slot, subject, attribute = (str(value.get(name) or "") for name in ("slot", "subject", "attribute"))
    return KnownSlot(slot, subject, attribute, key) if slot else None


def _named(text: str) -> list[str]:
    """Return what is written like a name, the most frequent first: "Goran", "Tower of Ash"."""
    found = Counter(match[0] for match in _NAME.finditer(text) if names_in(match[0]))
    return [name for name, _ in found.most_common()]

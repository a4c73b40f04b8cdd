"""Slots that may matter to a text: a prompt names them, so that a model words subjects and attributes alike.

A second wording of an attribute ("lair" for "den") makes a second slot, and what is known of the first would go on to
hold beside it.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from langgraph.store.base import BaseStore

from questbook.memory.facts.marks import Namespace, read_records
from questbook.memory.recall.candidates import Scope, propose_candidates
from questbook.memory.store.joint_reads import JointReads
from questbook.memory.text.wording import content_stems, names_in
from questbook.memory.timeline.timeline import Segment

_MAX_SUBJECTS = 6  # subjects whose facts `find_slots` searches one by one
_SLOT_SEARCH = 32  # facts that `find_slots` reads for their slots
_MAX_QUERY = 2000  # characters of a text that the store is searched with
_NAME = re.compile(r"[^\W\d_a-z][^\W_]+(?:[ ](?:of[ ]|the[ ])?[^\W\d_a-z][^\W_]+)*")


class Slot(NamedTuple):
    """A slot that facts have held."""

    slot: str  # as `questbook.memory.facts.fact.slot_of` makes it
    subject: str  # the subject, as it was written
    attribute: str  # the attribute, as it was written
    key: str  # key of a fact that held it


async def find_slots(
    store: BaseStore,
    namespace: Namespace,
    text: str,
    *,
    subjects: Iterable[str] = (),
    keys: Sequence[str] = (),
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> list[Slot]:
    """Find the slots that may matter to a text, whether or not their facts still hold.

    Args:
        store: Any store; it should index the field `text`.
        namespace: Namespace of the facts.
        text: The text that facts are to be drawn from.
        subjects: Subjects whose facts are searched by themselves, in addition to those that the text names.
        keys: Keys of facts whose slots come first: what was recalled for the text.
        timeline: The timeline that asks; None: everything is visible.
        before: Only facts from before this turn.

    Returns:
        Each slot once: those of `keys`, then by how well a fact of theirs fits the text.
    """
    searched = list(dict.fromkeys([*subjects, *_names_by_frequency(text)]))[:_MAX_SUBJECTS]
    scope = Scope(namespace, timeline, before, [{"subject": subject} for subject in searched])
    reads = JointReads.of(store)
    proposed, records = await asyncio.gather(
        propose_candidates(reads, [scope] if text.strip() else [], [text[:_MAX_QUERY]], [_SLOT_SEARCH]),
        read_records(reads, namespace, keys),
    )
    slots: dict[str, Slot] = {}
    for key, value in [*records.items(), *((item.key, item.value) for [items] in proposed for item in items)]:
        slot, subject, attribute = (str(value.get(name) or "") for name in ("slot", "subject", "attribute"))
        if slot:
            slots.setdefault(slot, Slot(slot, subject, attribute, key))
    return list(slots.values())


def subjects_in(text: str, subjects: Iterable[str]) -> frozenset[str]:
    """Return the subjects that a text names: by all of their words, or by a word that both write like a name."""
    words, names = content_stems(text), set(names_in(text))
    return frozenset(
        subject
        for subject in set(subjects)
        if (own := content_stems(subject)) and (own <= words or names & set(names_in(subject)))
    )


def _names_by_frequency(text: str) -> list[str]:
    """Return what is written like a name, the most frequent first: "Goran", "Tower of Ash"."""
    counts = Counter(match[0] for match in _NAME.finditer(text) if names_in(match[0]))
    return [name for name, _ in counts.most_common()]

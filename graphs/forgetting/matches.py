"""What holds some words, and what was removed: the results of forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from questbook.types import JSON


class Matches(NamedTuple):
    """What holds some words.

    Attributes:
        words: The words.
        records: Records that say them, on every branch, each with its `line`: the words are cut out.
        emptied: Those of the records that say nothing without the words, and likes and limits of the person. Whoever
            forgets decides: they are removed, or they stay with "[forgotten]" in place of the words.
        insights: Insights that cite such a record, or another such insight: removed too, whatever their words are.
        items: How many other items of the store hold them, such as the campaign's head: the words are cut out.
        fields: Dotted paths of the fields of the last state that hold them: the words are cut out.
        checkpoints: How many checkpoints and pending writes hold them: the words are cut out.
        playing: Threads whose turn another program plays meanwhile: what it writes is cut when the turn ends.
    """

    words: str
    records: list[JSON]
    emptied: list[JSON]
    insights: list[JSON]
    items: int
    fields: list[str]
    checkpoints: int
    playing: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether anything holds the words."""
        return bool(self.records or self.items or self.fields or self.checkpoints)


class Removal(NamedTuple):
    """What was removed or changed.

    Attributes:
        campaigns: Names of the campaigns that were looked through.
        threads: How many threads were deleted, with all their checkpoints.
        items: How many items of the store were removed or had words cut out.
        checkpoints: How many checkpoints and pending writes had words cut out.
        playing: Threads whose turn another program plays meanwhile: what it writes is cut when the turn ends.
    """

    campaigns: list[str]
    threads: int = 0
    items: int = 0
    checkpoints: int = 0
    playing: Sequence[str] = ()

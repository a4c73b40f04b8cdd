"""What is forgotten: what holds some words, and what was removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import Item


class Found(NamedTuple):
    """What holds some words, or what was removed.

    Attributes:
        words: The words.
        records: The records that say them, of every branch: removed as a whole.
        drawn: The insights that say them not, but cite such a record, or an insight that does: removed as well.
        items: How many other things in the store hold them: the campaign's head, names of lines, notes on where a
            record came from. The words are cut out.
        places: Where the pages and the summary as they stand hold them: dotted paths. The words are cut out.
        checkpoints: How many checkpoints and pending writes hold them. The words are cut out.
        typed: How many entries of the prompt's history hold them: removed.
        left: After forgetting, the files in which the words can still be read: because another campaign says them,
            or because they are words of the file's own structure. A word of three letters can be there by chance.
    """

    words: str
    records: list[dict[str, Any]]
    drawn: list[dict[str, Any]]
    items: int
    places: list[str]
    checkpoints: int
    typed: int
    left: Sequence[str] = ()

    @property
    def nothing(self) -> bool:
        """Whether the words stand nowhere."""
        return not (self.records or self.items or self.places or self.checkpoints or self.typed)


class Removed(NamedTuple):
    """What was removed with a campaign or a player.

    Attributes:
        campaigns: Names of the campaigns.
        threads: How many threads, with all their checkpoints.
        items: How many records and other things in the store.
        typed: How many entries of the prompt's history.
    """

    campaigns: list[str]
    threads: int
    items: int
    typed: int


def in_order(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return the values of items, by turn."""
    values = [item.value for item in items]
    return sorted(values, key=lambda value: (value.get("turn", 0), str(value.get("said_at", ""))))

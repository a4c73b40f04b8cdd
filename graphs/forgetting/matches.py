"""What holds some words, and what was removed: the results of forgetting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from questbook.types import JSON

if TYPE_CHECKING:  # a terminal that starts shows counts of these and needs neither
    from langgraph.store.base import Item

    from questbook.graphs.forgetting.phrase import Phrase


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
        playing: Threads whose turn is still played: what it writes is cut when the turn ends, as `forget` says it.
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
        playing: Threads whose turn is still played: what it writes is cut when the turn ends, as `forget` says it.
    """

    campaigns: list[str]
    threads: int = 0
    items: int = 0
    checkpoints: int = 0
    playing: Sequence[str] = ()


def by_turn(items: Iterable[Item], lines: Mapping[tuple[Any, Any], str]) -> list[JSON]:
    """Return records in story order, each with the line on which its turn was played; one of the person has none."""
    values = [item.value for item in items]
    values = [{"line": lines.get((value.get("branch"), value.get("turn")), ""), **value} for value in values]
    return sorted(values, key=lambda value: (value.get("turn", 0), str(value.get("said_at", ""))))


def says(item: Item, phrase: Phrase) -> bool:
    """Whether an item is a record that says the phrase; a phrase beside its text is only cut out."""
    texts = [item.value.get(name) for name in ("text", "player", "reply")]
    return isinstance(texts[0], str) and any(isinstance(text, str) and phrase.is_in(text) for text in texts)

"""Pages of results: what is shown of how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from questbook.memory.errors import BadQueryError

ItemT = TypeVar("ItemT")


class Page(NamedTuple, Generic[ItemT]):
    """One page of results.

    Attributes:
        items: What stands on it.
        first: Place of its first item among all, from 1; 0 if there is none.
        total: How many results there are on all pages.
        number: The page, from 1.
        pages: How many pages there are, at least 1.
    """

    items: list[ItemT]
    first: int
    total: int
    number: int
    pages: int

    @property
    def heading(self) -> str:
        """Say what is shown of how many."""
        if not self.total:
            return "Nothing was found: 0 of 0."
        last = self.first + len(self.items) - 1
        return f"Showing {self.first}–{last} of {self.total} (page {self.number} of {self.pages})."


def page_of(found: Sequence[ItemT], number: int, size: int) -> Page[ItemT]:
    """Cut a page.

    Args:
        found: All results, in order.
        number: The page, from 1.
        size: Results on a page.

    Raises:
        BadQueryError: There is no such page; the message says how many there are.
    """
    pages = max(1, -(-len(found) // size))
    if not 1 <= number <= pages:
        raise BadQueryError(
            f"page: got {number}; there are {pages} pages with {len(found)} results: send 1 to {pages}."
        )
    start = (number - 1) * size
    items = list(found[start : start + size])
    return Page(items, start + 1 if items else 0, len(found), number, pages)

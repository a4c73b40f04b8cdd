"""What the gets, searches and listings of a batch read, inside one read transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, Op, Result, SearchItem, SearchOp

from questbook.memory.store import rows
from questbook.memory.store.rows import ItemRow, Namespace

if TYPE_CHECKING:
    from questbook.memory.store.search import SearchBatch


class Reader:
    """Reads what operations ask for.

    Args:
        connection: In a read transaction.
        omit_expired: Whether to leave out items that have expired and were not deleted yet.
        searches: Answers the searches; None if there are none.

    Attributes:
        refreshed: Ids of items whose time to live starts again because they were read.
    """

    def __init__(self, connection: sqlite3.Connection, searches: SearchBatch | None, *, omit_expired: bool) -> None:
        self._connection, self._searches, self._omit_expired = connection, searches, omit_expired
        self._now = rows.now() if omit_expired else 0
        self.refreshed: list[int] = []

    def read(self, ops: Sequence[Op]) -> list[Result]:
        """Return the result of each operation; None for puts and for gets without an item."""
        gets: dict[Namespace, dict[str, None]] = {}
        for op in ops:
            if isinstance(op, GetOp):
                gets.setdefault(tuple(op.namespace), {})[op.key] = None
        items = {place: rows.get_by_keys(self._connection, place, list(keys)) for place, keys in gets.items()}
        results: list[Result] = [None] * len(ops)
        for place, op in enumerate(ops):
            if isinstance(op, GetOp):
                results[place] = self._get(op, items[tuple(op.namespace)].get(op.key))
            elif isinstance(op, SearchOp) and self._searches is not None:
                results[place] = self._search(op, self._searches)
            elif isinstance(op, ListNamespacesOp):
                results[place] = _list_namespaces(self._connection, op, omit_expired=self._omit_expired)
        return results

    def _get(self, op: GetOp, item: ItemRow | None) -> Item | None:
        if item is None or not item.lives(self._now):
            return None
        self._note_read(op, item)
        return Item(
            value=item.value,
            key=item.key,
            namespace=item.namespace,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )

    def _search(self, op: SearchOp, searches: SearchBatch) -> list[SearchItem]:
        hits = searches.run(op)
        for item, _ in hits:
            self._note_read(op, item)
        return [
            SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, cosine)
            for item, cosine in hits
        ]

    def _note_read(self, op: GetOp | SearchOp, item: ItemRow) -> None:
        if op.refresh_ttl and item.expires_at is not None:
            self.refreshed.append(item.id)


def _list_namespaces(connection: sqlite3.Connection, op: ListNamespacesOp, *, omit_expired: bool) -> list[Namespace]:
    """List the namespaces that hold items, in order, cut to the depth, each once.

    Raises:
        ValueError: If a condition is neither a prefix nor a suffix.
    """
    conditions = op.match_conditions or ()
    read = rows.living_namespaces if omit_expired else rows.namespaces_under
    paths = {space.path for space in read(connection, _fixed_prefix(conditions))}
    paths = {path for path in paths if all(_meets(path, condition) for condition in conditions)}
    if op.max_depth is not None:
        paths = {path[: op.max_depth] for path in paths}
    start = max(op.offset, 0)
    return sorted(paths)[start : start + max(op.limit, 0)]


def _fixed_prefix(conditions: Iterable[MatchCondition]) -> Namespace:
    """Return a prefix without wildcards that all conditions include; () if there is none."""
    for condition in conditions:
        if condition.match_type == "prefix" and "*" not in condition.path:
            return _labels(condition)
    return ()


def _labels(condition: MatchCondition) -> Namespace:
    return (condition.path,) if isinstance(condition.path, str) else tuple(condition.path)


def _meets(path: Namespace, condition: MatchCondition) -> bool:
    labels = _labels(condition)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) < len(labels):
        return False
    part = path[: len(labels)] if condition.match_type == "prefix" else path[len(path) - len(labels) :]
    return all(want in ("*", have) for have, want in zip(part, labels, strict=True))

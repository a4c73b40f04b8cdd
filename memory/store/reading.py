"""Reads inside a transaction that the caller holds: the gets, searches and listings of one batch."""

import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Result, SearchOp

from questbook.memory.store import rows
from questbook.memory.store.cosines import Together
from questbook.memory.store.listing import list_namespaces
from questbook.memory.store.row_cache import as_search_item
from questbook.memory.store.rows import ItemRow, Namespace, NamespaceRow
from questbook.memory.store.search import Search
from questbook.memory.store.work import Work

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Vector


class Reading:
    """What one batch reads.

    Args:
        search: Searches the store.
        omit_expired: Whether items whose time is over, and that were not swept yet, are passed over.
    """

    def __init__(self, search: Search, *, omit_expired: bool) -> None:
        self._search = search
        self._omit_expired = omit_expired
        self.spaces: dict[Namespace, list[NamespaceRow]] = {}
        """The namespaces under each prefix that was searched."""
        self.refreshed: list[int] = []
        """Ids of items that live longer for having been read."""

    def results(self, connection: sqlite3.Connection, work: Work, queries: "Mapping[str, Vector]") -> dict[int, Result]:
        """Read.

        Args:
            connection: In a read transaction.
            work: The batch.
            queries: Unit vectors of its queries.

        Returns:
            What each operation found, by its place in the batch; nothing for what found nothing and for puts.
        """
        found: dict[int, Result] = {}
        together = _together(work, queries)
        gotten = {space: rows.get_by_keys(connection, space, keys) for space, keys in work.gets().items()}
        for place, op in enumerate(work.ops):
            if isinstance(op, GetOp):
                item = gotten[tuple(op.namespace)].get(op.key)
                if item is not None and self._visible(item):
                    found[place] = Item(
                        value=item.value,
                        key=item.key,
                        namespace=item.namespace,
                        created_at=item.created_at,
                        updated_at=item.updated_at,
                    )
                    self._read(op, item)
            elif isinstance(op, SearchOp):
                prefix, query = tuple(op.namespace_prefix), queries.get(op.query or "")
                spaces, others = self._under(connection, prefix), together.get(prefix)
                hits = self._search.run(connection, spaces, op, query, self._visible, others)
                found[place] = [as_search_item(item, item.value, score) for item, score in hits]
                for item, _ in hits:
                    self._read(op, item)
            elif isinstance(op, ListNamespacesOp):
                found[place] = list_namespaces(connection, op, omit_expired=self._omit_expired)
        return found

    def _under(self, connection: sqlite3.Connection, prefix: Namespace) -> list[NamespaceRow]:
        if prefix not in self.spaces:
            self.spaces[prefix] = rows.namespaces_under(connection, prefix)
        return self.spaces[prefix]

    def _read(self, op: GetOp | SearchOp, item: ItemRow) -> None:
        if op.refresh_ttl and item.expires_at is not None:
            self.refreshed.append(item.id)

    def _visible(self, item: ItemRow) -> bool:
        return not self._omit_expired or item.expires_at is None or item.expires_at > rows.now()


def _together(work: Work, queries: "Mapping[str, Vector]") -> dict[Namespace, Together]:
    """The queries that a batch asks under each prefix."""
    asked: dict[Namespace, dict[str, Vector]] = {}
    for op in work.ops:
        if isinstance(op, SearchOp) and op.query is not None and op.query in queries:
            asked.setdefault(tuple(op.namespace_prefix), {})[op.query] = queries[op.query]
    return {prefix: Together(list(vectors.values())) for prefix, vectors in asked.items()}

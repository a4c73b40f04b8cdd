"""One batch of LangGraph operations: checked before the transaction, then read or turned into writes inside it."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from questbook.memory.errors import UnstorableValueError
from questbook.memory.store import rows
from questbook.memory.store.file_index import FileIndex
from questbook.memory.store.filters import check_filter
from questbook.memory.store.postings import WordMatches
from questbook.memory.store.rows import ItemRow, Namespace, NamespaceRow, encode_value
from questbook.memory.store.search import Search, SearchRequest
from questbook.memory.store.vectors import QueryBatch
from questbook.memory.store.writes import LONGEST_TTL, Write, is_time_to_live

if TYPE_CHECKING:
    from questbook.memory.embeddings.batching import Vector

_OPERATIONS = (GetOp, PutOp, SearchOp, ListNamespacesOp)


class Operations:
    """A batch of valid operations, and the texts in it that are to be embedded.

    Args:
        ops: What `batch` was called with.
        index: What the store is indexed with.

    Raises:
        ValueError: If something is no operation.
        BadQueryError: If a filter is wrong.
        InvalidNamespaceError: If a label is invalid.
        UnstorableValueError: If a value is not JSON, or a time to live no number of minutes.
    """

    def __init__(self, ops: Iterable[Op], index: FileIndex) -> None:
        self.ops = list(ops)
        self.queries: list[str] = []
        """Texts that are searched for."""
        self._index = index
        self._puts: dict[tuple[Namespace, str], PutOp] = {}
        checked = set[int]()  # ids of filters: the searches of one batch often share one, and it may be long
        for op in self.ops:
            if not isinstance(op, _OPERATIONS):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, SearchOp):
                if op.query:
                    self.queries.append(op.query)
                if op.filter is not None and id(op.filter) not in checked:
                    check_filter(op.filter)
                    checked.add(id(op.filter))
            elif isinstance(op, PutOp):
                if op.ttl is not None and not is_time_to_live(op.ttl):
                    raise UnstorableValueError(
                        f"cannot store {op.key!r} in {tuple(op.namespace)}: its time to live must be a number of "
                        f"minutes, at most {LONGEST_TTL:,.0f}, or None for ever; got {op.ttl!r:.80}"
                    )
                self._puts[tuple(op.namespace), op.key] = op
        kept = {place: put for place, put in self._puts.items() if put.value is not None}
        self._values = {place: encode_value(put.value or {}, *place) for place, put in kept.items()}
        self._texts = {place: index.texts(put.value or {}, put.index) for place, put in kept.items()}

    @property
    def has_reads(self) -> bool:
        """Whether anything is read."""
        return not all(isinstance(op, PutOp) for op in self.ops)

    def documents(self) -> list[str]:
        """Return the texts that are put and embedded."""
        return [text for texts in self._texts.values() for text in texts]

    def writes(self, vectors: "Mapping[str, Vector]") -> list[Write]:
        """Return what is written: for each key its last put.

        Args:
            vectors: Unit vectors of the documents, by text.
        """
        return [
            Write(*place, None) if put.value is None else self._write(place, put.value, put, vectors)
            for place, put in self._puts.items()
        ]

    def _write(
        self, place: tuple[Namespace, str], value: Mapping[str, Any], put: PutOp, vectors: "Mapping[str, Vector]"
    ) -> Write:
        paths = None if put.index is None else json.dumps(put.index)
        blobs = [vectors[text].astype("<f4").tobytes() for text in self._texts[place]]
        words = self._index.words(value, put.index)
        if not blobs and not words and put.index is not False:
            self._index.warn_unindexed(*place, value, put.index)
        return Write(*place, self._values[place], put.ttl, paths, blobs, words)


class Reader:
    """Reads what the gets, searches and listings of a batch ask for.

    Args:
        search: Searches the store.
        omit_expired: Whether to leave out items that have expired and were not deleted yet.
    """

    def __init__(self, search: Search, *, omit_expired: bool) -> None:
        self._search = search
        self._omit_expired = omit_expired
        self.refreshed: list[int] = []
        """Ids of items whose time to live starts again because they were read."""

    def read(
        self, connection: sqlite3.Connection, operations: Operations, queries: "Mapping[str, Vector]"
    ) -> dict[int, Result]:
        """Read.

        Args:
            connection: In a read transaction.
            operations: The batch.
            queries: Unit vectors of its queries, by text.

        Returns:
            The result of each operation by its place in the batch; nothing for puts and for gets without an item.
        """
        results: dict[int, Result] = {}
        batches = _query_batches(operations, queries)
        items = {
            namespace: rows.get_by_keys(connection, namespace, keys)
            for namespace, keys in _keys_by_namespace(operations).items()
        }
        spaces: dict[Namespace, list[NamespaceRow]] = {}
        read_items, words = dict[int, ItemRow](), dict[tuple[int, str], WordMatches]()
        for place, op in enumerate(operations.ops):
            if isinstance(op, GetOp):
                item = items[tuple(op.namespace)].get(op.key)
                if item is not None and self._is_visible(item):
                    results[place] = Item(
                        value=item.value,
                        key=item.key,
                        namespace=item.namespace,
                        created_at=item.created_at,
                        updated_at=item.updated_at,
                    )
                    self._note_read(op, item)
            elif isinstance(op, SearchOp):
                prefix = tuple(op.namespace_prefix)
                if prefix not in spaces:
                    spaces[prefix] = rows.namespaces_under(connection, prefix)
                text = op.query or ""
                request = SearchRequest(
                    op.filter or {},
                    text,
                    queries.get(text),
                    max(op.offset, 0),
                    max(op.limit, 0),
                    batches.get(prefix),
                    read_items,
                    words,
                )
                results[place] = self._run(connection, op, spaces[prefix], request)
            elif isinstance(op, ListNamespacesOp):
                results[place] = list_namespaces(connection, op, omit_expired=self._omit_expired)
        return results

    def _run(
        self,
        connection: sqlite3.Connection,
        op: SearchOp,
        spaces: Sequence[NamespaceRow],
        request: SearchRequest,
    ) -> list[SearchItem]:
        hits = self._search.run(connection, spaces, request, self._is_visible)
        for item, _ in hits:
            self._note_read(op, item)
        return [
            SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, cosine)
            for item, cosine in hits
        ]

    def _note_read(self, op: GetOp | SearchOp, item: ItemRow) -> None:
        if op.refresh_ttl and item.expires_at is not None:
            self.refreshed.append(item.id)

    def _is_visible(self, item: ItemRow) -> bool:
        return not self._omit_expired or item.expires_at is None or item.expires_at > rows.now()


def _keys_by_namespace(operations: Operations) -> dict[Namespace, list[str]]:
    """Return the keys that are read, each once."""
    keys: dict[Namespace, dict[str, None]] = {}
    for op in operations.ops:
        if isinstance(op, GetOp):
            keys.setdefault(tuple(op.namespace), {})[op.key] = None
    return {namespace: list(names) for namespace, names in keys.items()}


def _query_batches(operations: Operations, queries: "Mapping[str, Vector]") -> dict[Namespace, QueryBatch]:
    """Return the queries that are asked under each prefix."""
    vectors: dict[Namespace, dict[str, Vector]] = {}
    for op in operations.ops:
        if isinstance(op, SearchOp) and op.query is not None and op.query in queries:
            vectors.setdefault(tuple(op.namespace_prefix), {})[op.query] = queries[op.query]
    return {prefix: QueryBatch(list(by_text.values())) for prefix, by_text in vectors.items()}


def list_namespaces(
    connection: sqlite3.Connection, op: ListNamespacesOp, *, omit_expired: bool = False
) -> list[Namespace]:
    """List the namespaces that hold items.

    Args:
        connection: In a read transaction.
        op: Conditions ("*" matches any one label), depth, limit and offset.
        omit_expired: Whether to leave out namespaces in which everything has expired.

    Returns:
        Namespaces in order, cut to the depth, each once.

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

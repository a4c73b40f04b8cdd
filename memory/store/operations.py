"""One batch of LangGraph operations: checked, and encoded as far as possible, before a transaction begins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp, validate_op_namespace

from questbook.memory.errors import UnstorableValueError
from questbook.memory.store.file_index import FileIndex
from questbook.memory.store.filters import check_filter
from questbook.memory.store.rows import Namespace, encode_value
from questbook.memory.store.writes import LONGEST_TTL, Write, is_time_to_live

if TYPE_CHECKING:
    from questbook.memory.embeddings.batching import Vector

_OPERATIONS = (GetOp, PutOp, SearchOp, ListNamespacesOp)


class Operations:
    """A batch of valid operations, and the texts in it that are to be embedded.

    Args:
        ops: What `batch` was called with.
        index: What the store is indexed with.

    Attributes:
        ops: The same, as a list.
        searches: The searches among them.
        queries: Texts that are searched for.

    Raises:
        ValueError: If something is no operation.
        BadQueryError: If a filter is wrong.
        InvalidNamespaceError: If a label is invalid.
        UnstorableValueError: If a value is not JSON, or a time to live no number of minutes.
    """

    def __init__(self, ops: Iterable[Op], index: FileIndex) -> None:
        self.ops = list(ops)
        self.searches = [op for op in self.ops if isinstance(op, SearchOp)]
        self.queries = [op.query for op in self.searches if op.query]
        self._index = index
        self._puts: dict[tuple[Namespace, str], PutOp] = {}
        checked = set[int]()  # ids of filters: the searches of one batch often share one, and it may be long
        for op in self.ops:
            if not isinstance(op, _OPERATIONS):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, SearchOp):
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

    def writes(self, vectors: Mapping[str, Vector]) -> list[Write]:
        """Return what is written, for each key its last put, given the unit vectors of the documents by text."""
        return [self._write(place, put, vectors) for place, put in self._puts.items()]

    def _write(self, place: tuple[Namespace, str], put: PutOp, vectors: Mapping[str, Vector]) -> Write:
        if put.value is None:
            return Write(*place, None)
        paths = None if put.index is None else json.dumps(put.index)
        blobs = [vectors[text].astype("<f4").tobytes() for text in self._texts[place]]
        words = self._index.words(put.value, put.index)
        if not blobs and not words and put.index is not False:
            self._index.warn_unindexed(*place, put.value, put.index)
        return Write(*place, self._values[place], put.ttl, paths, blobs, words)

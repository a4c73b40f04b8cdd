"""A batch of operations, with all that must be known before its transaction begins."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp, validate_op_namespace

from questbook.memory.store.file_index import FileIndex
from questbook.memory.store.filters import check_filter
from questbook.memory.store.rows import Namespace, encode_value
from questbook.memory.store.writing import Write

if TYPE_CHECKING:
    from questbook.memory.embeddings.embedding_batch import Vector


_OPERATIONS = (GetOp, PutOp, SearchOp, ListNamespacesOp)


class Work:
    """Operations that were found valid, and what of them is to be embedded.

    Args:
        ops: What was given to `batch`.
        index: What the store is indexed with.

    Raises:
        ValueError: If something is no operation, or a filter has an unknown operator.
        InvalidNamespaceError: If a label is invalid.
        UnstorableValueError: If a value is not JSON.
    """

    def __init__(self, ops: Iterable[Op], index: FileIndex) -> None:
        self.ops = list(ops)
        self.queries: list[str] = []
        """Texts that are searched for."""
        self._index = index
        self._puts: dict[tuple[Namespace, str], PutOp] = {}
        checked = set[int]()  # filters: searches of one batch often share one, and a timeline's may be long
        for op in self.ops:
            if not isinstance(op, _OPERATIONS):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, SearchOp):
                if op.query:
                    self.queries.append(op.query)
                if op.filter and id(op.filter) not in checked:
                    check_filter(op.filter)
                    checked.add(id(op.filter))
            elif isinstance(op, PutOp):
                self._puts[tuple(op.namespace), op.key] = op
        kept = {place: put for place, put in self._puts.items() if put.value is not None}
        self._values = {place: encode_value(put.value or {}, *place) for place, put in kept.items()}
        self._texts = {place: index.texts(put.value or {}, put.index) for place, put in kept.items()}

    @property
    def reads(self) -> bool:
        """Whether anything is read."""
        return not all(isinstance(op, PutOp) for op in self.ops)

    @property
    def asks(self) -> bool:
        """Whether anything is searched by a query."""
        return bool(self.queries)

    def gets(self) -> dict[Namespace, list[str]]:
        """Keys that are read, each once, by their namespace."""
        found: dict[Namespace, dict[str, None]] = {}
        for op in self.ops:
            if isinstance(op, GetOp):
                found.setdefault(tuple(op.namespace), {})[op.key] = None
        return {space: list(keys) for space, keys in found.items()}

    def documents(self) -> list[str]:
        """Texts that are put and embedded."""
        return [text for texts in self._texts.values() for text in texts]

    def writes(self, vectors: "Mapping[str, Vector]") -> list[Write]:
        """What is written; of several puts to one key, the last.

        Args:
            vectors: Unit vectors of the documents.

        Returns:
            One write for each key.
        """
        return [
            Write(*place, None)
            if put.value is None
            else Write(
                *place,
                self._values[place],
                put.ttl,
                None if put.index is None else json.dumps(put.index),
                _blobs(self._texts[place], vectors),
                self._index.words(put.value, put.index),
            )
            for place, put in self._puts.items()
        ]


def _blobs(texts: Sequence[str], vectors: "Mapping[str, Vector]") -> list[bytes]:
    return [vectors[text].astype("<f4").tobytes() for text in texts]

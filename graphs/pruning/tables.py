"""`Tables`: what pruning asks of a saver's tables and does to them; there is one for SQLite and one for PostgreSQL."""

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple, Self

from langgraph.checkpoint.base import CheckpointTuple

from questbook.graphs.errors import UnreadableError
from questbook.graphs.pruning.retention import TreeNode
from questbook.types import JSON

_DELTA = ("counters_since_delta_snapshot", "delta_writes_versioned")  # in metadata: LangGraph's field, and that of .js
_DAMAGED = (ValueError, KeyError, TypeError, EOFError)  # what a serializer raises
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
Nodes = Mapping[str, Mapping[str, TreeNode]]
"""A thread's checkpoints by namespace and id."""


class Plan(NamedTuple):
    """What is to be done in one namespace of a thread."""

    surveyed: Set[str]  # the checkpoints that there were
    removed: Set[str]  # those to delete
    parents: Mapping[str, str | None]  # new parents of kept ones; None: no parent


class Volume(NamedTuple):
    """How much was, or would be, deleted."""

    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    bytes: int = 0

    def plus(self, other: Self) -> Self:
        """Return both together."""
        return type(self)(*(one + another for one, another in zip(self, other, strict=True)))


class Tables(ABC):
    """The tables of a saver."""

    errors: tuple[type[Exception], ...] = ()  # what its database raises
    copies = ""  # statement that reads the metadata of checkpoints that were copied from others

    def __init__(self, saver: Any) -> None:
        self._saver = saver

    async def load(self, thread: str, checkpoint: str = "") -> CheckpointTuple | None:
        """Return a checkpoint of the root graph with its values, by default the newest; None if there is none.

        A damaged one is an UnreadableError.
        """
        named = {"checkpoint_id": checkpoint} if checkpoint else {}
        try:
            where = {"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}}
            saved: CheckpointTuple | None = await self._saver.aget_tuple(where)
            return saved
        except _DAMAGED as error:
            name = f"Checkpoint {checkpoint}" if checkpoint else "The newest checkpoint"
            raise UnreadableError(f"{name} of thread {thread} cannot be read: {error!s:.120}") from error

    async def threads(self) -> list[str]:
        """Return the ids of all threads."""
        return [str(thread) for (thread,) in await self._query(_THREADS)]

    async def origins(self) -> set[tuple[str, str]]:
        """Return thread and id of each checkpoint that a copy in another thread was made from."""
        origins = [_read_metadata(metadata).get("copied_from") for (metadata,) in await self._query(self.copies)]
        return {(str(one["thread_id"]), str(one["checkpoint_id"])) for one in origins if one}

    @abstractmethod
    async def _query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement without values."""

    @abstractmethod
    async def survey(self, thread: str) -> Nodes:
        """Return a thread's checkpoints."""

    @abstractmethod
    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        It is done as a whole or not at all. None, and nothing is done, if another run went on from what is to be
        deleted since the thread was surveyed.
        """

    @abstractmethod
    async def compact(self) -> bool | None:
        """Make the file smaller. Return whether that was done; False: another program holds it; None: not needed."""


def nodes_of(rows: Iterable[tuple[Any, ...]], pending: Set[tuple[str, str]]) -> Nodes:
    """Make the nodes of rows (namespace, id, parent, metadata); `pending` are those on which writes are saved."""
    nodes: dict[str, dict[str, TreeNode]] = defaultdict(dict)
    for namespace, checkpoint, parent, written in rows:
        metadata = _read_metadata(written)
        nodes[namespace][checkpoint] = TreeNode(
            id=str(checkpoint),
            parent=parent or None,
            source=str(metadata.get("source", "")),
            step=int(metadata.get("step") or 0),
            root=(metadata.get("parents") or {}).get(""),
            pending=(namespace, checkpoint) in pending,
            delta=any(name in metadata for name in _DELTA),
        )
    return nodes


def _read_metadata(written: Any) -> JSON:
    try:
        metadata = json.loads(written or "{}") if isinstance(written, str | None) else written
    except ValueError:  # damaged; the checkpoint is then taken for what nothing is known of
        return {}
    return metadata if isinstance(metadata, dict) else {}


def went_on(nodes: Nodes, plans: Mapping[str, Plan]) -> bool:
    """Whether the plans fit no more: a run went on from what is to go, or what is to be kept is gone."""
    gone = {checkpoint for plan in plans.values() for checkpoint in plan.removed}
    return any(
        not (plan.surveyed - plan.removed) <= nodes.get(namespace, {}).keys()
        or any(
            not gone.isdisjoint({node.parent, node.root})
            for checkpoint, node in nodes.get(namespace, {}).items()
            if checkpoint not in plan.surveyed
        )
        for namespace, plan in plans.items()
    )

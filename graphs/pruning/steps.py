"""Steps: what pruning asks of a checkpointer, one request after another, and whoever runs them answers.

The same steps run over synchronous and asynchronous connections (`connections`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Set
from typing import Any, NamedTuple, Protocol, TypeVar

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from questbook.graphs.pruning.retention import Node

Result = TypeVar("Result")


class Query(NamedTuple):
    """A statement; answered with its rows, as tuples."""

    statement: str
    parameters: tuple[Any, ...] = ()

    @property
    def has_rows(self) -> bool:
        """Whether it reads rows."""
        return self.statement.startswith("SELECT")


class Load(NamedTuple):
    """A checkpoint with its values; answered with LangGraph's `CheckpointTuple`, or None if there is none.

    Attributes:
        thread: Its thread.
        namespace: Its namespace.
        checkpoint: Its id; "": the newest of the namespace.
    """

    thread: str
    namespace: str = ""
    checkpoint: str = ""


class Replayed(NamedTuple):
    """Channels whose value is not in a checkpoint alone; answered with LangGraph's `DeltaChannelHistory` of each."""

    thread: str
    namespace: str
    checkpoint: str
    channels: tuple[str, ...]


class Put(NamedTuple):
    """A checkpoint to be written, with pending writes.

    Attributes:
        thread: The thread.
        namespace: The namespace.
        parent: Id of its parent; None: none.
        checkpoint: The checkpoint; its values get versions of their own.
        metadata: Its metadata.
        writes: Channel and value of each write, in their order.
    """

    thread: str
    namespace: str
    parent: str | None
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    writes: tuple[tuple[str, Any], ...]


class Atomic(NamedTuple):
    """Steps in one transaction, in which nobody else writes to the same rows; answered with their result."""

    steps: Generator[Any, Any, Any]


Request = Query | Load | Replayed | Put | Atomic
Steps = Generator[Request, Any, Result]


class Plan(NamedTuple):
    """What is to be done in one namespace of a thread.

    Attributes:
        surveyed: The checkpoints that there were.
        removed: Those to delete.
        parents: New parents of kept ones; None: no parent.
    """

    surveyed: Set[str]
    removed: Set[str]
    parents: Mapping[str, str | None]


class Volume(NamedTuple):
    """How much was, or would be, deleted."""

    checkpoints: int = 0
    writes: int = 0
    blobs: int = 0
    bytes: int = 0

    def plus(self, other: Volume) -> Volume:
        """Return both together."""
        return Volume(*(one + another for one, another in zip(self, other, strict=True)))


class Backend(Protocol):
    """Where a checkpointer keeps what it saves."""

    def open(self) -> Steps[None]:
        """Look how the values are kept. Comes first."""
        ...

    def threads(self) -> Steps[list[str]]:
        """Return the ids of all threads."""
        ...

    def origins(self) -> Steps[set[tuple[str, str]]]:
        """Return thread and id of each checkpoint that a copy in another thread was made from."""
        ...

    def survey(self, thread: str) -> Steps[dict[str, dict[str, Node]]]:
        """Return a thread's checkpoints by namespace and id."""
        ...

    def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Steps[Volume | None]:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        None, and nothing is done, if somebody went on from what is to be deleted since the thread was surveyed.
        """
        ...

    def compact(self) -> Steps[bool | None]:
        """Make the file smaller. Return whether that was done; False: another program holds it; None: not needed."""
        ...

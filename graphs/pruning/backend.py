"""`Backend`: what pruning asks of a kind of checkpointer; and `Plan` and `Volume`, which go in and come out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol

from questbook.graphs.pruning.retention import Node


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
    """Where a checkpointer keeps what it saves. Over a synchronous one, no method ever waits."""

    async def open(self) -> None:
        """Look how the values are kept. Comes first."""

    async def threads(self) -> list[str]:
        """Return the ids of all threads."""

    async def origins(self) -> set[tuple[str, str]]:
        """Return thread and id of each checkpoint that a copy in another thread was made from."""

    async def survey(self, thread: str) -> dict[str, dict[str, Node]]:
        """Return a thread's checkpoints by namespace and id."""

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """Delete what the plans say, by namespace, and what only that needed; return how much that is.

        It is done as a whole or not at all, and nobody else writes to the same rows meanwhile. None, and nothing is
        done, if somebody went on from what is to be deleted since the thread was surveyed.
        """

    async def compact(self) -> bool | None:
        """Make the file smaller. Return whether that was done; False: another program holds it; None: not needed."""

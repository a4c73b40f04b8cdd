"""Timelines: which records a checkpoint may see.

A timeline lists branches, oldest first, each with the last turn of it that the checkpoint descends from. A record
carries the branch and the turn that wrote it, and is visible if a segment has its branch and reaches its turn.
"""

from __future__ import annotations

from collections.abc import Sequence

Segment = tuple[str, int]
"""A branch and the last turn of it that can be seen."""


def branch_of(timeline: Sequence[Segment], turn: int) -> str:
    """Return the branch that owns a turn: the first segment that reaches it.

    Raises:
        ValueError: The timeline does not reach that turn.
    """
    for branch, through in timeline:
        if turn <= through:
            return branch
    raise ValueError(f"Turn {turn} lies beyond the timeline {list(timeline)!r}; open the turn first.")


def record_key(branch: str, turn: int, kind: str, ordinal: int = 0) -> str:
    """Return a record's key, the same whenever the same turn writes it: writing twice is writing once."""
    return f"{branch}-{turn}-{kind}-{ordinal}"

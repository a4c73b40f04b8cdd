"""Listing namespaces by prefix, suffix and wildcard."""

import sqlite3
from collections.abc import Iterable

from langgraph.store.base import ListNamespacesOp, MatchCondition

from questbook.memory.store import rows
from questbook.memory.store.rows import Namespace


def list_namespaces(
    connection: sqlite3.Connection, op: ListNamespacesOp, *, omit_expired: bool = False
) -> list[Namespace]:
    """List the namespaces that hold items.

    Args:
        connection: In a read transaction.
        op: Conditions ("*" stands for any one label), depth, limit and offset.
        omit_expired: Whether to leave out namespaces in which everything has expired.

    Returns:
        Namespaces in order, cut to the depth, each once.

    Raises:
        ValueError: If a condition is neither a prefix nor a suffix.
    """
    conditions = op.match_conditions or ()
    read = rows.namespaces_with_living if omit_expired else rows.namespaces_under
    paths = {space.path for space in read(connection, _fixed_prefix(conditions))}
    paths = {path for path in paths if all(_fits(path, condition) for condition in conditions)}
    if op.max_depth is not None:
        paths = {path[: op.max_depth] for path in paths}
    start = max(op.offset, 0)
    return sorted(paths)[start : start + max(op.limit, 0)]


def _fixed_prefix(conditions: Iterable[MatchCondition]) -> Namespace:
    for condition in conditions:
        if condition.match_type == "prefix" and "*" not in condition.path:
            return _labels(condition)
    return ()


def _labels(condition: MatchCondition) -> Namespace:
    return (condition.path,) if isinstance(condition.path, str) else tuple(condition.path)


def _fits(path: Namespace, condition: MatchCondition) -> bool:
    labels = _labels(condition)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) < len(labels):
        return False
    part = path[: len(labels)] if condition.match_type == "prefix" else path[len(path) - len(labels) :]
    return all(want in ("*", have) for have, want in zip(part, labels, strict=True))

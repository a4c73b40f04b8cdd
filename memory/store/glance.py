"""A glance into a store's file, without the store: neither numpy nor FAISS is loaded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from questbook.types import JSON

_KEYS = "SELECT path, key FROM items JOIN namespaces ON namespaces.id = items.namespace WHERE path = ? OR path GLOB ?"
_ITEM = "SELECT value FROM items JOIN namespaces ON namespaces.id = items.namespace WHERE path = ? AND key = ?"


def list_paths(path: Path, first: str | None, last: str) -> list[tuple[str, ...]]:
    """Return the namespaces with items whose first and last labels these are; none if there is no readable file.

    Args:
        path: The store's file.
        first: The first label; None: any.
        last: The last label.
    """
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            paths = [
                tuple(str(row[0]).split(".")) for row in database.execute("SELECT path FROM namespaces WHERE items")
            ]
    except sqlite3.Error:
        return []
    return sorted(labels for labels in paths if first in (None, labels[0]) and labels[-1] == last)


def read_embedder(path: Path) -> str:
    """Return what a store's file says of its embedder, such as "hash-1:512 with 512 dimensions"; "" if nothing."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            row = database.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    except sqlite3.Error:
        return ""
    return str(row[0]) if row else ""


def read_item(path: Path, namespace: Sequence[str], key: str) -> JSON | None:
    """Return an item's value; None if there is none, or no readable file."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            row = database.execute(_ITEM, (".".join(namespace), key)).fetchone()
    except sqlite3.Error:  # an empty file; what is wrong with another one is said when the store is opened
        return None
    value: JSON | None = json.loads(row[0]) if row else None
    return value


def list_keys(path: Path, namespace: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return namespace and key of each item in a namespace and under it; none if there is no readable file."""
    if not path.exists():
        return []
    place = ".".join(namespace)
    under = "".join(f"[{c}]" if c in "*?[" else c for c in place) + ".*"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return [(tuple(str(of).split(".")), str(key)) for of, key in database.execute(_KEYS, (place, under))]
    except sqlite3.Error:
        return []


def find_damage(path: Path) -> str:
    """Examine every page of a database; return the first thing that is wrong, or "". Needs seconds for a large file."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.OperationalError:  # it may not be read; opening it says why
        return ""
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == "ok" else " ".join(str(found).split())

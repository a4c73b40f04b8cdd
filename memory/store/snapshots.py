"""Snapshots of large indexes: a faster start, and never more than that.

A snapshot is three files: the index as FAISS writes it, the ids as numpy writes them, and a manifest with the
SHA-256 of both. Whatever is wrong with them (damage, another embedder, another database) costs the time to
read the rows.
"""

import hashlib
import json
import logging
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from questbook.memory.store.indexes import ExactIndex, InvertedIndex
from questbook.memory.store.rows import NamespaceRow, vector_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Loaded = tuple[ExactIndex | InvertedIndex, Ids, Ids, NDArray[np.bool_], int]

_log = logging.getLogger(__name__)
_FORMAT = 2
_PROBES = 32  # vectors that are compared with their rows, in case the database was replaced by a copy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a snapshot lies, and whose it must be."""

    path: Path
    owner: str
    """Names the database and the embedder."""
    dims: int


def write_snapshot(
    snapshot: Snapshot,
    connection: sqlite3.Connection,
    version: int,
    epoch: int,
    index: ExactIndex | InvertedIndex,
    vectors: "Ids",
    items: "Ids",
    alive: "NDArray[np.bool_]",
    mark: int,
) -> None:
    """Write a snapshot. If that fails, it is logged and there is none: the rows have everything.

    Args:
        snapshot: Where and whose.
        connection: In a read transaction.
        version: The namespace's version that the index has seen.
        epoch: Its epoch.
        index: The index.
        vectors: Vector id at each place.
        items: Item id at each place.
        alive: Whether each place counts.
        mark: Last entry of the list of removed vectors that was followed.
    """
    import faiss
    import numpy as np

    ids = snapshot.path.with_suffix(".ids.npy")
    manifest = snapshot.path.with_suffix(".json")
    try:
        snapshot.path.parent.mkdir(mode=0o700, exist_ok=True)
        # Without its manifest a snapshot does not count, so that a crash in here leaves none.
        manifest.unlink(missing_ok=True)
        for file in (snapshot.path, ids):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        faiss.write_index(index.faiss, str(snapshot.path))
        with ids.open("wb") as out:
            np.save(out, np.stack([vectors, items, alive.astype(np.int64)]), allow_pickle=False)
        described = {
            "format": _FORMAT,
            "owner": snapshot.owner,
            "dims": snapshot.dims,
            "version": version,
            "epoch": epoch,
            "mark": mark,
            "probes": _probes(vectors, connection),
            "trained_for": index.trained_for if isinstance(index, InvertedIndex) else None,
            "sha256": {file.name: _checksum(file) for file in (snapshot.path, ids)},
        }
        draft = manifest.with_suffix(".part")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out_text:
            json.dump(described, out_text)
        draft.replace(manifest)
    except (OSError, RuntimeError) as error:
        _log.warning("no snapshot of an index was written to %s: %s", snapshot.path, error)


def read_snapshot(snapshot: Snapshot, space: NamespaceRow, connection: sqlite3.Connection) -> "Loaded | None":
    """Read a snapshot if it is there, sound, and of this very namespace.

    Args:
        snapshot: Where and whose.
        space: The namespace as the transaction sees it.
        connection: In a read transaction.

    Returns:
        Index, vector ids, item ids, whether alive, mark; or None, with the reason logged.
    """
    import faiss
    import numpy as np

    ids = snapshot.path.with_suffix(".ids.npy")
    try:
        described = json.loads(snapshot.path.with_suffix(".json").read_text())
        same = (described["format"], described["owner"], described["dims"], described["epoch"])
        if same != (_FORMAT, snapshot.owner, snapshot.dims, space.epoch) or described["version"] > space.version:
            _log.info("the snapshot %s is of another time or embedder; rows are read instead", snapshot.path)
            return None
        for file in (snapshot.path, ids):
            if _checksum(file) != described["sha256"][file.name]:
                _log.warning("the snapshot %s is damaged; rows are read instead", file)
                return None
        index = faiss.read_index(str(snapshot.path))
        vectors, items, alive = np.load(ids, allow_pickle=False)
        mark, trained_for = int(described["mark"]), described["trained_for"]
        known = _is_of_this_database(described["probes"], connection)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        _log.warning("the snapshot %s cannot be read (%s); rows are read instead", snapshot.path, error)
        return None
    loaded = (
        ExactIndex(snapshot.dims, index) if trained_for is None else InvertedIndex(index, int(trained_for)),
        vectors,
        items,
        alive.astype(np.bool_),
        mark,
    )
    if known and len(vectors) == index.ntotal:
        return loaded
    _log.warning("the snapshot %s is not of this database; rows are read instead", snapshot.path)
    return None


def _probes(vectors: "Ids", connection: sqlite3.Connection) -> dict[str, str]:
    chosen = [int(vector) for vector in vectors[:: max(1, len(vectors) // _PROBES)]] + [int(vectors[-1])]
    rows = ((str(vector), vector_of(connection, vector)) for vector in chosen)
    return {vector: hashlib.sha256(row).hexdigest() for vector, row in rows if row is not None}


def _is_of_this_database(probes: dict[str, str], connection: sqlite3.Connection) -> bool:
    rows = ((vector_of(connection, int(vector)), checksum) for vector, checksum in probes.items())
    return all(row is None or hashlib.sha256(row).hexdigest() == checksum for row, checksum in rows)


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

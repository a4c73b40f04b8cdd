"""Snapshots of large vector indexes beside the database: they make the start faster, and nothing else.

A snapshot is three files: the index as FAISS writes it, the ids as numpy writes them, and a manifest with the SHA-256
of both. If anything is wrong with them (damage, another embedder, another database), the rows are read instead.
"""

import hashlib
import json
import logging
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from questbook.memory.store.arrays import Ids, Mask
from questbook.memory.store.database import snapshot_directory
from questbook.memory.store.rows import NamespaceRow, vectors_by_id

_log = logging.getLogger(__name__)
_FORMAT = 2
_PROBES = 32  # vectors that are compared with their rows, in case the database was replaced by a copy


@dataclass(slots=True)
class IndexContents:
    """A FAISS index with what belongs to each of its vectors."""

    faiss: Any
    trained_for: int  # how many vectors its number of lists was chosen for; 0: it is exact and has no lists
    vectors: Ids  # vector id at each place, ascending
    items: Ids  # item id at each place
    alive: Mask  # whether the vector at each place still counts
    removal: int  # the last entry in the list of removals that was read

    @property
    def dead(self) -> int:
        """How many vectors do not count any more."""
        return int(len(self.alive) - self.alive.sum())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a snapshot's index is, beside two other files, and what it belongs to: file and embedder, dimension."""

    path: Path
    owner: str
    dims: int


def snapshot_path(database: Path, namespace: int) -> Path:
    """Return where the snapshot of a namespace is: in a directory beside the database."""
    return snapshot_directory(database) / f"{namespace}.faiss"


def write_snapshot(
    snapshot: Snapshot, connection: sqlite3.Connection, version: int, epoch: int, contents: IndexContents
) -> None:
    """Write a snapshot of a namespace's version. If that fails, it is logged and there is none."""
    import faiss

    ids, manifest = snapshot.path.with_suffix(".ids.npy"), snapshot.path.with_suffix(".json")
    try:
        snapshot.path.parent.mkdir(mode=0o700, exist_ok=True)
        if snapshot.path.parent.is_symlink():
            raise OSError("its directory is a link")
        # Without its manifest a snapshot does not count, so a crash in here leaves none.
        manifest.unlink(missing_ok=True)
        for file in (snapshot.path, ids):
            os.close(_create(file))
        faiss.write_index(contents.faiss, str(snapshot.path))
        with ids.open("wb") as out:
            columns = [contents.vectors, contents.items, contents.alive.astype(np.int64)]
            np.save(out, np.stack(columns), allow_pickle=False)
        probed = [*contents.vectors[:: max(1, len(contents.vectors) // _PROBES)].tolist(), int(contents.vectors[-1])]
        described = {
            "format": _FORMAT,
            "owner": snapshot.owner,
            "dims": snapshot.dims,
            "version": version,
            "epoch": epoch,
            "mark": contents.removal,
            "probes": {str(number): _digest(blob) for number, blob in vectors_by_id(connection, probed)},
            "trained_for": contents.trained_for or None,
            "sha256": {file.name: _checksum(file) for file in (snapshot.path, ids)},
        }
        draft = manifest.with_suffix(".part")
        with os.fdopen(_create(draft), "w") as out_text:
            json.dump(described, out_text)
        draft.replace(manifest)
    except (OSError, RuntimeError, sqlite3.Error) as error:
        _log.warning("no snapshot of an index was written to %s: %s", snapshot.path, error)


def read_snapshot(snapshot: Snapshot, space: NamespaceRow, connection: sqlite3.Connection) -> IndexContents | None:
    """Read a snapshot; None, with the reason logged, if it is not there, not sound, or of something else."""
    import faiss

    ids = snapshot.path.with_suffix(".ids.npy")
    try:
        described = json.loads(snapshot.path.with_suffix(".json").read_text())
        owner = (described["format"], described["owner"], described["dims"], described["epoch"])
        if owner != (_FORMAT, snapshot.owner, snapshot.dims, space.epoch) or described["version"] > space.version:
            _log.info("the snapshot %s is of another time or embedder; rows are read instead", snapshot.path)
            return None
        for file in (snapshot.path, ids):
            if _checksum(file) != described["sha256"][file.name]:
                raise ValueError(f"{file.name} is damaged")
        index = faiss.read_index(str(snapshot.path))
        vectors, items, alive = np.load(ids, allow_pickle=False)
        removal, trained_for, probes = int(described["mark"]), int(described["trained_for"] or 0), described["probes"]
        rows = vectors_by_id(connection, list(map(int, probes)))  # as far as they are still there
        if len(vectors) != index.ntotal or any(_digest(blob) != probes[str(number)] for number, blob in rows):
            raise ValueError("it is not of this database")
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        _log.warning("the snapshot %s cannot be read (%s); rows are read instead", snapshot.path, error)
        return None
    return IndexContents(index, trained_for, vectors, items, alive.astype(np.bool_), removal)


def _digest(vector: bytes) -> str:
    return hashlib.sha256(vector).hexdigest()


def _create(file: Path) -> int:
    """Open a new private file; a link in its place is removed, and nothing is written through it."""
    file.unlink(missing_ok=True)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

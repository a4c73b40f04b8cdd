"""What stands in the files of a directory, read with nothing of ours: their bytes, and what is compressed in them."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path


def contents(directory: Path) -> dict[str, bytes]:
    """Return the bytes of each file; a database of checkpoints has what its values hold after them."""
    found = {}
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found[str(path.relative_to(directory))] = data + (b"".join(_values(path)) if path.suffix == ".db" else b"")
    return found


def files_saying(directory: Path, words: str) -> list[str]:
    """Name the files that hold words, in any case."""
    return [n for n, data in contents(directory).items() if words.lower() in data.decode("utf-8", "ignore").lower()]


def opened(kind: str, value: bytes) -> bytes:
    """Return a saved value as its serializer wrote it, before it was compressed."""
    return zlib.decompress(value) if kind.endswith("+zlib") else value


def _values(path: Path) -> list[bytes]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'").fetchall():
            return []
        rows = database.execute("SELECT type, checkpoint FROM checkpoints UNION ALL SELECT type, value FROM writes")
        rows = rows.fetchall()
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoint_blobs'").fetchall():
            rows += database.execute("SELECT type, value FROM checkpoint_blobs").fetchall()
        return [opened(kind, value) for kind, value in rows]

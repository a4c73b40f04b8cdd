"""Database files without their store: creating one, seeing what one is and holds, reading its bytes.

`records`, `list_keys`, `read_item`, `read_embedder` and `find_damage` ask a store's file; neither numpy nor FAISS is
loaded. They find nothing in a file that is not there or cannot be read: opening the store says why.

POSIX gives locks to a process, not to a descriptor: closing any descriptor of a file drops every lock that the process
has on it, SQLite's too. Then another program that ends believes that it was the last one, deletes the -wal file, and
what this process writes afterwards is lost. So no code of ours calls `open` on a file that SQLite may have open in this
process: the database, its -wal, its -shm. SQLite itself may open it again: it closes such a descriptor only when no
lock is left. `tests/test_architecture.py` holds this.
"""

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, Final, NamedTuple, cast

from questbook.memory.text.parts import read_parts
from questbook.types import JSON

MAGIC: Final = b"SQLite format 3\x00"  # how each SQLite database begins
BLOCK: Final = 1 << 22  # bytes of a file that are read at a time
BUSY_SECONDS: Final = 60.0  # how long to wait for another process before giving up
_PARTS = read_parts("questbook.memory.store", "database_file.toml")


class Header(NamedTuple):
    """What a database says of itself: the program that it belongs to (0: none; -1: others), and the bytes of a page."""

    application_id: int
    page_size: int


def create_file(path: Path, text: str = "") -> None:
    """Create a file that only its owner may read, if there is none, with a text; one that is unusable is an OSError."""
    file = Path(os.path.realpath(path))  # a symbolic link may name a file that is not there yet
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        _link_file(file, text)
        return
    if not stat.S_ISREG(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(number), str(path))
    if not os.access(file, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _link_file(file: Path, text: str) -> None:
    # It gets its name after it was closed. Created by its name, another thread could open and lock it with SQLite
    # before we close it. A link also never replaces a file that another process has made meanwhile.
    descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # its mode is 0600
    os.write(descriptor, text.encode())
    os.close(descriptor)
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    except OSError as error:  # a file system without hard links, such as FAT
        if text:
            raise
        try:
            with closing(sqlite3.connect(file)) as database:
                database.execute("PRAGMA schema_version")  # SQLite creates it, as the umask says
        except sqlite3.Error:
            raise error from None
        file.chmod(0o600)
    finally:
        os.unlink(draft)


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Turn on WAL. Programs that create a file at once can meet here, and SQLite's own timeout does not cover that."""
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


def write_again(connection: sqlite3.Connection) -> bool:
    """Write a database again and empty its -wal; return whether no other program that reads it keeps this from that."""
    connection.execute("PRAGMA secure_delete = ON").fetchall()  # pages that are used again hold no old bytes either
    connection.execute("VACUUM")
    [(busy, *_)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy


def read_header(path: Path) -> Header | None:
    """Return what a database says of itself; None if it is no SQLite database. Nothing is changed.

    If it is not there, it is an OSError; if it cannot be read, a `sqlite3.Error`.
    """
    file = path.resolve()
    if file.stat().st_size == 1:  # SQLite takes it for an empty one
        return None
    # Immutable: takes no lock, makes no -wal or -shm beside a foreign file, rolls no journal back. But the first page
    # of a file that others write may be older than the rest, or none at all, and the newer one in their -wal.
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{file.as_uri()}?{how}", timeout=BUSY_SECONDS, uri=True)) as database:
        try:
            # Else it refuses a file that another process's checkpoint is just making longer.
            database.execute("PRAGMA writable_schema = ON")
            (application_id,) = database.execute("PRAGMA application_id").fetchone()
            (page_size,) = database.execute("PRAGMA page_size").fetchone()
            if not application_id and file.stat().st_size <= page_size:
                (application_id,) = database.execute(_PARTS["OWNER"]).fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            return None
    return Header(application_id, page_size)


def records(path: Path, first: str | None, last: str, key: str) -> dict[tuple[str, ...], JSON]:
    """Return the items `key` of the namespaces whose first and last labels these are; None as the first: any."""
    rows = sorted((tuple(str(of).split(".")), value) for of, value in _ask(path, _PARTS["RECORDS"], last, key))
    return {labels: json.loads(value) for labels, value in rows if first in (None, labels[0]) and labels[-1] == last}


def list_keys(path: Path, namespace: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
    """Return namespace and key of each item in a namespace and under it."""
    return [(tuple(str(of).split(".")), str(key)) for of, key in _ask(path, _PARTS["KEYS"], *_under(namespace))]


def count_bytes(path: Path, first: str) -> int:
    """Return how many characters of values, and bytes of vectors, are under a namespace's first label."""
    return int(sum(size for _, size in _ask(path, _PARTS["BYTES"], *_under((first,)))))


def read_item(path: Path, namespace: Sequence[str], key: str) -> JSON | None:
    """Return an item's value; None if there is none."""
    return next((json.loads(value) for (value,) in _ask(path, _PARTS["ITEM"], ".".join(namespace), key)), None)


def read_embedder(path: Path) -> str:
    """Return what a store's file says of its embedder, such as "hash-1:512 with 512 dimensions"; "" if nothing."""
    return next((str(name) for (name,) in _ask(path, "SELECT value FROM meta WHERE key = 'embedder'")), "")


def find_damage(path: Path) -> str:
    """Examine every page of a database, and every value of a store; return the first thing that is wrong, or "".

    Needs seconds for a large file.
    """
    try:
        found = [str(problem) for (problem,) in _rows(path, "PRAGMA integrity_check(1)")]
        if found == ["ok"] and _rows(path, _PARTS["HAS_CHECKSUMS"]):
            found = [str(problem) for (problem,) in _rows(path, _PARTS["CHANGED"])]
    except sqlite3.OperationalError:
        return ""
    except sqlite3.DatabaseError as error:
        return str(error)
    return " ".join(" ".join(problem for problem in found if problem != "ok").split())


def _under(namespace: Sequence[str]) -> tuple[str, str]:
    """Return a namespace's path, and a pattern of those under it."""
    place = ".".join(namespace)
    return place, "".join(f"[{c}]" if c in "*?[" else c for c in place) + ".*"


def _ask(path: Path, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    try:
        return _rows(path, statement, *parameters)
    except sqlite3.Error:
        return []


def _rows(path: Path, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        database.create_function("checksum_of", 1, zlib.crc32)
        return database.execute(statement, parameters).fetchall()


def read_files(paths: Iterable[Path], block: int = BLOCK) -> Iterator[tuple[Path, bytes]]:
    """Read files that SQLite may have open here, in another process, so that no lock is lost: path and bytes of blocks.

    A file that is not there has no bytes. If one cannot be read, or the process cannot be started, it is an OSError.
    """
    files = list(paths)
    if not files:
        return
    command = [sys.executable, "-I", "-S", "-c", _PARTS["READER"], str(block)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as reader:  # noqa: S603 (our own text)
        names, content, problem = cast("tuple[IO[bytes], ...]", (reader.stdin, reader.stdout, reader.stderr))
        try:
            names.write(b"\0".join(os.fsencode(file) for file in files))
            names.close()
            for file in files:
                while size := _read_size(content, problem):
                    yield file, content.read(size)
        finally:
            reader.kill()  # it has ended already, unless the caller reads no further


def _read_size(content: IO[bytes], problem: IO[bytes]) -> int:
    size = content.read(4)
    if len(size) < 4:
        raise OSError(problem.read().decode("utf-8", "replace").strip() or "the process that reads it has ended")
    return int.from_bytes(size, "big")

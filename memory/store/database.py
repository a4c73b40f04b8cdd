"""The SQLite file: opening it safely, one writer at a time, any number of readers."""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from questbook.memory.errors import CorruptStoreError, StoreClosedError, StoreConfigError, StoreUnavailableError
from questbook.memory.store.database_file import BUSY_SECONDS, create_file, read_header, switch_to_wal, write_again
from questbook.memory.tracing import traced

APPLICATION_ID: Final = 0x51425354  # "QBST", in the file's header: says that a file is ours
SCHEMA_VERSION: Final = 2
FILE_NAME: Final = "store.sqlite3"
_IDLE_READERS = 8
_READER_KIB = 256  # of pages that a reader keeps; the system keeps the file's pages as well

_SCHEMA = files("questbook.memory.store").joinpath("schema.sql").read_text("ascii").rstrip()
# A process of version 1 that has the file open, too, knows no checksums: what it writes has none.
_OLD_WRITERS = """
CREATE TRIGGER old_writers AFTER UPDATE OF value ON items WHEN new.value != old.value AND new.checksum = old.checksum
BEGIN UPDATE items SET checksum = NULL WHERE id = new.id; END"""

_ABOUT = """SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
FROM pragma_application_id, pragma_user_version"""


class Database:
    """Connections to one file. Safe for threads, processes and forks.

    `path` and `synchronous` are as for `FaissStore.open`. Every method raises a StoreClosedError after `close()`, and a
    CorruptStoreError if SQLite finds the file damaged.
    """

    def __init__(self, path: str | os.PathLike[str], synchronous: str = "full") -> None:
        if synchronous not in ("full", "normal"):
            raise StoreConfigError(f"synchronous must be 'full' or 'normal', got {synchronous!r}")
        self.path = Path(path)
        if str(path) != ":memory:":
            self.path = self.path.expanduser().absolute()  # the program may go to another directory
        self._temporary: str | None = None
        self._synchronous = synchronous
        self._closed = False
        self._begin_process()

    @property
    def _names(self) -> dict[str, str]:
        return {"db__system__name": "sqlite", "db__namespace": self.path.name}

    def _begin_process(self) -> None:
        # A connection must not cross a fork, and a lock may be held by a thread that the fork left behind.
        self._process = os.getpid()
        self._write_lock = threading.Lock()
        self._pool_lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []

    def create(self) -> None:
        """Create the file with its tables if it is not there; check that it is ours if it is.

        It raises what `FaissStore.open` raises, and a StoreConfigError if a newer version of this package wrote it.
        """
        self._check_open()
        if str(self.path) == ":memory:":
            self._temporary = tempfile.mkdtemp(prefix="questbook-")
            self.path = Path(self._temporary)
        if self.path.is_dir():
            self.path /= FILE_NAME
        try:
            # Created before SQLite does it, so that it is private from its first byte; -wal and -shm inherit the mode.
            create_file(self.path)
        except OSError as error:
            expected = "expected a file in a directory that is there and that this user may write"
            remedy = "choose another path, make the directory, or mend its permissions"
            wrong = f"cannot use {self.path} as a store: {error.strerror or error}"
            raise StoreUnavailableError(f"{wrong}; {expected}; {remedy}") from error
        self._check_header()
        with self.reading() as connection:
            if self._version(connection) == SCHEMA_VERSION:
                return  # so that opening neither waits for writers nor writes
        with self.writing() as connection:
            if (version := self._version(connection)) == 0:
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            elif version == 1:
                connection.execute("ALTER TABLE items ADD COLUMN checksum INTEGER")  # which rewrites no row
                connection.execute(_OLD_WRITERS)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"the store {self.path} is closed")

    def _check_header(self) -> None:
        # Before SQLite opens it for writing, because switching to WAL would already change a foreign file.
        with self._explain_errors():
            size = self.path.stat().st_size  # first: another process may just make a new file longer, and its own
            header = read_header(self.path)
        if header is None:
            wrong = f"{self.path} is no store: expected an SQLite database, found something else"
            raise CorruptStoreError(f"{wrong}; it was left untouched: move it away, or choose another path")
        owner = header.application_id
        # One page without an owner: a process died while it created the file; the tables are still in the -wal file.
        if owner != APPLICATION_ID and (owner or size > header.page_size):
            raise self._foreign()

    def _foreign(self) -> CorruptStoreError:
        wrong = f"{self.path} is no store: expected our own, found another SQLite database"
        return CorruptStoreError(f"{wrong}; it was left untouched: choose another path")

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the file's tables; 0: it has none."""
        owner, version, tables = connection.execute(_ABOUT).fetchone()
        if owner == 0 and tables == 0:
            return 0
        if owner != APPLICATION_ID:
            raise self._foreign()
        if version > SCHEMA_VERSION:
            schema = f"schema {version}, this one knows {SCHEMA_VERSION}"
            raise StoreConfigError(f"{self.path} was written by a newer version of this package ({schema}): upgrade it")
        return int(version)

    def _connect(self, *, writes: bool = False) -> sqlite3.Connection:
        """Open a connection; one that writes keeps SQLite's usual number of pages, so that each is written once."""
        self._check_open()
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            switch_to_wal(connection)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            if not writes:
                connection.execute(f"PRAGMA cache_size = -{_READER_KIB}")
            # It lets `postings` read the word index word by word; there may be no index yet.
            connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'texts', 'instance')")
        except sqlite3.Error as error:
            if "no such module" not in str(error):  # a store without words does without FTS5
                connection.close()
                raise
        return connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run one write transaction (`BEGIN IMMEDIATE`): afterwards everything in it is on disk, or nothing.

        If the disk is full or read-only, or another process held the file too long, it is a StoreUnavailableError.
        """
        if os.getpid() != self._process:
            self._begin_process()
        with traced("sql.write", **self._names), self._write_lock, self._explain_errors():
            if self._writer is None:
                self._writer = self._connect(writes=True)
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one view of the file in a read transaction; readers and writers do not wait for each other."""
        if os.getpid() != self._process:
            self._begin_process()
        with traced("sql.read", **self._names), self._explain_errors():
            with self._pool_lock:
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                with self._pool_lock:
                    keep = not self._closed and len(self._readers) < _IDLE_READERS
                    if keep:
                        self._readers.append(connection)
                if not keep:
                    connection.close()

    def vacuum(self) -> None:
        """Write the file again and empty the -wal file: no deleted byte is left in either.

        If another program uses the file all the time, or the disk is full, it is a StoreUnavailableError.
        """
        with self._write_lock, self._explain_errors(), closing(self._connect(writes=True)) as connection:
            if not write_again(connection):
                raise sqlite3.OperationalError("another program is reading it")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into errors of this package, which say what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError):
                raise
            if not isinstance(error, sqlite3.OperationalError) or "malformed" in text:
                remedy = "it was left as it is: restore a copy, or try `sqlite3 <file> .recover`"
                damage = f"{self.path} is damaged: expected a sound SQLite database, but {text}; {remedy}"
                raise CorruptStoreError(damage) from error
            expected = "a writable file with room on its disk and no process that holds it; mend that and try again"
            raise StoreUnavailableError(f"cannot read or write {self.path}: {text}; expected {expected}") from error

    def close(self) -> None:
        """Close every connection. Safe to call twice."""
        self._closed = True
        if os.getpid() != self._process:
            return
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        with self._pool_lock:
            readers, self._readers = self._readers, []
        for reader in readers:
            reader.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def snapshot_directory(database: Path) -> Path:
    """Return where the snapshots of a database's vectors are: in a directory beside it."""
    return database.with_name(f"{database.name}.shards")

"""`FileHome`: the directory that holds the games of this machine, on SQLite and FAISS, and the files in it."""

import asyncio
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from questbook.graphs.identity.sessions import TABLE, TableSessions
from questbook.graphs.local import databases
from questbook.graphs.local.checkpoint_tables import bytes_of, in_connection
from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.home import CampaignBusyError, HomeError, Namespace
from questbook.memory.store import database_file
from questbook.memory.timeline.namespaces import escape_label
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.memory.store.faiss_store import FaissStore

VARIABLE = "QUESTBOOK_HOME"
_SECRET_BYTES = 24
_SECRET_CHARACTERS = 32
_TURN_BYTES = 2**16  # what a turn may need on the disk
_WAIT = 0.05  # seconds between two tries for a lock
_LOCK_SECONDS = 10.0  # that a statement of the sessions waits for another one


class FileHome(NamedTuple):
    """The data directory, at `path`. Only its owner may read it, because it holds what players wrote."""

    path: Path

    @property
    def out_of_reach(self) -> str:  # noqa: D102
        return ""

    @classmethod
    def find(cls) -> Self:
        """Return the directory that QUESTBOOK_HOME names, or else the user's data directory. Create it if needed."""
        if named := os.environ.get(VARIABLE, ""):
            return cls.at(named)
        from platformdirs import user_data_path  # only when it is needed

        return cls.at(user_data_path("questbook", appauthor=False))

    @classmethod
    def at(cls, place: str | Path) -> Self:
        """Return a directory, which is created if needed; "~" is the user's own."""
        try:
            path = Path(place).expanduser().absolute()
        except RuntimeError as error:  # "~name", and there is no such user
            raise _unusable(Path(place), str(error)) from error
        home = cls(path)
        try:
            for directory in (path, home.locks):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        if not os.access(path, os.W_OK | os.X_OK):
            copied = "Of a disk that is read-only copy both databases, with the -wal files beside them"
            raise _unusable(path, f"no permission to write. {copied}")
        return home

    @property
    def name(self) -> str:  # noqa: D102
        return str(self.path)

    @property
    def checkpoints(self) -> Path:
        """Database of the checkpoints: the state of every thread after every step."""
        return self.path / "checkpoints.db"

    @property
    def memory(self) -> Path:
        """Database of the semantic store: the memories."""
        return self.path / "memory.db"

    @property
    def prompt_history(self) -> Path:  # noqa: D102
        return self.path / "history"

    @property
    def locks(self) -> Path:
        """Directory of the campaigns' locks, one file each."""
        return self.path / "campaigns"

    def lock_of(self, thread_id: str) -> Path:
        """Return the lock file of the campaign with this thread id."""
        return self.locks / f"{thread_id}.lock"

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Do nothing: a file is open at once."""
        yield

    def open_checkpointer(self) -> AbstractAsyncContextManager[Checkpointer]:  # noqa: D102
        return databases.open_checkpointer(self.checkpoints)

    def open_store(self, embeddings: str | None = None, **options: Any) -> AbstractAsyncContextManager["FaissStore"]:
        """Open `memory`; the options are those of `databases.open_store`."""
        return databases.open_store(self.memory, embeddings, **options)

    async def check(self) -> None:
        """Report a damaged file before anything is done."""
        await asyncio.to_thread(databases.create_database, self.memory)

    async def problem(self) -> str:
        """Look whether a turn could be written there, and the databases, as far as they are there, be read."""
        return await asyncio.to_thread(self._problem)

    def _problem(self) -> str:
        try:
            for file in (each for each in (self.checkpoints, self.memory) if each.exists()):
                with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=1)) as database:
                    database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            with TemporaryFile(dir=self.path) as probe:  # without a name, where the system can
                probe.write(bytes(_TURN_BYTES))
        except (OSError, sqlite3.Error):
            return "home"
        return ""

    @asynccontextmanager
    async def hold(self, lock: str, busy: str, wait: float = 0.0) -> AsyncIterator[Self]:  # noqa: D102
        give_up = time.monotonic() + wait
        with ExitStack() as held:
            while True:
                holding = hold_file(self.lock_of(lock), busy)
                taking = asyncio.ensure_future(asyncio.to_thread(held.enter_context, holding))
                try:
                    await asyncio.shield(taking)
                    break
                except CampaignBusyError:
                    if time.monotonic() >= give_up:
                        raise
                    await asyncio.sleep(_WAIT)
                except asyncio.CancelledError:
                    await asyncio.wait({taking})  # what it takes is freed below
                    raise
            yield self

    async def was_held(self, lock: str) -> bool:  # noqa: D102
        return await asyncio.to_thread(self.lock_of(lock).exists)

    async def forget_lock(self, lock: str) -> None:  # noqa: D102
        await asyncio.to_thread(self.lock_of(lock).unlink, missing_ok=True)

    async def read_item(self, namespace: Sequence[str], key: str) -> JSON | None:
        """Read an item without loading numpy and FAISS, as the next methods do."""
        return await asyncio.to_thread(database_file.read_item, self.memory, namespace, key)

    async def records(self, first: str | None, last: str, key: str) -> dict[Namespace, JSON]:  # noqa: D102
        return await asyncio.to_thread(database_file.records, self.memory, first, last, key)

    async def list_keys(self, namespace: Sequence[str]) -> list[tuple[Namespace, str]]:  # noqa: D102
        return await asyncio.to_thread(database_file.list_keys, self.memory, namespace)

    async def has_begun(self) -> bool:  # noqa: D102
        return await asyncio.to_thread(self.memory.exists)

    async def read_embedder(self) -> str:  # noqa: D102
        return await asyncio.to_thread(database_file.read_embedder, self.memory)

    async def find_damage(self) -> list[str]:
        """Examine every page of both files, which takes seconds for large ones."""
        sentences = []
        for file in (self.checkpoints, self.memory):
            if not await asyncio.to_thread(file.exists):
                sentences.append(f"{file} is missing.")
            elif damage := await asyncio.to_thread(database_file.find_damage, file):
                hint = "or copy them aside, and see what `sqlite3 FILE .recover` can read"
                problem = f"{file} is damaged: {damage:.200}. Nothing was changed or mended."
                return [*sentences, f"{problem} Put back both files of a day before; {hint}."]
        return sentences

    async def size(self) -> int:
        """Return the bytes of the file, with what is not written into it yet."""
        files = [self.checkpoints, self.checkpoints.with_name(f"{self.checkpoints.name}-wal")]
        return await asyncio.to_thread(lambda: sum(file.stat().st_size for file in files if file.exists()))

    async def size_of(self, user: str, threads: Sequence[str]) -> int:
        """Return the bytes of rows; the time grows with what they keep."""
        async with databases.open_checkpointer(self.checkpoints, alone=True) as saver:
            checkpoints = await in_connection(saver, partial(bytes_of, threads=threads))
        return checkpoints + await asyncio.to_thread(database_file.count_bytes, self.memory, escape_label(user))

    def sessions(self) -> "FileSessions":  # noqa: D102
        return FileSessions(self.path / "sessions.db")

    def secret(self, name: str) -> str:  # noqa: D102
        path = self.path / name
        try:
            if path.exists() and path.stat().st_size < _SECRET_CHARACTERS:  # an older version was killed as it wrote it
                path.unlink()
            database_file.create_file(path, secrets.token_urlsafe(_SECRET_BYTES))
            return path.read_text("ascii")
        except (OSError, ValueError) as error:
            raise HomeError(f"Cannot use {path}: {error}. Remove it, or correct its permissions.") from error


class FileSessions(TableSessions):
    """The page's sessions in a file that only its owner may read, made again if it is gone; see `HomeError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._do(TABLE)

    async def _ask(self, statement: str, *values: str | float) -> list[tuple[str, str, float, float]]:
        return await asyncio.to_thread(self._do, statement, *values)

    def _do(self, statement: str, *values: str | float) -> list[tuple[str, str, float, float]]:
        try:
            database_file.create_file(self._path)
            file = f"{self._path.resolve().as_uri()}?mode=rw"
            with closing(sqlite3.connect(file, _LOCK_SECONDS, uri=True)) as database, database:
                database.execute(TABLE)
                return database.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error) as error:
            is_damaged = not isinstance(error, sqlite3.OperationalError)  # else it is locked, or the disk is full
            hint = "Remove it, and all sign in again; or correct its permissions." if is_damaged else "Try again."
            raise HomeError(f"Cannot use {self._path}: {error}. {hint}") from error


def _unusable(path: Path, reason: str) -> HomeError:
    hint = f"Set {VARIABLE} to a directory that you may write, or correct the permissions."
    return HomeError(f"Cannot use {path} to keep games: {reason}. {hint}")


@contextmanager
def hold_file(path: Path, busy: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file for this process, which ends the lock, however it ends; `busy` says that another one has it."""
    from filelock import FileLock, Timeout  # only when something is locked

    lock = FileLock(path, timeout=wait, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise CampaignBusyError(busy) from error
    except OSError as error:
        problem = f"Cannot use {path}: {error.strerror or error}."
        raise HomeError(f"{problem} Correct its permissions, or move it.") from error
    try:
        yield
    finally:
        lock.release()

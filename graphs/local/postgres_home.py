"""`PostgresHome`: games in one PostgreSQL database with pgvector, which several processes use.

Connections belong to an event loop: a pool for checkpoints and memories, and one for the locks, which are those of its
session. That one must reach PostgreSQL itself or a proxy in session mode; PgBouncer in transaction mode gives each
statement another session, and the lock with it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from questbook.graphs.local.checkpoint_tables import compressing_serializer
from questbook.graphs.local.databases import AUTO, load_embedder
from questbook.graphs.local.home import CampaignBusyError, HomeError, Namespace
from questbook.graphs.local.postgres_checkpointer import TABLES, PostgresCheckpointer, explained
from questbook.memory.embeddings.embedders import KnownVectors, announced_dims, identify
from questbook.memory.embeddings.loading import choose_embeddings
from questbook.memory.errors import EmbedderChangedError
from questbook.memory.store import postgres_store
from questbook.types import JSON

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import TTLConfig
    from langgraph.store.postgres.base import PostgresIndexConfig

ADDRESS = "QUESTBOOK_ADDRESS"
"""What this process calls itself where it holds a campaign, such as its URL behind a proxy; else host and process."""
SCHEMA = 1
"""Version of the tables. A program opens a database of at least this version that says it may (`oldest_reader`)."""
_POOL = 10  # connections of a process
_PATIENCE = 30.0  # seconds that a connection is waited for, such as while the database is started again
_CONNECT_SECONDS = 10
_IDLE_SECONDS = 1.0  # after which a connection is checked before it is used again
# Plans of a search are for one user's rows, too few for compiling to pay; a row's words are sorted in memory.
_SETTINGS = "-c jit=off -c work_mem=32MB"
# A process that vanished with its machine gives its campaigns up within half a minute.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_LOCK_SETTINGS = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
_META = "CREATE TABLE IF NOT EXISTS questbook_meta (key text PRIMARY KEY, value text NOT NULL)"
_SET = "INSERT INTO questbook_meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
_TRY = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0)) AS done"
_FREE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_HOLDER = """
SELECT application_name AS name FROM pg_locks JOIN pg_stat_activity USING (pid), hashtextextended(%s, 0) AS number
WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND classid = ((number >> 32) & 4294967295)::oid AND objid = (number & 4294967295)::oid
"""
_SIZE = """SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0) AS size
FROM unnest(ARRAY['checkpoints', 'checkpoint_blobs', 'checkpoint_writes']) AS name"""
_WAIT = 0.1  # seconds between two tries for a lock
_MAX_NAME = 60  # characters of a session's name


class PostgresHome:
    """A database, by its URL; `path` is this machine's directory for what is no part of the games."""

    def __init__(self, url: str, path: Path) -> None:
        self.url, self.path = url, path
        try:
            parts = conninfo_to_dict(url)
            if any("@" in str(parts.get(name, ""))[1:] for name in ("host", "dbname")):
                raise psycopg.ProgrammingError("one @ too many")  # the rest of a password is taken for a host
            if not str(parts.get("port", 0)).replace(",", "").isdecimal():
                raise psycopg.ProgrammingError("the port is no number")
        except psycopg.ProgrammingError as error:
            reason = str(error).partition('"')[0].strip(" :")  # what it quotes may be the password
            hint = "In a user or password, % is written as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23."
            raise HomeError(
                f"The database's URL cannot be read: {reason}. Expected postgresql://USER@HOST/NAME. {hint}"
            ) from None
        place = f"{parts.get('host') or 'this machine'}{':' + str(parts['port']) if parts.get('port') else ''}"
        self.name = f"database {parts.get('dbname') or parts.get('user') or 'postgres'} at {place}"
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()

    @property
    def prompt_history(self) -> Path:
        """File of what was typed at the terminal's prompt."""
        return self.path / "history"

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:
        """Keep the pool open meanwhile."""
        async with self._connections():
            yield

    @asynccontextmanager
    async def open_checkpointer(self) -> AsyncIterator[PostgresCheckpointer]:
        """Open the checkpoints, for one campaign: LangGraph's saver does one thing at a time."""
        async with self._connections() as connections:
            yield PostgresCheckpointer(connections.pool, serde=compressing_serializer(), name=self.name)

    @asynccontextmanager
    async def open_store(
        self,
        embeddings: str | None = None,
        *,
        known: Mapping[str, list[float]] | None = None,
        index: Any = None,
        ttl: TTLConfig | None = None,
    ) -> AsyncIterator[postgres_store.HybridPostgresStore]:
        """Open the memories.

        Raises:
            EmbedderChangedError: They were made with another embedder.
        """
        async with self._connections() as connections:
            made_with = await self.read_embedder()
            if index is None:
                index = await asyncio.to_thread(_index_for, self.name, embeddings, made_with, known)
            self._check_embedder(made_with, index)
            store = postgres_store.HybridPostgresStore(connections.pool, index=index, ttl=ttl)
            async with store:
                if ttl and ttl.get("sweep_interval_minutes"):
                    await store.start_ttl_sweeper()
                yield store

    async def check(self) -> None:
        """Check that the database can be used: it answers, and its tables are those of this version."""
        async with self._connections():
            pass

    @asynccontextmanager
    async def hold(self, lock: str, busy: str, wait: float = 0.0) -> AsyncIterator[HeldLock]:
        """Hold an advisory lock of this process's session; the message also says which process holds it."""
        async with self._connections() as connections:
            held = HeldLock(connections.locks, lock, busy)
            with explained(self.name):
                await held.take(wait)
            try:
                yield held
            finally:
                await held.free()

    async def was_held(self, lock: str) -> bool:  # noqa: ARG002
        """Return True: holding a lock leaves nothing behind."""
        return True

    async def forget_lock(self, lock: str) -> None:
        """Do nothing: a lock that nobody holds is nowhere."""

    async def read_item(self, namespace: Sequence[str], key: str) -> JSON | None:
        """Read an item without an embedder."""
        rows = await self._rows("SELECT value FROM store WHERE prefix = %s AND key = %s", ".".join(namespace), key)
        return dict(rows[0]["value"]) if rows else None

    async def list_paths(self, first: str | None, last: str) -> list[Namespace]:
        """List namespaces by their first and last labels."""
        begin = "%" if first is None else f"{_literal(first)}.%"
        rows = await self._rows(
            "SELECT DISTINCT prefix FROM store WHERE prefix LIKE %s ORDER BY 1", f"{begin}.{_literal(last)}"
        )
        return [tuple(row["prefix"].split(".")) for row in rows]

    async def list_keys(self, namespace: Sequence[str]) -> list[tuple[Namespace, str]]:
        """List the keys in a namespace and under it."""
        place = ".".join(namespace)
        found = "SELECT prefix, key FROM store WHERE prefix = %s OR prefix LIKE %s ORDER BY 1, 2"
        rows = await self._rows(found, place, f"{_literal(place)}.%")
        return [(tuple(row["prefix"].split(".")), row["key"]) for row in rows]

    async def read_embedder(self) -> str:
        """Return the embedder that the database was made for."""
        rows = await self._rows("SELECT value FROM questbook_meta WHERE key = 'embedder'")
        return str(rows[0]["value"]) if rows else ""

    async def find_damage(self) -> list[str]:
        """Return nothing: PostgreSQL checks its own files (`amcheck`, checksums)."""
        await self.check()
        return []

    async def size(self) -> int:
        """Return the bytes of the tables and indexes of checkpoints."""
        return int((await self._rows(_SIZE))[0]["size"])

    def secret(self, name: str) -> str:
        """Return a secret of the table `questbook_meta`."""
        with (
            explained(self.name),
            psycopg.connect(self.url, autocommit=True, connect_timeout=_CONNECT_SECONDS) as connection,
        ):
            connection.execute(_SET, (f"secret {name}", secrets.token_urlsafe(24)))
            row = connection.execute("SELECT value FROM questbook_meta WHERE key = %s", (f"secret {name}",)).fetchone()
        return str(row[0]) if row else ""

    async def migrate(self, embeddings: Embeddings | str | None = None) -> list[str]:
        """Make or renew the tables, which may be repeated, also by several at once; return what was done.

        Args:
            embeddings: The embedder of a new database, or its name; None: that of the settings.

        Raises:
            HomeError: A newer version of Questbook made the tables, or the database refuses.
            EmbedderChangedError: The tables are there, and were made for another embedder.
        """
        with explained(self.name):
            async with await self._connect(autocommit=True) as connection:
                # Who waits in a statement keeps others from making an index.
                while not (await _first(connection, _TRY, "questbook migrate"))["done"]:  # noqa: ASYNC110
                    await asyncio.sleep(_WAIT)
                await connection.execute(_META)
                meta = await _read_meta(connection)
                if int(meta.get("oldest_reader", "0")) > SCHEMA:
                    raise self._newer(meta)
                index = await asyncio.to_thread(_index_for, self.name, embeddings, meta.get("embedder", ""))
                self._check_embedder(meta.get("embedder", ""), index)
                saver = PostgresCheckpointer(connection)
                await super(PostgresCheckpointer, saver).setup()
                store = postgres_store.HybridPostgresStore(connection, index=index)
                await store.setup()
                for statement in (*TABLES, *postgres_store.TABLES):
                    await connection.execute(statement)
                for key, value in (
                    ("embedder", _describe(index)),
                    ("oldest_reader", str(SCHEMA)),
                    ("schema", str(SCHEMA)),
                ):
                    await connection.execute(_SET, (key, value))
                raised = "UPDATE questbook_meta SET value = %s WHERE key = 'schema' AND value::int < %s"
                await connection.execute(raised, (str(SCHEMA), SCHEMA))
                now = await _read_meta(connection)
        changed = [name for name in now if now[name] != meta.get(name)]
        return [f"{name}: {now[name]}" for name in sorted(changed)]

    @asynccontextmanager
    async def _connections(self) -> AsyncIterator[_Connections]:
        loop = asyncio.get_running_loop()
        connections = self._by_loop.setdefault(loop, _Connections())
        async with connections.changing:
            if not connections.users:
                with explained(self.name):
                    await self._open(connections)
            connections.users += 1
        try:
            yield connections
        finally:
            async with connections.changing:
                connections.users -= 1
                if not connections.users:
                    await connections.close()

    async def _open(self, connections: _Connections) -> None:
        async with await self._connect(autocommit=True) as connection:  # it says at once why it cannot
            meta = await _read_meta(connection)
        if int(meta.get("schema", "0")) < SCHEMA:
            raise HomeError(f"The {self.name} has no tables of this version yet: run `questbook migrate`, then again.")
        if int(meta["oldest_reader"]) > SCHEMA:
            raise self._newer(meta)
        options: JSON = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row, "options": _SETTINGS}
        pool = AsyncConnectionPool(
            self.url, min_size=1, max_size=_POOL, open=False, check=_check, reset=_note_use,
            kwargs=options | _KEEPALIVE, timeout=_PATIENCE,
        )  # fmt: skip
        await pool.open()
        connections.pool, connections.locks = pool, _Locks(self._connect)

    async def _connect(self, **options: Any) -> psycopg.AsyncConnection[Any]:
        name = f"questbook {os.environ.get(ADDRESS) or f'{socket.gethostname()}:{os.getpid()}'}"[:_MAX_NAME]
        return await psycopg.AsyncConnection.connect(
            self.url, row_factory=dict_row, connect_timeout=_CONNECT_SECONDS, application_name=name, **options
        )

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        async with self._connections() as connections:
            with explained(self.name):
                async with connections.pool.connection() as connection:
                    rows: list[Any] = await (await connection.execute(statement, values)).fetchall()
        return rows

    def _check_embedder(self, made_with: str, index: Any) -> None:
        if made_with and (here := _describe(index)) != made_with:
            problem = f"The memories in the {self.name} were made with {made_with}, and the setting says {here}"
            hint = "Set QUESTBOOK_EMBEDDINGS=auto, or copy them to a new database of that embedder: questbook copy"
            raise EmbedderChangedError(f"{problem}. {hint}.")

    def _newer(self, meta: Mapping[str, str]) -> HomeError:
        version = f"version {meta.get('schema')} of the tables; this program knows {SCHEMA}"
        return HomeError(
            f"A newer Questbook made the tables in the {self.name}: {version}. Nothing was changed: update it."
        )


class _Connections:
    """What is open in one event loop: the pool, the session of the locks, and how many use them."""

    pool: AsyncConnectionPool[Any]
    locks: _Locks

    def __init__(self) -> None:
        self.users, self.changing = 0, asyncio.Lock()

    async def close(self) -> None:
        await self.locks.close()
        await self.pool.close()


class _Locks:
    """The session that holds the locks of this process. If it ends, a new one takes those that are free still."""

    def __init__(self, connect: Any) -> None:
        self._connect, self._one = connect, asyncio.Lock()
        self._session: Any = None
        self.held: dict[str, HeldLock] = {}

    async def ask(self, statement: str, *values: Any) -> Any:
        """Execute a statement, once more in a new session if the old one has ended; return its first row."""
        async with self._one:
            for last in (False, True):
                try:
                    if self._session is None:
                        self._session = await self._connect(autocommit=True, options=_LOCK_SETTINGS, **_KEEPALIVE)
                        for held in self.held.values():
                            taken = (await _first(self._session, _TRY, held.lock))["done"]
                            held.is_lost = held.is_lost or not taken
                    return await _first(self._session, statement, *values)
                except psycopg.OperationalError:
                    await self.close()
                    if last:
                        raise
        return None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class HeldLock:
    """A lock that is held, or is to be; `busy` is what is said if another process has it."""

    def __init__(self, locks: _Locks, lock: str, busy: str) -> None:
        self._locks, self.lock, self._busy = locks, lock, busy
        self.is_lost = False

    async def take(self, wait: float) -> None:
        """Take it, or raise a CampaignBusyError after so many seconds."""
        give_up = asyncio.get_running_loop().time() + wait
        while self.lock in self._locks.held or not (await self._locks.ask(_TRY, self.lock))["done"]:
            if asyncio.get_running_loop().time() >= give_up:
                raise await self._is_busy()
            await asyncio.sleep(_WAIT)
        self._locks.held[self.lock] = self

    async def check(self) -> None:
        """Check that the session lives, in which the lock is held."""
        with explained("database"):
            await self._locks.ask("SELECT 1")
        if self.is_lost:
            raise await self._is_busy()

    async def free(self) -> None:
        """Let others have it."""
        self._locks.held.pop(self.lock, None)
        if not self.is_lost:
            try:
                await self._locks.ask(_FREE, self.lock)
            except psycopg.Error:
                await self._locks.close()  # a session that has ended holds nothing

    async def _is_busy(self) -> CampaignBusyError:
        holder = await self._locks.ask(_HOLDER, self.lock)
        name = str(holder["name"]).removeprefix("questbook ") if holder else ""
        error = CampaignBusyError(f"{self._busy} It is held by {name}." if name else self._busy)
        error.holder = name
        return error


_used: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


async def _note_use(connection: Any) -> None:
    _used[connection] = time.monotonic()


async def _check(connection: Any) -> None:
    """Check a connection before it is handed out: the database may have been stopped."""
    for _ in range(2):  # without asking it: what it sent at its end, and that nothing follows
        connection.pgconn.consume_input()
    if time.monotonic() - _used.get(connection, 0.0) > _IDLE_SECONDS:
        await AsyncConnectionPool.check_connection(connection)


async def _first(connection: Any, statement: str, *values: Any) -> Any:
    return await (await connection.execute(statement, values)).fetchone()


async def _read_meta(connection: Any) -> dict[str, str]:
    if not (await _first(connection, "SELECT to_regclass('questbook_meta') IS NOT NULL AS done"))["done"]:
        return {}
    rows = await (
        await connection.execute("SELECT key, value FROM questbook_meta WHERE key NOT LIKE 'secret %'")
    ).fetchall()
    return {row["key"]: row["value"] for row in rows}


def _index_for(
    place: str, setting: Embeddings | str | None, made_with: str, known: Mapping[str, list[float]] | None = None
) -> PostgresIndexConfig:
    """Return what the store indexes, with the embedder of a setting; of "auto" with the one that the memories have."""
    embedder: Any = load_embedder(setting) if isinstance(setting, str | None) else setting
    if embedder == AUTO:
        embedder = choose_embeddings(place, made_with or None)
    if known:
        embedder = KnownVectors(embedder, known)
    dims = announced_dims(embedder) or len(embedder.embed_query("a"))
    return {"embed": embedder, "dims": dims, "fields": ["text"]}


def _describe(index: Mapping[str, Any]) -> str:
    return f"{identify(index['embed'])} with {index['dims']} dimensions"


def _literal(text: str) -> str:
    """Return a text as a pattern of LIKE that matches it alone."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

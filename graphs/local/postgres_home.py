"""`PostgresHome`: games in one PostgreSQL database with pgvector, which several processes use.

Connections belong to an event loop: a pool for checkpoints and memories, and one for the locks, which are those of its
session. That one must reach PostgreSQL itself or a proxy in session mode; PgBouncer in transaction mode gives each
statement another session, and the lock with it.
"""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.embeddings import Embeddings
from langgraph.store.base import TTLConfig
from langgraph.store.postgres.base import PostgresIndexConfig
from psycopg import AsyncConnection, AsyncCursor, Error, ProgrammingError, connect
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from questbook.graphs.identity.sessions import TABLE as SESSIONS
from questbook.graphs.identity.sessions import TableSessions
from questbook.graphs.local.checkpoint_tables import compressing_serializer
from questbook.graphs.local.databases import AUTO, load_embedder
from questbook.graphs.local.home import CampaignBusyError, HomeError, Namespace
from questbook.graphs.local.postgres_checkpointer import SQL, PostgresCheckpointer, explained, without_tables
from questbook.graphs.local.sharing import shared
from questbook.graphs.turn.run_guard import HOLDER, TRY, SessionLocks, held_here, locks_of, session_options
from questbook.memory.embeddings.embedders import KnownVectors, announced_dims, identify
from questbook.memory.embeddings.loading import choose_embeddings
from questbook.memory.errors import EmbedderChangedError
from questbook.memory.store import postgres_store
from questbook.memory.timeline.namespaces import escape_label
from questbook.memory.tracing import traced
from questbook.types import JSON

SCHEMA = 1
"""Version of the tables. A program opens a database of at least this version that says it may (`oldest_reader`)."""
_POOL = 10  # connections of a process
_PATIENCE = 30.0  # seconds that a connection is waited for, such as while the database is started again
_IDLE_SECONDS = 1.0  # after which a connection is checked before it is used again
# Plans of a search are for one user's rows, too few for compiling to pay; a row's words are sorted in memory.
# Who waits for a table that another has locked, such as VACUUM FULL, is told so; what is long by itself may be.
_SETTINGS = "SET jit = off; SET work_mem = '32MB'; SET lock_timeout = '30s'"
_META = "CREATE TABLE IF NOT EXISTS questbook_meta (key text PRIMARY KEY, value text NOT NULL)"
_SET = "INSERT INTO questbook_meta VALUES (%s, %s) ON CONFLICT (key) DO NOTHING"
_MIGRATE = "questbook migrate"  # the lock
_Say = Callable[[str], None]
_SAYS, _LONGEST = 5.0, 600.0  # seconds: until `migrate` says that it waits, and until it gives up
_DIMS = "SELECT atttypmod AS n FROM pg_attribute WHERE attrelid = 'store_vectors'::regclass AND attname = 'embedding'"
_WAIT = 0.1  # seconds between two tries for a lock
_ANSWERS = 2.0  # seconds in which a database that can be used answers a probe


class PostgresHome:
    """A database, by its URL; `path` is this machine's directory for what is no part of the games."""

    out_of_reach = (
        "The database's write-ahead log, replicas and backups have it for as long as they are kept, and what other"
        " campaigns have of it stays."
    )

    def __init__(self, url: str, path: Path) -> None:
        self.url, self.path = url, path
        try:
            parts = conninfo_to_dict(url)
            if any("@" in str(parts.get(name, ""))[1:] for name in ("host", "dbname")):
                raise ProgrammingError("one @ too many")  # the rest of a password is taken for a host
            if not str(parts.get("port", 0)).replace(",", "").isdecimal():
                raise ProgrammingError("the port is no number")
        except ProgrammingError as error:
            reason = str(error).partition('"')[0].strip(" :")  # what it quotes may be the password
            hint = "In a user or password, % is written as %25, @ as %40, : as %3A, / as %2F, ? as %3F, # as %23."
            problem = f"The database's URL cannot be read: {reason}. Expected postgresql://USER@HOST/NAME."
            raise HomeError(f"{problem} {hint}") from None
        place = f"{parts.get('host') or 'this machine'}{':' + str(parts['port']) if parts.get('port') else ''}"
        self.name = f"database {parts.get('dbname') or parts.get('user') or 'postgres'} at {place}"

    @property
    def prompt_history(self) -> Path:  # noqa: D102
        return self.path / "history"

    @asynccontextmanager
    async def keep_open(self) -> AsyncIterator[None]:  # noqa: D102
        async with self._pool():
            yield

    @asynccontextmanager
    async def open_checkpointer(self) -> AsyncIterator[PostgresCheckpointer]:
        """Open the checkpoints, for one campaign: LangGraph's saver does one thing at a time."""
        async with self._pool() as pool:
            yield PostgresCheckpointer(pool, serde=compressing_serializer(), name=self.name)

    @asynccontextmanager
    async def open_store(
        self,
        embeddings: str | None = None,
        *,
        known: Mapping[str, list[float]] | None = None,
        index: Any = None,
        ttl: TTLConfig | None = None,
    ) -> AsyncIterator[postgres_store.HybridPostgresStore]:
        """Open the memories; those that were made with another embedder are refused."""
        async with self._pool() as pool:
            made_with = await self.read_embedder()
            if index is None:
                index = await asyncio.to_thread(_index_for, self.name, embeddings, made_with, known)
            self._check_embedder(made_with, index)
            store = postgres_store.HybridPostgresStore(pool, index=index, ttl=ttl)
            async with store:
                if ttl and ttl.get("sweep_interval_minutes"):
                    await store.start_ttl_sweeper()
                yield store

    async def check(self) -> None:
        """Check that the database can be used: it answers, and its tables are those of this version."""
        async with self._pool():
            pass

    async def problem(self) -> str:  # noqa: D102
        # All probes share a connection, so that those who play cannot take it, nor strangers all others.
        probed = shared((PostgresHome.problem, self.url), self._checked)
        try:
            with explained(self.name):
                async with asyncio.timeout(_ANSWERS), probed as connection:
                    await connection.execute("SELECT 1")
        except (HomeError, TimeoutError):
            return "home"
        return ""

    @asynccontextmanager
    async def hold(self, lock: str, busy: str, wait: float = 0.0) -> AsyncIterator["HeldLock"]:
        """Hold an advisory lock of this process's session; the message also says which process holds it."""
        async with self._pool():
            held = HeldLock(locks_of(self.url), lock, busy)
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

    async def read_item(self, namespace: Sequence[str], key: str) -> JSON | None:  # noqa: D102
        rows = await self._rows("SELECT value FROM store WHERE prefix = %s AND key = %s", ".".join(namespace), key)
        return dict(rows[0]["value"]) if rows else None

    async def records(self, first: str | None, last: str, key: str) -> dict[Namespace, JSON]:  # noqa: D102
        place = ("%" if first is None else f"{_literal(first)}.%") + f".{_literal(last)}"
        found = "SELECT prefix, value FROM store WHERE key = %s AND prefix LIKE %s ORDER BY 1"
        return {tuple(row["prefix"].split(".")): row["value"] for row in await self._rows(found, key, place)}

    async def list_keys(self, namespace: Sequence[str]) -> list[tuple[Namespace, str]]:  # noqa: D102
        place = ".".join(namespace)
        found = "SELECT prefix, key FROM store WHERE prefix = %s OR prefix LIKE %s ORDER BY 1, 2"
        rows = await self._rows(found, place, f"{_literal(place)}.%")
        return [(tuple(row["prefix"].split(".")), row["key"]) for row in rows]

    async def has_begun(self) -> bool:  # noqa: D102
        return bool(await self._rows("SELECT 1 FROM store LIMIT 1"))

    async def read_embedder(self) -> str:  # noqa: D102
        rows = await self._rows("SELECT value FROM questbook_meta WHERE key = 'embedder'")
        return str(rows[0]["value"]) if rows else ""

    async def find_damage(self) -> list[str]:
        """Return nothing: PostgreSQL checks its own files (`amcheck`, checksums)."""
        await self.check()
        return []

    async def size(self) -> int:
        """Return the bytes of the tables and indexes of checkpoints."""
        return int((await self._rows(SQL["SIZE"]))[0]["size"])

    async def size_of(self, user: str, threads: Sequence[str]) -> int:  # noqa: D102
        label = escape_label(user)
        return int((await self._rows(SQL["SIZE_OF"], list(threads), label, f"{_literal(label)}.%"))[0]["size"])

    def sessions(self) -> "PostgresSessions":  # noqa: D102
        return PostgresSessions(self)

    def secret(self, name: str) -> str:
        """Return a secret of the table `questbook_meta`."""
        with explained(self.name), connect(self.url, autocommit=True, **session_options()) as connection:
            connection.execute(_SET, (f"secret {name}", secrets.token_urlsafe(24)))
            row = connection.execute("SELECT value FROM questbook_meta WHERE key = %s", (f"secret {name}",)).fetchone()
        return str(row[0]) if row else ""

    async def migrate(self, embeddings: Embeddings | str | None = None, say: _Say = lambda _: None) -> list[str]:
        """Make or renew the tables, which may be repeated, also by several at once; return what was done.

        `embeddings` is the embedder of a new database, or its name; None: that of the settings. Tables that a newer
        version made stay as they are, and are refused if this one cannot use them; so are those for another embedder.
        `say` is told for whom it waits.
        """
        with explained(self.name):
            async with await self._connect() as connection:
                await self._take_turn(connection, say)
                await connection.execute(_META)
                meta = await _read_meta(connection)
                if int(meta.get("oldest_reader", "0")) > SCHEMA:
                    raise self._newer(meta)
                if int(meta.get("schema", "0")) > SCHEMA:
                    return []  # a newer version's tables that this one may use
                index = await asyncio.to_thread(_index_for, self.name, embeddings, meta.get("embedder", ""))
                self._check_embedder(meta.get("embedder", ""), index)
                await super(PostgresCheckpointer, PostgresCheckpointer(connection)).setup()
                async with postgres_store.HybridPostgresStore(connection, index=index) as store:
                    await store.setup()
                for statement in (SESSIONS, *SQL["TABLES"], *postgres_store.TABLES):
                    await connection.execute(statement)
                if (dims := (await _first(connection, _DIMS))["n"]) != index["dims"]:
                    problem = f"Its table store_vectors takes {dims} dimensions, and {_describe(index)} cannot use it"
                    raise HomeError(f"Cannot use the {self.name}: {problem}. Use a new database, or that embedder.")
                for item in {"embedder": _describe(index), "oldest_reader": str(SCHEMA), "schema": str(SCHEMA)}.items():
                    await connection.execute(_SET, item)
                raised = "UPDATE questbook_meta SET value = %s WHERE key = 'schema' AND value::int < %s"
                await connection.execute(raised, (str(SCHEMA), SCHEMA))
                now = await _read_meta(connection)
        return [f"{name}: {now[name]}" for name in sorted(name for name in now if now[name] != meta.get(name))]

    async def _take_turn(self, connection: Any, say: _Say) -> None:
        """Wait, not in a statement, which would keep others from making an index, until no other one migrates."""
        begun, limits = time.monotonic(), [_LONGEST, _SAYS]
        while not (await _first(connection, f"{TRY} AS done", _MIGRATE))["done"]:
            if time.monotonic() - begun > limits[-1]:
                holder = (await _first(connection, HOLDER, _MIGRATE) or {}).get("application_name") or "another one"
                busy = f"The {self.name} is being migrated by {holder}"
                if limits.pop() == _LONGEST:
                    raise HomeError(f"{busy}, for {_LONGEST:.0f} seconds now. Look what it waits for, and repeat this.")
                say(f"{busy}: waiting for its end.")
            await asyncio.sleep(_WAIT)

    def _pool(self) -> AbstractAsyncContextManager[AsyncConnectionPool[Any]]:
        return shared((PostgresHome, self.url), self._open_pool)  # whatever home asks, such as one of a probe

    @asynccontextmanager
    async def _open_pool(self) -> AsyncIterator[AsyncConnectionPool[Any]]:
        options: JSON = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
        pool = _Pool(
            self.url, min_size=1, max_size=_POOL, open=False, reset=_note_use,
            # Not as `options`: PgBouncer refuses them, and they would replace those of the URL, such as search_path.
            configure=lambda connection: connection.execute(_SETTINGS),
            kwargs=options | session_options() | {"cursor_factory": _TracedCursor}, timeout=_PATIENCE,
            reconnect_timeout=5.0,  # until then it doubles its waits; afterwards it tries when it is asked
        )  # fmt: skip
        with explained(self.name):
            async with self._checked():  # it says at once why it cannot
                await pool.open()
        try:
            yield pool
        finally:
            await pool.close()
            await asyncio.to_thread(locks_of(self.url).close_if_idle)

    @asynccontextmanager
    async def _checked(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a connection to a database with tables that this version can use."""
        async with await self._connect() as connection:
            meta = await _read_meta(connection)
            if int(meta.get("schema", "0")) < SCHEMA:
                raise HomeError(without_tables(self.name))
            if int(meta["oldest_reader"]) > SCHEMA:
                raise self._newer(meta)
            yield connection

    async def _connect(self) -> AsyncConnection[Any]:
        return await AsyncConnection.connect(self.url, row_factory=dict_row, autocommit=True, **session_options())

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        async with self.open_checkpointer() as saver:
            return await saver.rows(statement, *values)

    def _check_embedder(self, made_with: str, index: Any) -> None:
        if made_with and (here := _describe(index)) != made_with:
            problem = f"The memories in the {self.name} were made with {made_with}, and the setting says {here}"
            hint = "Set QUESTBOOK_EMBEDDINGS=auto, or copy them to a new database of that embedder: questbook copy"
            raise EmbedderChangedError(f"{problem}. {hint}.")

    def _newer(self, meta: Mapping[str, str]) -> HomeError:
        version = f"version {meta.get('schema')} of the tables; this program knows {SCHEMA}"
        problem = f"A newer Questbook made the tables in the {self.name}: {version}"
        return HomeError(f"{problem}. Nothing was changed: update it.")


class PostgresSessions(TableSessions):
    """The page's sessions in a database."""

    def __init__(self, home: PostgresHome) -> None:
        self._home = home

    async def _ask(self, statement: str, *values: str | float) -> list[Any]:
        return [tuple(row.values()) for row in await self._home._rows(statement.replace("?", "%s"), *values)]


class HeldLock:
    """A lock that is held, or is to be; `busy` is what is said if another process has it."""

    def __init__(self, locks: SessionLocks, lock: str, busy: str) -> None:
        self._locks, self._lock, self._busy = locks, lock, busy

    async def take(self, wait: float) -> None:
        """Take it, or raise a CampaignBusyError after so many seconds."""
        give_up = time.monotonic() + wait
        while not await self._locks.acquire(self._lock):
            if time.monotonic() >= give_up:
                raise await self._is_busy()
            await asyncio.sleep(_WAIT)
        held_here.add((self._locks.url, self._lock))

    async def check(self) -> None:
        """Check that the session lives, in which the lock is held."""
        with explained("database"):
            if await asyncio.to_thread(self._locks.holds, self._lock):
                return
        raise await self._is_busy()

    async def free(self) -> None:
        """Let others have it."""
        held_here.discard((self._locks.url, self._lock))
        await asyncio.to_thread(self._locks.free, self._lock)

    async def _is_busy(self) -> CampaignBusyError:
        name = await asyncio.to_thread(self._locks.holder, self._lock)
        error = CampaignBusyError(f"{self._busy} It is held by {name}." if name else self._busy)
        error.holder = name
        return error


_used: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


async def _note_use(connection: Any) -> None:
    _used[connection] = time.monotonic()


class _Pool(AsyncConnectionPool[Any]):
    """A pool that hands out the next connection where one is broken: psycopg's own check waits 1, 2, 4, 8 s between."""

    async def getconn(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109 (psycopg's name)
        """Return a connection that was checked; `timeout` in seconds, None: the pool's own."""
        seconds = self.timeout if timeout is None else timeout
        ends, broken = time.monotonic() + seconds, 0
        with suppress(PoolTimeout):
            while (left := ends - time.monotonic()) > 0:
                connection = await super().getconn(left)
                try:
                    await _check(connection)
                    return connection
                except BaseException as error:
                    await connection.close()
                    await self.putconn(connection)  # makes another one in its place
                    if not isinstance(error, Error):
                        raise
                broken += 1  # more than there were: what lets us connect, such as a proxy, has no database behind it
                await asyncio.sleep(1.0 if broken > self.max_size else 0.0)
        raise PoolTimeout(f"no connection that works within {seconds:g} seconds")


class _TracedCursor(AsyncCursor[Any]):
    async def execute(self, query: Any, params: Any = None, **named: Any) -> Any:
        name = "sql.write" if re.search(r"\b(INSERT|UPDATE|DELETE)\b", str(query)) else "sql.read"
        with traced(name, db__system__name="postgresql", db__namespace=self.connection.info.dbname):
            return await super().execute(query, params, **named)


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
    rows = await connection.execute("SELECT key, value FROM questbook_meta WHERE key NOT LIKE 'secret %'")
    return {row["key"]: row["value"] for row in await rows.fetchall()}


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

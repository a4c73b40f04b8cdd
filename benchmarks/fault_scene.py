"""What `faults.py` breaks: a database behind a proxy or a directory of files, page processes, players who go on."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from database import Database, as_tcp
from page_players import Player, Process, TurnFailedError, page

_TURN_SECONDS = 120.0  # after which a turn is given up
_CHECK_SECONDS = 60.0


class Proxy:
    """Passes TCP connections on to a socket of PostgreSQL, and drops them on demand."""

    def __init__(self, target: Path) -> None:
        self._target, self._writers, self._passing = target, set[asyncio.StreamWriter](), asyncio.Event()
        self._refuses = False
        self._passing.set()

    async def start(self) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Drop everything."""
        self._server.close()
        self._abort()

    async def drop(self, seconds: float) -> None:
        """Cut all connections, and refuse others for a while."""
        self._refuses = True
        self._abort()
        await asyncio.sleep(seconds)
        self._refuses = False

    async def go_silent(self, seconds: float) -> None:
        """Pass nothing on for a while, with the connections open; then cut them."""
        self._passing.clear()
        await asyncio.sleep(seconds)
        self._abort()
        self._passing.set()

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_unix_connection(str(self._target))
        except OSError:  # it is stopped
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        finally:
            self._writers -= {writer, back}

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                await self._passing.wait()
                target.write(data)
                await target.drain()
        target.close()


class Scene:
    """Processes and players on one home, while something is broken.

    Attributes:
        opens: Seconds after each fault until all whom it concerned had been shown a page.
        waits: The same, until they had played a turn to its end.
    """

    def __init__(self, processes: Sequence[Process], players: int, database: Database | None = None) -> None:
        self.processes, self.database, self.counts = list(processes), database, Counter[str]()
        urls = [process.url for process in processes]
        turned = [urls[number % len(urls) :] + urls[: number % len(urls)] for number in range(players)]
        self.players = [Player(number, own, self.counts, players) for number, own in enumerate(turned)]
        self.opens: list[float] = []
        self.waits: list[float] = []
        self._last = dict.fromkeys(range(players), 0.0)
        self._is_over = False

    async def evening(self, player: Player) -> None:
        """Let a player play until the scene is over."""
        turn = 0
        while not self._is_over:
            turn += 1
            if await player.play(turn, time.monotonic() + _TURN_SECONDS) is None:
                self.counts["stuck"] += 1
                return
            self._last[player.number] = time.monotonic()
            self.counts["turns"] += 1

    async def goes_on(self, since: float, concerned: Sequence[Player] | None = None) -> None:
        """Wait until those whom a fault concerned have played a turn, and keep how long it took since a time."""
        waiting = self.players if concerned is None else concerned
        end = time.monotonic() + _TURN_SECONDS
        opened: dict[int, float] = {}
        while any(self._last[player.number] <= since for player in waiting) and time.monotonic() < end:
            for player in waiting:
                if player.opened > since:
                    opened.setdefault(player.number, player.opened)
            await asyncio.sleep(0.01)
        self.counts["faults"] += 1
        if waiting:
            # Who had their page before the fault was over is counted from the end of their turn.
            self.opens.append(max(opened.get(player.number, self._last[player.number]) for player in waiting) - since)
            self.waits.append(max(self._last[player.number] for player in waiting) - since)

    def at(self, process: Process) -> list[Player]:
        """Return the players who use a process."""
        return [player for player in self.players if player.urls[0] == process.url]

    async def finish(self) -> None:
        """End the evening."""
        self._is_over = True

    async def check(self) -> None:
        """Look at each player's story and pages."""
        for player in self.players:
            until = time.monotonic() + _CHECK_SECONDS
            while True:
                try:
                    await player.check()
                    break
                except (TurnFailedError, httpx.HTTPError) as error:
                    player.go_to_next()
                    if time.monotonic() > until:
                        self.counts["unreadable"] += 1
                        self.counts[f"because a story cannot be read: {error}"[:150]] += 1
                        break
                    await asyncio.sleep(0.3)
        for trace in (trace for process in self.processes for trace in process.tracebacks()):
            self.counts["tracebacks"] += 1
            self.counts[f"traceback {trace}"] += 1


@asynccontextmanager
async def scene(
    home: str, players: int, environment: Mapping[str, str] | None = None, *, parent: Path | None = None
) -> AsyncIterator[tuple[Scene, Proxy | None]]:
    """Open a scene with two processes, whose players play meanwhile; at the end their stories are checked.

    Args:
        home: "sqlite" or "postgres".
        players: How many.
        environment: Further variables of the processes.
        parent: Where the home is made, such as on a small disk.
    """
    async with AsyncExitStack() as opened:
        place = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=parent)))
        files, further = place / "home", dict(environment or {})
        files.mkdir()
        database: Database | None = None
        proxy: Proxy | None = None
        if home == "postgres":
            database = opened.enter_context(Database(parent))
            proxy = Proxy(database.socket)
            port = await proxy.start()
            opened.push_async_callback(proxy.close)
            further["QUESTBOOK_DATABASE"] = as_tcp(await database.new(), port)
        processes = []
        logs = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        for number in range(2):
            processes.append(page(files, logs / f"log{number}", further))
            # In a thread: a process that ends well still speaks to the database, and the proxy is in this loop.
            opened.push_async_callback(asyncio.to_thread, processes[-1].end)
            await processes[-1].start()
        shown = Scene(processes, players, database)
        for player in shown.players:
            opened.push_async_callback(player.close)
        evenings = [asyncio.create_task(shown.evening(player)) for player in shown.players]
        try:
            await shown.goes_on(0.0)  # all have a character
            shown.opens.clear()
            shown.waits.clear()
            shown.counts["faults"] = 0
            yield shown, proxy
        finally:
            await shown.finish()
            await asyncio.gather(*evenings)
        await shown.check()


@contextlib.contextmanager
def small_disk(megabytes: int) -> AsyncIterator[Path | None]:  # type: ignore[misc]
    """Mount a small disk in memory; None where this user may not."""
    with tempfile.TemporaryDirectory() as directory:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            yield None
            return
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "-l", directory], check=True)

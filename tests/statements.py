"""What a PostgreSQL executes for a game, by the server's own log."""

from __future__ import annotations

import re
import time
from pathlib import Path

from postgres import execute

_LOGGED = re.compile(r"^(\S+) LOG:  (?:statement|execute [^:]+): (.*(?:\n\t.*)*)", re.MULTILINE)


class Statements:
    """The statements that a database executes, in all sessions that begin after this was made."""

    def __init__(self, url: str) -> None:
        [(self.name, directory)] = execute(url, "SELECT current_database(), current_setting('data_directory')")
        self._log = Path(directory) / "log"
        for setting in ("SYSTEM SET log_line_prefix = '%%d '", f"DATABASE {self.name} SET log_statement = 'all'"):
            execute(url, f"ALTER {setting}")
        execute(url, "SELECT pg_reload_conf()")
        while execute(url, "SHOW log_line_prefix") != [("%d ",)]:
            time.sleep(0.01)
        self._read = self._log.stat().st_size

    def take(self) -> list[str]:
        """Return those since this was asked last. A statement is logged before its answer is sent.

        Without the empty ones, by which a pool asks whether a connection lives that nobody used for a second, and
        without that by which it sets up a connection, whenever it opens one.
        """
        with self._log.open("rb") as file:
            file.seek(self._read)
            logged = file.read()
        self._read += len(logged)
        found = _LOGGED.findall(logged.decode(errors="replace"))
        texts = [" ".join(text.split()) for database, text in found if database == self.name]
        return [text for text in texts if text and not text.startswith("SET jit = off;")]

"""`AuditLog`: who signed in and out, shared, forgot, renamed or exported what, or was refused. Never what was said."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from questbook.graphs.errors import SettingsError

VARIABLE = "QUESTBOOK_AUDIT"  # where its lines go: "file" (audit.log in the data directory), or "stderr"
Event = Literal["sign-in", "failed sign-in", "sign-out", "share", "forget", "rename", "export", "refused"]


class AuditLog:
    """One line of JSON for each event, in a file that only its owner may read, or on standard error (path None).

    The file is opened for each line, so it may be rotated, and several processes may write it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def from_environment(cls, home: Path, variables: Mapping[str, str] = os.environ) -> Self:
        """Return the log that the setting names; a SettingsError if it is neither "file" nor "stderr"."""
        where = variables.get(VARIABLE, "").strip() or "file"
        if where not in ("file", "stderr"):
            raise SettingsError(f'{VARIABLE}: got {where!r:.40}; expected "file" or "stderr".')
        return cls(home / "audit.log" if where == "file" else None)

    async def write(self, event: Event, who: str, address: str, **more: str | list[str]) -> None:
        """Write what happened; `who` is "" if that is not known. What cannot be written should not happen either."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, "who": who, "address": address} | more) + "\n"
        await asyncio.to_thread(self._append, line)

    def _append(self, line: str) -> None:
        if self._path is None:
            sys.stderr.write(line)
            return
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line.encode())  # at once, so that lines of several processes do not mix
        finally:
            os.close(file)

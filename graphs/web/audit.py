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
from questbook.graphs.forgetting.suppression import append_line
from questbook.graphs.local.home import HomeError

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
        path = home / "audit.log" if where == "file" else None
        if path and (path.is_dir() or not os.access(path if path.exists() else home, os.W_OK)):
            raise SettingsError(f"Cannot write {path}: correct its permissions, or set {VARIABLE}=stderr.")
        return cls(path)

    async def write(self, event: Event, who: str, address: str, **more: str | list[str]) -> None:
        """Write what happened; `who` is "" if that is not known. If it cannot be written, a HomeError: it must not."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, "who": who, "address": address} | more)
        if self._path is None:
            sys.stderr.write(f"{line}\n")
            return
        try:
            await asyncio.to_thread(append_line, self._path, lambda _: line)
        except OSError as error:  # without its path, since whoever asked for it is told
            problem = f"The audit log cannot be written: {error.strerror or error}"
            raise HomeError(f"{problem}. Nothing was changed; try again in a moment.") from error

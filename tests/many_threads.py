"""Many saved campaigns in one database: a played one, copied under other names."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from questbook.graphs.embedded.databases import compressing_serializer
from questbook.graphs.embedded.saved_game import thread_id_of

_LAST = (
    "SELECT checkpoint_id, type, checkpoint, metadata FROM checkpoints "
    "WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
)


def copy_campaign(path: Path, user: str, campaign: str, count: int) -> None:
    """Copy a campaign's last checkpoint to `<campaign>-0`, `-1` and so on, each played a minute before the last one."""
    serializer = compressing_serializer()
    with closing(sqlite3.connect(path)) as connection, connection:
        number, kind, value, metadata = connection.execute(_LAST, (thread_id_of(user, campaign),)).fetchone()
        last, names = serializer.loads_typed((kind, value)), json.loads(metadata)
        played = datetime.fromisoformat(last["ts"]).astimezone(UTC)
        for copy in range(count):
            name, before = f"{campaign}-{copy}", timedelta(minutes=copy + 1)
            channels = last["channel_values"] | {"campaign": [user, name]}
            changed = last | {"ts": (played - before).isoformat(), "channel_values": channels}
            connection.execute(
                "INSERT INTO checkpoints VALUES (?, '', ?, NULL, ?, ?, ?)",
                (
                    thread_id_of(user, name),
                    _earlier(number, before),
                    *serializer.dumps_typed(changed),
                    json.dumps(names | {"user": user, "campaign": name}),
                ),
            )


def _earlier(checkpoint: str, by: timedelta) -> str:
    """Return the id of a checkpoint as if it had been written earlier (UUID version 6: the time comes first)."""
    digits = checkpoint.replace("-", "")
    time = f"{int(digits[:12] + digits[13:16], 16) - int(by.total_seconds() * 10**7):015x}"
    digits = time[:12] + digits[12] + time[12:] + digits[16:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

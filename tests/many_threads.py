"""Many saved campaigns in one database: a played one, copied under other names."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.saved_game import thread_id_of

_PUT = (
    "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata) "
    "VALUES (?, '', ?, ?, ?, ?)"
)


async def copy_campaign(saver: Checkpointer, user: str, campaign: str, count: int) -> None:
    """Copy a campaign's last checkpoint to `<campaign>-0`, `-1` and so on, each played a minute before the last one."""
    saved = await saver.aget_tuple({"configurable": {"thread_id": thread_id_of(user, campaign), "checkpoint_ns": ""}})
    assert saved
    last = saved.checkpoint
    played = datetime.fromisoformat(last["ts"]).astimezone(UTC)
    rows = []
    for copy in range(count):
        name, before = f"{campaign}-{copy}", timedelta(minutes=copy + 1)
        channels = last["channel_values"] | {"campaign": [user, name]}
        changed = last | {"ts": (played - before).isoformat(), "channel_values": channels}
        names = json.dumps(dict(saved.metadata) | {"user": user, "campaign": name})
        rows.append((thread_id_of(user, name), _earlier(last["id"], before), *saver.serde.dumps_typed(changed), names))
    await saver.conn.executemany(_PUT, rows)
    await saver.conn.commit()


def _earlier(checkpoint: str, by: timedelta) -> str:
    """Return the id of a checkpoint as if it had been written earlier (UUID version 6: the time comes first)."""
    digits = checkpoint.replace("-", "")
    time = f"{int(digits[:12] + digits[13:16], 16) - int(by.total_seconds() * 10**7):015x}"
    digits = time[:12] + digits[12] + time[12:] + digits[16:]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

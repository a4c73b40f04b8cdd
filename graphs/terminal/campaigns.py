"""Campaigns: which there are, and that one terminal plays one of them at a time.

The list is read from the checkpoints themselves, so that it cannot differ from what there is to play.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from graphs.errors import QuestbookError, UnreadableError
from graphs.home import Home, HomeError
from graphs.saved import Saved, read_saved, thread_id_of

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

# The primary key alone answers this; no checkpoint is read for it.
_THREADS = "SELECT thread_id, MIN(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"

_log = logging.getLogger(__name__)


class CampaignBusyError(QuestbookError):
    """Another terminal plays this campaign."""


async def list_campaigns(checkpointer: AsyncSqliteSaver, user: str) -> list[Saved]:
    """Return the last checkpoint of each of the user's campaigns, the last played first.

    It is that of the campaign's own thread, on which the terminal plays; if there is none yet, the last of the others,
    which were begun in Studio.
    """
    async with checkpointer.lock, checkpointer.conn.execute(_THREADS) as cursor:
        threads = [(str(thread), str(first)) for thread, first in await cursor.fetchall()]
    campaigns: dict[str, Saved] = {}
    for thread, first in threads:
        saved = await _saved(checkpointer, thread)
        if saved and not saved.campaign:  # edited in Studio before its first turn: the names of the beginning hold
            begun = await _saved(checkpointer, thread, first)
            saved = begun and saved._replace(user=begun.user, campaign=begun.campaign)
        if saved is None or not saved.campaign or saved.user != user or saved.machine == "companion":
            continue
        known = campaigns.get(saved.campaign)
        if known is None or (saved.named, saved.played) > (known.named, known.played):
            campaigns[saved.campaign] = saved
    return sorted(campaigns.values(), key=lambda saved: saved.played, reverse=True)


async def _saved(checkpointer: AsyncSqliteSaver, thread: str, checkpoint: str = "") -> Saved | None:
    try:
        saved = await read_saved(checkpointer, thread, checkpoint)
        if saved:
            _ = saved.turn, saved.character, saved.quest
    except (UnreadableError, ValueError, TypeError) as error:
        _log.warning("Thread %s is left out of the list of campaigns: %s", thread, error)
        return None
    return saved


@contextmanager
def hold_campaign(home: Home, user: str, campaign: str) -> Iterator[None]:
    """Hold a campaign for this process; the lock ends with the process, however it ends.

    Raises:
        CampaignBusyError: Another process holds it.
        HomeError: The lock cannot be written.
    """
    busy = f"Campaign {campaign!r} is open in another terminal. Close that one, or play another: --campaign NAME."
    with hold(home.lock_of(thread_id_of(user, campaign)), busy):
        yield


@contextmanager
def hold(path: Path, busy: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file for this process; the lock ends with the process, however it ends.

    Args:
        path: The file.
        busy: What to say if another process holds it.
        wait: Seconds to wait for that one.

    Raises:
        CampaignBusyError: Another process holds it.
        HomeError: The lock cannot be written.
    """
    from filelock import FileLock, Timeout  # `questbook --help` needs it not

    lock = FileLock(path, timeout=wait, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise CampaignBusyError(busy) from error
    except OSError as error:
        raise HomeError(f"Cannot use {path}: {error.strerror or error}. Mend its permissions, or move it.") from error
    try:
        yield
    finally:
        lock.release()

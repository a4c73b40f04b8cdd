"""Campaigns: which there are, and that one terminal plays one of them at a time.

The list is read from the checkpoints themselves, so that it cannot differ from what there is to play.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from questbook.graphs.embedded.home import Home, HomeError
from questbook.graphs.embedded.saved_game import SavedGame, last_of_threads, thread_id_of
from questbook.graphs.errors import QuestbookError

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


class CampaignBusyError(QuestbookError):
    """Another terminal plays this campaign."""


async def list_campaigns(checkpointer: AsyncSqliteSaver, user: str) -> list[SavedGame]:
    """Return the last checkpoint of each of the user's campaigns, the last played first.

    It is that of the campaign's own thread, on which the terminal plays; if there is none yet, the last of the others,
    which were begun in Studio.
    """
    campaigns: dict[str, SavedGame] = {}
    for saved in await last_of_threads(checkpointer):
        # Before its first turn a thread says nothing of its graph, and an agent's never does.
        playable = saved.machine == "dungeon_master" or (saved.on_own_thread and saved.machine == "")
        if not playable or not saved.campaign or saved.user != user:
            continue
        known = campaigns.get(saved.campaign)
        if known is None or (saved.on_own_thread, saved.played) > (known.on_own_thread, known.played):
            campaigns[saved.campaign] = saved
    return sorted(campaigns.values(), key=lambda saved: saved.played, reverse=True)


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

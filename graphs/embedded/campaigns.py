"""The list of campaigns, and the locks by which only one terminal plays a campaign at a time.

The list is read from the checkpoints themselves, so that it cannot differ from what can be played.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from questbook.graphs.embedded.home import Home, HomeError
from questbook.graphs.embedded.saved_game import SavedGame, last_of_thread, last_of_threads, thread_id_of
from questbook.graphs.errors import QuestbookError

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


class CampaignBusyError(QuestbookError):
    """Another terminal plays this campaign."""


async def list_campaigns(checkpointer: AsyncSqliteSaver, user: str, most: int | None = None) -> list[SavedGame]:
    """Return the user's campaigns as they were saved last, the last played first.

    If a campaign has a thread of the terminal, that thread counts; otherwise the last played of its other threads,
    which were begun in Studio.

    Args:
        checkpointer: Keeps them.
        user: The user.
        most: So many campaigns are enough; None: all.
    """
    campaigns: dict[str, SavedGame] = {}
    async for saved in last_of_threads(checkpointer, user):
        if saved.campaign in campaigns or not _is_playable(saved):
            continue
        own = None if saved.on_own_thread else await last_of_thread(checkpointer, thread_id_of(user, saved.campaign))
        campaigns[saved.campaign] = own if own and _is_playable(own) else saved
        if len(campaigns) == most:
            break
    return sorted(campaigns.values(), key=lambda saved: saved.played, reverse=True)


def _is_playable(saved: SavedGame) -> bool:
    # Before its first turn a thread does not say which graph it belongs to, and an agent's thread never does.
    on_its_own = saved.machine == "dungeon_master" or (saved.on_own_thread and saved.machine == "")
    return on_its_own and bool(saved.campaign)


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
        busy: The message if another process holds it.
        wait: Seconds to wait for that one.

    Raises:
        CampaignBusyError: Another process holds it.
        HomeError: The lock cannot be written.
    """
    from filelock import FileLock, Timeout  # only when something is locked

    lock = FileLock(path, timeout=wait, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise CampaignBusyError(busy) from error
    except OSError as error:
        raise HomeError(
            f"Cannot use {path}: {error.strerror or error}. Correct its permissions, or move it."
        ) from error
    try:
        yield
    finally:
        lock.release()

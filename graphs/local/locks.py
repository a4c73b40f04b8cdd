"""Locks: who holds a campaign, so that only one process plays it at a time. A lock ends with its process, however."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.local.saved_game import thread_id_of


class CampaignBusyError(QuestbookError):
    """Another process holds this campaign."""


def hold_campaign(home: Home, user: str, campaign: str) -> AbstractContextManager[None]:
    """Hold a campaign for this process; the errors are those of `hold`."""
    busy = f"Campaign {campaign!r} is open in another terminal. Close that one, or play another: --campaign NAME."
    return hold(home.lock_of(thread_id_of(user, campaign)), busy)


@contextmanager
def hold(path: Path, busy: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file for this process.

    Raises:
        CampaignBusyError: Another process holds it, also after `wait` seconds; `busy` is the message.
        HomeError: The lock cannot be written.
    """
    from filelock import FileLock, Timeout  # only when something is locked

    lock = FileLock(path, timeout=wait, mode=0o600, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise CampaignBusyError(busy) from error
    except OSError as error:
        problem = f"Cannot use {path}: {error.strerror or error}."
        raise HomeError(f"{problem} Correct its permissions, or move it.") from error
    try:
        yield
    finally:
        lock.release()

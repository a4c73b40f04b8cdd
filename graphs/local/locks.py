"""Lock files: who holds a campaign of a data directory. A lock ends with its process, however that ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from questbook.graphs.local.home import CampaignBusyError, HomeError


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

"""Deleting what has expired: now and then beside other writes, or steadily in a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from questbook.memory.errors import StoreError

_log = logging.getLogger(__name__)
_DEFAULT_MINUTES = 5.0  # what LangGraph's stores take if no interval is given


class Sweeper:
    """Says when to sweep, and can do it by itself.

    Args:
        sweep: Deletes what has expired and returns how many.
        minutes: Between two sweeps; None for 5.
    """

    def __init__(self, sweep: Callable[[], int], minutes: float | None) -> None:
        self._sweep = sweep
        self._seconds = 60.0 * (minutes or _DEFAULT_MINUTES)
        self._last = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def due(self) -> bool:
        """Whether the interval is over; if so, it begins anew."""
        if time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True

    def start(self, minutes: float | None) -> "Future[None]":
        """Sweep in a daemon thread, which never keeps a process from ending.

        Args:
            minutes: Between two sweeps; None for the store's setting.

        Returns:
            A future that is done when the thread has ended; cancelling it ends the thread.
        """
        future: Future[None] = Future()
        future.add_done_callback(lambda done: self._stop.set() if done.cancelled() else None)
        if self._thread is not None and self._thread.is_alive():
            return future
        self._stop.clear()
        seconds = self._seconds if minutes is None else 60.0 * minutes
        self._thread = threading.Thread(target=self._run, args=(seconds, future), name="questbook-sweeper", daemon=True)
        self._thread.start()
        return future

    def _run(self, seconds: float, future: "Future[None]") -> None:
        while not self._stop.wait(seconds):
            try:
                if count := self._sweep():
                    _log.info("deleted %d expired items", count)
            except StoreError as error:
                _log.warning("expired items were not deleted: %s", error)
        if not future.done():
            future.set_result(None)

    def stop(self, timeout: float | None) -> bool:
        """End the thread.

        Args:
            timeout: Seconds to wait for it; None to wait as long as it takes.

        Returns:
            Whether it has ended.
        """
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        self._thread = None
        return True

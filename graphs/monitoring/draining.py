"""`Drain`: how a server ends. It takes no new turns, lets the replies that are coming end, and then stops.

SIGTERM begins it. A second signal, or Ctrl-C, ends the server at once; nothing that was saved is lost then, and a
message without a reply is answered by the next process that opens its campaign.
"""

import os
import signal
import threading
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from questbook.graphs.errors import SettingsError

VARIABLE = "QUESTBOOK_DRAIN_SECONDS"  # how long the replies that are coming may take
_SECONDS = 30.0
_CLOSING, _AT_ONCE = 10.0, 1.0  # seconds that closing may take, and that a second signal leaves for it
_REFUSAL = "This server is about to stop and takes no new turns. Nothing was changed; send it again in a moment."
_HEADERS = {"retry-after": "5"}  # seconds, in which a proxy has found another process, or this one is back


class Drain:
    """Ends a server in time; `is_busy` says whether turns are played in it, `has_begun` whether none begins now."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy, self._seconds, self._ends, self.has_begun = is_busy, _drain_seconds(), 0.0, False
        self._changing, self._signals = 0, 0  # requests that change or export something, and are not answered yet

    def begin(self, sig: int) -> bool:
        """Begin to drain if a signal asks for it; return whether the server has to go on meanwhile."""
        self._signals += 1
        if self._signals > 1:
            self.end(_AT_ONCE)
        if sig != signal.SIGTERM or self.has_begun:
            return False
        self.has_begun, self._ends = True, time.monotonic() + self._seconds
        return True

    def end(self, seconds: float = _CLOSING) -> None:
        """End the process after so long if a signal has come: what closes may wait for a database without an answer."""
        if self._signals:
            ending = threading.Timer(seconds, os._exit, [1])
            ending.daemon = True
            ending.start()

    @property
    def is_over(self) -> bool:
        """Whether the server may stop: it was asked to, and nothing is played or changed, or the time is over."""
        return self.has_begun and (not (self._changing or self._is_busy()) or time.monotonic() > self._ends)

    def check(self) -> None:
        """Refuse what may begin a turn, with status 503, once the server is about to stop."""
        if self.has_begun:
            raise HTTPException(503, _REFUSAL, _HEADERS)

    def refuse_changes(self, app: ASGIApp) -> ASGIApp:
        """Return an app that answers, once it has begun, what changes something with 503; a reply can be stopped."""

        async def check(scope: Scope, receive: Receive, send: Send) -> None:
            reads = scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or scope["path"].endswith("/stop")
            answer = app if reads or not self.has_begun else PlainTextResponse(_REFUSAL, 503, _HEADERS)
            lasts = not reads or scope.get("path", "").endswith("/export")
            self._changing += lasts
            try:
                await answer(scope, receive, send)
            finally:
                self._changing -= lasts

        return check


def _drain_seconds() -> float:
    said = os.environ.get(VARIABLE, "")
    try:
        seconds = float(said or _SECONDS)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise SettingsError(f"{VARIABLE}: got {said!r:.40}; expected seconds, such as 30. 0 ends at once.")
    return seconds

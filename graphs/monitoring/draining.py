"""`Drain`: how a server ends. It takes no new turns, lets the replies that are coming end, and then stops.

SIGTERM begins it. A second signal, or Ctrl-C, ends the server at once; nothing that was saved is lost then, and a
message without a reply is answered by the next process that opens its campaign.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Protocol

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from questbook.graphs.errors import SettingsError

VARIABLE = "QUESTBOOK_DRAIN_SECONDS"
"""How long the replies that are coming may take."""
RETRY_AFTER = {"retry-after": "5"}  # seconds, in which a proxy has found another process, or this one is back
REFUSAL = "This server is about to stop and takes no new turns. Nothing was changed; send it again in a moment."
_SECONDS = 30.0


class Turns(Protocol):
    """The turns that a server plays.

    Attributes:
        is_draining: Whether none is begun any more.
    """

    is_draining: bool

    @property
    def is_busy(self) -> bool:
        """Whether a reply is coming, or notes on one are being made."""


class Drain:
    """Ends a server in time; `seconds` is how long the turns may take, None: as the environment says.

    Raises:
        SettingsError: The environment says no number of seconds.
    """

    def __init__(self, turns: Turns, seconds: float | None = None) -> None:
        self._turns, self._ends = turns, 0.0
        self._seconds = drain_seconds() if seconds is None else seconds

    def begin(self, sig: int) -> bool:
        """Begin to drain if a signal asks for it; return whether the server has to go on meanwhile."""
        if sig != signal.SIGTERM or self._turns.is_draining:
            return False
        self._turns.is_draining, self._ends = True, time.monotonic() + self._seconds
        return True

    @property
    def is_over(self) -> bool:
        """Whether the server may stop: it was asked to, and no turn is played any more, or the time is over."""
        return self._turns.is_draining and (not self._turns.is_busy or time.monotonic() > self._ends)


def refuse_changes(app: ASGIApp, turns: Turns) -> ASGIApp:
    """Return an app that answers, while it drains, what changes something with 503; a reply can still be stopped."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] != "http" or scope["method"] in ("GET", "HEAD") or scope["path"].endswith("/stop")
        refusal = PlainTextResponse(REFUSAL, 503, RETRY_AFTER)
        await (app if reads or not turns.is_draining else refusal)(scope, receive, send)

    return check


def drain_seconds() -> float:
    """Return how long a server may take to end.

    Raises:
        SettingsError: The environment says no number of seconds.
    """
    said = os.environ.get(VARIABLE, "")
    try:
        seconds = float(said or _SECONDS)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise SettingsError(f"{VARIABLE}: got {said!r:.40}; expected seconds, such as 30. 0 ends at once.")
    return seconds

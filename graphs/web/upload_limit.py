"""What a request may send: so many bytes, and not too slowly, whether it says its length or not."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

_MOST_BYTES = 1_000_000  # of a form
_MOST_FILES = {"/lore": 25_000_000, "/import": 200_000_000}  # of an upload, by the end of its path
_PAUSE_SECONDS = 20.0  # between two parts of a request
_LONGEST_SECONDS = 600.0


class UploadLimitError(Exception):
    """A request sends too much (`status` 413), or too slowly (408)."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class LimitedBody:
    """The body of a request, as it comes.

    Raises:
        UploadLimitError: The request says that it sends too much.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._most = next((most for end, most in _MOST_FILES.items() if scope["path"].endswith(end)), _MOST_BYTES)
        self._size, self._is_whole, self._began = 0, False, time.monotonic()
        length = Headers(scope=scope).get("content-length", "")
        self._check(int(length) if length.isdecimal() and len(length) < 20 else 0)

    async def receive(self) -> Message:
        """Return the next part; after the last one, wait for the end of the connection.

        Raises:
            UploadLimitError: It is too much, or takes too long.
        """
        if self._is_whole:
            return await self._receive()
        left = self._began + _LONGEST_SECONDS - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), min(_PAUSE_SECONDS, max(left, 0)))
        except TimeoutError:
            raise UploadLimitError(408, "The request came too slowly. Nothing was changed; send it again.") from None
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        self._check(self._size)
        return message

    def _check(self, size: int) -> None:
        if size > self._most:
            text = (
                f"This request may have {self._most:,} bytes at most. Nothing was changed. A larger campaign comes in "
            )
            raise UploadLimitError(413, text + "with: questbook import FILE.zip.")

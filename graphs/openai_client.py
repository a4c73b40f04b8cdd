"""LoopClient: an HTTP client for OpenAI-compatible servers which every event loop may use.

Import this module late: it imports openai, which takes a second.
"""

from __future__ import annotations

import asyncio
from typing import Any

import openai


class LoopClient(openai.DefaultAsyncHttpxClient):
    """An async HTTP client that keeps its connections apart by event loop.

    A pooled connection belongs to the loop that opened it: in another loop, or after that loop is closed, using it
    fails with "Event loop is closed", or worse, wakes the wrong loop. Chat models are cached for the whole process,
    so each loop gets a client of its own here, with the library's defaults (proxies from the environment included).
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._settings = settings
        self._clients: dict[asyncio.AbstractEventLoop, openai.DefaultAsyncHttpxClient] = {}

    async def send(self, request: Any, **options: Any) -> Any:
        """Send `request` over a connection of the running loop."""
        loop = asyncio.get_running_loop()
        for other in [known for known in self._clients if known.is_closed()]:
            # Nothing can be awaited in a closed loop any more: dropping the client closes its sockets.
            self._clients.pop(other, None)
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = openai.DefaultAsyncHttpxClient(**self._settings)
        return await client.send(request, **options)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()

"""An HTTP client for OpenAI-compatible servers for every event loop; import it late: openai takes a second."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai

_REFUSED = (400, 422)  # HTTP statuses of a server that does not take a field


class LoopClient(openai.DefaultAsyncHttpxClient):
    """An async HTTP client with separate connections for each event loop, and the library's defaults.

    A pooled connection fails outside the loop that opened it, and chat models are cached for the whole process.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._settings = settings
        self._clients: dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Any], asyncio.Future[Any]]] = {}

    async def send(self, request: Any, **options: Any) -> Any:
        """Send `request` over a connection of the running loop."""
        client = await self._client()
        try:
            response = await client.send(request, **options)
            may_mend = response.status_code in _REFUSED and b'"stream_options"' in request.content
            if not may_mend or b"stream_options" not in await response.aread():
                return response
            # An older server does not know the question what a call used: ask without it.
            body = {k: v for k, v in json.loads(request.content).items() if k != "stream_options"}
            headers = {k: v for k, v in request.headers.items() if k != "content-length"}
            again = {"headers": headers, "json": body, "extensions": request.extensions}
            return await client.send(client.build_request(request.method, request.url, **again), **options)
        except Exception as error:
            # After httpx's own time-out, openai would repeat the request. By name: it has changed from httpx to httpx2.
            if type(error).__name__ == "ReadTimeout":
                raise openai.APITimeoutError(request=request) from error
            raise

    async def _client(self) -> Any:
        for closed in [loop for loop in self._clients if loop.is_closed()]:
            self._clients.pop(closed, None)
        loop = asyncio.get_running_loop()
        _, made = self._clients.get(loop, (None, None))
        if made is None or (made.done() and (made.cancelled() or made.exception())):
            opening = _open_until_loop_ends(self._settings)
            made = asyncio.ensure_future(anext(opening))
            self._clients[loop] = opening, made
        return await asyncio.shield(made)  # for all who ask meanwhile, also if one of them is stopped


async def _open_until_loop_ends(settings: dict[str, Any]) -> AsyncGenerator[openai.DefaultAsyncHttpxClient]:
    # An event loop closes its async generators before it ends, so the connections are closed while it still runs.
    # Certificates are read from disk, which must not block the loop.
    async with await asyncio.to_thread(openai.DefaultAsyncHttpxClient, **settings) as client:
        yield client

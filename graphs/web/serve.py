"""`questbook web`: the page on this computer, for one person, or for several with a token."""

from __future__ import annotations

import asyncio
import socket
import webbrowser

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError

_LOCAL = ("127.0.0.1", "::1", "localhost")


class ServerError(QuestbookError):
    """The page cannot be served; the message says why."""


async def serve(context: Context, *, host: str, port: int, browser: bool) -> None:
    """Serve the page until Ctrl-C.

    Args:
        context: The settings of the games.
        host: The address: 127.0.0.1, unless sign-in is set up.
        port: The port; 0: any that is free.
        browser: Whether to open it in the person's browser.

    Raises:
        ServerError: The extra is missing, the port is taken, or the address is not of this computer.
    """
    if host not in _LOCAL:
        raise ServerError(f"The page has no sign-in, so it is served to this computer alone; got the address {host!r}.")
    try:
        import uvicorn

        from questbook.graphs.web.app import create_app
    except ImportError as error:
        raise ServerError(f"The page needs {error.name}: pip install 'questbook[web]'.") from error
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise ServerError(
            f"Port {port} of {host} cannot be used: {error.strerror}. Take another: --port 8001."
        ) from error
    app = await asyncio.to_thread(create_app, context)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=3))
    address = f"http://{host}:{listener.getsockname()[1]}/"
    print(f"Questbook is at {address} Ctrl-C ends it; what was played is kept.", flush=True)  # noqa: T201
    if browser:
        webbrowser.open(address)
    await server.serve(sockets=[listener])

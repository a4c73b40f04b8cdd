"""`questbook web`: the page on this computer, for one person, or for several with a token."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import webbrowser
from functools import partial

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError

VARIABLE = "QUESTBOOK_PEOPLE"
"""Names and tokens of those who may sign in: "ann:SECRET, bob:OTHER"."""
_SHORTEST = 16  # characters of a token
_LOCAL = ("127.0.0.1", "::1", "localhost")


class ServerError(QuestbookError):
    """The page cannot be served; the message says why."""


async def serve(context: Context, flags: argparse.Namespace) -> None:
    """Do `questbook web`: serve the page until Ctrl-C.

    Raises:
        ServerError: The extra is missing, the port is taken, or nobody is named for an address that others reach.
    """
    host, port = flags.host, flags.port
    people = people_of(os.environ.get(VARIABLE, ""))
    if host not in _LOCAL and not people:
        raise ServerError(
            f"At {host} others reach the page, so they must sign in: set {VARIABLE} to names and tokens of 16 "
            'characters or more, such as "ann:SECRET, bob:OTHER". Without it the page is at 127.0.0.1 alone.'
        )
    try:
        import uvicorn

        from questbook.graphs.web.app import create_app
    except ImportError as error:
        raise ServerError(f"The page needs {error.name}: pip install 'questbook[web]'.") from error
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ServerError(
            f"Port {port} of {host} cannot be used: {getattr(error, 'strerror', error)}. Take another: --port 8001."
        ) from error
    app = await asyncio.to_thread(partial(create_app, context, people=people, developer=flags.developer))

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await app.state.page.pool.end_streams()  # or it would wait for the pages that listen
            await super().shutdown(sockets)

    server = Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1))
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listener.getsockname()[1]}/"
    print(f"Questbook is at {address} Ctrl-C ends it; what was played is kept.", flush=True)  # noqa: T201
    if not flags.no_browser:
        webbrowser.open(address)
    await server.serve(sockets=[listener])


def people_of(text: str) -> dict[str, str]:
    """Read names and tokens.

    Raises:
        ServerError: An entry is no name and token, or a token is short or used twice.
    """
    people: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, colon, secret = entry.partition(":")
        if not colon or not name.strip() or len(secret.strip()) < _SHORTEST or secret.strip() in people.values():
            raise ServerError(
                f"{VARIABLE}: got an entry for {name.strip()!r:.40}; expected NAME:TOKEN with a token of its own, of "
                f"{_SHORTEST} characters or more."
            )
        people[name.strip()] = secret.strip()
    return people

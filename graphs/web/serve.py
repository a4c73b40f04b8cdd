"""`questbook web`: the page on this computer, for one person, or for those who sign in."""

import argparse
import asyncio
import gc
import ipaddress
import os
import socket
import threading
import time
import webbrowser
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.forgetting.suppression import SuppressionList
from questbook.graphs.identity.identity import TokenCheck
from questbook.graphs.monitoring.logs import start_logging, writes_json

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from questbook.graphs.web.app_state import AppState
    from questbook.graphs.web.campaign_pool import CampaignPool

VARIABLE = "QUESTBOOK_PEOPLE"  # names and tokens of those who may sign in: "ann:SECRET, bob:OTHER"
PROXIES = "QUESTBOOK_TRUSTED_PROXIES"
"""Addresses and networks of proxies whose X-Forwarded-Proto and X-Forwarded-For hold: "127.0.0.1, 10.0.0.0/8"."""
_TOKENS = ("QUESTBOOK_OIDC_", "QUESTBOOK_JWT_")  # how the variables of `questbook.graphs.identity.tokens` begin
_ALONE = "Nobody signs in: it is for one person, on this computer alone."
_SHORTEST = 16  # characters of a token
_HEAD_SECONDS = 10.0  # in which the head of a request must come
_READ_SECONDS = 60.0  # in which some of an answer must be read
_MOST_SILENT = 100  # connections that are without a request for more than a second
_LOCAL = ("127.0.0.1", "::1", "localhost")


class ServerError(QuestbookError):
    """The page cannot be served as it is set; the message says why."""


async def serve(context: Context, flags: argparse.Namespace) -> None:
    """Do `questbook web`: serve the page until Ctrl-C."""
    start_logging()
    host, port, people, tokens = flags.host, flags.port, people_of(os.environ.get(VARIABLE, "")), _tokens()
    proxies = proxies_of(os.environ.get(PROXIES, ""))
    SuppressionList.find()  # a mistake in it is seen now, and not at the first forget
    if people and tokens:
        raise ServerError(f"Take {VARIABLE}, for a few people who share all, or an issuer's tokens; not both.")
    if host not in _LOCAL and not people and not tokens:
        hint = f'set {VARIABLE} to names and tokens of 16 characters or more, such as "ann:SECRET, bob:OTHER"'
        problem = f"At {host} others reach the page, so they must sign in"
        raise ServerError(f"{problem}: {hint}; or an issuer, {_TOKENS[0]}ISSUER. Else the page is at 127.0.0.1 alone.")
    try:
        import uvicorn  # noqa: F401 (whether it is there)
        from starlette.concurrency import run_in_threadpool

        from questbook.graphs.web.app import create_app
    except ImportError as error:
        raise ServerError(f"The page needs {error.name}: pip install 'questbook[web]'.") from error
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        problem = f"Port {port} of {host} cannot be used: {getattr(error, 'strerror', error)}."
        raise ServerError(f"{problem} Take another: --port 8001.") from error
    app = await asyncio.to_thread(partial(create_app, context, people=people, tokens=tokens, developer=flags.developer))
    await asyncio.to_thread(_watch, app.state.page)
    await run_in_threadpool(_load, app.state.page)
    await app.state.page.home.check()  # what cannot be used is refused before anything is said

    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
    print(f"Questbook is at {address} Ctrl-C ends it; what was played is kept.", flush=True)  # noqa: T201
    if not people and not tokens:
        print(_ALONE, flush=True)  # noqa: T201
    if not flags.no_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()  # one in the terminal waits
    await server_of(app, app.state.page.pool, proxies).serve(sockets=[listener])


def _load(page: "AppState") -> None:
    """Load what the first page and the first turns need: else who comes first holds up all others."""
    for machine in ("dungeon_master", "companion"):
        import_module(f"questbook.graphs.{machine}.graph")
    for name in page.templates.list_templates(extensions=["html"]):
        page.templates.get_template(name)
    gc.collect()
    gc.freeze()  # what is loaded stays: the collector takes a fifth of a second to look through it


def _watch(page: "AppState") -> None:
    """Count what the page does, if the extra `ops` is here; /metrics says if it is not."""
    with suppress(ImportError):
        from questbook.graphs.monitoring import metrics, turns

        turns.watch_turns()
        metrics.CAMPAIGNS.set_function(lambda: len(page.pool))
        metrics.STREAMS.set_function(lambda: len(page.streams))


def server_of(app: "ASGIApp", pool: "CampaignPool", proxies: Collection[str] = ()) -> "uvicorn.Server":
    """Return the server of a page and its campaigns; it closes silent connections, for which uvicorn has no limit.

    `proxies`: addresses and networks of those who may say from where a request comes, and whether with TLS.
    """
    import uvicorn

    silent: dict[Any, float] = {}

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit or pool.drain.has_begun
            super().handle_exit(sig, frame)
            self.should_exit = not pool.drain.begin(sig)

        async def on_tick(self, counter: int) -> bool:
            end_silent(self.server_state.connections, silent)
            self.should_exit = self.should_exit or pool.drain.is_over
            return await super().on_tick(counter)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await pool.end_streams()  # or it would wait for the pages that listen
            await super().shutdown(sockets)

    options: Any = {"log_config": None} if writes_json() else {"log_level": "warning"}
    options |= {"http": "h11"}  # it limits the head of a request, which httptools does not
    options |= {"proxy_headers": bool(proxies), "forwarded_allow_ips": list(proxies)}
    return Server(uvicorn.Config(app, lifespan="on", ws="none", timeout_graceful_shutdown=1, **options))


def end_silent(connections: Collection[Any], silent: dict[Any, float]) -> None:
    """Close connections on which no whole head of a request has come for too long, or on which no answer is read.

    Of many that have sent none for a second, the oldest are closed, so that those who do send one find a place.

    `connections` are uvicorn's. `silent` says since when each has been silent, with the bytes that it has not read; it
    is empty at first, and kept for the next call.
    """
    now = time.monotonic()
    # A slow reader of a large answer reads some of it, though more is always waiting.
    unread = {(each, each.transport.get_write_buffer_size()) for each in connections if each.flow.write_paused}
    unsaid = {(each, -1) for each in connections if each.cycle is None or each.cycle.response_complete}
    unsaid -= {(each, -1) for each, _ in unread}
    for each in silent.keys() - unread - unsaid:
        del silent[each]
    waiting = sorted(unsaid, key=lambda each: silent.setdefault(each, now))
    surplus = [each for each in waiting if now - silent[each] > 1][:-_MOST_SILENT]
    late = [each for each in waiting if now - silent[each] > _HEAD_SECONDS]
    stuck = [each for each in unread if now - silent.setdefault(each, now) > _READ_SECONDS]
    for each in {*surplus, *late, *stuck}:
        del silent[each]
        # What was sent may still have to leave; if it does not, the next time is the last.
        transport = each[0].transport
        (transport.abort if each in unread or transport.is_closing() else transport.close)()


def people_of(text: str) -> dict[str, str]:
    """Read names and tokens: each token long enough, and a person's own."""
    people: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, colon, secret = entry.partition(":")
        is_taken = name.strip() in people or secret.strip() in people.values()
        if not colon or not name.strip() or len(secret.strip()) < _SHORTEST or is_taken:
            expected = f"expected NAME:TOKEN with a token of its own, of {_SHORTEST} characters or more"
            raise ServerError(f"{VARIABLE}: got an entry for {name.strip()!r:.40}; {expected}.")
        people[name.strip()] = secret.strip()
    return people


def proxies_of(text: str) -> list[str]:
    """Read addresses and networks."""
    proxies = list(filter(None, map(str.strip, text.split(","))))
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError as error:
            expected = "expected addresses and networks of your proxies, such as 127.0.0.1, 10.0.0.0/8"
            raise ServerError(f"{PROXIES}: got {proxy!r:.60}; {expected}.") from error
    return proxies


def _tokens() -> TokenCheck | None:
    """Return what checks an issuer's tokens, as the variables say; None if none is set."""
    if not any(name.startswith(_TOKENS) and value.strip() for name, value in os.environ.items()):
        return None
    try:
        from questbook.graphs.identity.tokens import TokenVerifier
    except ImportError as error:
        raise ServerError(f"Tokens need {error.name}: pip install 'questbook[identity]'.") from error
    return TokenVerifier.from_environment()

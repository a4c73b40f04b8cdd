"""The page of a data directory, served in a thread, and a browser to look at it."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from contextlib import contextmanager

import uvicorn

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.home import Home
from questbook.graphs.web.app import create_app

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The browser that `.ci/run` installs; Playwright's own cannot be fetched everywhere."""


class PageServer:
    """A server of the page.

    Args:
        path: The data directory.
        options: Settings of the games, and options of `create_app`.
    """

    def __init__(self, path, **options):
        self.home = Home(path)
        self.home.locks.mkdir(parents=True, exist_ok=True)
        names = {"people", "developer", "root"}
        self.options = {name: value for name, value in options.items() if name in names}
        settings = {name: value for name, value in options.items() if name not in names}
        self.context = Context.of({"user": "ann", "campaign": "isle", "seed": 6, "model": "offline", **settings})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        app = create_app(self.context, self.home, **self.options)
        self.server = uvicorn.Server(
            uvicorn.Config(app, port=self.port, log_level="error", timeout_graceful_shutdown=1)
        )
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)
        return self

    def stop(self):
        self.server.should_exit = True
        self.thread.join(20)


@contextmanager
def page_server(path, **options):
    server = PageServer(path, **options).start()
    try:
        yield server
    finally:
        server.stop()


def say(page, words):
    """Send a message, and wait for the end of the reply."""
    before = page.locator(".turn:not(.live)").count()
    page.fill("#text", words)
    page.press("#text", "Enter")
    page.wait_for_selector("#live", state="attached", timeout=20_000)
    page.wait_for_selector("#live", state="detached", timeout=30_000)
    page.locator(".turn:not(.live)").nth(before).wait_for(timeout=10_000)

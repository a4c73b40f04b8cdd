"""The page of a data directory, served in a thread, and a browser to look at it."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from postgres import database_of

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.homes import home_at
from questbook.graphs.offline.model import OfflineModel
from questbook.graphs.web.app import create_app
from questbook.graphs.web.serve import server_of

ROOT = Path(__file__).parent.parent
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
"""The browser that `.ci/run` installs; Playwright's own cannot be fetched everywhere."""


def bound_socket(port):
    """Take a port of this machine; 0: any."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


class LoggedIn:
    """Who another server's log-in names."""

    is_authenticated = True

    def __init__(self, identity):
        self.identity = identity


def logged_in(app):
    """Mount the page as a server with a log-in of its own does: who asks says so in a header."""

    async def mounted(scope, receive, send):
        name = dict(scope.get("headers") or ()).get(b"x-user", b"").decode()
        await app({**scope, "user": LoggedIn(name)} if name else scope, receive, send)

    return mounted


class PageServer:
    """A server of the page.

    Args:
        path: The data directory, or a home.
        options: Settings of the games, and options of `create_app`.
    """

    def __init__(self, path, **options):
        self.home = home_at(database_of(Path(path)) or str(path), Path(path)) if isinstance(path, str | Path) else path
        names = {"people", "developer", "root", "log_in"}
        self.options = {name: value for name, value in options.items() if name in names}
        settings = {name: value for name, value in options.items() if name not in names}
        self.context = Context.of({"user": "ann", "campaign": "isle", "seed": 6, "model": "offline", **settings})
        self.sockets = [bound_socket(0)]  # kept until the start, so that no other program takes the port
        self.port = self.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.home.path.mkdir(parents=True, exist_ok=True)  # the audit log's place, wherever the games are
        app = create_app(self.context, self.home, **self.options)
        pool, self.streams = app.state.page.pool, app.state.page.streams
        app = logged_in(app) if self.options.get("log_in") else app
        self.server = server_of(app, pool)
        sockets, self.sockets = self.sockets or [bound_socket(self.port)], []  # the server closes its own
        self.thread = threading.Thread(target=self.server.run, args=(sockets,), daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive(), "the server did not start"
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


def serving(home, *arguments, **environment):
    """Start `questbook web` as a person does."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK")}
    place = {"QUESTBOOK_HOME": str(home), "QUESTBOOK_DATABASE": database_of(Path(home))}
    variables = {**keep, "PYTHONPATH": str(ROOT), **place, **environment}
    command = [sys.executable, "-m", "questbook.graphs.terminal", "web", "--no-browser", *arguments]
    return subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    )


def address_of(program):
    line = program.stdout.readline()
    assert "Questbook is at" in line, line + program.stdout.read()
    return re.search(r"http://\S+", line)[0].rstrip("/")


def say(page, words):
    """Send a message, and wait for the end of the reply."""
    page.locator("#text").wait_for()
    page.wait_for_load_state()  # of the page that has the field; before its scripts run, Enter makes a line
    before = page.locator(".turn:not(.live)").count()
    page.fill("#text", words)
    page.press("#text", "Enter")
    page.locator(".turn:not(.live)").nth(before).wait_for(timeout=30_000)
    settle(page)


def settle(page):
    """Wait until the notes of a turn are made, and the page shows what came of it."""
    page.wait_for_selector("body:not(.replying):not(.noting)", timeout=30_000)
    page.wait_for_selector("[aria-busy]", state="detached", timeout=30_000)


class Visitor:
    """Somebody at a page without a browser: reads it, sends its forms, and waits for what happens.

    Args:
        url: The server's.
        path: The campaign's page.
        name: Who logged in; None: nobody.
    """

    def __init__(self, url, path="/c/isle/", name=None):
        self.path = path
        headers = {"x-user": name} if name else {}
        self.web = httpx.Client(base_url=url, follow_redirects=True, timeout=60, headers=headers)

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_):
        self.web.close()

    def open(self):
        page = self.web.get(self.path)
        if page.status_code == 200:
            self.web.headers["x-questbook-token"] = re.search(r'data-token="([^"]+)"', page.text)[1]
            self.number = (re.search(r'data-number="(\d+)"', page.text) or ("", "0"))[1]
        return page

    def get(self, name="", /):
        return self.web.get(self.path + name)

    def post(self, name, /, **form):
        return self.web.post(self.path + name, data=form)

    def wait_for(self, kind="pages"):
        """Wait until something happens; return what happened, with its data."""
        moments, event = [], ""
        for _ in range(20):  # a browser opens a stream again that has ended
            with self.web.stream("GET", f"{self.path}events?after={self.number}") as stream:
                for line in stream.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "id":
                        self.number = value
                    elif name == "event":
                        event = value
                    elif name == "data":
                        moments.append((event, json.loads(value)))
                        if event == kind:
                            return moments
                        assert event != "problem", value
            if event == "gone" or stream.status_code != 200:
                break
        raise AssertionError(f"the stream ended without {kind}: {moments}")

    def say(self, words):
        """Play a turn to the end of its notes; return what happened."""
        self.open()  # what happened before is not waited for
        answer = self.post("say", text=words, ticket=uuid.uuid4().hex)
        assert answer.status_code == 200, answer.text
        return self.wait_for()


class Watching:
    """An open event stream, read in a thread."""

    def __init__(self, visitor):
        self.lines, self.ended = queue.Queue(), threading.Event()
        self.opened = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(visitor,), daemon=True)
        self._thread.start()
        assert self.opened.wait(10)

    def _read(self, visitor):
        path = f"{visitor.path}events?after={visitor.number}"
        # At the end of a test the server cuts off those that are still open.
        with suppress(httpx.RemoteProtocolError), visitor.web.stream("GET", path) as stream:
            for line in stream.iter_lines():
                self.opened.set()
                self.lines.put(line)
        self.ended.set()

    def wait_for(self, words):
        while words not in (line := self.lines.get(timeout=20)):
            pass
        return line

    def rest(self):
        assert self.ended.wait(10), "the stream goes on"
        return "".join(self.lines.queue)


@contextmanager
def half_answers(pieces: int = 8) -> Iterator[threading.Event]:
    """Let the built-in model say an answer's first pieces, and the rest when the event is set or the block ends."""
    quick, goes_on = OfflineModel._astream, threading.Event()

    async def stream(self, *args, **kwargs):
        said = 0
        async for chunk in quick(self, *args, **kwargs):
            yield chunk
            said += 1
            while said == pieces and not goes_on.is_set():
                await asyncio.sleep(0.02)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OfflineModel, "_astream", stream)
        yield goes_on
        goes_on.set()

"""Who may send what to the page, and how much of it."""

import asyncio
import re
import socket
import time
from contextlib import suppress
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from web_server import page_server

from questbook.graphs.web import guard, serve
from questbook.graphs.web.app_state import label_of, name_of
from questbook.graphs.web.guard import HEADER, PageGuard

TOKEN = {HEADER: "t" * 20}
changes = []


async def change(request):
    form = await request.form()
    changes.append(dict(form))
    return PlainTextResponse("changed")


async def look(request):
    return Response("looked", headers={"x-person": request.scope.get(guard.PERSON, "")})


def client(**options):
    routes = [
        Route("/", look),
        Route("/static/page.css", look),
        Route("/c/isle/say", change, methods=["POST"]),
        Route("/c/isle/lore", change, methods=["POST"]),
    ]
    people = options.pop("people", {})
    app = Starlette(routes=routes, middleware=[Middleware(PageGuard, token="t" * 20, people=people, **options)])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")


async def pieces(number, size, pause=0.0):
    for _ in range(number):
        await asyncio.sleep(pause)
        yield b"x" * size


@pytest.fixture(autouse=True)
def unchanged():
    changes.clear()


def fetched(site, mode="", dest=""):
    return {"sec-fetch-site": site} | ({"sec-fetch-mode": mode, "sec-fetch-dest": dest} if mode else {})


FOREIGN = [
    fetched("cross-site"), fetched("same-site"), fetched("cross-site", "navigate", "document"),
    *({"origin": origin} for origin in ("https://evil.example", "http://127.0.0.1:9999", "null")),
    *({HEADER: token} for token in ("", "x", "\u00e9")),
    *({"host": host} for host in ("evil.example", "127.0.0.1.evil.example:8000", "localhost@evil.example", "")),
]  # fmt: skip
OURS = [
    {}, {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8000"}, {"origin": "http://127.0.0.1:8000"},
    {"host": "localhost:8000", "origin": "http://localhost:8000"}, {"host": "[::1]:8000"}, {"host": "LOCALHOST"},
]  # fmt: skip


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_a_change_comes_from_a_page_of_this_server_alone(headers):
    sent = {name.encode(): value.encode() for name, value in (TOKEN | headers).items()}
    async with client() as web:
        answer = await web.post("/c/isle/say", data={"text": "hi"}, headers=sent)
    assert answer.status_code == (400 if "host" in headers else 403)
    assert changes == []


@pytest.mark.parametrize("headers", OURS, ids=str)
async def test_a_page_of_this_server_may_change_things(headers):
    async with client() as web:
        assert (await web.post("/c/isle/say", data={"text": "hi"}, headers=TOKEN | headers)).text == "changed"


@pytest.mark.parametrize(
    ("mode", "dest", "status"), [("no-cors", "image", 403), ("navigate", "iframe", 403), ("navigate", "document", 200)]
)
async def test_another_site_may_link_here_and_load_nothing(mode, dest, status):
    async with client() as web:
        assert (await web.get("/", headers=fetched("cross-site", mode, dest))).status_code == status


async def test_private_pages_are_kept_nowhere_and_shown_in_no_frame():
    async with client() as web:
        private, style = await web.get("/"), await web.get("/static/page.css")
    assert (private.headers["cache-control"], style.headers["cache-control"]) == ("no-store", "no-cache")
    policy = private.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert private.headers["x-content-type-options"] == "nosniff"
    assert private.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("says_its_length", [True, False])
async def test_a_request_is_limited_whether_it_says_its_length_or_not(says_its_length):
    content = b"x" * 1_200_000 if says_its_length else pieces(12, 100_000)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    async with client() as web:
        answer = await web.post("/c/isle/say", content=content, headers=TOKEN | kind)
        assert answer.status_code == 413
        assert "1,000,000 bytes" in answer.text
        assert changes == []
        upload = await web.post("/c/isle/lore", files={"files": b"x" * 1_200_000}, headers=TOKEN)
        assert upload.status_code == 200, "an upload may be larger"
    async with client(people={"ann": "a" * 20}) as web:
        assert (await web.post("/sign-in", data={"token": "a" * 20_000})).status_code == 413, "strangers send little"


@pytest.mark.parametrize(("path", "most"), [("/c/isle/lore", 25_000_000), ("/import", 200_000_000)])
async def test_an_upload_of_each_kind_has_a_limit_of_its_own(path, most):
    async with client() as web:
        said = [await web.post(path, headers=TOKEN | {"content-length": f"{length}"}) for length in (most, most + 1)]
    assert [answer.status_code == 413 for answer in said] == [False, True]


async def test_a_request_that_comes_too_slowly_is_ended(monkeypatch):
    monkeypatch.setattr(guard, "_PAUSE_SECONDS", 0.05)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    async with client() as web:
        slow = await web.post("/c/isle/say", content=pieces(2, 1, 0.2), headers=TOKEN | kind)
        assert (slow.status_code, changes) == (408, [])
        monkeypatch.setattr(guard, "_FORM", (1_000_000, 0.1))
        trickle = await web.post("/c/isle/say", content=pieces(40, 1, 0.02), headers=TOKEN | kind)
        assert (trickle.status_code, changes) == (408, [])


async def test_who_signs_in_gets_a_cookie_that_no_script_and_no_other_site_can_use(monkeypatch):
    monkeypatch.setattr(guard, "_WRONG_TOKEN_SECONDS", 0.01)
    monkeypatch.setattr(guard, "_MOST_SESSIONS", 2)
    async with client(people={"ann": "a" * 20}) as web:
        assert (await web.get("/")).status_code == 401
        assert (await web.post("/c/isle/say", headers=TOKEN)).status_code == 401
        wrong = await web.post("/sign-in", data={"token": "a" * 19})
        assert (wrong.status_code, wrong.cookies) == (403, httpx.Cookies())
        evil = await web.post("/sign-in", data={"token": "a" * 20}, headers={"origin": "https://evil.example"})
        assert evil.status_code == 403
        answer = await web.post("/sign-in", data={"token": "a" * 20, "next": "https://evil.example"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].casefold()
        assert re.search("httponly", cookie)
        assert re.search("samesite=strict", cookie)
        assert "secure" not in cookie, "the page has no TLS here"
        assert "a" * 20 not in cookie
        assert (await web.get("/")).headers["x-person"] == "ann"
        first = dict(web.cookies)
        web.cookies.clear()
        secure = await web.post("https://127.0.0.1/sign-in", data={"token": "a" * 20})
        assert "secure" in secure.headers["set-cookie"].casefold()
        await web.post("/sign-in", data={"token": "a" * 20})
        web.cookies.clear()
        web.cookies.update(first)
        assert (await web.get("/")).status_code == 401, "old sessions end"


def test_who_sends_half_a_request_or_reads_no_answer_takes_no_place_from_others(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "_MOST_SILENT", 20)
    monkeypatch.setattr(serve, "_HEAD_SECONDS", 0.5)
    monkeypatch.setattr(serve, "_READ_SECONDS", 0.5)
    whole = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def connected(sent):
        one = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        one.sendall(sent)
        return one

    def told(one):
        """Return what the server says until it hangs up."""
        with suppress(ConnectionError):
            return b"".join(iter(lambda: one.recv(1 << 16), b""))

    with page_server(tmp_path / "home") as server:
        unread = connected(whole * 2000)
        for _ in range(5):
            half = [connected(sent) for sent in (b"", b"GE", whole[:-2], whole[:-2] + b"X: ") * 10]
            assert httpx.get(f"{server.url}/").status_code == 200, "others are served meanwhile"
        assert not any(told(one) for one in half)
        assert told(connected(whole + whole[:-2])).count(b"HTTP/1.1 200") == 1, "of the second request there is half"
        deadline = time.monotonic() + 10
        while server.server.server_state.connections:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        unread.close()


class Connection:
    """One of uvicorn's that sends a large answer, of which `waiting` bytes are not read yet."""

    def __init__(self, waiting):
        self.flow, self.cycle, self.transport = SimpleNamespace(write_paused=True), None, self
        self.waiting, self.aborted = waiting, False

    def get_write_buffer_size(self):
        return self.waiting

    def is_closing(self):
        return False

    def abort(self):
        self.aborted = True


def test_who_reads_a_large_answer_slowly_gets_all_of_it(monkeypatch):
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(serve, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    slow, stuck, silent = Connection(65_536), Connection(65_536), {}
    for _ in range(20):  # 200 seconds, in which more is always waiting
        serve.end_silent([each for each in (slow, stuck) if not each.aborted], silent)
        slow.waiting -= 1000
    assert (slow.aborted, stuck.aborted) == (False, True)
    serve.end_silent([], silent)
    assert not silent


class User:
    def __init__(self, identity, is_authenticated):
        self.identity, self.is_authenticated = identity, is_authenticated


@pytest.mark.parametrize(
    ("user", "status"), [(None, 401), (User("", True), 401), (User("ann", False), 401), (User("ann", True), 200)]
)
async def test_the_log_in_of_the_other_server_names_the_person(user, status):
    app = PageGuard(Starlette(routes=[Route("/", look)]), "t", {}, root="/play", log_in=True)

    async def mounted(scope, receive, send):
        await app({**scope, "user": user} if user else scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(mounted), base_url="http://games.example") as web:
        answer = await web.get("/", headers={"x-person": "bob"})
    assert answer.status_code == status
    assert answer.headers.get("x-person", "") == ("ann" if status == 200 else "")


@pytest.mark.parametrize(
    "name",
    ["isle", "", ".", "..", "a/b", "../../etc/passwd", "a\\b", "~", "~2f;", "a\x00\r\nb", "ä b", "\udcff", "a.b?#%"],
)
def test_every_name_is_one_part_of_a_path_and_comes_back(name):
    label = label_of(name)
    assert re.fullmatch(r"[A-Za-z0-9%_~.-]+", label)
    assert label not in (".", "..")
    decoded = httpx.URL(f"http://h/c/{label}/").path.split("/")
    assert len(decoded) == 4
    assert name_of(decoded[2]) == name

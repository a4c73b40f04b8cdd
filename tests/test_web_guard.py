"""Who may send what to the page, and how much of it."""

import asyncio
import html
import re
import socket
import sys
import time
from argparse import Namespace
from contextlib import suppress
from types import SimpleNamespace

import httpx
import pytest
from page_sessions import sign_in_of
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from web_server import page_server

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.identity import tokens
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import HomeError
from questbook.graphs.terminal.cli import main
from questbook.graphs.web import guard, serve
from questbook.graphs.web.app import create_app
from questbook.graphs.web.app_state import label_of
from questbook.graphs.web.guard import HEADER, PageGuard, page_token
from questbook.graphs.web.limits import Limits
from questbook.graphs.web.sign_in import PERSON
from questbook.memory.errors import StoreError
from questbook.memory.timeline.namespaces import read_label
from questbook.notebooks import PatchError

TOKEN = {HEADER: page_token("t" * 20, "")}
changes = []


async def change(request):
    form = await request.form()
    changes.append(dict(form))
    return PlainTextResponse("changed")


async def look(request):
    scope = request.scope
    return Response("looked", headers={"x-person": scope.get(PERSON, ""), "x-csrf": scope.get(guard.CSRF, "")})


def client(**options):
    routes = [
        Route("/", look),
        Route("/static/page.css", look),
        Route("/c/isle/say", change, methods=["POST"]),
        Route("/c/isle/lore", change, methods=["POST"]),
    ]
    if people := options.pop("people", {}):
        options["sign_in"] = sign_in_of(people, limits=options.get("limits"))
    app = Starlette(routes=routes, middleware=[Middleware(PageGuard, secret="t" * 20, **options)])
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
        old = {"origin": "https://evil.example"}  # a browser that says no more
        assert (await web.get("/", headers=old)).status_code == 200


FORM = '--x\r\ncontent-disposition: form-data; name="text"\r\n\r\nhi\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("charset", "status"),
    [
        ("", 200), ("; charset=utf-8", 200), ('; Charset="UTF-8"', 200), ("; charset=utf8", 200),
        ("; charset=punycode", 400), ('; CHARSET="Punycode"', 400), ("; charset=idna", 400), ("; charset=utf-7", 400),
        ("; charset=none-such", 400), ("; charset=", 400),
    ],
)  # fmt: skip
async def test_a_form_is_read_in_utf_8_alone_also_that_of_strangers(charset, status):
    async with client(people={"ann": "a" * 20}) as web, client() as home:
        kind = {"content-type": f"multipart/form-data{charset}; boundary=x"}
        answer = await home.post("/c/isle/say", content=FORM, headers=TOKEN | kind)
        assert (answer.status_code, changes) == (status, [{"text": "hi"}] if status == 200 else [])
        stranger = await web.post("/sign-in", content=FORM, headers=kind)
    assert stranger.status_code == (403 if status == 200 else 400)
    assert status == 200 or stranger.text == "Forms are read in UTF-8 alone. Nothing was changed; send it so."


async def test_the_kind_of_a_request_is_short():
    async with client() as web:
        answers = [await web.get("/", headers={"content-type": f"text/x{';' * many}"}) for many in (900, 1000)]
    assert [answer.status_code for answer in answers] == [200, 400]


async def test_who_signs_in_with_what_is_no_form_is_counted_too():
    async with client(people={"ann": "a" * 20}, limits=Limits(sign_ins=2)) as web:
        kind = {"content-type": "multipart/form-data; charset=utf-8"}
        answers = [await web.post("/sign-in", content=b"x", headers=kind) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [400, 400, 429]


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "PUT", "DELETE"])
async def test_a_method_that_nothing_here_has_is_refused(tmp_path, method):
    app, web = page_of(tmp_path)
    async with web:
        page = await web.get("/")
        token = {HEADER: re.search(r'data-token="([^"]+)"', page.text)[1]}
        assert (await web.request(method, "/", headers=token)).status_code == 405
        assert (await web.request(method, "/")).status_code == 403
    await app.state.page.pool.close()


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
        assert answer.headers["connection"] == "close", "the rest of it is not read"
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


async def test_a_request_that_had_to_wait_for_a_place_is_not_too_slow(monkeypatch):
    monkeypatch.setattr(guard, "_FORM", (100, 0.05))

    async def receive():
        return {"type": "http.request", "body": b"x", "more_body": False}

    body = guard.LimitedBody({"path": "/c/isle/say", "headers": []}, receive)
    await asyncio.sleep(0.1)
    assert (await body.receive())["body"] == b"x"


async def test_who_has_sent_all_may_listen_for_longer_than_a_request_may_take(monkeypatch):
    monkeypatch.setattr(guard, "_PAUSE_SECONDS", 0.01)
    parts = [{"type": "http.request", "body": b"x" * 600_000, "more_body": n < 1} for n in range(3)]
    sent = []

    async def receive():
        if len(parts) == 1:
            await asyncio.sleep(0.03)
            return {"type": "http.disconnect"}
        return parts.pop(0)

    async def send(message):
        sent.append(message)

    async def streams(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass

    scope = {"type": "http", "method": "GET", "path": "/static/", "headers": [(b"host", b"localhost")]}
    with pytest.raises(HTTPException, match="1,000,000 bytes"):  # of both parts together
        await PageGuard(streams, "t")(scope, receive, send)
    parts = [part | {"body": b"x"} for part in parts] + [{"type": "http.request", "body": b"x"}] * 2
    await PageGuard(streams, "t")(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start"] * 2, "what has begun is not answered again"


async def test_who_signs_in_gets_a_cookie_that_no_script_and_no_other_site_can_use():
    async with client(people={"ann": "a" * 20}) as web:
        assert (await web.get("/")).status_code == 401
        assert (await web.get("/", headers={"host": "page.example"})).status_code == 401, "by any name, for others"
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


async def test_a_session_that_somebody_else_planted_in_the_browser_is_not_the_one_that_is_signed_in():
    planted = {"cookie": "questbook_session=planted-by-another"}
    async with client(people={"ann": TOKEN_A}) as web:
        answer = await web.post("/sign-in", data={"token": TOKEN_A}, headers=planted)
        assert answer.status_code == 303
        assert "planted" not in answer.headers["set-cookie"]
        assert (await web.get("/")).headers["x-person"] == "ann"
        web.cookies.clear()
        assert (await web.get("/", headers=planted)).status_code == 401


@pytest.mark.slow
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
    app = PageGuard(Starlette(routes=[Route("/", look)]), "t", root="/play", log_in=True)

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
    assert read_label(decoded[2]) == name


TOKEN_A, TOKEN_B = "a" * 16, "b" * 16
EXPECTED = "expected NAME:TOKEN with a token of its own, of 16 characters or more."


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("", {}), (" , ", {}), (f"ann:{TOKEN_A}", {"ann": TOKEN_A}),
        (f" ann : {TOKEN_A} ,bob:{TOKEN_B},", {"ann": TOKEN_A, "bob": TOKEN_B}),
        (f"ann:{TOKEN_A}:x", {"ann": f"{TOKEN_A}:x"}),
    ],
)  # fmt: skip
def test_names_and_tokens_are_read_as_they_are_written(text, people):
    assert serve.people_of(text) == people


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ann", "'ann'"), (f"ann:{TOKEN_A[1:]}", "'ann'"), (f"ann:{TOKEN_A[1:]} ", "'ann'"), (f":{TOKEN_A}", "''"),
        (f"ann:{TOKEN_A},bob:{TOKEN_A}", "'bob'"), (f"ann:{TOKEN_A}, bob", "'bob'"),
    ],
)  # fmt: skip
def test_an_entry_that_is_no_name_and_token_is_refused_with_what_is_expected_and_without_the_token(text, name):
    with pytest.raises(serve.ServerError) as refused:
        serve.people_of(text)
    assert str(refused.value) == f"QUESTBOOK_PEOPLE: got an entry for {name}; {EXPECTED}"


@pytest.fixture
def served(monkeypatch, capsys):
    """Do `questbook web` without serving anybody; return what it says, and the addresses that it opens."""
    opened = []

    class Server:
        async def serve(self, sockets):
            for each in sockets:
                each.close()

    async def serves(host="127.0.0.1", *, port=0, people="", developer=False, no_browser=True):
        monkeypatch.setenv(serve.VARIABLE, people)
        flags = Namespace(host=host, port=port, developer=developer, no_browser=no_browser)
        await serve.serve(Context(user="ann", model="offline"), flags)
        return capsys.readouterr().out

    served = serves.apps = []
    serves.opened = opened
    monkeypatch.setattr(serve, "server_of", lambda app, pool, proxies: served.append((app, pool, proxies)) or Server())
    monkeypatch.setattr(serve.webbrowser, "open", opened.append)
    return serves


async def test_the_page_says_where_it_is_and_opens_the_browser_unless_it_is_told_not_to(served):
    said = await served(developer=True)
    address = re.fullmatch(
        r"Questbook is at (http://127\.0\.0\.1:\d+/) Ctrl-C ends it; what was played is kept\.\n"
        r"Nobody signs in: it is for one person, on this computer alone\.\n",
        said,
    )
    assert address, said
    assert served.opened == []
    [(app, pool, _)] = served.apps
    assert (app.state.page.pool is pool, app.state.page.developer, app.state.page.crowd) == (True, True, False)
    said = await served(no_browser=False, people=f"ann:{TOKEN_A},bob:{TOKEN_B}")
    assert [address in said for address in served.opened] == [True]
    assert (served.apps[1][0].state.page.developer, served.apps[1][0].state.page.crowd) == (False, True)


def test_the_command_web_opens_the_browser_and_with_no_browser_it_opens_none(served, monkeypatch, capsys):
    monkeypatch.setattr("questbook.graphs.terminal.cli.signal.signal", lambda *_: None)
    assert main(["web", "--port", "0"]) == 0
    assert [f"Questbook is at {address} " in capsys.readouterr().out for address in served.opened] == [True]
    assert main(["web", "--port", "0", "--no-browser"]) == 0
    assert (len(served.apps), len(served.opened)) == (2, 1)


async def test_an_address_that_others_reach_needs_people_who_sign_in(served):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(
            serve.ServerError, match=f"At {re.escape(host)} others reach the page, so they must sign in"
        ):
            await served(host)
    assert "http://0.0.0.0:" in await served("0.0.0.0", people=f"ann:{TOKEN_A}")
    assert "http://localhost:" in await served("localhost")
    if socket.has_ipv6:
        with suppress(serve.ServerError):  # where there is no such address
            assert "http://[::1]:" in await served("::1")


async def test_tokens_of_an_issuer_let_others_reach_the_page_and_its_proxies_are_those_that_are_named(
    served, monkeypatch
):
    for name, value in {tokens.ISSUER: "https://a.example", tokens.AUDIENCE: "x", tokens.SECRET: "s" * 32}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(serve.PROXIES, "127.0.0.1, 10.0.0.0/8")
    said = await served("0.0.0.0")
    assert said.count("\n") == 1, "that nobody signs in is not said"
    [(app, _, proxies)] = served.apps
    assert (app.state.page.log_in, proxies) == (True, ["127.0.0.1", "10.0.0.0/8"])
    with pytest.raises(serve.ServerError, match=f"Take {serve.VARIABLE}, .*; not both"):
        await served(people=f"ann:{TOKEN_A}")
    monkeypatch.delenv(tokens.AUDIENCE)
    with pytest.raises(SettingsError, match="QUESTBOOK_OIDC_AUDIENCE is missing"):
        await served()
    monkeypatch.setitem(sys.modules, "questbook.graphs.identity.tokens", None)
    with pytest.raises(serve.ServerError, match=r"Tokens need .*: pip install 'questbook\[identity\]'\."):
        await served()


async def test_a_port_that_cannot_be_had_and_an_extra_that_is_missing_are_said_with_what_to_do(served, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = rf"Port {port} of 127\.0\.0\.1 cannot be used: .*in use.* Take another: --port 8001\."
        with pytest.raises(serve.ServerError, match=said):
            await served(port=port)
    with pytest.raises(serve.ServerError, match=r"Port 99999 of 127\.0\.0\.1 cannot be used: .*--port 8001"):
        await served(port=99_999)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(serve.ServerError, match=r"The page needs uvicorn: pip install 'questbook\[web\]'\."):
        await served()


class Quiet(Connection):
    """A connection on which no request has come yet."""

    def __init__(self, *, is_closing=False, cycle=None):
        super().__init__(0)
        self.flow, self.cycle, self.closed = SimpleNamespace(write_paused=False), cycle, False
        self.is_closing = lambda: is_closing

    def close(self):
        self.closed = True


def test_of_many_connections_without_a_request_the_oldest_are_closed_and_all_after_ten_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(serve, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(serve, "_MOST_SILENT", 2)
    busy, done = (
        Quiet(cycle=SimpleNamespace(response_complete=False)),
        Quiet(cycle=SimpleNamespace(response_complete=True)),
    )
    quiet, silent = [Quiet() for _ in range(3)], {}

    def look(*connections):
        serve.end_silent(connections, silent)
        return [each.closed for each in connections]

    for number in range(3):  # each comes a tenth of a second after the one before it
        now[0] = number / 10
        assert look(*quiet[: number + 1], busy) == [False] * (number + 2)
    now[0] = 1.15
    assert look(*quiet, busy) == [False] * 4, "for a second many may wait"
    now[0] = 1.25
    assert look(*quiet, busy) == [True, False, False, False]
    now[0] = 10.05
    assert look(quiet[1], quiet[2], busy) == [False] * 3
    now[0] = 10.15
    assert look(quiet[1], quiet[2], busy) == [True, False, False], "a request that is being answered may take its time"
    assert look(busy, done) == [False, False]
    now[0] = 20.2
    closing = Quiet(is_closing=True)
    assert look(busy, done) == [False, True], "after an answer, too, the next request must come"
    look(closing)
    now[0] = 31.0
    look(closing)
    assert (closing.closed, closing.aborted) == (False, True), "the second time is the last"


@pytest.mark.parametrize("status", [200, 404])
async def test_every_answer_has_the_headers_and_a_page_may_set_its_own(status):
    async def answers(request):
        return Response("x", status, headers={"cache-control": "max-age=5", "referrer-policy": "origin"})

    app = PageGuard(Starlette(routes=[Route("/", answers), Route("/c/isle/say", answers)]), "t")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as web:
        answer, say = await web.get("/"), await web.get("/c/isle/say")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("max-age=5", "origin")
    for name, value in {
        "x-content-type-options": "nosniff", "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin", "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }.items():  # fmt: skip
        assert answer.headers[name] == value
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data:",
        "font-src": "'self'", "connect-src": "'self'", "form-action": "'self'", "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }  # fmt: skip
    assert "hx-retarget" not in answer.headers
    refused = {"hx-retarget": "#problem", "hx-reswap": "innerHTML"}
    assert {name: say.headers.get(name) for name in refused} == (refused if status == 404 else dict.fromkeys(refused))


async def test_who_is_not_signed_in_is_asked_for_a_token_and_a_wrong_one_is_said_to_be_nobodys():
    async with client(people={"ann": TOKEN_A, "bob": TOKEN_B}) as web:
        asked = await web.get("/")
        assert asked.text.count('name="token" type="password"') == 1
        assert 'role="alert" hidden></p>' in asked.text
        assert (await web.get("/static/page.css")).status_code == 200, "the form has its style"
        wrong = await web.post("/sign-in", data={"token": f"{TOKEN_A}x"})
        assert 'role="alert">This is nobody&#39;s token.</p>' in wrong.text
        assert (await web.get("/sign-in")).status_code == 401
        await web.post("/sign-in", data={"token": TOKEN_B})
        assert (await web.get("/")).headers["x-person"] == "bob"
        assert (await web.post("/c/isle/say", data={"text": "x"})).status_code == 403, "a change needs the page's token"
        assert (await web.post("/c/isle/say", data={"text": "x"}, headers=TOKEN)).status_code == 403, "of its session"
        token = (await web.get("/")).headers["x-csrf"]
        assert (await web.post("/c/isle/say", data={"text": "x", "token": token})).text == "changed"
        assert changes == [{"text": "x", "token": token}]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"sec-fetch-site": "cross-site"}, "This was asked for by a page of another site. Nothing was changed."),
        ({HEADER: "x"}, "The page is older than the server. Load it again."),
        ({"host": "evil.example:80"}, "This server is not called 'evil.example'."),
    ],
)
async def test_a_refusal_says_why(headers, said):
    async with client() as web:
        assert (await web.post("/c/isle/say", headers=TOKEN | headers)).text == said
        if "sec-fetch-site" in headers:
            assert (await web.get("/", headers=headers)).text == "This was asked for by a page of another site."


async def test_below_another_server_the_names_are_those_of_that_server():
    async with client(root="/play") as web:
        assert (await web.get("/", headers={"host": "games.example"})).status_code == 200


def page_of(path, **options):
    """The page's app on a data directory, and somebody who asks it without a server."""
    (path / "campaigns").mkdir(parents=True, exist_ok=True)
    app = create_app(Context(user="ann", model="offline"), FileHome(path), **options)
    return app, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def test_the_secret_of_a_data_directory_is_private_and_stays_the_same(tmp_path):
    def made_of(path):
        page_of(path)
        return (path / "page-token").read_text()

    first = made_of(tmp_path)
    file = tmp_path / "page-token"
    assert len(first) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    assert made_of(tmp_path) == first, "pages that are open stay good"
    assert made_of(tmp_path / "other") != first
    file.write_text(first[:31])
    assert made_of(tmp_path) not in (first, first[:31]), "a process was killed before it wrote it"
    assert len(file.read_text()) == 32
    file.write_bytes(b"\xff" * 32)
    with pytest.raises(HomeError, match=r"Cannot use .*page-token: .*Remove it, or correct its permissions\."):
        page_of(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(HomeError, match="page-token"):
        page_of(tmp_path)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nowhere", 404, "There is nothing at this address."),
        ("/static/nothing.css", 404, "There is nothing at this address."),
        ("/static/", 404, "There is nothing at this address."),
        ("/c/isle/panel/x", 404, "There is no such panel."),
        ("/c/isle/panel/core", 200, "It begins with your first message."),
        ("/c/isle/behind", 404, "Start the server with --developer to see what the model sees."),
        ("/c/isle/go", 405, "Method Not Allowed"),
        ("/favicon.ico", 307, ""),
    ],
)
async def test_what_is_not_there_is_said_on_a_page_or_in_its_place(tmp_path, path, status, said):
    app, web = page_of(tmp_path)
    async with web:
        page, place = [await web.get(path, headers=headers) for headers in ({}, {"hx-request": "true"})]
        assert [page.status_code, place.status_code] == [status] * 2
        assert said in page.text
        if said.endswith("address."):
            assert ["To your campaigns" in answer.text for answer in (page, place)] == [True, False]
        if status == 307:
            assert page.headers["location"] == "/static/icon.svg"
    await app.state.page.pool.close()


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InputError("Say it in parts."), 409, "Say it in parts."),
        (StoreError("The disk is full."), 409, "The disk is full."),
        (PatchError("StateNotebook", [f"Problem {n}." for n in range(200)]), 409, "Problem 0. Problem 1."),
        (RuntimeError("sk-secret"), 500, "That failed; the server's log says why. What was played is kept."),
    ],
)
async def test_an_error_is_told_in_a_sentence_and_what_is_inside_goes_to_the_log_alone(
    tmp_path, monkeypatch, caplog, error, status, said
):
    async def fail(*_):
        raise error

    app, _ = page_of(tmp_path)
    monkeypatch.setattr("questbook.graphs.web.campaigns.list_campaigns", fail)
    web = httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://localhost")
    async with web:
        answer = await web.get("/")
    assert (answer.status_code, said in html.unescape(answer.text)) == (status, True)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert "sk-secret" not in answer.text
    assert ("sk-secret" in caplog.text) == (status == 500)
    assert ("more of the kind." in answer.text) == isinstance(error, PatchError), "of many problems the first are named"
    assert [words for words in ("Problem 199.", "was left as it is") if words in answer.text] == []


async def test_the_page_below_another_server_leads_to_addresses_below_it(tmp_path):
    app, _ = page_of(tmp_path, root="/play", log_in=True)
    mounted = Starlette(routes=[Mount("/play", app)])

    async def logged_in(scope, receive, send):
        await mounted({**scope, "user": User("ann", True)}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(logged_in), base_url="http://games.example") as web:
        listed = (await web.get("/play/")).text
        assert 'href="/play/static/page.css' in listed
        assert 'href="/play/u/ann/a/companion/"' in listed
        new = await web.get("/play/new?name=a/b")
        assert new.headers["location"] == "/play/u/ann/c/a~2f%3Bb/"
        page = await web.get(new.headers["location"])
        assert page.status_code == 200
        assert "a/b" in page.text
        assert 'data-place="/play/u/ann/c/' in page.text
        talk = await web.get("/play/u/ann/a/Ada/")
        assert 'data-panels="core memories summary tree"' in talk.text
        assert (await web.get("/play/favicon.ico")).headers["location"] == "/play/static/icon.svg"
    await app.state.page.pool.close()

"""The page's server against those who mean it ill, and against what goes wrong on a machine."""

import asyncio
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import httpx
import pytest
from test_campaign_file import archive
from web_server import MIRA, Visitor, address_of, page_server, serving

from questbook.graphs.local.game import open_game
from questbook.graphs.web.app import create_app

pytestmark = pytest.mark.slow
EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)>"\'><a href="javascript:alert(1)">'
VIEWS = [
    "", "story", "earlier?before=9", "panel/sheet", "panel/quest", "panel/memories", "panel/dice", "panel/summary",
    "panel/tree", "fidelity", "chronicle", "chronicle.md", "settings", "search?words=evil", "compare?one=main&other=",
    "field?page=quest&path=people", "field?page=character&path=name",
]  # fmt: skip
SECRETS = [
    "field?page=quest&path=secrets", "field?page=quest&path=secrets/x", "behind", "panel/behind", "panel/secrets",
    "memory?key=secrets", "search?words=secret",
]  # fmt: skip


@pytest.fixture
def server(tmp_path):
    with page_server(tmp_path / "home") as server:
        yield server


def raw(server, text, *parts, pause=0.0):
    """Send a request as it is; return the first line of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(text.encode())
        try:
            for part in parts:
                time.sleep(pause)
                connection.sendall(part)
        except OSError:
            pass  # the server has hung up
        return connection.recv(4096).decode().partition("\r\n")[0]


def test_a_request_in_pieces_is_limited_on_the_wire(server):
    with Visitor(server.url) as visitor:
        token = visitor.web.headers["x-questbook-token"]
    head = (
        f"POST /c/isle/say HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nx-questbook-token: {token}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    assert " 413 " in raw(server, head, *[chunk] * 40, b"0\r\n\r\n")
    assert " 303 " in raw(server, head, b"9\r\ntext=&t=1\r\n0\r\n\r\n")
    many = (
        "".join(f'--x\r\nContent-Disposition: form-data; name="f{n}"\r\n\r\nv\r\n' for n in range(5000)) + "--x--\r\n"
    )
    kind = {"content-type": "multipart/form-data; boundary=x"}
    with Visitor(server.url) as visitor:
        for path in ("/import", "/c/isle/lore", "/c/isle/say"):
            assert visitor.web.post(path, content=many, headers=kind).status_code == 400, path
        files = [("files", (f"{n}.md", b"x")) for n in range(50)]
        assert visitor.web.post("/c/isle/lore", files=files).status_code == 400
        assert visitor.get("story").status_code == 200


def test_the_head_of_a_request_is_limited(server):
    head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nx-more: "
    assert " 200 " in raw(server, f"{head}{'x' * 10_000}\r\n\r\n")
    assert " 400 " in raw(server, f"{head}{'x' * 200_000}\r\n\r\n")


def test_a_bomb_in_a_campaign_s_file_keeps_nobody_waiting(server, tmp_path):
    lists = (b'{"id":"x","json":[' + b"[]," * 160_000 + b"[]]}\n") * 41
    bombs = [
        archive(tmp_path / f"{name}.zip", parts={"values.jsonl": lines})
        for name, lines in [("many", lists), ("one", lists.replace(b"\n", b" ")), ("deep", b"[" * 900 + b"]" * 900)]
    ]
    longest, over = 0.0, threading.Event()

    def send(visitor):
        try:
            return [visitor.web.post("/import", files={"file": bomb.read_bytes()}) for bomb in bombs]
        finally:
            over.set()

    with Visitor(server.url) as visitor, Visitor(server.url) as other, ThreadPoolExecutor() as threads:
        other.say(MIRA)
        answers = threads.submit(send, visitor)
        while not over.is_set():
            began = time.monotonic()
            assert other.get("story").status_code == 200
            longest = max(longest, time.monotonic() - began)
        for answer in answers.result():
            assert (answer.status_code, "Nothing was changed" in answer.text) == (409, True), answer.text
        assert longest < 0.5


def test_a_thousand_streams_leave_the_page_as_quick_as_before(server):
    async def crowd():
        limits = httpx.Limits(max_connections=1100, max_keepalive_connections=0)
        opening = asyncio.Semaphore(50)  # who is too busy to send what they open is cut off
        async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=60) as web:
            answers, measured = [], asyncio.Event()

            async def listen():
                async with AsyncExitStack() as stack:
                    async with opening:
                        answer = await stack.enter_async_context(web.stream("GET", "/c/isle/events?after=0"))
                    answers.append(answer.status_code)
                    await measured.wait()

            listeners = [asyncio.create_task(listen()) for _ in range(1000)]
            while len(answers) < 1000:
                await asyncio.sleep(0.1)
            began = time.monotonic()
            page = await web.get("/c/isle/story")
            waited = time.monotonic() - began
            measured.set()
            await asyncio.gather(*listeners)
            return page.status_code, waited, answers

    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        status, waited, answers = asyncio.run(crowd())
        assert status == 200
        assert waited < 1
        # The visitor's own page may have one.
        assert 198 <= answers.count(200) <= 200
        assert answers.count(200) + answers.count(503) == 1000
        assert visitor.say("I look around.")


def test_what_anybody_writes_is_text_on_every_view(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        visitor.say(f"I tell Maren Holt: {EVIL}")
        visitor.post("rewrite", text=f"She laughs. {EVIL} What do you do?")
        visitor.post("line", name=EVIL[:50])
        visitor.post("wish", text=EVIL, turns="3")
        visitor.post("page", page="character", path="name", value=EVIL[:40])
        visitor.post("page", page="quest", path=f"people/{EVIL[:25]}/attitude", value=EVIL[:60])
        visitor.post("page", page="quest", path="location", value=EVIL)
        lore = visitor.web.post(
            "/c/isle/lore", files=[("files", (f"{EVIL}.md", f"# {EVIL}\n\n{EVIL} evil\n".encode()))]
        )
        refused = visitor.web.post("/c/isle/lore", files=[("files", (EVIL, b"x"))])
        visitor.web.get(f"/c/{EVIL[:20].replace('/', '')}/")
        keys = re.findall(r"memory\?key=([^\"&]+)", visitor.get("search?words=evil").text)
        answers = [visitor.get(view) for view in [*VIEWS, *(f"memory?key={key}" for key in keys)]]
        answers += [visitor.post("forget", words=EVIL[:30]), visitor.post("settings", model=EVIL), lore, refused]
        answers += [visitor.web.get("/"), visitor.web.get(f"/c/isle/{EVIL}"), visitor.post("go", where=EVIL)]
        assert any("&lt;script&gt;" in answer.text for answer in answers)
        for answer in answers:
            if answer.headers["content-type"].startswith("text/html"):
                assert not re.search(
                    r"<script(?! src=\"/static/)|<img|(?:href|src|action)=\"[^\"]*javascript:", answer.text
                ), answer.url
                assert "default-src 'none'" in answer.headers["content-security-policy"]
        visitor.post("say", text="I wait.", ticket="w")
        assert visitor.wait_for("problem"), "the model is not called so"


def test_no_character_turns_the_direction_of_reading_or_commands_a_terminal(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        moments = visitor.say("I say \u202eabc \x1b[31mred\x1b[0m \u2066x \x07")
        visitor.post("page", page="quest", path="location", value="the \u202equay")
        shown = [visitor.get(view).text for view in VIEWS] + [str(moments).encode().decode("unicode_escape")]
        assert any("abc red" in text for text in shown)
        for text in shown:
            assert not set(text) & set("\u202e\u2066\x1b\x07")


def test_no_answer_of_a_whole_game_has_a_secret_or_a_token(server):
    with Visitor(server.url) as visitor:
        moments = visitor.say(MIRA) + visitor.say("I talk to Maren Holt") + visitor.say("I sneak past Maren Holt")
        assert "behind" not in visitor.get("panel/summary").text

        async def secrets_of():
            async with open_game(server.context, server.home) as game:
                return (await game.saved_game()).quest.secrets

        secrets = asyncio.run(secrets_of())
        assert secrets, "the game has some"
        words = [word for secret in secrets.items() for word in map(str, secret) if len(word) > 8]
        assert words
        answers = [visitor.get(view).text for view in [*VIEWS, *SECRETS]]
        answers += [visitor.get(f"search?words={word[:60]}").text.replace(word[:60], "") for word in words]
        answers += [visitor.web.get("/").text, str(moments)]
        for word in words:
            assert not [answer for answer in answers if word in answer], word
        for path in SECRETS[:5]:
            assert visitor.get(path).status_code == 404, path
        assert visitor.post("page", page="quest", path="secrets/x", value="y").status_code == 404
        headers = [dict(visitor.get(view).headers) for view in VIEWS]
        assert {header.get("cache-control") for header in headers} == {"no-store"}


def test_no_path_of_a_browser_opens_a_file(server):
    with Visitor(server.url) as visitor:
        for path in (
            "/static/../../../pyproject.toml", "/static/..%2f..%2f..%2fpyproject.toml", "/static/%2e%2e/app.py",
            "/static//etc/passwd", "/c/..%2f..%2fetc%2fpasswd/chronicle.md", "/static/..\\app.py", "/static/\x00",
        ):  # fmt: skip
            line = raw(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n\r\n")
            assert re.search(" (404|400|405) | 200 ", line), path
            answer = visitor.web.get(path.replace("\x00", "%00"))
            assert "root:" not in answer.text
            assert "[project]" not in answer.text
        for link in ("//evil.example", "/\\evil.example", "https://evil.example"):
            answer = visitor.web.get("/new", params={"name": link}, follow_redirects=False)
            assert answer.headers["location"].startswith("/c/")
        visitor.say(MIRA)
        named = visitor.web.get("/c/a%22%0d%0aSet-Cookie:%20x=1/export")
        assert "set-cookie" not in named.headers
    assert {path.name for path in server.home.path.parent.iterdir()} == {"home"}


def test_a_search_takes_no_longer_for_strange_words(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        for words in (
            "a" * 9000, "(" * 9000, "the " * 2000, "\u0301" * 9000, "a.b" * 3000, '"*^:-' * 1500, "\x00", "%",
        ):  # fmt: skip
            began = time.monotonic()
            assert visitor.web.get("/c/isle/search", params={"words": words[:9000]}).status_code == 200
            assert time.monotonic() - began < 1.5, words[:10]
        deep = "/".join("a" * 5000)
        assert visitor.post("page", page="quest", path=deep, value="1").status_code == 404
        assert visitor.web.get("/c/isle/field", params={"page": "quest", "path": deep[:6000]}).status_code == 404


def test_an_error_says_nothing_of_the_inside(server, monkeypatch):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)

        async def fail(self):
            raise RuntimeError("sk-secret /home/somebody")

        monkeypatch.setattr("questbook.graphs.local.game.Game.history", fail)
        answer = visitor.post("undo")
        assert answer.status_code == 500
        assert "sk-secret" not in answer.text
        assert "/home/" not in answer.text


def test_ctrl_c_ends_it_in_two_seconds_in_the_middle_of_everything(tmp_path):
    program = serving(tmp_path / "home", "--port", "0")
    url = address_of(program)
    with Visitor(url) as visitor, Visitor(url, "/c/other/") as other:
        visitor.say(MIRA)
        streams = [httpx.Client(timeout=30) for _ in range(5)]
        opened = [
            web.send(web.build_request("GET", f"{url}/c/{name}/events?after=0"), stream=True)
            for web, name in zip(streams, ["isle", "isle", "other", "other", "isle"], strict=True)
        ]
        visitor.post("say", text="I look around.", ticket="1")
        other.post("say", text=MIRA, ticket="2")
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        program.wait(10)
        assert time.monotonic() - began < 2.5
        for answer in opened:
            answer.close()
    assert "Traceback" not in program.stdout.read()
    program = serving(tmp_path / "home", "--port", "0")
    with Visitor(address_of(program)) as again:
        assert again.web.headers["x-questbook-token"] == visitor.web.headers["x-questbook-token"], (
            "open pages stay good"
        )
        assert (tmp_path / "home" / "page-token").stat().st_mode & 0o777 == 0o600
        for _ in range(100):  # the reply that was cut off is finished
            if "I look around." in (story := again.get("story").text) and 'id="live"' not in story:
                break
            time.sleep(0.1)
        assert "I look around." in story
        assert 'id="live"' not in story
    program.kill()
    program.wait()
    program = serving(tmp_path / "home", "--port", "0")
    with Visitor(address_of(program)) as again:
        assert "I look around." in again.get("story").text, "a killed server holds no lock"
    program.send_signal(signal.SIGINT)
    program.wait(10)


def test_what_keeps_it_from_starting_is_said_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = serving(tmp_path / "home", "--port", port).communicate(timeout=30)[0]
    assert re.fullmatch(rf"questbook: Port {port} of 127.0.0.1 cannot be used: .*--port 8001.\n", said), said
    far = serving(tmp_path / "home", "--port", "99999").communicate(timeout=30)[0]
    assert "Port 99999" in far
    assert "Traceback" not in far
    open_to_all = serving(tmp_path / "home", "--host", "0.0.0.0").communicate(timeout=30)[0]
    assert "must sign in" in open_to_all
    (tmp_path / "file").write_text("")
    unwritable = serving(tmp_path / "file" / "home", "--port", "0").communicate(timeout=30)[0]
    assert re.search(r"questbook: Cannot use .* to keep games: .*QUESTBOOK_HOME", unwritable), unwritable
    assert "Traceback" not in unwritable


def test_tokens_are_in_no_log(tmp_path):
    people = "ann:aaaaaaaaaaaaaaaaaaaa, bob:bbbbbbbbbbbbbbbbbbbb"
    program = serving(tmp_path / "home", "--port", "0", "--host", "0.0.0.0", QUESTBOOK_PEOPLE=people)
    port = address_of(program).rpartition(":")[2]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True) as web:
        assert web.get("/").status_code == 401
        assert web.post("/sign-in", data={"token": "x" * 20}).status_code == 403
        assert "Your campaigns" in web.post("/sign-in", data={"token": "a" * 20}).text
        session, token = web.cookies["questbook_session"], re.search(r'data-token="([^"]+)"', web.get("/").text)[1]
        assert "Your campaigns" in web.get("/").text
        assert web.get(f"/?token={'a' * 20}").status_code == 200
    program.send_signal(signal.SIGINT)
    said = program.communicate(timeout=10)[0]
    for secret in ("a" * 20, "b" * 20, session, token):
        assert secret not in said


def test_every_route_that_changes_something_refuses_a_get_and_a_wrong_or_missing_token(server):
    app, changes, looks = create_app(server.context, server.home), set(), set()
    for route in app.routes:
        for inner in getattr(route, "routes", None) or [route]:
            methods = getattr(inner, "methods", None) or {"GET"}
            changes |= {inner.path} if "POST" in methods else set()
            looks |= {inner.path} if "GET" in methods else set()
    assert {"/say", "/undo", "/forget", "/core", "/page", "/rename", "/lore", "/import"} <= changes
    with httpx.Client(base_url=server.url) as web, Visitor(server.url) as visitor:
        name, token = "x-questbook-token", visitor.web.headers["x-questbook-token"]
        for path in changes:
            where = path if path == "/import" else f"/c/isle{path}"
            assert web.get(where).status_code in ((200,) if path in looks else (404, 405)), path
            tries = [({}, ""), ({name: "x"}, token), ({name: token[:-1]}, ""), ({}, "x")]
            for headers, said in tries if path == "/say" else [*tries, ({}, token)]:  # in the form: /say alone
                form = {"text": "x", "token": said}
                assert web.post(where, data=form, headers=headers, params={"token": token}).status_code == 403, path
        assert 'id="turn-1"' not in visitor.get("story").text
    asyncio.run(app.state.page.pool.close())

"""Which pages, host names and runs LangGraph's server lets in, and whose page it shows, without a server."""

import asyncio
import json
import os
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from postgres import migrated_database
from starlette.responses import PlainTextResponse

from questbook.graphs.errors import InputError
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import OWNER
from questbook.graphs.monitoring import turns
from questbook.graphs.monitoring.endpoints import Endpoints
from questbook.graphs.server import VARIABLE, app, check_runs, open_checkpointer, open_store, refuse_strangers
from questbook.graphs.settings import ONLY_USER, USER_VARIABLE

OURS = "http://127.0.0.1:2024"


@pytest.fixture
def ask(monkeypatch):
    """Ask with an origin, a host and the CORS settings; return the status and the text."""

    monkeypatch.setenv(USER_VARIABLE, "ann")

    async def server(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    async def ask(cors, origin="", host="127.0.0.1:2024", root_path="", auth=None):
        config = SimpleNamespace(CORS_CONFIG=cors, LANGGRAPH_AUTH=auth, LANGGRAPH_AUTH_TYPE="noop")
        monkeypatch.setitem(sys.modules, "langgraph_api.config", config)
        door = httpx.ASGITransport(refuse_strangers(server), root_path=root_path)
        async with httpx.AsyncClient(transport=door, base_url=OURS) as client:
            answer = await client.get("/", headers={"host": host} | ({"origin": origin} if origin else {}))
        return answer.status_code, answer.text

    return ask


@pytest.mark.parametrize(
    ("cors", "origin", "status"),
    [
        (None, "", 200),
        (None, OURS, 200),
        (None, "http://evil.example", 403),
        (None, "null", 403),
        ({}, "http://evil.example", 403),
        ({"allow_origins": ["http://a.example"]}, "http://a.example", 200),
        ({"allow_origins": ["http://a.example"]}, "http://b.example", 403),
        ({"allow_origins": ["*"]}, "http://b.example", 200),
        ({"allow_origin_regex": r"https://\w+\.a\.example"}, "https://x.a.example", 200),
        ({"allow_origin_regex": r"https://\w+\.a\.example"}, "https://x.a.example.evil.example", 403),
    ],
)
async def test_a_page_reaches_the_server_if_it_is_the_servers_own_or_the_settings_name_its_origin(
    ask, cors, origin, status
):
    answer = await ask(cors, origin)
    says = f"Pages of {origin} may not use this server. Add the origin to http.cors in langgraph.json."
    assert answer == (status, "in" if status == 200 else says)


@pytest.mark.parametrize(
    ("more", "host", "status"),
    [
        ("", "localhost:2024", 200),
        ("", "[::1]:2024", 200),
        ("", "games.example.org", 400),
        ("games.example.org, *.trycloudflare.com", "games.example.org", 200),
        ("games.example.org, *.trycloudflare.com", "a.trycloudflare.com", 200),
        ("games.example.org, *.trycloudflare.com", "other.example.org", 400),
        ("*", "other.example.org", 200),
    ],
)
async def test_a_host_name_leads_to_the_server_if_it_is_this_machines_or_is_trusted(
    ask, monkeypatch, more, host, status
):
    monkeypatch.setenv(VARIABLE, more)
    assert (await ask(None, host=host))[0] == status


async def test_a_page_of_another_origin_opens_no_socket_either(ask, monkeypatch):
    await ask(None)  # the settings
    sent, headers = [], [(b"host", b"127.0.0.1:2024"), (b"origin", b"http://evil.example")]

    async def send(message):
        sent.append(message)

    await refuse_strangers(None)({"type": "websocket", "path": "/", "headers": headers}, None, send)
    assert sent[0]["status"] == 403


@pytest.mark.parametrize(("auth", "path", "status"), [
    ({"path": "a"}, "/internal/truncate", 403), (None, "/internal/truncate", 200), ({"path": "a"}, "/threads", 200),
])  # fmt: skip
async def test_who_logged_in_reaches_nothing_of_the_development_servers_own(monkeypatch, auth, path, status):
    config = SimpleNamespace(CORS_CONFIG=None, LANGGRAPH_AUTH=auth, LANGGRAPH_AUTH_TYPE="noop")
    monkeypatch.setitem(sys.modules, "langgraph_api.config", config)
    door = httpx.ASGITransport(refuse_strangers(PlainTextResponse("done")))
    async with httpx.AsyncClient(transport=door, base_url="http://127.0.0.1:2024") as client:
        assert (await client.post(path)).status_code == status


async def test_what_the_server_asks_itself_is_not_asked_where_it_comes_from(ask):
    assert (await ask(None, "http://evil.example", "evil.example", "/noauth"))[0] == 200


@pytest.mark.parametrize(
    ("variables", "auth", "user"),
    [({}, None, ONLY_USER), ({VARIABLE: "games.example.org"}, None, None), ({}, {"path": "log_in.py:auth"}, None)],
)
async def test_who_names_no_user_is_the_terminals_where_nobody_else_can_come(
    ask, monkeypatch, caplog, variables, auth, user
):
    caplog.set_level("INFO")
    monkeypatch.delenv(USER_VARIABLE)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    await ask(None, auth=auth)
    assert os.environ.get(USER_VARIABLE) == user
    assert ("Nobody logs in: this server is for one person" in caplog.text) == bool(user)


@pytest.mark.parametrize("database", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["files", "postgres"])
@pytest.mark.parametrize(
    ("auth", "kind", "has_log_in"),
    [({}, "noop", False), ({"path": "log_in.py:auth"}, "custom", True), ({}, "langsmith", True)],
)
async def test_with_a_log_in_of_either_kind_threads_have_an_owner_and_other_peoples_are_refused(
    monkeypatch, auth, kind, has_log_in, database
):
    if database:
        monkeypatch.setenv("QUESTBOOK_DATABASE", await asyncio.to_thread(migrated_database))
    config = SimpleNamespace(LANGGRAPH_AUTH=auth, LANGGRAPH_AUTH_TYPE=kind)
    bob = SimpleNamespace(user=SimpleNamespace(identity="bob"))
    monkeypatch.setitem(sys.modules, "langgraph_api.config", config)
    monkeypatch.setitem(sys.modules, "langgraph_api.utils", SimpleNamespace(get_auth_ctx=lambda: bob))
    anns, bobs = ({"configurable": {"thread_id": name, "checkpoint_ns": ""}} for name in ("ann's", "bob's"))
    async with find_home().open_checkpointer() as terminal:
        await terminal.aput(anns, empty_checkpoint(), {"source": "input", "user": "ann", "campaign": "isle"}, {})
    async with open_checkpointer() as checkpointer:
        await checkpointer.aput(bobs, empty_checkpoint(), {"source": "input"}, {})
        assert (await checkpointer.aget_tuple(bobs)).metadata.get(OWNER) == ("bob" if has_log_in else None)
        with pytest.raises(InputError, match="another user") if has_log_in else nullcontext():
            await checkpointer.aget_tuple(anns)
        monkeypatch.setattr(sys.modules["langgraph_api.utils"], "get_auth_ctx", lambda: None)
        assert await checkpointer.aget_tuple(anns), "what the server does by itself it does with all threads"


async def echo(scope, receive, send):
    read, more = b"", scope["type"] == "http"
    while more:
        message = await receive()
        read, more = read + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": read})


ASSISTANT, GONE = "5f0d3b0e-5d0c-4c6e-9a3b-0c6d1f6f6e51", "5f0d3b0e5d0c4c6e9a3b0c6d1f6f6e52"
SCHEMAS = {"of companion": {"properties": {"model": {}, "seed": {}}}, "of desk": {}, "of lamps": None}


class NoSuchError(Exception):
    pass


class Api:
    """What the server says of its threads and assistants: one thread has a companion, the others nothing yet."""

    threads = assistants = property(lambda self: self)

    async def get(self, name):
        if name == GONE:
            raise NoSuchError
        return {"graph_id": "companion", "metadata": {"graph_id": "companion"} if name == "t" else {}}

    async def search(self, *, graph_id="desk", limit):
        return [{"assistant_id": f"of {graph_id}"}][:limit]

    async def get_schemas(self, assistant):
        return {"context_schema": SCHEMAS[assistant]}


OTHER = "This thread belongs to companion, and desk cannot run on it. Begin a new thread."
YET = "This thread belongs to no graph yet. Run companion on it, then set the schedule."
UNKNOWN = "There is no setting 'sed' of companion. Settings: model, seed."
RUN = {"assistant_id": "desk"}
TALK = {"assistant_id": "companion"}


@pytest.mark.parametrize(
    ("path", "body", "refused"),
    [
        ("/threads/t/runs", RUN, OTHER), ("/threads/t/runs/wait", RUN, OTHER), ("/threads/t/runs/stream/", RUN, OTHER),
        ("/threads/t/runs", TALK, ""), ("/threads/t/runs", {"assistant_id": ASSISTANT}, ""),
        ("/threads/t/runs", {"assistant_id": ASSISTANT.replace("-", "")}, ""),
        ("/runs", {"assistant_id": "lamps", "context": {"sed": 3}}, ""),
        ("/threads/new/runs", RUN, ""), ("/runs", RUN, ""), ("/threads/t/history", RUN, ""),
        ("/threads/t/runs/1/cancel", RUN, ""),
        ("/runs/wait", TALK | {"context": {"model": "x", "sed": 3}}, UNKNOWN),
        ("/runs/stream", {"assistant_id": ASSISTANT, "context": {"sed": 3}}, UNKNOWN),
        ("/threads/t/runs", TALK | {"context": {"seed": 3}}, ""), ("/runs", RUN | {"context": {"sed": 3}}, ""),
        ("/runs", TALK | {"config": {"configurable": {"thread_id": "t", "model_id": "x", "sed": 3}}}, UNKNOWN),
        ("/runs", TALK | {"config": {"configurable": {"thread_id": "t", "model_id": "x", "seed": 3}}}, ""),
        ("/runs", TALK | {"config": {"configurable": None}}, ""), ("/runs", TALK | {"config": "sed"}, ""),
        ("/runs", "no JSON", ""), pytest.param("/runs", "[" * 50_000, "", id="deep"),
        ("/runs", {"context": {"sed": 3}}, ""), ("/runs", ["desk"], ""),
        ("/threads/t/commands", {"id": 1, "method": "run.start", "params": RUN}, OTHER),
        ("/threads/t/commands", {"id": 1, "method": "run.start", "params": TALK}, ""),
        ("/threads/t/commands", RUN | {"params": {"channels": []}}, ""), ("/threads/t/commands", {"params": "x"}, ""),
        ("/threads/t/runs", RUN | {"params": TALK}, OTHER),
        ("/threads/t/runs/crons", RUN, OTHER), ("/threads/t/runs/crons", TALK, ""),
        ("/threads/new/runs/crons", TALK, YET), ("/runs/crons", TALK | {"context": {"sed": 3}}, UNKNOWN),
        ("/runs/batch", [TALK, TALK | {"context": {"sed": 3}}], UNKNOWN), ("/runs/batch", [TALK, RUN], ""),
        ("/runs", {"assistant_id": GONE, "context": {"sed": 3}}, ""), (f"/threads/{GONE}/runs", RUN, ""),
    ],
)  # fmt: skip
async def test_a_run_of_another_graph_or_with_an_unknown_setting_is_refused_and_others_come_in_whole(
    monkeypatch, path, body, refused
):
    monkeypatch.setitem(sys.modules, "langgraph_sdk.errors", SimpleNamespace(APIError=NoSuchError))
    sent = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(check_runs(echo, lambda *_: Api())), base_url=OURS
    ) as client:
        answer = await client.post(path, content=sent)
        assert (await client.put(path, content=sent)).content == sent
    mounted = httpx.ASGITransport(check_runs(echo, lambda *_: Api()), root_path="/games")
    async with httpx.AsyncClient(transport=mounted, base_url=OURS) as client:
        assert (await client.post(f"/games{path}", content=sent)).text == answer.text
    if refused:
        assert (answer.status_code, answer.json()) == (422 if refused == UNKNOWN else 409, {"detail": refused})
    else:
        assert (answer.status_code, answer.content) == (200, sent)


@pytest.mark.parametrize(
    ("thread", "body", "refused"),
    [
        ("t", {"metadata": {"graph_id": "desk"}}, OTHER), ("t", {"metadata": {"graph_id": "companion"}}, ""),
        ("t", {"metadata": {"name": "desk"}}, ""), ("t", {"metadata": None}, ""), ("t", {"ttl": 3}, ""), ("t", [], ""),
        ("new", {"metadata": {"graph_id": "desk"}}, ""),
    ],
)  # fmt: skip
async def test_a_thread_cannot_be_given_to_another_graph_by_its_metadata(monkeypatch, thread, body, refused):
    monkeypatch.setitem(sys.modules, "langgraph_sdk.errors", SimpleNamespace(APIError=NoSuchError))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(check_runs(echo, lambda *_: Api())), base_url=OURS
    ) as client:
        answer = await client.patch(f"/threads/{thread}", json=body)
        other = await client.patch(f"/threads/{thread}/runs", json=body)
    assert (answer.status_code, answer.json()) == ((409, {"detail": refused}) if refused else (200, body))
    assert (other.status_code, other.json()) == (200, body)


async def test_a_socket_that_takes_commands_is_not_opened_and_others_are():
    sent = []

    async def send(message):
        sent.append(message)

    socket = {"type": "websocket", "headers": [], "extensions": {"websocket.http.response": {}}}
    await check_runs(echo)(socket | {"path": "/threads/t/stream/events"}, None, send)
    assert [message["type"] for message in sent] == ["websocket.http.response.start", "websocket.http.response.body"]
    assert sent[0]["status"] == 403
    assert sent[1]["body"] == b"No socket is opened here. Begin runs by POST /threads/t/runs or commands."
    sent.clear()
    await check_runs(echo)(socket | {"path": "/mine"}, None, send)
    assert sent[0]["type"] == "http.response.start", "it reached what answers otherwise"


async def test_another_server_is_asked_as_who_sends_the_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "langgraph_sdk.errors", SimpleNamespace(APIError=NoSuchError))
    asked = []

    def client_of(scope, server):
        asked.append((dict(scope["headers"])[b"authorization"], server))
        return Api()

    door = httpx.ASGITransport(check_runs(echo, client_of))
    async with httpx.AsyncClient(transport=door, base_url=OURS) as client:
        answer = await client.post("/threads/t/runs", json=RUN, headers={"authorization": "Bearer a"})
        assert (await client.get("/threads/t")).status_code == 200
    assert (answer.status_code, answer.json()) == (409, {"detail": OTHER})
    assert asked == [(b"Bearer a", echo)]


class Server:
    """A server with a log-in, and what it was asked for."""

    def __init__(self):
        self.asked, self.most = [], 0

    async def __call__(self, scope, receive, send):
        headers, body, more = dict(scope["headers"]), b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body")
        path = scope["path"].removeprefix(scope["root_path"])
        self.asked.append((scope["method"], path, len(body)))
        status, said = 401, {"detail": "Who are you?"}
        if headers.get(b"x-token") in (b"ann", b"bob"):
            status, said = (
                (200, {"metadata": {"graph_id": "companion"}}) if headers[b"x-token"] == b"ann" else (404, {})
            )
        await PlainTextResponse(json.dumps(said), status, {"content-type": "application/json"})(scope, receive, send)


@pytest.mark.parametrize("root", ["", "/games"])
@pytest.mark.parametrize(("who", "status"), [("ann", 409), ("bob", 404), ("", 401)])
async def test_who_may_not_see_a_thread_does_not_learn_whose_it_is(root, who, status):
    server = Server()
    door = httpx.ASGITransport(check_runs(server), root_path=root)
    async with httpx.AsyncClient(transport=door, base_url=OURS) as client:
        answer = await client.post(
            f"{root}/threads/t/runs", content=json.dumps(RUN), headers={"x-token": who, "host": "evil"}
        )
    assert (answer.status_code, "companion" in answer.text) == (status, status == 409)
    assert server.asked[0] == ("GET", "/threads/t", 0)
    assert server.asked[1:] == ([] if status == 409 else [("POST", "/threads/t/runs", len(json.dumps(RUN)))])


async def test_a_large_run_goes_on_as_it_comes_and_is_kept_by_nobody_who_has_not_logged_in():
    server, waiting = Server(), []
    sent = iter(range(1, 31))

    async def receive():
        number = next(sent)
        waiting.append(number)
        return {"type": "http.request", "body": b"a" * 100_000, "more_body": number < 30}

    async def log_in(scope, receive, send):
        waiting.clear()
        await server(scope, receive, send)

    answers = []

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": "/threads/t/runs", "root_path": "", "headers": []}
    await check_runs(log_in)(scope, receive, send)
    assert answers[0]["status"] == 401
    assert server.asked == [("POST", "/threads/t/runs", 3_000_000)], "all of it came, and nothing was asked before"
    assert waiting == [*range(12, 31)], "after a megabyte the server itself reads"


@pytest.fixture
def play(monkeypatch):
    """Ask for the page below /play, with a log-in or without; returns the answer and with what pages were made."""
    made, state = [], app.state
    for name, value in (("page", None), ("fault", None)):
        monkeypatch.setitem(state._state, name, value)
    monkeypatch.setattr(app, "middleware_stack", None)
    monkeypatch.setenv(VARIABLE, "games.example.org")
    monkeypatch.delenv(USER_VARIABLE)

    async def close():
        made.append("closed")

    def create_app(settings, **named):
        made.append((settings.user, named))
        if state.fault is not None:
            raise state.fault
        echo.state = SimpleNamespace(page=SimpleNamespace(pool=SimpleNamespace(close=close)))
        return echo

    monkeypatch.setitem(sys.modules, "questbook.graphs.web.app", SimpleNamespace(create_app=create_app))

    monkeypatch.setattr(turns, "watch_turns", lambda: made.append("counted"))  # else in all tests of this process

    async def ask(*, kind="noop", **more):
        config = SimpleNamespace(CORS_CONFIG=None, LANGGRAPH_AUTH={}, LANGGRAPH_AUTH_TYPE=kind)
        monkeypatch.setitem(sys.modules, "langgraph_api.config", config)

        async def door(scope, receive, send):
            await app(scope | more, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url=OURS) as client:
            answer = await client.get("/play/")
        return answer.status_code, answer.text, made

    return ask


async def test_the_page_on_the_server_is_its_user_s_or_who_logged_in_and_nobody_s_else(play, monkeypatch):
    status, said, made = await play()
    assert (status, made) == (403, [])
    assert said.startswith(f"Nobody says who plays: set {USER_VARIABLE}, or give the server a log-in")
    status, said, made = await play(kind="custom")
    assert (status, made) == (403, [])
    assert said.startswith('This server has a log-in: add "enable_custom_route_auth": true to http in langgraph.json')
    assert await play(kind="custom", user="ann") == (200, "", [(ONLY_USER, {"root": "/play", "log_in": True})])
    app.state.page = None
    monkeypatch.setenv(USER_VARIABLE, "eve")
    async with app.router.lifespan_context(app):
        for _ in range(2):
            _, _, made = await play()
        assert made[1:] == ["counted", ("eve", {"root": "/play", "log_in": False})], "it is made once"
    assert made[-1] == "closed"
    assert [each.cls for each in app.user_middleware] == [Endpoints, refuse_strangers, check_runs]


async def test_a_page_that_cannot_be_made_says_what_to_install_and_a_server_that_showed_none_ends_well(play):
    app.state.fault = ImportError(name="jinja2")
    async with app.router.lifespan_context(app):
        status, said, _ = await play(kind="custom", user="ann")
    assert (status, said) == (501, "The page needs jinja2: pip install 'questbook[web]'.")


@pytest.mark.parametrize("config", [None, {}, {"index": {"embed": "x"}, "ttl": {"default_ttl": 5}}])
def test_the_store_is_opened_as_the_server_s_settings_say(monkeypatch, config):
    monkeypatch.setitem(sys.modules, "langgraph_api.config", SimpleNamespace(STORE_CONFIG=config))
    monkeypatch.setattr(FileHome, "open_store", lambda _, **named: named)
    assert open_store() == {"index": None, "ttl": None} | (config or {})

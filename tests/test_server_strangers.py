"""Which pages and host names LangGraph's server lets in, for each setting of `http.cors`, without a server."""

import os
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from questbook.graphs.errors import InputError
from questbook.graphs.local import databases
from questbook.graphs.local.saved_game import OWNER
from questbook.graphs.server import VARIABLE, open_checkpointer, refuse_strangers
from questbook.graphs.settings import ONLY_USER, USER_VARIABLE

OURS = "http://127.0.0.1:2024"


@pytest.fixture
def ask(monkeypatch):
    """Ask with an origin, a host and the CORS settings; return the status and the text."""

    monkeypatch.setenv(USER_VARIABLE, "ann")

    async def server(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    async def ask(cors, origin="", host="127.0.0.1:2024", root_path=""):
        monkeypatch.setitem(sys.modules, "langgraph_api.config", SimpleNamespace(CORS_CONFIG=cors))
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


async def test_what_the_server_asks_itself_is_not_asked_where_it_comes_from(ask):
    assert (await ask(None, "http://evil.example", "evil.example", "/noauth"))[0] == 200


@pytest.mark.parametrize(
    ("variables", "user"), [({}, ONLY_USER), ({VARIABLE: "games.example.org"}, None), ({"LANGGRAPH_AUTH": "{}"}, None)]
)
async def test_who_names_no_user_is_the_terminals_where_nobody_else_can_come(ask, monkeypatch, variables, user):
    monkeypatch.delenv(USER_VARIABLE)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    await ask(None)
    assert os.environ.get(USER_VARIABLE) == user


@pytest.mark.parametrize(
    ("auth", "kind", "has_log_in"),
    [({}, "noop", False), ({"path": "log_in.py:auth"}, "custom", True), ({}, "langsmith", True)],
)
async def test_with_a_log_in_of_either_kind_threads_have_an_owner_and_other_peoples_are_refused(
    monkeypatch, auth, kind, has_log_in
):
    config = SimpleNamespace(LANGGRAPH_AUTH=auth, LANGGRAPH_AUTH_TYPE=kind)
    bob = SimpleNamespace(user=SimpleNamespace(identity="bob"))
    monkeypatch.setitem(sys.modules, "langgraph_api.config", config)
    monkeypatch.setitem(sys.modules, "langgraph_api.utils", SimpleNamespace(get_auth_ctx=lambda: bob))
    anns, bobs = ({"configurable": {"thread_id": name, "checkpoint_ns": ""}} for name in ("ann's", "bob's"))
    async with databases.open_checkpointer() as terminal:
        await terminal.aput(anns, empty_checkpoint(), {"source": "input", "user": "ann", "campaign": "isle"}, {})
    async with open_checkpointer() as checkpointer:
        await checkpointer.aput(bobs, empty_checkpoint(), {"source": "input"}, {})
        assert (await checkpointer.aget_tuple(bobs)).metadata.get(OWNER) == ("bob" if has_log_in else None)
        with pytest.raises(InputError, match="another user") if has_log_in else nullcontext():
            await checkpointer.aget_tuple(anns)

"""Who may use the development server: programs on this computer and pages of known origins, and nobody else."""

import json
import re

import httpx
import pytest
from dev_server import CONTEXT, ROOT, say
from langgraph_sdk.errors import ConflictError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

STUDIO = "https://smith.langchain.com"
EVIL = "https://evil.example"
HELLO = {"messages": [{"role": "user", "content": "Hello."}]}


@pytest.mark.slow
async def test_a_page_of_another_origin_and_another_host_name_reach_nothing(studio):
    client = studio.start()
    thread = await client.threads.create(graph_id="dungeon_master")
    await say(client, thread, "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.")
    state = f"/threads/{thread['thread_id']}/state"
    simple = {"content-type": "text/plain"}  # a request that a browser sends without asking first
    with httpx.Client(base_url=studio.url) as web:
        for origin in (EVIL, "null", "http://localhost.evil.example", "https://smith.langchain.com.evil.example"):
            for method, path, body in (
                ("GET", state, None),
                ("POST", "/threads", "{}"),
                ("POST", "/store/items/search", '{"namespace_prefix": []}'),
                ("DELETE", f"/threads/{thread['thread_id']}", None),
                ("GET", "/ok", None),
            ):
                answer = web.request(method, path, content=body, headers={"origin": origin, **simple})
                assert (answer.status_code, "Mira" in answer.text) == (403, False), (origin, method, path)
                assert "access-control-allow-origin" not in answer.headers
            asked = {"origin": origin, "access-control-request-method": "DELETE"}
            assert web.options(state, headers=asked).status_code in (400, 403)
        for host in ("evil.example", "evil.example:2024", "127.0.0.1.evil.example", "localhost@evil.example", ""):
            assert web.get(state, headers={"host": host}).status_code == 400, host
        for origin in (STUDIO, "http://localhost:3000", "http://127.0.0.1:5173", studio.url):
            answer = web.get(state, headers={"origin": origin})
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == origin
            asked = {"origin": origin, "access-control-request-method": "DELETE"}
            asked["access-control-request-headers"] = "x-a"
            assert web.options(state, headers=asked).status_code == 200
        for host in ("localhost:2024", "[::1]:2024", "127.0.0.1"):
            assert web.get(state, headers={"host": host}).status_code == 200
        assert web.get("/docs", headers={"sec-fetch-site": "none"}).status_code == 200
    assert len(await client.threads.search()) == 1, "nothing was made and nothing deleted"


@pytest.mark.slow
async def test_a_name_of_ones_own_can_be_trusted(studio, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_TRUSTED_HOSTS", "games.example.org, *.tunnel.example")
    studio.start()
    answers = {"games.example.org": 200, "a.tunnel.example": 200, "evil.example": 400, "localhost": 200}
    for host, status in answers.items():
        assert httpx.get(f"{studio.url}/ok", headers={"host": host}).status_code == status, host
    page = {"host": "games.example.org", "origin": "https://games.example.org"}
    assert httpx.get(f"{studio.url}/ok", headers=page).status_code == 200, "a page of the server itself"


def test_the_configuration_in_docs_is_that_of_the_checkout():
    ours = json.loads((ROOT / "langgraph.json").read_text())["http"]
    docs = (ROOT / "docs" / "studio.md").read_text()
    written = next(json.loads(block) for block in re.findall(r"```json\n(.*?)```", docs, re.S) if '"http"' in block)
    assert written["http"] == ours | {"app": "./server.py:app"}
    assert STUDIO in ours["cors"]["allow_origins"]
    assert "*" not in ours["cors"]["allow_origins"]


@pytest.mark.slow
async def test_another_graph_s_run_is_refused_and_the_game_is_still_shown(studio):
    client = studio.start()
    thread = (await client.threads.create(graph_id="dungeon_master"))["thread_id"]
    await say(
        client, {"thread_id": thread}, "I'm Mira, a halfling thief who grew up on the docks and wants her sister."
    )
    before = await client.threads.get_state(thread)
    [reflect] = await client.assistants.search(graph_id="reflect")
    for assistant in ("reflect", reflect["assistant_id"], "companion"):
        wrong = {"input": {"turn": 1, "timeline": [["aaa", 99]]}, "context": CONTEXT}
        with pytest.raises(ConflictError, match="belongs to dungeon_master"):
            await client.runs.create(thread, assistant, **wrong)
        with pytest.raises(httpx.HTTPStatusError, match="409"):
            await client.runs.wait(thread, assistant, **wrong)
    assert (await client.threads.get_state(thread))["values"] == before["values"]
    assert (await client.threads.get(thread))["metadata"]["graph_id"] == "dungeon_master"
    await client.threads.update_state(thread, {"quest": {"gold": 7}}, as_node="remember")
    await say(client, {"thread_id": thread}, "I look around.")
    assert (await client.threads.get_state(thread))["values"]["turn"] == 2
    for runs in (f"/threads/{thread}/runs/wait", "/runs/wait"):
        wrong = {"assistant_id": "dungeon_master", "input": HELLO, "context": {"campain": "studio"}}
        refused = httpx.post(f"{studio.url}{runs}", json=wrong)
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("There is no setting 'campain' of dungeon_master. Settings: model, ")
    plain = await client.threads.create()
    [master] = await client.assistants.search(graph_id="dungeon_master")
    await client.runs.wait(plain["thread_id"], master["assistant_id"], input=HELLO, context=CONTEXT)
    await client.runs.wait(plain["thread_id"], "dungeon_master", input=HELLO, context=CONTEXT)


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


OTHERWISE = {
    *("/assistants", "/assistants/count", "/assistants/search", "/assistants/{assistant_id}/latest"),
    *("/assistants/{assistant_id}/versions", "/runs/cancel", "/runs/crons/count", "/runs/crons/search"),
    *("/store/items/search", "/store/namespaces", "/threads", "/threads/count", "/threads/prune", "/threads/search"),
    *("/threads/{thread_id}/copy", "/threads/{thread_id}/history", "/threads/{thread_id}/runs/{run_id}/cancel"),
    *("/threads/{thread_id}/state", "/threads/{thread_id}/state/checkpoint", "/threads/{thread_id}/stream/events"),
    *("/ui/{graph_id}", "/internal/truncate", "/deploy"),
}
"""What is posted to LangGraph's server and begins no run."""
BELONGS = "belongs to dungeon_master, and companion cannot run on it"


@pytest.mark.slow
async def test_whichever_way_a_run_begins_it_is_refused_on_another_graph_s_thread(studio):
    client = studio.start()
    thread = (await client.threads.create(graph_id="dungeon_master"))["thread_id"]
    await say(client, {"thread_id": thread}, "I'm Mira, a halfling thief who wants her sister back.")
    [companion] = await client.assistants.search(graph_id="companion")
    run = {"assistant_id": "companion", "input": HELLO}
    start = {"id": 7, "method": "run.start", "params": run}
    message = {"messageId": "1", "role": "user", "parts": [{"kind": "text", "text": "Hello."}], "contextId": thread}
    agent = f"/a2a/{companion['assistant_id']}"

    async def is_still_the_game_s():
        assert (await client.threads.get(thread))["metadata"]["graph_id"] == "dungeon_master"
        await client.threads.update_state(thread, {"quest": {"gold": 7}}, as_node="remember")

    async with httpx.AsyncClient(base_url=studio.url, timeout=60) as web:

        async def post(path, body):
            answer = await web.post(path, json=body, headers={"accept": "application/json, text/event-stream"})
            await is_still_the_game_s()
            return answer.status_code, answer.text

        of_thread = {
            "runs": run, "runs/wait": run, "runs/stream": run, "runs/crons": run | {"schedule": "* * * * *"},
            "commands": start,
        }  # fmt: skip
        for path, body in of_thread.items():
            status, said = await post(f"/threads/{thread}/{path}", body)
            assert (status, BELONGS in said) == (409, True), path
        status, said = await post(agent, rpc("message/send", message=message))
        assert (status, "error" in json.loads(said), BELONGS in said) == (200, True, True)
        status, said = await post(agent, rpc("message/stream", message=message))
        assert (status, '"error":' in said) == (200, True), "the server itself leaves out the reason"
        for path, body in {"/runs/batch": [run], "/mcp": rpc("tools/call", name="companion", arguments=HELLO)}.items():
            status, said = await post(path, body)
            assert (status, "error" in said.lower()) == (200, False), "it has a thread of its own"
        own = {"id": 8, "method": "run.start", "params": {"assistant_id": "dungeon_master", "input": HELLO}}
        assert (await web.post(f"/threads/{thread}/commands", json=own)).json()["type"] == "success"
    with pytest.raises(InvalidStatus, match="403"):
        await connect(f"ws{studio.url[4:]}/threads/{thread}/stream/events")
    await client.runs.join(thread, (await client.runs.list(thread))[0]["run_id"])
    assert (await client.threads.get_state(thread))["values"]["turn"] == 2
    paths = httpx.get(f"{studio.url}/openapi.json").json()["paths"]
    assert {path for path, does in paths.items() if "post" in does} - OTHERWISE == {
        *(f"/threads/{{thread_id}}/{path}" for path in of_thread),
        *("/runs", "/runs/wait", "/runs/stream", "/runs/batch", "/runs/crons", "/a2a/{assistant_id}", "/mcp", "/mcp/"),
    }, "what the server has besides may begin runs, too: look at it"

"""A server with a log-in, and the page on it: what the server's API does with campaigns that were begun on the page.

Their threads have ids that anybody can compute, and the server knows no owner of them.
"""

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError
from test_web_server import played, start_with_log_in

from questbook.graphs.local.saved_game import thread_id_of

pytestmark = pytest.mark.slow  # one server's start
ADA = "I'm Ada, an elf wizard who wants to learn."


@pytest.fixture
def server(studio):
    start_with_log_in(studio)
    return studio


async def attempts(client, thread):
    """Do all that one may do with a thread over the API; yield each by name, and what comes of it."""
    runs, threads = client.runs, client.threads
    said = {"messages": [{"role": "user", "content": "I am in."}]}
    for name, attempt in {
        "state": lambda: threads.get_state(thread),
        "history": lambda: threads.get_history(thread, limit=50),
        "edit": lambda: threads.update_state(thread, {"summary": "Forged."}, as_node="condense"),
        "run": lambda: runs.wait(thread, "dungeon_master", input=said, context={"campaign": "isle"}, raise_error=False),
        "command": lambda: runs.wait(
            thread, "dungeon_master", command={"update": {"summary": "Forged."}}, raise_error=False
        ),
        "copy": lambda: threads.copy(thread),
        "prune": lambda: threads.prune([thread], strategy="delete"),
        "delete": lambda: threads.delete(thread),
    }.items():
        try:
            answer = await attempt()
            if name == "copy":
                answer = [answer, await threads.get_history(answer["thread_id"], limit=50)]
        except (APIStatusError, httpx.HTTPStatusError) as error:
            answer = error
        yield name, answer


async def test_a_campaign_of_the_page_is_its_user_s_over_the_api_too(server):
    ann, bob = (get_client(url=server.url, headers={"cookie": f"session={name}-secret"}) for name in ("ann", "bob"))
    with httpx.Client(
        base_url=server.url, follow_redirects=True, timeout=30, headers={"cookie": "session=bob-secret"}
    ) as page:
        assert "Ada" in played(page, page.get("/play/new?name=isle").url.path, ADA)
        thread = thread_id_of("bob", "isle")
        await ann.threads.create(thread_id=thread, graph_id="dungeon_master")
        for who, status in (("ann", 409), ("nobody", 401)):
            cookie = {"cookie": f"session={who}-secret"}
            wrong = httpx.post(
                f"{server.url}/threads/{thread}/runs", json={"assistant_id": "companion"}, headers=cookie
            )
            assert (wrong.status_code, "belongs to dungeon_master" in wrong.text) == (status, status == 409), wrong.text
        outcomes = {name: answer async for name, answer in attempts(ann, thread)}
        for name, answer in outcomes.items():
            assert "Ada" not in str(answer), name
        for name in ("state", "edit", "run", "command", "prune", "delete"):
            assert "is a campaign that another user began" in str(outcomes[name]), (name, outcomes[name])
        assert (outcomes["history"], outcomes["copy"][1]) == ([], [])
        story = played(page, "/play/u/bob/c/isle/", "I look around.")
        assert "Ada" in story
        assert "Forged" not in story
        await bob.threads.create(thread_id=thread, graph_id="dungeon_master", if_exists="do_nothing")
        assert "Ada" in str(await bob.threads.get_state(thread)), "it is his"


async def test_an_edit_over_the_api_puts_nothing_on_another_s_list_and_the_thread_lives_on(server):
    ann = get_client(url=server.url, headers={"cookie": "session=ann-secret"})
    forged = {"campaign": ["bob", "Your new quest"]}

    async def plant(thread):
        with pytest.raises(APIStatusError) as refused:
            await ann.threads.update_state(thread, forged, as_node="condense")
        command = await ann.runs.wait(
            thread, "dungeon_master", command={"update": forged}, context={"campaign": "isle"}, raise_error=False
        )
        return str(refused.value), command

    async def say(thread, words):
        said = {"messages": [{"role": "user", "content": words}]}
        return await ann.runs.wait(thread, "dungeon_master", input=said, context={"campaign": "isle"})

    with httpx.Client(
        base_url=server.url, follow_redirects=True, timeout=30, headers={"cookie": "session=bob-secret"}
    ) as bob:
        thread = (await ann.threads.create(graph_id="dungeon_master"))["thread_id"]
        for moment in ("before its first turn", "after it"):
            refusal, command = await plant(thread)
            assert "Whose a thread is" in refusal, moment
            assert command.get("campaign") in (None, ["ann", "isle"]), (moment, command)
            assert "Your new quest" not in bob.get("/play/").text
            assert (await say(thread, ADA))["campaign"] == ["ann", "isle"], moment
        assert bob.get("/play/u/ann/c/isle/").status_code == 404
        story = bob.get("/play/new?name=Your new quest")
        assert "Ada" not in story.text

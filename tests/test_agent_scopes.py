"""What an agent's threads share: pages and memories of each scope, under rewinds and forks."""

import asyncio
import random
import time
from types import SimpleNamespace

import pytest
from desk import Desk, TicketNotebook
from faulty_stores import Broken
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import Count, FaissStore, Notebook, build_agent, every_turn
from questbook.graphs.errors import ModelError
from questbook.graphs.turn import shared_pages
from questbook.memory.facts.validity import lasting_position
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks.errors import DeclarationError


class ProfileNotebook(Notebook):
    """What is known of the customer."""

    UPDATE = every_turn
    SCOPE = "user"
    LIMIT = 400

    home: str = ""
    likes: dict[str, str] = {}
    visits: Count = 0


class RulesNotebook(Notebook):
    """How the customer wants to be served."""

    UPDATE = every_turn
    SCOPE = "campaign"

    tone: str = ""


def learn(number):
    """An answer that notes something of which an oracle can tell what must be there, and what holds."""
    return say("", call("ProfileNotebook", home=f"h{number}", likes={f"w{number}": "yes"}, visits={"$add": 1}))


class Chat:
    """A thread of an agent, of a user, that can go back; `path` is what its checkpoint descends from."""

    def __init__(self, saver, store, user, thread, *pages, **description):
        self.desk = Desk(*(pages or (ProfileNotebook,)), saver=saver, store=store, **description)
        self.desk.config = {"configurable": {"thread_id": thread, "user": user}}
        self.user, self.path, self.ends = user, [], []
        self.back = None

    async def say(self, words, **answers):
        config = {"configurable": {**self.desk.config["configurable"], **(self.back or {})}}
        self.back = None
        reply = await self.desk.say(words, config=config, **answers)
        self.ends.append(self.desk.app.get_state(self.desk.config).config["configurable"])
        return reply

    async def learn(self, number):
        await self.say(f"It is number {number}", update=learn(number))
        self.path.append(number)

    def rewind(self, turns):
        """Go on from an older checkpoint, as an app does that lets a person edit a message."""
        del self.path[len(self.path) - turns :], self.ends[len(self.ends) - turns :]
        if self.ends:
            self.back = {"checkpoint_id": self.ends[-1]["checkpoint_id"]}
        else:
            first = [*self.desk.app.get_state_history(self.desk.config)][-1]
            self.back = {"checkpoint_id": first.config["configurable"]["checkpoint_id"]}

    @property
    def profile(self):
        return self.desk.values["profile"]


@pytest.fixture(params=[InMemoryStore, FaissStore], ids=lambda kind: kind.__name__)
def store(request, tmp_path):
    if request.param is InMemoryStore:
        yield InMemoryStore()
        return
    with FaissStore.open(tmp_path / "memory.db", index=None) as store:
        yield store


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [False, True])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
async def test_a_shared_page_is_what_the_oracle_says_under_random_rewinds(store, seed, snapshots, monkeypatch):
    if snapshots:
        monkeypatch.setattr(shared_pages, "OLD", 0.0)
        monkeypatch.setattr(shared_pages, "MOST", 1)
    chance, saver = random.Random(seed), InMemorySaver()
    names = [("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1")]
    chats = {name: Chat(saver, store, user, name) for user, name in names}
    heads = {name: [] for name in chats}
    for number in range(16 if seed else 10):
        name = chance.choice(list(chats))
        chat = chats[name]
        if chat.path and chance.random() < 0.4:
            chat.rewind(chance.randint(1, len(chat.path)))
        await chat.learn(number)
        heads[name] = list(chat.path)
        seen = [n for other, path in heads.items() if chats[other].user == chat.user for n in path]
        assert chat.profile == {
            "version": 1,
            "home": f"h{number}",
            "likes": {f"w{n}": "yes" for n in seen},
            "visits": len(seen),
        }, (number, name)
    for user in ("ann", "bob"):
        new = Chat(saver, store, user, f"{user}-new")
        await new.say("Hello.")
        seen = [n for other, path in heads.items() if chats[other].user == user for n in path]
        assert set(new.profile["likes"]) == {f"w{n}" for n in seen}
        assert new.profile["home"] == (f"h{max(seen)}" if seen else "")


@pytest.mark.parametrize(("changes", "age", "summed"), [(64, 3601, 0), (65, 3601, 1), (65, 3500, 0)])
async def test_more_than_64_changes_that_are_an_hour_old_are_summed_up(changes, age, summed):
    chat = Chat(InMemorySaver(), store := InMemoryStore(), "ann", "1")
    await chat.learn(0)
    [log] = [item for item in store.search(("ann",)) if "patch" in item.value]
    for number in range(changes):
        store.put(log.namespace, f"{number}", log.value | {"at": lasting_position(time.time() - age)})
    await chat.say("Hello.")
    assert len(store.search(log.namespace[:-1], filter={"page": {"$ne": None}})) == summed


@pytest.mark.slow
async def test_a_fresh_chat_has_no_old_ticket_but_knows_the_customer(store):
    saver, pages = InMemorySaver(), (TicketNotebook, ProfileNotebook)
    first = Chat(saver, store, "ann", "1", *pages)
    noted = say(
        "", call("TicketNotebook", problem="printer on fire"), call("ProfileNotebook", likes={"printers": "lasers"})
    )
    await first.say("My printer is on fire, and I like lasers.", update=noted)
    fresh = Chat(saver, store, "ann", "2", *pages)
    await fresh.say("Do you know my printer?")
    prompt = fresh.desk.prompts("reply")[-1]
    assert fresh.desk.values["ticket"]["problem"] == ""
    assert "lasers" in prompt.split("<profile>")[1]
    assert "problem" not in prompt
    assert "My printer is on fire" in prompt.split("<memories>\n")[1], "what was said is recalled in every thread"
    bobs = Chat(saver, store, "bob", "3", *pages)
    await bobs.say("Do you know my printer?")
    assert "printer on fire" not in bobs.desk.prompts("reply")[-1].lower()
    assert "lasers" not in bobs.desk.prompts("reply")[-1]


async def test_a_persons_edit_in_one_thread_reaches_the_others_with_its_next_turn(store):
    saver = InMemorySaver()
    a, b = Chat(saver, store, "ann", "a"), Chat(saver, store, "ann", "b")
    await a.learn(1)
    a.desk.app.update_state(a.desk.config, {"profile": {"home": "Oslo"}}, as_node="remember")
    await b.learn(2)
    await a.say("Hello.")
    assert a.profile["home"] == "Oslo"
    await b.say("Hello.")
    assert (b.profile["home"], set(b.profile["likes"])) == ("Oslo", {"w1", "w2"})


async def test_the_page_may_pass_its_limit_by_what_two_threads_noted(store):
    saver = InMemorySaver()
    a, b = Chat(saver, store, "ann", "a"), Chat(saver, store, "ann", "b")
    await b.say("Hello.")
    notes = {name: say("", call("ProfileNotebook", likes={name: "y" * 250})) for name in ("one", "two")}
    await asyncio.gather(a.say("x", update=notes["one"]), b.say("x", update=notes["two"]))
    await a.say("Hello.")
    assert set(a.profile["likes"]) == {"one", "two"}


@pytest.mark.slow
async def test_scope_thread_and_scope_campaign_of_what_was_said(store):
    for scope, knows in (("thread", False), ("campaign", True), ("user", True)):
        saver, name = InMemorySaver(), f"desk-{scope}"
        pages = (TicketNotebook, RulesNotebook)
        first = Chat(saver, store, "ann", f"{scope}1", *pages, name=name, scope=scope)
        await first.say("My cat is called Biscuit.", update=say("", call("RulesNotebook", tone="formal")))
        later = Chat(saver, store, "ann", f"{scope}2", *pages, name=name, scope=scope)
        await later.say("What is my cat called?")
        assert ("Biscuit" in later.desk.prompts("reply")[-1]) is knows, scope
        assert later.desk.values["turn"] == (2 if scope == "campaign" else 1), scope
        assert later.desk.values["rules"]["tone"] == "formal", scope
        assert later.desk.values["ticket"]["problem"] == "", scope


async def test_a_thread_of_before_scopes_is_still_known_to_new_threads(store):
    """Before, an agent's memories were a campaign's: its head says what its threads know."""
    saver = InMemorySaver()
    old = Chat(saver, store, "ann", "old", TicketNotebook, scope="campaign")
    await old.say("My cat is called Biscuit.")
    new = Chat(saver, store, "ann", "new", TicketNotebook)
    await new.say("What is my cat called?")
    assert "Biscuit" in new.desk.prompts("reply")[-1]
    assert new.desk.values["turn"] == 1
    goes_on = Chat(saver, store, "ann", "old", TicketNotebook)
    await goes_on.say("And my dog is Crumb.")
    assert goes_on.desk.values["turn"] == 2
    await new.say("What is my dog called?")
    assert "Crumb" in new.desk.prompts("reply")[-1]


async def test_a_store_that_fails_costs_no_turn_and_is_told():
    store, saver = Broken(), InMemorySaver()
    a, b = Chat(saver, store, "ann", "a"), Chat(saver, store, "ann", "b")
    await a.learn(1)
    store.error = ConnectionError("the line went dead")
    await a.learn(2)
    assert any("What other threads noted on profile could not be read" in text for text in a.desk.notices)
    assert a.profile["home"] == "h2"
    store.error = None
    await a.say("Hello.")
    await b.say("Hello.")
    assert (b.profile["home"], b.profile["visits"]) == ("h2", 2)


async def test_without_a_checkpointer_each_run_is_a_thread_that_knows_the_user(store):
    app = build_agent([ProfileNotebook], model="offline").compile(store=store)
    for words in ("My cat is called Biscuit.", "What is my cat called?"):
        values = await app.ainvoke({"messages": [HumanMessage(words)]}, context={"user": "ann"})
    assert values["turn"] == 1
    exchanges = campaign_namespace("ann", "agent:agent", "exchanges")
    assert len({item.value["thread"] for item in await store.asearch(exchanges)}) == 2


def test_a_scope_that_there_is_not_is_refused():
    with pytest.raises(DeclarationError, match="scope: got 'global'; expected 'thread', 'user' or 'campaign'"):
        build_agent([], scope="global")

    class Wrong(Notebook):
        """Wrong."""

        SCOPE = "world"

    with pytest.raises(DeclarationError, match=r"Wrong\.SCOPE: got 'world'"):
        build_agent([Wrong])
    with pytest.raises(DeclarationError, match="SCOPE 'user'"):
        build_agent([ProfileNotebook], shared=[ProfileNotebook])


async def test_shared_edits_are_added_up_when_an_hour_has_passed(monkeypatch):
    now, store = [1_000_000_000.0], InMemoryStore()
    monkeypatch.setattr(shared_pages, "time", SimpleNamespace(time=lambda: now[0]))
    monkeypatch.setattr(shared_pages, "MOST", 2)
    chat = Chat(InMemorySaver(), store, "ann", "1")

    def added_up():
        return [item for item in store.search(("ann",), limit=1000) if item.key == "snapshot"]

    for number in range(4):
        await chat.say(f"m{number}", update=learn(number))
    for later, settled in ((3_590, False), (20, True)):
        now[0] += later
        await chat.say("And now?")
        assert bool(added_up()) is settled


async def test_a_fork_whose_turn_failed_leaves_no_sum_without_what_it_would_have_taken_back(monkeypatch):
    now, store, saver = [1_000_000_000.0], InMemoryStore(), InMemorySaver()
    monkeypatch.setattr(shared_pages, "time", SimpleNamespace(time=lambda: now[0]))
    monkeypatch.setattr(shared_pages, "MOST", 1)
    forked, other = (Chat(saver, store, "ann", thread) for thread in "12")
    for chat, number in ((forked, 1), (forked, 2), (other, 3)):
        await chat.learn(number)
    now[0] += 7_200
    forked.rewind(1)
    with pytest.raises(ModelError):
        await forked.say("Otherwise", reply=RuntimeError("overloaded"))
    await other.say("And now?")
    assert list(other.profile["likes"]) == ["w1", "w2", "w3"]

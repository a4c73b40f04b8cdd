"""Pages of scope "user" by themselves: what threads see of each other's patches, whatever is taken back."""

import itertools
import random
from typing import ClassVar

import pytest
from faulty_stores import Broken
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.memory import InMemoryStore

from questbook import Count, Notebook
from questbook.graphs.settings import Settings
from questbook.graphs.turn import shared_pages
from questbook.graphs.turn.pages import remember
from questbook.graphs.turn.shared_pages import publish_pages, read_pages
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import move_head, open_turn, remember_turns
from questbook.memory.facts.validity import lasting_position

PLACE = ("ann", "default", "pages", "profile")
LOG = (*PLACE, "patches")
_ids = itertools.count()


class Profile(Notebook):
    """What is known of the person."""

    SCOPE = "user"
    LIMIT = 200
    home: str = ""
    likes: dict[str, str] = {}
    visits: Count = 0


class Sharing(TurnState):
    PAGES: ClassVar = {"profile": Profile}
    profile: Profile = Profile()
    agreed: dict = {}


class Thread:
    """A thread of a user that notes things and goes back; `path` is what its state descends from."""

    def __init__(self, store, name, user="ann"):
        self.name, self.user, self.path = name, user, []
        info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id=name)
        self.run = Runtime(context=Settings.of({"user": user}), store=store, execution_info=info)
        self.past = [Sharing()]

    @property
    def state(self):
        return self.past[-1]

    def likes(self):
        return sorted(self.state.profile.likes), self.state.profile.visits

    async def begin(self):
        """Open a turn; return its state, with the page brought up to date."""
        asked = HumanMessage(f"I say {len(self.past)}.", id=f"h{next(_ids)}")
        state = self.state.model_copy(update={"messages": [asked, AIMessage("I see.")], "notices": []})
        opened = open_turn(state, self.run)
        state = state.model_copy(update={name: opened[name] for name in ("turn", "opened_by", "timeline")})
        update = await read_pages(state, self.run)
        page = state.profile.apply(update.pop("profile", {}), bounded=False).page
        return state.model_copy(update=update | {"profile": page})

    async def end(self, state):
        self.past.append(state.model_copy(update=await remember(state, self.run)))

    async def note(self, number):
        state = await self.begin()
        patch = {"home": f"h{number}", "likes": {f"w{number}": "yes"}, "visits": {"$add": 1}}
        await self.end(state.model_copy(update={"profile": state.profile.apply(patch, bounded=False).page}))
        self.path.append(number)

    async def look(self):
        await self.end(await self.begin())
        self.path.append(None)

    def go_back(self, turns):
        del self.past[len(self.past) - turns :], self.path[len(self.path) - turns :]


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves; each look at it takes a moment."""
    now = [1_000_000.0]

    def time():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(shared_pages.time, "time", time)
    return now


@pytest.mark.parametrize("seed", range(4))
async def test_a_page_is_the_sum_of_what_all_heads_see_under_random_rewinds(clock, monkeypatch, seed):
    if seed % 2:
        monkeypatch.setattr(shared_pages, "OLD", 0.0)
        monkeypatch.setattr(shared_pages, "MOST", 1)
    chance, store = random.Random(seed), InMemoryStore()
    threads = [Thread(store, "a1"), Thread(store, "a2"), Thread(store, "a3"), Thread(store, "b1", "bob")]
    heads = {thread.name: [] for thread in threads}
    for number in range(24):
        thread = chance.choice(threads)
        if thread.path and chance.random() < 0.5:
            thread.go_back(chance.randint(1, len(thread.path)))
            if chance.random() < 0.4:  # as `History` goes: at once for all
                await move_head(thread.state, store, thread.run.context, thread.name)
                heads[thread.name] = list(thread.path)
                continue
        await thread.note(number)
        heads[thread.name] = list(thread.path)
        own = [other.name for other in threads if other.user == thread.user]
        seen = sorted(n for name in own for n in heads[name])
        assert thread.state.profile.home == f"h{number}"
        assert thread.likes() == (sorted(f"w{n}" for n in seen), len(seen)), number
    for user in ("ann", "bob"):
        new = Thread(store, f"{user}-new", user)
        await new.look()
        seen = [n for other in threads if other.user == user for n in heads[other.name]]
        assert new.likes() == (sorted(f"w{n}" for n in seen), len(seen))


@pytest.mark.parametrize(("patches", "later", "snapshot"), [(65, 3_601, True), (65, 3_590, False), (64, 3_601, False)])
async def test_65_changes_of_an_hour_ago_become_one_snapshot_as_the_heads_see_them(clock, patches, later, snapshot):
    store = InMemoryStore()
    thread, other, back = (Thread(store, name) for name in ("t", "u", "back"))
    await back.look()
    await thread.note(0)
    [item] = store.search(LOG)
    for number in range(1, patches):
        at = lasting_position(clock[0] + number / 1_000)
        store.put(LOG, f"k{number}", item.value | {"patch": {"visits": {"$add": 1}}, "at": at})
    clock[0] += later
    back.go_back(1)
    await back.begin()
    assert store.get(PLACE, "snapshot") is None, "who has gone back may see less than the heads"
    await other.look()
    assert (store.get(PLACE, "snapshot") is not None) is snapshot
    assert other.likes() == (["w0"], patches)
    await thread.note(99)
    assert thread.likes() == (["w0", "w99"], patches + 1)


async def test_what_a_person_edits_stays_and_is_told_to_the_other_threads_with_the_next_turn(clock):
    store = InMemoryStore()
    one, two = Thread(store, "one"), Thread(store, "two")
    await one.note(1)
    await two.note(2)
    edited = one.state.profile.apply({"home": "by hand", "likes": {"w1": None}}).page
    one.past[-1] = one.state.model_copy(update={"profile": edited})
    state = await one.begin()
    assert (state.profile.home, sorted(state.profile.likes), state.profile.visits) == ("by hand", ["w2"], 2)
    assert state.agreed["pages"]["profile"]["home"] == "h2", "on which thread and store last agreed"
    await one.end(state)
    assert one.state.agreed["pages"]["profile"]["home"] == "by hand"
    await two.look()
    assert (two.state.profile.home, sorted(two.state.profile.likes)) == ("by hand", ["w2"])


async def test_what_was_noted_last_holds_whoever_is_read_first(clock):
    store = InMemoryStore()
    one, two, three = (Thread(store, name) for name in ("one", "two", "three"))
    await two.look()
    clock[0] += 60
    await one.note(1)
    clock[0] -= 30
    await two.note(2)  # on a computer whose clock is behind
    await three.look()
    assert (three.state.profile.home, three.likes()) == ("h1", (["w1", "w2"], 2))


async def test_a_turn_without_a_place_tells_nothing_and_sees_nothing_of_another_future(clock):
    store = InMemoryStore()
    thread = Thread(store, "t")
    await thread.note(1)
    await thread.note(2)
    thread.go_back(1)
    state = await thread.begin()
    assert state.profile.likes == {"w1": "yes"}
    assert state.agreed["moved"] == ["profile"]
    noted = state.model_copy(update={"profile": state.profile.apply({"home": "here"}).page})
    assert await publish_pages(noted, thread.run) == {}, "it is not remembered"
    other = Thread(store, "u")
    await other.look()
    assert other.state.profile.home == "h2"
    await thread.end(noted)
    assert thread.state.agreed["moved"] == []
    await other.look()
    assert (other.state.profile.home, other.state.profile.likes) == ("here", {"w1": "yes"})


async def test_a_new_thread_leaves_its_head_with_its_first_look_and_a_state_without_such_pages_nothing():
    store = InMemoryStore()
    thread = Thread(store, "t")
    await thread.begin()
    [head] = store.search(("ann", "default", "heads"))
    assert head.value["timeline"] == []
    bare = TurnState(turn=1, timeline=[("b", 1)], remembered_through=1)
    assert await read_pages(bare, thread.run) == await publish_pages(bare, thread.run) == {}
    state = await thread.begin()
    assert await read_pages(state, thread.run.override(store=None)) == {}


async def test_a_store_that_fails_costs_neither_page_nor_turn_and_is_told():
    store = Broken()
    thread, other = Thread(store, "t"), Thread(store, "u")
    await thread.note(1)
    store.error = ConnectionError("down")
    state = await thread.begin()
    [told] = state.notices
    assert told["text"] == "What other threads noted on profile could not be read. down"
    assert state.profile.home == "h1"
    store.error = None
    state = (await thread.begin()).model_copy(update={"profile": state.profile.apply({"home": "new"}).page})
    remembered = state.model_copy(update=await remember_turns(state, thread.run))
    store.error = ConnectionError("down")
    [told] = (await publish_pages(remembered, thread.run))["notices"]
    assert told["text"].startswith("Other threads do not see yet what was noted on profile; the next turn will tell")
    store.error = None
    thread.past.append(remembered)
    await thread.look()
    await other.look()
    assert other.state.profile.home == "new"


async def test_what_is_remembered_and_what_could_not_be_told_are_both_said(monkeypatch):
    thread = Thread(InMemoryStore(), "t")
    await thread.note(1)

    async def refuse(store, ops):
        raise ConnectionError("down")

    monkeypatch.setattr(shared_pages, "put_all", refuse)
    await thread.note(2)
    assert thread.state.remembered_through == 2
    [told] = thread.state.notices
    assert told["text"].startswith("Other threads do not see yet what was noted on profile")


async def test_a_patch_that_fits_no_more_is_left_out(clock):
    store = InMemoryStore()
    one, two = Thread(store, "one"), Thread(store, "two")
    await one.note(1)
    [item] = store.search(LOG)
    store.put(LOG, "wrong", item.value | {"patch": {"visits": "many"}, "at": item.value["at"]})
    await two.look()
    assert two.likes() == (["w1"], 1)

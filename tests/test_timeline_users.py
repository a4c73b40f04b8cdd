"""Memories of scope "user": a thread sees its own past and what the others know now, never what a fork took back."""

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from faulty_stores import Recording
from langgraph.store.memory import InMemoryStore

from questbook import Query, UserTimeline, keep_valid, note_facts, recall, remember
from questbook.memory.facts.validity import slot_history
from questbook.memory.recall.candidates import Scope, propose_candidates
from questbook.memory.timeline.timeline import is_visible, list_visible, read_heads

LAMP = {"subject": "Lamp", "attribute": "colour"}
START = datetime(2026, 11, 1, tzinfo=UTC)


class Thread:
    """One thread of a user, as an app keeps it; `told` is the oracle: what its checkpoint descends from."""

    def __init__(self, store, user, name):
        self.store, self.user, self.name = store, user, name
        self.states = [([], [])]  # after each turn that its checkpoint descends from: the timeline, and what was told

    @property
    def timeline(self):
        return UserTimeline(self.states[-1][0], thread=self.name, heads=(self.user, "chat", "heads"))

    @property
    def told(self):
        return self.states[-1][1]

    def place(self, name):
        return (self.user, "chat", name)

    async def turn(self, word, when):
        said = f"The lamp of the tower is {word}"
        exchange = {"player": said, "reply": "Noted.", "said_at": when.isoformat()}
        timeline = await remember(
            self.store, self.place("exchanges"), exchange, timeline=self.timeline, claims=self.place("claims")
        )
        here = self.timeline.with_segments(timeline)
        fact = {"text": f"The lamp is {word}.", "value": word} | LAMP
        await note_facts(self.store, self.place("facts"), [fact], timeline=here, noted_at=when)
        self.states.append((timeline, [*self.told, (word, when)]))

    def rewind(self, turns):
        del self.states[len(self.states) - turns :]

    async def recalled(self, limit=500):
        query = Query("Which lamp is in the tower?", timeline=self.timeline, limit=limit, fitting=False)
        return [memory.text.split()[6] for memory in await recall(self.store, self.place("exchanges"), query)]

    async def colours(self):
        """Every colour that a fact gives the lamp, and those that hold."""
        query = Query("Lamp", timeline=self.timeline, limit=500, fitting=False)
        facts = await recall(self.store, self.place("facts"), query)
        valid = await keep_valid(self.store, facts, timeline=self.timeline)
        return {fact.value["value"] for fact in facts}, [fact.value["value"] for fact in valid]


class Users:
    """Two users with three threads each, and what each may see."""

    def __init__(self, store):
        names = [("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1"), ("bob", "b2"), ("bob", "b3")]
        self.threads = {name: Thread(store, user, name) for user, name in names}
        self.heads = {name: [] for name in self.threads}  # what each thread knew when it last wrote

    def may_see(self, thread):
        others = [other for other in self.threads.values() if other.user == thread.user and other is not thread]
        return [*thread.told, *(told for other in others for told in self.heads[other.name])]

    async def turn(self, thread, word, when):
        await thread.turn(word, when)
        self.heads[thread.name] = thread.told

    async def check(self):
        for thread in self.threads.values():
            seen = self.may_see(thread)
            words = sorted(word for word, _ in seen)
            assert sorted(await thread.recalled()) == words, thread.name
            latest = [max(seen, key=lambda told: told[1])[0]] if seen else []
            colours, valid = await thread.colours()
            assert colours == set(words), thread.name
            assert valid == latest, thread.name


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
async def test_a_random_play_of_three_threads_each_of_two_users_shows_what_the_oracle_says(make_store, seed):
    chance = random.Random(seed)
    users = Users(make_store(["text"], vectors=seed % 2 == 0))
    for move in range(14):
        thread = chance.choice(list(users.threads.values()))
        if thread.told and chance.random() < 0.4:
            thread.rewind(chance.randint(1, len(thread.told)))
        await users.turn(thread, f"shade{move}", START + timedelta(minutes=move))
        if move % 5 == 4:
            await users.check()
    await users.check()


@pytest.mark.slow
async def test_what_forks_took_back_crowds_nothing_out(make_store):
    store = make_store(["text"])
    first, other = Thread(store, "ann", "first"), Thread(store, "ann", "other")
    await other.turn("grey", START)
    words = [f"Which lamp is in the tower? It is shade{number}" for number in range(160)]
    for told in (words, words[:1]):  # all taken back but one: more than the first searches propose
        await remember(store, first.place("exchanges"), told, timeline=first.timeline, claims=first.place("claims"))
    assert len(await Thread(store, "ann", "new").recalled()) == 2


async def test_other_threads_answers_come_with_their_own_neighbours(make_store):
    store = make_store(["text"])
    place, heads = ("ann", "chat", "exchanges"), ("ann", "chat", "heads")
    for thread, answer in (("one", "It is teal."), ("two", "It is ochre.")):
        timeline = UserTimeline(thread=thread, heads=heads)
        words = ["Hello.", f"What colour has the {thread} lantern?", answer]
        await remember(store, place, words, timeline=timeline)
    view = UserTimeline(thread="three", heads=heads)
    best = await recall(store, place, Query("The one lantern's colour?", timeline=view, limit=2))
    assert "one lantern" in best[0].text
    assert "ochre" not in str([memory.text for memory in best])


@pytest.mark.slow
async def test_facts_of_a_slot_that_many_threads_changed(make_store):
    store = make_store(["text"], vectors=False)
    for number in range(70):
        await Thread(store, "ann", f"t{number}").turn(f"shade{number}", START + timedelta(hours=number))
    new = Thread(store, "ann", "new")
    history = await slot_history(store, new.place("facts"), "Lamp", "colour", timeline=new.timeline)
    assert [period.value["value"] for period in history] == [f"shade{number}" for number in range(70)]
    await new.turn("pink", START + timedelta(hours=99))
    assert (await new.colours())[1] == ["pink"]


async def test_all_records_of_a_user_in_the_order_in_which_they_were_said(make_store):
    store = make_store(["text"])
    first, second = Thread(store, "ann", "first"), Thread(store, "ann", "second")
    for number, thread in enumerate((first, second, first)):
        await thread.turn(f"shade{number}", START + timedelta(minutes=number))
    items = await list_visible(store, first.place("exchanges"), second.timeline)
    assert [item.value["text"].split()[6] for item in items] == ["shade0", "shade1", "shade2"]


async def test_the_cost_does_not_grow_with_the_number_of_threads():
    """The heads of those threads are read whose records are proposed, in one batch."""
    for count in (10, 400):
        store = Recording()
        for number in range(count):
            thread = Thread(store, "ann", f"t{number}")
            await remember(store, thread.place("exchanges"), f"Bread costs {number} pence", timeline=thread.timeline)
        timeline = UserTimeline([("own", 3)], thread="own", heads=("ann", "chat", "heads"))
        store.batches.clear()
        await propose_candidates(store, [Scope(("ann", "chat", "exchanges"), timeline)], ["bread"], [8])
        assert len(store.batches[0]) == 1
        assert store.batches[0][0].limit == 16
        assert len(store.batches[1]) <= 16


async def test_of_a_turn_its_words_are_embedded_and_neither_its_claim_nor_its_head():
    embedded, place = [], ("ann", "chat", "exchanges")
    store = InMemoryStore(index={"embed": lambda texts: embedded.extend(texts) or [[1.0]] * len(texts), "dims": 1})
    timeline = UserTimeline(thread="t", heads=("ann", "chat", "heads"))
    await remember(store, place, "one", timeline=timeline, claims=("ann", "chat", "claims"))
    assert embedded == ["one"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"thread": "k", "heads": "heads"}, r"UserTimeline.heads 'heads': expected a tuple of texts"),
        (
            {"thread": UUID(int=7), "heads": ("heads",)},
            r"UserTimeline.thread: got UUID\(.*\); expected a text",
        ),
    ],
)
def test_what_is_no_namespace_and_no_id_of_a_thread_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        UserTimeline(**arguments)


def test_a_view_from_another_place_keeps_the_mark_of_the_life_or_takes_another():
    view = UserTimeline(thread="t", heads=("ann", "chat", "heads"), life="one")
    assert view.with_segments(()).first_branch == view.first_branch
    other = view.with_segments((), "two")
    assert other.life == "two"
    assert other.first_branch not in (view.first_branch, UserTimeline(thread="t", heads=view.heads).first_branch)
    begun = UserTimeline([(other.first_branch, 3)], thread="t", heads=view.heads)
    assert (begun.life, begun.head_place) == ("two", other.head_place), "its branches tell the mark"
    assert begun.head_op().value == {"timeline": [[other.first_branch, 3]], "thread": "t"}
    plain = UserTimeline([("a", 3)], thread="t", heads=view.heads, life="")
    assert plain.head_op().value == {"timeline": [["a", 3]]}


@pytest.mark.parametrize("fallback", [None, (("ann", "chat"), "head")])
async def test_what_a_thread_without_a_head_wrote_is_seen_as_far_as_the_fallback_sees_it(fallback):
    view, store = UserTimeline(thread="t", heads=("ann", "chat", "heads"), fallback=fallback), Recording()
    await store.aput(("ann", "chat"), "head", {"timeline": [["old", 2]]})
    records = [{"thread": "other", "branch": "old", "turn": turn} for turn in (2, 3)]
    for _ in range(2):
        await read_heads(store, view, records)
    assert [is_visible(view, record) for record in records] == [fallback is not None, False]
    assert len(store.batches) == (2 if fallback is None else 3), "heads are read once"
    await store.aput(("ann", "chat", "heads"), "own", {"timeline": [["old", 3]]})
    records += [{"thread": "own", "branch": "old", "turn": turn} for turn in (3, 4)]
    view = UserTimeline(thread="t", heads=("ann", "chat", "heads"), fallback=fallback)
    await read_heads(store, view, records)
    seen = [fallback is not None, False, True, False]
    assert [is_visible(view, record) for record in records] == seen, "a head of its own counts more"

"""Facts go into a store once: by `note_facts`, in whatever words, in whatever batch, and whatever fails on the way."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from faulty_stores import Halting
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from noted_facts import FACTS, holding, home, noted, say, seen
from pydantic import ValidationError
from reworded_facts import DIFFERENT, FIELDED, TEXTS
from stores import opened, stores_of
from timing import cpu_seconds

from questbook import (
    Fact,
    FaissStore,
    HashEmbeddings,
    MiniLMEmbeddings,
    Query,
    UserTimeline,
    keep_valid,
    note_facts,
    recall,
)
from questbook.memory.facts.relations import is_same_fact
from questbook.memory.facts.validity import count_repetitions, slot_history, write_judgements
from questbook.memory.facts.writing import add_fact, write_facts
from questbook.memory.text.words import marks_in
from questbook.memory.timeline.records import Stamp

store = stores_of()
WORDINGS = {
    "texts": [{"text": text} for pair in TEXTS for text in pair],
    "fields": [fact for group in FIELDED for fact in group],
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("name", WORDINGS)
@pytest.mark.slow
async def test_many_wordings_of_each_of_five_facts_leave_five(store, name, seed):
    wordings = random.Random(seed).sample(WORDINGS[name], len(WORDINGS[name]))
    for turn, fact in enumerate(wordings, start=1):
        await say(store, fact, "a", turn, [("a", turn)])
    kept = await seen(store)
    assert len(kept) == len(await holding(store)) == 5
    again = await count_repetitions(store, FACTS, [item.key for item in kept])
    assert sum(again.values()) == len(wordings) - 5


async def test_wordings_in_one_batch_are_one_as_well(store):
    notes = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(WORDINGS["fields"])]
    done = await write_facts(store, FACTS, notes, timeline=[("a", 1)])
    assert (len(done.new), len(done.repetitions)) == (5, 45)


async def test_what_sounds_alike_and_is_not_the_same_stays_apart(store):
    for turn, (one, other) in enumerate(DIFFERENT, start=1):
        for ordinal, text in enumerate((one, other)):
            await say(store, {"text": text}, "a", 10 * turn, [("a", 10 * turn)], ordinal)
    kept = {item.value["text"] for item in await seen(store)}
    assert kept == {text for pair in DIFFERENT for text in pair}


@pytest.mark.parametrize("cosine", [None, 0.99])
def test_no_cosine_makes_two_facts_one(cosine):
    for one, other in DIFFERENT:
        assert not is_same_fact({"text": one}, {"text": other}, cosine)
        assert is_same_fact({"text": one}, {"text": one.upper()}, cosine)


async def test_no_record_that_stands_is_written_again(store):
    await say(store, home("the mill"), "a", 1, [("a", 1)])
    before = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    for turn, where in ((2, "the mill"), (3, "the inn"), (4, "the mill")):
        await say(store, home(where), "a", turn, [("a", turn)])
    after = {item.key: (item.value, item.updated_at) for item in await seen(store)}
    assert all(after[key] == value for key, value in before.items())


async def test_what_was_recalled_is_not_new(store):
    repetition = {"text": "Goran lives at the mill.", "kind": "trait"}
    done = await say(store, repetition, "a", 8, [("a", 8)], repeats="a-2-exchange-0")
    assert (done.new, await seen(store)) == ([], [])
    assert await count_repetitions(store, FACTS, ["a-2-exchange-0"]) == {"a-2-exchange-0": 1}
    await say(store, home("the inn"), "a", 9, [("a", 9)])
    await say(store, home("the mill"), "a", 10, [("a", 10)], repeats="a-2-exchange-0")
    assert await holding(store) == ["Goran lives at the mill."], "unless it holds again after something else did"


async def everything(store):
    return sorted((item.key, str(item.value)) for item in await store.asearch((), limit=99))


LAMP = [home("the mill"), home("the inn"), {"text": "The lamp went out."}, {"text": "The lamp, it went out."}]
NOTES = [noted(fact, "a", 1, ordinal) for ordinal, fact in enumerate(LAMP)]


async def test_noting_twice_is_noting_once(store):
    await write_facts(store, FACTS, NOTES, timeline=[("a", 1)])
    first = await everything(store)
    await write_facts(store, FACTS, NOTES, timeline=[("a", 1)])
    assert await everything(store) == first
    assert len(first) == 3 + 2 + 1


async def test_facts_of_several_turns_that_were_late_are_judged_each_by_what_held_at_its_turn(store):
    line = [("a", 5)]
    await say(store, home("the inn"), "a", 3, line)  # turns 2 and 4 could not be written then
    late = [noted(home("the mill"), "a", 2), noted(home("the mill"), "a", 4)]
    done = await write_facts(store, FACTS, late, timeline=line)
    assert done.new == [one.key for one in late]
    assert await holding(store, line) == ["Goran lives at the mill."]
    assert await holding(store, line, before=4) == ["Goran lives at the inn."]
    assert await holding(store, line, before=3) == ["Goran lives at the mill."]
    again = await say(store, home("the mill"), "a", 5, line)
    assert list(again.repetitions.values()) == [late[1].key]


async def test_a_late_fact_strengthens_what_held_at_its_turn_and_not_what_took_its_place(store):
    line = [("a", 9)]
    await say(store, home("the mill"), "a", 1, line)
    await say(store, home("the inn"), "a", 5, line)
    late = [noted(home("the mill"), "a", 3), noted(home("the inn"), "a", 6)]
    done = await write_facts(store, FACTS, late, timeline=line)
    first, second = [item.key for item in sorted(await seen(store), key=lambda item: item.value["turn"])]
    assert list(done.repetitions.values()) == [first, second]
    assert await holding(store, line) == ["Goran lives at the inn."]


async def test_a_late_fact_repeats_what_was_believed_at_its_turn_though_it_was_judged_wrong_since(store):
    line, lamp = [("a", 9)], {"text": "The lamp of the tower is lit."}
    await say(store, lamp, "a", 1, line)
    await write_judgements(store, FACTS, [("a-1-fact-0", "x")], Stamp("a", 4).to_json())
    assert await say(store, lamp, "a", 3, line) == ([], {"a-3-fact-0": "a-1-fact-0"}, [])
    assert await say(store, lamp, "a", 6, line) == (["a-6-fact-0"], {}, [])
    assert (await say(store, lamp, "a", 5, line)).new == ["a-5-fact-0"], "it repeats nothing that was said after it"


async def test_what_was_judged_wrong_on_another_branch_still_holds_here_and_is_said_again(store):
    await say(store, home("the mill by the river"), "a", 1, [("a", 1)])
    await write_judgements(store, FACTS, [("a-1-fact-0", "x")], Stamp("b", 2).to_json())
    assert await say(store, home("the mill"), "a", 3, [("a", 3)]) == ([], {"a-3-fact-0": "a-1-fact-0"}, [])
    assert (await say(store, home("the mill"), "b", 3, [("a", 1), ("b", 3)])).new == ["b-3-fact-0"]


@pytest.mark.parametrize("after", range(6))
async def test_a_batch_that_broke_in_the_middle_is_completed(after):
    whole, broken = Halting(), Halting()
    await write_facts(whole, FACTS, NOTES, timeline=[("a", 1)])
    broken.left = after
    with pytest.raises(ConnectionError):
        await write_facts(broken, FACTS, NOTES, timeline=[("a", 1)])
    broken.left = 10**9
    await write_facts(broken, FACTS, NOTES, timeline=[("a", 1)])
    assert await everything(broken) == await everything(whole)


class Failing(HashEmbeddings):
    """Fails once it has embedded as many texts as are left."""

    left = 10**9

    def embed_documents(self, texts):
        self.left -= len(texts)
        if self.left < 0:
            raise RuntimeError("no embedder")
        return super().embed_documents(texts)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


async def test_an_embedder_that_fails_in_the_middle_writes_nothing(tmp_path):
    embed = Failing()
    with FaissStore.open(tmp_path / "m.db", index={"embed": embed, "fields": ["text"]}) as store:
        colours = ["red", "blue", "green"]
        notes = [noted({"text": f"The {colour} lamp burns."}, "a", 1, n) for n, colour in enumerate(colours)]
        for left in range(6):
            embed.left = left
            with pytest.raises(Exception, match="embed"):
                await write_facts(store, FACTS, notes, timeline=[("a", 1)])
            assert await seen(store) == []
        embed.left = 10**9
        await write_facts(store, FACTS, notes, timeline=[("a", 1)])
        assert len(await seen(store)) == 3


@pytest.mark.slow
async def test_ten_wordings_of_five_facts_leave_five_with_minilm(published_weights, tmp_path):
    minilm = MiniLMEmbeddings(published_weights)
    for name, wordings in WORDINGS.items():
        with FaissStore.open(tmp_path / f"{name}.db", index={"embed": minilm, "fields": ["text"]}) as store:
            for turn, fact in enumerate(wordings, start=1):
                await say(store, fact, "a", turn, [("a", turn)])
            assert len(await seen(store)) == 5
            for turn, (one, other) in enumerate(DIFFERENT, start=100):
                for ordinal, text in enumerate((one, other)):
                    await say(store, {"text": text}, "a", turn, [("a", turn)], ordinal)
            apart = {item.value["text"] for item in await seen(store)}
            lost = [text for pair in DIFFERENT for text in pair if text not in apart]
            assert all(any(is_same_fact({"text": t}, f) for f in wordings) for t in lost)


@pytest.mark.parametrize("kind", ["faiss", "faiss without vectors"])
async def test_a_store_that_ranks_is_not_read_through(kind, tmp_path, monkeypatch):
    with opened(kind, tmp_path) as store:
        for n in range(120):
            there = noted({"text": f"Goran saw the lamp of house {n} burn.", "subject": f"house {n}"}, "a", n + 1)
            await store.aput(FACTS, there.key, there.value)
        read, search = [], store.abatch

        async def counted(ops):
            results = await search(ops)
            read.extend(len(found) for found in results if isinstance(found, list))
            return results

        monkeypatch.setattr(store, "abatch", counted)
        done = await say(store, {"text": "Goran saw the lamp of house 7 burn.", "subject": "house 7"}, "a", 200)
        assert done.repetitions == {"a-200-fact-0": "a-8-fact-0"}
        assert sum(read) <= 64


NOON = datetime(2026, 7, 10, 12, tzinfo=UTC)


async def test_a_later_fact_supersedes_the_earlier_one_in_its_slot(store):
    first = await note_facts(store, FACTS, [home("the mill")], timeline=[("a", 1)])
    second = await note_facts(store, FACTS, [home("the inn")], timeline=[("a", 2)])
    assert (first.new, second.new, second.superseded) == (["a-1-fact-0"], ["a-2-fact-0"], ["a-1-fact-0"])
    assert await holding(store, [("a", 2)]) == ["Goran lives at the inn."]
    assert await holding(store, [("a", 2)], before=2) == ["Goran lives at the mill."]
    periods = await slot_history(store, FACTS, "Goran", "lives in", timeline=[("a", 2)])
    assert [(one.value["value"], one.since, one.until) for one in periods] == [("the mill", 1, 2), ("the inn", 2, None)]


async def test_a_record_says_who_what_where_and_when(store):
    fact = Fact(text="Goran is a spy.", subject="Goran", claimed_by="Oda", importance=8, known_by=["Oda"])
    provenance = {"said_at": NOON.isoformat(), "thread": "t1"}
    await note_facts(store, FACTS, ["The bridge has fallen.", fact], timeline=[("a", 7)], turn=5, provenance=provenance)
    stamp = {"branch": "a", "turn": 5, "order": "00000005", "turns": [5, 5], "cites": []} | provenance
    bridge, spy = [(await store.aget(FACTS, f"a-5-fact-{n}")).value for n in range(2)]
    assert bridge.items() >= (stamp | {"text": "The bridge has fallen.", "kind": "event", "slot": ""}).items()
    told = {"subject": "Goran", "claimed_by": "Oda", "importance": 8, "known_by": ["Oda"]}
    assert spy.items() >= (stamp | told | {"at": "00000005.001"}).items()
    assert (bridge["at"], Stamp.from_json(spy).time) == ("00000005.000", NOON)


async def test_noting_a_turn_again_adds_only_what_is_new(store):
    lamp, key = {"text": "The lamp went out."}, {"text": "The silver key is rusty."}
    await note_facts(store, FACTS, [home("the mill"), lamp], timeline=[("a", 1)])
    again = await note_facts(store, FACTS, [home("the mill"), key, lamp], timeline=[("a", 1)])
    assert again == (["a-1-fact-2"], {}, [])
    assert len(await store.asearch(FACTS, limit=99)) == 3
    repeated = await note_facts(store, FACTS, [lamp], timeline=[("a", 2)])
    assert repeated == ([], {"a-2-fact-0": "a-1-fact-1"}, [])
    assert await count_repetitions(store, FACTS, ["a-1-fact-1"]) == {"a-1-fact-1": 1}


async def test_what_was_a_rumour_is_stated_in_the_same_turn_too(store):
    for kind in ("rumour", "event"):
        await note_facts(store, FACTS, [Fact(text="Goran sold the mill.", kind=kind)], turn=1, timeline=[("a", 1)])
    assert [item.value["kind"] for item in await keep_valid(store, await seen(store))] == ["event"]


async def test_without_a_timeline_facts_do_not_rewind_and_the_later_one_holds(store):
    first = await note_facts(store, FACTS, [home("the mill"), home("the inn")], noted_at=NOON)
    assert len(first.new) == 2
    assert first.superseded == first.new[:1]
    late = await note_facts(store, FACTS, [home("the bay")], noted_at=NOON - timedelta(days=1))
    assert late.superseded == []
    assert await holding(store) == ["Goran lives at the inn."]
    items = await store.asearch(FACTS, limit=99)
    [seen] = await keep_valid(store, items, timeline=[("any", 1)], before=1)
    assert seen.value["text"] == "Goran lives at the inn.", "no timeline hides it"
    await note_facts(store, FACTS, [home("the tower")])
    await note_facts(store, FACTS, [home("the mill")])
    assert await holding(store) == ["Goran lives at the mill."], "it holds again, though it was noted before"
    assert all("branch" not in item.value and item.value["turn"] == 0 for item in await store.asearch(FACTS, limit=99))


async def test_a_fact_by_hand_is_compared_with_its_own_timeline_alone(store):
    await say(store, home("the mill"), "b", 3, [("b", 3)])
    done = await add_fact(store, FACTS, home("the mill"), timeline=[("a", 9)])
    assert (len(done.new), done.repetitions) == (1, {}), "another future's fact is no fact of this one"
    assert await holding(store, [("a", 9)]) == ["Goran lives at the mill."]
    await add_fact(store, FACTS, home("the inn"), timeline=[("a", 9)])
    assert await holding(store, [("a", 9)]) == ["Goran lives at the inn."], "of two by hand the later one holds"
    lasting = await add_fact(store, ("u", "player", "facts"), home("the inn"))
    item = await store.aget(("u", "player", "facts"), lasting.new[0])
    assert (item.value["by"], len(item.value["said_at"])) == ("hand", len("2026-01-01T00:00:00+00:00"))


async def test_a_fact_by_hand_holds_over_what_its_turn_taught_and_names_what_it_corrects_alone(store):
    timeline = [("a", 3)]
    await note_facts(store, FACTS, [{"text": "The lamp is lit."}, home("the mill")], timeline=timeline)
    [key] = (await add_fact(store, FACTS, home("the inn"), timeline=timeline)).new
    assert await holding(store, timeline) == ["Goran lives at the inn.", "The lamp is lit."]
    [other] = (await add_fact(store, FACTS, {"text": "It went out."}, timeline=timeline, replaces="a-3-fact-0")).new
    assert await holding(store, timeline) == ["Goran lives at the inn.", "It went out."]
    corrects = [(await store.aget(FACTS, each)).value.get("corrects") for each in (key, other)]
    assert corrects == [None, "a-3-fact-0"]
    done = await add_fact(store, ("u", "player", "facts"), {"text": "Ann flies tomorrow."})
    value = (await store.aget(("u", "player", "facts"), done.new[0])).value
    day = datetime.fromisoformat(value["said_at"]).date() + timedelta(days=1)
    assert value["when"] == [day.isoformat()] * 2, "what does not rewind is counted from now"


async def test_a_fact_without_a_timeline_has_its_turn_if_one_is_given(store):
    done = await note_facts(store, FACTS, [home("the mill")], turn=7)
    assert (await store.aget(FACTS, done.new[0])).value["turn"] == 7


async def test_the_users_other_threads_see_a_fact_though_nothing_but_facts_was_written():
    store, heads = InMemoryStore(), ("u", "c", "heads")
    own = UserTimeline([("a", 1)], thread="1", heads=heads)
    await note_facts(store, FACTS, [home("the mill")], timeline=own, noted_at=NOON)
    other = UserTimeline([], thread="2", heads=heads)
    assert [one.text for one in await recall(store, FACTS, Query("mill", timeline=other))] == [home("the mill")["text"]]


async def test_a_fact_is_compared_with_many_that_sound_as_much_like_it(tmp_path):
    with opened("faiss", tmp_path, HashEmbeddings()) as store:
        bells = [{"text": f"The bell of tower {n} rings at dawn."} for n in range(1, 20)]
        await note_facts(store, FACTS, bells, timeline=[("a", 1)])
        done = await note_facts(store, FACTS, ["The bell of tower nine rings at dawn."], timeline=[("a", 2)])
        assert done.repetitions == {"a-2-fact-0": "a-1-fact-8"}


async def test_a_fact_by_hand_that_is_told_twice_before_a_threads_first_turn_is_one(store):
    first, again = [await add_fact(store, FACTS, {"text": "The mill burnt down."}, timeline=[]) for _ in range(2)]
    assert (again.new, list(again.repetitions.values())) == ([], first.new)


async def test_what_is_no_fact_is_refused_and_nothing_is_written():
    store = InMemoryStore()
    for wrong in ({"text": ""}, {"text": "x", "importance": 11}, {"text": "x", "speaker": "Oda"}, ""):
        with pytest.raises(ValidationError):
            await note_facts(store, FACTS, [home("the mill"), wrong], timeline=[("a", 1)])
    for timeline, turn in (([("a", 1)], 2), ([], None)):
        with pytest.raises(ValueError, match=r"beyond the timeline|timeline is empty"):
            await note_facts(store, FACTS, [home("the mill")], timeline=timeline, turn=turn)
    assert await store.asearch(()) == []
    assert await note_facts(store, FACTS, [], timeline=[("a", 1)]) == ([], {}, [])


@pytest.mark.parametrize(
    ("ended", "ends"),
    [("Paris", False), ("Paris any more", False), ("Oslo", True), ("Oslo, Norway", True), ("there", True)],
)
async def test_the_end_of_another_value_ends_nothing(ended, ends):
    store, timeline = InMemoryStore(), [("a", 3)]
    lives = {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", "value": "Oslo"}
    gone = {**lives, "text": f"The user does not live in {ended}.", "value": f"no longer {ended}"}
    await note_facts(store, FACTS, [lives], timeline=timeline, turn=1)
    changes = await note_facts(store, FACTS, [gone], timeline=timeline, turn=2)
    assert bool(changes.superseded) is ends
    assert await holding(store, timeline) == sorted([gone["text"], *([] if ends else [lives["text"]])])
    await note_facts(store, FACTS, [{**lives, "text": "The user lives in Rome.", "value": "Rome"}], timeline=timeline)
    assert "The user lives in Oslo." not in await holding(store, timeline)


async def test_a_fact_with_a_day_of_its_own_calendar_is_on_no_real_day(store):
    facts = [
        Fact(text="The feast is tomorrow.", day=4),
        Fact(text="The user flies tomorrow."),
        Fact(text="It burnt.", real_time="2026-05-03T10:00:00+00:00"),
    ]
    await note_facts(store, FACTS, facts, timeline=[("a", 1)], provenance={"said_at": NOON.isoformat()})
    when = {item.value["text"]: item.value.get("when") for item in await store.asearch(FACTS)}
    assert when == {
        "The feast is tomorrow.": None,
        "The user flies tomorrow.": ["2026-07-11", "2026-07-11"],
        "It burnt.": ["2026-05-03"],
    }


@pytest.mark.parametrize(("days", "renewed"), [(1, False), (2, False), (3, True), (None, True)])
async def test_a_fact_that_is_said_again_lives_as_long_as_the_longer_of_both(days, renewed):
    store = InMemoryStore()
    later = {n: (datetime.now(UTC) + timedelta(days=n)).isoformat() if n else "" for n in (1, 2, 3, None)}
    lamp = {"text": "The lamp of the tower is lit."}
    for fact in (lamp, home("the mill")):
        await note_facts(store, FACTS, [fact | {"expires": later[2]}], timeline=[("a", 1)], turn=1)
        done = await note_facts(store, FACTS, [fact | {"expires": later[days]}], timeline=[("a", 2)])
        assert (bool(done.new), bool(done.repetitions)) == (renewed, not renewed)


@pytest.mark.parametrize("shown", ["event", "trait", "promise"])
async def test_what_is_settled_is_told_as_superseded(shown):
    store = InMemoryStore()
    for turn, kind in ((1, "rumour"), (2, shown)):
        done = await note_facts(store, FACTS, [Fact(text="Goran sold the mill.", kind=kind)], timeline=[("a", turn)])
    assert done.superseded == ["a-1-fact-0"]


async def test_what_else_is_written_is_told_what_was_written():
    store = InMemoryStore()
    also = {"also": lambda changes: [PutOp(("x",), "k", {"new": list(changes.new)})]}
    await write_facts(store, FACTS, NOTES[:1], timeline=[("a", 1)], **also)
    assert (await store.aget(("x",), "k")).value == {"new": ["a-1-fact-0"]}


def lives(text, value, **fields):
    return {"text": text, "subject": "the user", "attribute": "own", "value": value, **fields}


async def test_a_value_that_differs_in_signs_alone_is_another_one(store):
    pairs = [("C++", "C#"), ("A+", "A-"), ("5", "-5"), ("11.12.", "12.11."), ("1.2", "2.1"), ("😀", "😡")]
    for number, (before, after) in enumerate(pairs):
        facts = ("u", f"c{number}", "facts")
        for turn, value in enumerate((before, after), 1):
            told = lives(f"The user has {value}.", value)
            assert len((await note_facts(store, facts, [told], timeline=[("main", turn)])).new) == 1, value
        items = await keep_valid(store, await store.asearch(facts), timeline=[("main", 2)])
        assert [item.value["value"] for item in items] == [after]
        again = await note_facts(store, facts, [lives(f"The user has {after}!", after)], timeline=[("main", 3)])
        assert not again.new, "a sentence's own mark tells nothing apart"
    both = await note_facts(store, FACTS, ["The sign says C++.", "The sign says C#."], timeline=[("main", 3)])
    assert len(both.new) == 2, "in one turn, too, and without a slot"


async def test_what_another_project_or_fewer_people_know_is_repeated_by_nothing(store):
    sentence = "The bridge at the mill has fallen."
    for turn, fields in enumerate(({"known_by": ["Oda"]}, {}, {"metadata": {"project": "red"}}), 1):
        changes = await note_facts(store, FACTS, [{"text": sentence, **fields}], timeline=[("main", turn)])
        assert len(changes.new) == 1
    changes = await note_facts(store, FACTS, [{"text": sentence, "known_by": ["Oda"]}], timeline=[("main", 4)])
    assert not changes.new, "all know it by now"
    asked = Query("Has the bridge fallen?", timeline=[("main", 4)], metadata={"project": "red"})
    assert [record.text for record in await recall(store, FACTS, asked)] == [sentence]


async def test_of_facts_of_one_moment_the_later_one_holds(store):
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    for town in ("Oslo", "Bergen", "Narvik"):
        await note_facts(store, FACTS, [lives(f"The user lives in {town}.", town)], noted_at=moment)
    assert await holding(store, None) == ["The user lives in Narvik."]


class Unreachable(HashEmbeddings):
    fails = False

    def embed_documents(self, texts):
        if self.fails:
            raise OSError("429")
        return super().embed_documents(texts)


async def test_a_correction_that_cannot_be_embedded_ends_nothing():
    embedder = Unreachable()
    async with FaissStore(":memory:", index={"embed": embedder, "fields": ["text"]}) as store:
        changes = await note_facts(store, FACTS, [lives("The user lives in Oslo.", "Oslo")], timeline=[("main", 1)])
        embedder.fails = True
        fact = lives("The user lives in Bergen.", "Bergen")
        with pytest.raises(Exception, match="429"):
            await add_fact(store, FACTS, fact, timeline=[("main", 1)], replaces=changes.new[0])
        embedder.fails = False
        assert await holding(store, [("main", 1)]) == ["The user lives in Oslo."]
        again = lives("The user lives in Oslo.", "Oslo")
        changes = await add_fact(store, FACTS, again, timeline=[("main", 1)], replaces=changes.new[0])
        assert len(changes.new) == 1, "what it corrects, it does not repeat"


async def test_a_fact_by_hand_has_its_days_and_is_seen_by_the_users_other_threads():
    async with FaissStore(":memory:", index={"embed": HashEmbeddings(), "fields": ["text"]}) as store:
        one = UserTimeline([("b1", 1)], thread="t1", heads=("ann", "heads"))
        changes = await add_fact(store, FACTS, {"text": "Goran arrives on 3 May 2027."}, timeline=one)
        assert (await store.aget(FACTS, changes.new[0])).value["when"] == ["2027-05-03", "2027-05-03"]
        other = UserTimeline([("b2", 1)], thread="t2", heads=("ann", "heads"))
        found = await recall(store, FACTS, Query("When does Goran arrive?", timeline=other))
        assert [record.text for record in found] == ["Goran arrives on 3 May 2027."]


async def test_a_real_time_that_names_no_day_leaves_that_to_the_sentence(store):
    facts = [
        {"text": "Goran leaves on 3 May 2027.", "real_time": "May 2027"},
        {"text": "Maren arrives.", "real_time": "20270504T1030"},
    ]
    changes = await note_facts(store, FACTS, facts, timeline=[("main", 1)])
    days = [(await store.aget(FACTS, key)).value["when"] for key in changes.new]
    assert days == [["2027-05-03", "2027-05-03"], ["2027-05-04"]]


async def test_a_fact_is_corrected_to_what_it_was_before(store):
    for turn, town in enumerate(("Oslo", "Bergen"), 1):
        changes = await note_facts(store, FACTS, [lives(f"The user lives in {town}.", town)], timeline=[("main", turn)])
    back = lives("The user lives in Oslo.", "Oslo")
    await add_fact(store, FACTS, back, timeline=[("main", 2)], replaces=changes.new[0])
    assert await holding(store, [("main", 2)]) == ["The user lives in Oslo."]


async def test_what_two_know_of_one_slot_is_known_to_both(store):
    for turn, knower in enumerate(("Goran", "Maren"), 1):
        fact = lives("Oda has the key.", "the key", known_by=[knower])
        await note_facts(store, FACTS, [fact], timeline=[("main", turn)])
    [fact] = await keep_valid(store, await store.asearch(FACTS), timeline=[("main", 2)])
    assert fact.value["known_by"] == ["Goran", "Maren"]


async def test_the_same_value_in_another_spelling_is_no_other_one(store):
    pairs = [
        ("5%", "5 %"),
        ("7:30", "7.30"),
        ("2024-05-01", "2024/05/01"),
        ("3-5", "3–5"),
        ("tea ❤️", "tea"),
        ("*tea*", "tea"),
    ]
    for number, (before, after) in enumerate(pairs):
        for turn, value in enumerate((before, after), 1):
            facts, told = ("u", f"c{number}", "facts"), lives(f"The user has {value}.", value)
            changes = await note_facts(store, facts, [told], timeline=[("main", turn)])
        assert not changes.new, after
    assert cpu_seconds(lambda: marks_in("1" * 50_000), enough=0.1) < 0.1


async def test_a_fact_is_noted_though_a_deeper_namespace_has_it(store):
    mill = {"text": "Goran lives at the mill."}
    for place in (("ann", "facts", "work"), ("ann", "facts")):
        await note_facts(store, place, [mill], timeline=[("main", 1)])
        assert [item.value["text"] for item in await store.asearch(place) if item.namespace == place] == [mill["text"]]

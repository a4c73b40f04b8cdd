"""The latest facts, without reading all, and which attributes are known, so that one attribute has one name."""

import random
import time

import pytest
from fact_play import CONTEXT, known, play
from faulty_stores import Blind
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from noted_facts import FACTS
from noted_facts import say as noted
from scripted import call, say, sections_of
from stores import stores_of

from questbook import FaissStore, HashEmbeddings, UserTimeline
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.history.history import History
from questbook.memory.facts import lookup, validity
from questbook.memory.facts.lookup import add_insights, facts_asked_for, find_slots, latest_facts, subjects_in
from questbook.memory.facts.validity import lasting_position, turn_position
from questbook.memory.recall.query import Recalled
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import is_visible, record_key

store = stores_of("memory", "faiss")


async def has(store, turn, subject, attribute, value, branch="a"):
    fact = {"text": f"{subject}, {attribute}: {value}.", "subject": subject, "attribute": attribute, "value": value}
    await noted(store, fact, branch, turn)


async def found(store, text, **more):
    return [(one.subject, one.attribute) for one in await find_slots(store, FACTS, text, **more)]


async def test_slots_of_who_is_named_are_found_each_once_by_its_own_name(store):
    await has(store, 1, "Goran", "den", "the cave")
    await has(store, 2, "Goran", "den", "the mill")
    await has(store, 3, "Oda", "age", "ninety")
    await has(store, 4, "the lamp", "keeper", "Oda")
    slots = await found(store, "You find Goran in the mill.")
    assert slots.count(("Goran", "den")) == 1
    named = subjects_in("Then the old lamp goes out. Maren nods.", ["the lamp", "Maren Holt", "the bell", ""])
    assert named == {"the lamp", "Maren Holt"}
    assert subjects_in("heron", ["Heron"]) == {"Heron"}
    assert await found(store, "  ") == []


async def test_what_was_recalled_comes_first_and_another_future_is_not_seen(store):
    await has(store, 1, "Goran", "den", "the cave")
    await has(store, 2, "Oda", "age", "ninety")
    await has(store, 3, "Goran", "tattoo", "a crow", branch="b")
    slots = await found(store, "Goran sits there.", keys=["a-2-fact-0"], timeline=[("a", 9)])
    assert slots[0] == ("Oda", "age")
    assert ("Goran", "tattoo") not in slots


@pytest.mark.slow
async def test_a_subject_is_found_among_thousands_of_other_facts(tmp_path):
    with FaissStore.open(tmp_path / "m.db") as store:
        await has(store, 1, "Goran", "den", "the cave")
        text = "Man {} sits with Goran in the mill and sees a hawk."
        many = [
            {"text": text.format(n), "subject": f"Man {n}", "attribute": "seat", "slot": f"man {n}|seat"}
            | Stamp("a", n).to_json()
            for n in range(2, 3002)
        ]
        await store.abatch([PutOp(FACTS, record_key("a", value["turn"], "fact"), value) for value in many])
        text = "You find Goran: he sits in the mill and sees a hawk."
        assert ("Goran", "den") in await found(store, text, timeline=[("a", 3001)])


def prompt(game):
    return sections_of(game.model.asked("update")[-1])


def section(game):
    return prompt(game).partition("<known>\n")[2].partition("\n</known>")[0]


def den(value, attribute="den", **more):
    text = f"Goran has his {attribute} in {value}."
    return {"text": text, "subject": "Goran", "attribute": attribute, "value": value, "kind": "trait"} | more


async def test_the_notes_are_shown_the_attributes_so_a_change_is_seen_as_one(game):
    await game.begin()
    assert section(game) == ""
    await play(game, "I ask.", den("the cave"), reply="Goran has his den in the cave.")
    await play(game, "I wait.", reply="The wind turns.")
    assert section(game) == "", "nobody is named"

    def by_the_known_name(messages):
        shown = sections_of(messages).partition("<known>\n")[2]
        name = "den" if '"attributes": ["den"]' in shown else "lair"
        return say("", call("Facts", facts=[den("the mill", name)]))

    game.model.queue("update", by_the_known_name)
    reply = "You find Goran at his new lair in the mill; the den in the cave is empty."
    await play(game, "I look for him.", reply=reply)
    assert section(game) == '{"subject": "Goran", "attributes": ["den"]}'
    assert await known(game) == ["Goran has his den in the mill."]


async def test_what_was_recalled_is_shown_though_the_turn_does_not_name_it(new_game):
    game = new_game(buffer_tokens=200)
    await game.begin()
    await play(game, "I ask.", den("the cave"), reply="Goran has his den in the cave.")
    for n in range(6):
        await play(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 8)
    await play(game, "Who has a den in the cave?", reply="The smith, you recall.")
    assert "has his den" in sections_of(game.model.asked("quest")[-1]), "else this test shows nothing"
    assert section(game) == '{"subject": "Goran", "attributes": ["den"]}'


async def test_of_the_players_character_what_is_known_is_always_shown_for_it_is_you(game):
    await game.begin()
    scar = {"text": "Mira has a scar on her hand.", "subject": "Mira", "attribute": "mark", "value": "a scar"}
    await play(game, "I look at my hand.", scar, reply="Mira has a scar on her hand.")
    await play(game, "I heal my hand.", reply="The scar on your hand is gone.")
    assert section(game) == '{"subject": "Mira", "attributes": ["mark"]}'


async def test_a_secret_attribute_is_shown_to_the_notes_and_to_nobody_else(game):
    await game.begin()
    secret = den("the crypt", "true lair", kind="secret") | {"text": "Goran sleeps in the crypt."}
    await play(game, "I ask.", secret, reply="Goran smiles.")
    heard = []
    game.model.queue("quest", say("Goran smiles again."))
    async for mode, event in game.app.astream(
        {"messages": [("user", "I look at Goran.")]}, game.config, context=game.settings,
        stream_mode=["updates", "custom", "messages"],
    ):  # fmt: skip
        heard.append((mode, repr(event)))
    assert '"true lair"' in section(game)
    assert "true lair" not in sections_of(game.model.asked("quest")[-1])
    assert not [event for _, event in heard if "true lair" in event]


async def test_what_an_undone_turn_noted_is_not_shown(game):
    await game.begin()
    await play(game, "I ask.", den("the cave"), reply="Goran has his den in the cave.")
    await History(game.app, game.config, CONTEXT).undo()
    await play(game, "I nod.", reply="Goran nods.")
    assert section(game) == ""


async def test_of_the_person_who_plays_what_is_known_is_shown_when_they_speak_as_themselves(game):
    await game.begin()
    wish = {"text": "The player wants no spiders.", "kind": "preference", "about": "player", "subject": "the player",
            "attribute": "boundary", "value": "no spiders"}  # fmt: skip
    await play(game, "I enter. ((no spiders please))", wish, reply="A hall.")
    await play(game, "I go on.", reply="A stair.")
    assert "boundary" not in prompt(game)
    await play(game, "((spiders are fine after all))", reply="A web.")
    assert section(game) == '{"subject": "the player", "attributes": ["boundary"]}'


async def test_the_list_costs_the_same_however_much_is_known(game):
    await game.begin()
    many = [den(f"place {n}", f"haunt number {n}") for n in range(60)]
    await play(game, "I ask.", *many, reply=" ".join(fact["text"] for fact in many))
    await play(game, "I nod.", reply="Goran nods.")
    assert 100 < count_tokens_approximately([section(game)]) <= 250


async def test_a_store_that_cannot_be_searched_is_told_and_the_turn_is_noted_all_the_same(game):
    game.store = Blind()
    game.app = build_graph().compile(checkpointer=game.saver, store=game.store)
    await game.begin()
    game.store.error = ConnectionError("the line went dead")
    game.model.queue("update", say("", call("StateNotebook", gold=3)))
    await game.play("I count my gold.")
    assert game.values["quest"]["gold"] == 3
    assert "could not be searched for what is known" in str(game.values["notices"])


HEADS = ("u", "c", "heads")
ONLY = {"subject": "the user", "slot": {"$ne": ""}}
DAY = 86_400


class Counting(InMemoryStore):
    """Counts the items that searches give."""

    given = 0

    async def abatch(self, ops):
        ops = list(ops)
        results = await super().abatch(ops)
        self.given += sum(len(found) for op, found in zip(ops, results, strict=True) if isinstance(op, SearchOp))
        return results


def fact(branch, turn, ordinal, at, *, thread="", subject="the user"):
    value = {"text": "A fact.", "subject": subject, "slot": f"{subject}|{turn}-{ordinal}", "at": at}
    stamp = Stamp(branch, turn, thread=thread).to_json()
    return PutOp(FACTS, record_key(branch, turn, "fact", ordinal), value | stamp, index=False)


def latest_of_all(ops, timeline, count):
    records = [op for op in ops if op.value["subject"] == "the user" and is_visible(timeline, op.value)]
    return [op.key for op in sorted(records, key=lambda op: (op.value["at"], op.key))][-count:]


@pytest.mark.parametrize("few", [2, 16])
async def test_they_are_those_that_reading_all_gives(few, monkeypatch):
    monkeypatch.setattr(lookup, "_FEW", few)
    monkeypatch.setattr(validity, "_FIRST_TURNS", 4)
    chance, now = random.Random(few), time.time()
    for _ in range(3):
        store = InMemoryStore()
        ops = [
            fact(branch, turn, n, turn_position(turn, n), subject=chance.choice(["the user", "Anna"]))
            for branch in ("a", "b", "c")
            for turn in range(1, 40)
            for n in range(chance.choice([0, 0, 1, 5]))
        ]
        await store.abatch(ops)
        timeline = [("a", chance.randint(1, 20)), ("b", chance.randint(20, 38)), ("c", 39)]
        for count in (8, 500):
            found = await latest_facts(store, FACTS, ONLY, timeline=timeline, count=count)
            assert [item.key for item in found] == latest_of_all(ops, timeline, count)
        assert await latest_facts(store, FACTS, ONLY, timeline=[], count=8) == []

        store = InMemoryStore()
        ages = [chance.choice([0, 0.1, 3, 40, 400, 9000]) * DAY for _ in range(90)]
        ops = [
            fact(f"b{n % 5}", n // 5 + 1, 0, lasting_position(now - age - n / 1000), thread=f"t{n % 5}")
            for n, age in enumerate(ages)
        ]
        heads = [PutOp(HEADS, f"t{n}", {"timeline": [[f"b{n}", chance.randint(0, 18)]]}) for n in range(4)]
        await store.abatch([*ops, *heads])
        for count in (8, 500):
            view = UserTimeline([("b4", 9)], thread="t4", heads=HEADS)
            found = await latest_facts(store, FACTS, ONLY, timeline=view, count=count)
            assert [item.key for item in found] == latest_of_all(ops, view, count)


async def test_what_is_read_does_not_grow_with_the_number_of_facts():
    now, store, view = time.time(), Counting(), UserTimeline([("new", 1)], thread="new", heads=HEADS)
    await store.abatch([PutOp(HEADS, "old", {"timeline": [["old", 3000]]})])
    for first in range(0, 3000, 500):
        turns = range(first + 1, first + 501)
        await store.abatch([fact("main", turn, 0, turn_position(turn, 0)) for turn in turns])
        ages = {turn: 60 + (3000 - turn) * 3600 for turn in turns}
        await store.abatch([fact("old", turn, 1, lasting_position(now - ages[turn]), thread="old") for turn in turns])
    await store.abatch([fact("new", 1, 0, lasting_position(now), thread="new")])
    store.given = 0
    found = await latest_facts(store, FACTS, ONLY, timeline=[("main", 3000)], count=64)
    assert len(found) == 64
    assert store.given < 400
    store.given = 0
    found = await latest_facts(store, FACTS, ONLY, timeline=view, count=64)
    assert found[-1].key == "new-1-fact-0", "of a thread that has just begun, and whose turns have low numbers"
    assert len(found) == 64
    assert store.given < 400


async def test_the_slots_of_six_subjects_are_searched_by_themselves():
    store = InMemoryStore(index={"embed": HashEmbeddings(), "dims": 512, "fields": ["text"]})
    for n in range(60):
        await has(store, n + 1, f"Man {n}", "seat", "the mill")
    for n in range(7):
        await has(store, 100 + n, f"quiet{n}", "colour", "grey")
    named = [f"quiet{n}" for n in range(7)]
    slots = await found(store, "A man sits in his seat at the mill.", subjects=named, timeline=[("a", 200)])
    assert [subject for subject, _ in slots if subject.startswith("quiet")] == named[:6]
    assert len(slots) == 32 + 6


async def test_all_about_ones_cat_is_found_without_its_name_too(store):
    await noted(
        store, {"text": "The cat sleeps a lot.", "subject": "cat", "attribute": "habit", "value": "sleep"}, "a", 1
    )
    await noted(store, {"text": "The user likes tea.", "subject": "the user"}, "a", 2)
    asked = await facts_asked_for(store, FACTS, "my cat", timeline=[("a", 2)])
    assert [item.value["text"] for item in asked] == ["The cat sleeps a lot."]


@pytest.mark.parametrize(
    ("text", "subjects", "named"),
    [
        ("Goran nods.", ["Goran Holt"], {"Goran Holt"}), ("goran nods.", ["Goran Holt"], set()),
        ("goran nods.", ["Goran"], {"Goran"}),
        ("The lamps burn.", ["the lamp"], {"the lamp"}), ("Oda nods.", ["oda holt"], set()),
        ("Nobody nods.", ["", "the"], set()),
    ],
)  # fmt: skip
def test_which_subjects_a_text_names(text, subjects, named):
    assert subjects_in(text, subjects) == named


@pytest.mark.parametrize(("distance", "comes"), [(0, True), (100, True), (101, False)])
async def test_an_insight_comes_with_a_record_of_up_to_a_hundred_turns_before(store, distance, comes):
    drawn = {"kind": "insight", "text": "Oda is lonely.", "cites": ["a-5-fact-0"], "at": turn_position(5 + distance, 0)}
    await store.aput(FACTS, "i", drawn | Stamp("a", 5 + distance).to_json())
    told = Recalled(
        "a-5-exchange-0",
        {"kind": "exchange", "text": "x"} | Stamp("a", 5).to_json(),
        None,
        1.0,
        ("u", "c", "exchanges"),
    )
    found = await add_insights(store, [told], FACTS, question="?", timeline=[("a", 900)], since=800)
    assert [one.key for one in found] == ["a-5-exchange-0", *["i"] * comes]


async def test_a_slot_has_the_key_of_the_fact_that_was_asked_for_first(store):
    await has(store, 1, "Goran", "den", "the cave")
    await has(store, 2, "Goran", "den", "the mill")
    for key in ("a-1-fact-0", "a-2-fact-0"):
        [slot] = await find_slots(store, FACTS, "Goran sits in the mill.", keys=[key])
        assert (slot.slot, slot.key) == ("goran|den", key)


async def test_an_insight_comes_with_a_fact_that_it_cites_and_with_no_other(store):
    drawn = {"kind": "insight", "text": "Oda is lonely.", "cites": ["a-5-fact-1"], "at": turn_position(6, 0)}
    await store.aput(FACTS, "i", drawn | Stamp("a", 6).to_json())
    facts = [
        Recalled(f"a-5-fact-{n}", {"kind": "trait", "text": "x"} | Stamp("a", 5).to_json(), None, 1.0, FACTS)
        for n in range(3)
    ]
    found = await add_insights(store, facts, FACTS, question="?", timeline=[("a", 900)], since=800)
    assert [one.key for one in found] == ["a-5-fact-0", "a-5-fact-1", "i", "a-5-fact-2"]
    assert str(found[2].reason) == "concluded from turn 5, which came"

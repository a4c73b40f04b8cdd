"""One property has one slot, however it is spelt, worded or left for the sentence to say; and facts that end others."""

import pytest
from langgraph.store.base import PutOp
from stores import stores_of

from questbook import Fact, keep_valid, note_facts
from questbook.memory.facts.attributes import attribute_name, stated_property
from questbook.memory.facts.reading import read_facts
from questbook.memory.facts.validity import HOLDS, mark_op
from questbook.memory.store.any_store import put_all

FACTS = ("ann", "talk", "facts")
store = stores_of()


def user(attribute, value, **fields):
    text = f"The user's {attribute} is {value}."
    return {"text": text, "subject": "the user", "attribute": attribute, "value": value} | fields


async def holding(store, timeline=None):
    items = await store.asearch(FACTS, limit=99)
    return sorted(item.value["text"] for item in await keep_valid(store, items, timeline=timeline))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("favourite fruit", "favorite fruit"), ("favourite colour", "Lieblingsfarbe"), ("job", "occupation"),
        ("current job", "Beruf"), ("wife", "partner"), ("city", "home"), ("mobile phone", "smartphone"),
        ("name of Rex", "Rex's name"), ("workout day", "gym day"), ("car", "Fahrzeug"), ("new phone", "phone"),
    ],
)  # fmt: skip
async def test_the_later_fact_holds_in_whatever_words_the_attribute_comes(store, one, other):
    assert attribute_name(one) == attribute_name(other)
    for older, newer, turn in ((one, other, 1), (other, one, 3)):
        await note_facts(store, FACTS, [user(older, f"Oslo {turn}")], timeline=[("a", turn)])
        await note_facts(store, FACTS, [user(newer, f"Bergen {turn}")], timeline=[("a", turn + 1)])
        assert await holding(store, [("a", turn + 1)]) == [f"The user's {newer} is Bergen {turn}."]


@pytest.mark.parametrize(
    ("one", "other"), [("favourite fruit", "favourite drink"), ("phone", "phone number"), ("likes tea", "likes milk")]
)
async def test_what_is_another_attribute_stays_one(store, one, other):
    await note_facts(store, FACTS, [user(one, "Oslo")], timeline=[("a", 1)])
    await note_facts(store, FACTS, [user(other, "Bergen")], timeline=[("a", 2)])
    assert len(await holding(store, [("a", 2)])) == 2


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The user lives in Oslo.", "The user lives in Bergen now."),
        ("The user lives in Oslo.", "The user has moved to Bergen."),
        ("The user's favourite fruit is mango.", "The user's favorite fruit is kiwi."),
        ("The user works as a nurse.", "The user now works as a teacher."),
        ("The user lives in Oslo.", "The user no longer lives in Oslo."),
        ("Der Benutzer wohnt in Köln.", "Der Benutzer wohnt jetzt in Bonn."),
    ],
)
async def test_without_an_attribute_the_sentence_says_which(store, older, newer):
    await note_facts(store, FACTS, [older], timeline=[("a", 1)])
    await note_facts(store, FACTS, [newer], timeline=[("a", 2)])
    assert await holding(store, [("a", 2)]) == [newer]
    if "Oslo" in older:
        await note_facts(store, FACTS, [user("city", "Rome")], timeline=[("a", 3)])
        assert await holding(store, [("a", 3)]) == ["The user's city is Rome."], "a fact with an attribute ends it, too"


@pytest.mark.parametrize(
    "text",
    [
        "The user's sister is Anna.", "The user likes tea.", "The user has a cat.", "Goran lives at the mill.",
        "The user's shoes are wet.", "The user lives in a dream, he says.",
    ],
)  # fmt: skip
def test_what_may_hold_side_by_side_gets_no_slot(text):
    assert stated_property(text) is None


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("The user is a vegetarian.", "diet", "vegetarian"), ("Der Benutzer ist jetzt vegan.", "diet", "vegan"),
        ("The user drives an old Volvo these days.", "car", "old Volvo"), ("The user's wife is Eva.", "partner", "Eva"),
        ("The user no longer works as a nurse.", "occupation", "no longer nurse"),
        ("Der Benutzer wohnt nicht mehr in Bonn.", "home", "no longer Bonn"),
    ],
)  # fmt: skip
def test_a_plain_sentence_gives_a_property_its_value(text, attribute, value):
    assert stated_property(text) == ("the user", attribute, value)
    assert [Fact(text=text, value=sent).record()["value"] for sent in ("", "a better one")] == [value, "a better one"]


@pytest.mark.parametrize("attribute", ["favourite fruit", "wife"])
async def test_a_slot_of_an_older_store_is_ended_as_well(store, attribute):
    fact = Fact(**user(attribute, "mango"))
    older = fact.record() | {"slot": f"user|{attribute}"} | {"branch": "a", "turn": 1, "order": "00000001"}
    older["at"] = "00000001.000"
    await note_facts(store, FACTS, [fact], timeline=[("a", 1)])
    items = {item.key: item for item in await store.asearch(("ann",), limit=99)}
    for key, item in items.items():
        if item.namespace != FACTS:
            await store.adelete(item.namespace, key)
    await put_all(store, [PutOp(FACTS, "a-1-fact-0", older), mark_op(FACTS, HOLDS, older["slot"], "a-1-fact-0", older)])
    await note_facts(store, FACTS, [user(attribute, "kiwi")], timeline=[("a", 2)])
    assert await holding(store, [("a", 2)]) == [f"The user's {attribute} is kiwi."]


async def test_a_fact_that_ends_another_leaves_nothing_that_holds_and_goes_back_with_its_turn(store):
    await note_facts(store, FACTS, [user("car", "a Volvo"), user("city", "Oslo")], timeline=[("a", 1)])
    await note_facts(store, FACTS, [user("vehicle", "", text="The user's car.", ends=True)], timeline=[("a", 2)])
    assert await holding(store, [("a", 2)]) == ["The user's city is Oslo."]
    assert len(await store.asearch(FACTS, limit=9)) == 3, "both records stay, with where they come from"
    fork = await store.aget(FACTS, "a-1-fact-0")
    assert await keep_valid(store, [fork], timeline=[("a", 1)]) == [fork]
    await note_facts(store, FACTS, [user("car", "a Volvo")], timeline=[("a", 3)])
    assert await holding(store, [("a", 3)]) == ["The user's car is a Volvo.", "The user's city is Oslo."]


async def test_a_fact_without_a_slot_is_ended_by_what_says_the_same(store):
    await note_facts(store, FACTS, ["The user likes old jazz records."], timeline=[("a", 1)])
    await note_facts(store, FACTS, [{"text": "The user likes old jazz records.", "ends": True}], timeline=[("a", 2)])
    assert await holding(store, [("a", 2)]) == []


def test_a_model_may_say_that_something_ends():
    [fact], notices = read_facts({"text": "The user's car.", "subject": "the user", "attribute": "car", "ends": True})
    assert (fact.ends, fact.slot, notices) == (True, "user|car", [])

"""One property has one slot, however it is spelt, worded or left for the sentence to say; and facts that end others."""

import pytest
from langgraph.store.base import PutOp
from stores import stores_of

from questbook import Fact, keep_valid, note_facts
from questbook.memory.facts.attributes import attribute_name, earlier_attribute_name, stated_property
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


# The one name of an attribute, and the words for it.
ONE_NAME = """
location: place, whereabouts, position, where, hiding place, hidden, hideout, current location, ort,
    aufenthaltsort
home: residence, lives in, lives at, lives, dwelling, address, city, town, home city, home town now, place of
    residence, city of residence, living place, wohnort, wohnung, zuhause, wohnt in, adresse, stadt
fate: death, cause of death, how he died, how she died, manner of death, died, tod
debt: owes, debts, owed, schulden
occupation: job, role, profession, trade, work, works as, job title, employment, career, beruf, arbeit,
    stelle, tätigkeit
employer: company, works at, works for, workplace, firm, arbeitgeber, firma
attitude: feelings, disposition, attitude to the player, opinion, haltung
goal: aim, wants, objective, ambition, desire, ziel
fear: afraid of, fears, phobia, angst
state: status, condition, zustand
name: called, full name, heißt
partner: spouse, husband, wife, girlfriend, boyfriend, fiance, fiancee, significant other, life partner,
    married to, partnerin, ehemann, ehefrau, ehepartner, verlobter, verlobte, lebensgefährte, lebensgefährtin
marital status: relationship status, civil status, familienstand, beziehungsstatus
car: vehicle, drives, automobile, car model, type of car, auto, wagen, fahrzeug, pkw
diet: eating habits, dietary preference, dietary preferences, dietary habits, diet type, eating style,
    ernährung, ernährungsweise, essgewohnheiten
phone: smartphone, mobile, mobile phone, cell phone, cellphone, phone model, handy, telefon
phone number: telephone number, mobile number, cell number, handynummer, telefonnummer
email: e mail, email address, e mail address, mail address, mailadresse
gym day: workout day, training day, day of training, exercise day, gym weekday, trainingstag, sporttag
birthday: date of birth, birth date, birthdate, born on, geburtstag, geburtsdatum
age: years old, alter
doctor: physician, gp, family doctor, arzt, hausarzt, ärztin, hausärztin
dentist: zahnarzt, zahnärztin
boss: manager, supervisor, line manager, chef, chefin, vorgesetzter, vorgesetzte
bedtime: sleep time, time to bed, schlafenszeit
hometown: place of birth, birthplace, geburtsort, heimatstadt
instruction: standing instruction, instructions, rule, anweisung, regel
"""


def test_every_word_for_an_attribute_has_its_one_name():
    for line in ONE_NAME.replace("\n    ", " ").strip().splitlines():
        name, _, words = line.partition(": ")
        for word in (name, *words.split(", ")):
            assert attribute_name(word) == attribute_name(word.upper()) == name, word


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("the current new job", "occupation"), ("my current job", "occupation"), ("his home", "home"),
        ("her latest car", "car"), ("their present employer", "employer"), ("an age", "age"), ("a new phone", "phone"),
        ("neue Adresse", "home"), ("aktueller Beruf", "occupation"), ("derzeitige Stelle", "occupation"),
        ("the user's car", "car"), ("user's favourite film", "favorite movie"), ("the cat's name", "cat name"),
        ("name of the cat", "cat name"), ("name", "name"), ("job of Rex", "job of rex"),
        ("Lieblingsgetränk", "favorite drink"), ("Lieblingsfilm", "favorite movie"),
        ("Lieblingsgericht", "favorite dish"),
        ("Lieblingsessen", "favorite food"), ("Lieblingsobst", "favorite fruit"), ("Lieblingsfrucht", "favorite fruit"),
        ("Lieblingsbuch", "favorite book"), ("Lieblingsmusik", "favorite music"), ("Lieblingslied", "favorite song"),
        ("Lieblingssport", "favorite sport"), ("Lieblingstier", "favorite animal"), ("Lieblingsstadt", "favorite city"),
        ("Lieblingsrestaurant", "favorite restaurant"), ("Lieblingsserie", "favorite series"),
        ("Lieblingsspiel", "favorite game"), ("Lieblingsautor", "favorite author"),
        ("Lieblingsfarbe", "favorite color"),
        ("Lieblingskäse", "favorite kase"), ("Lieblings", "lieblings"), ("fav theatre", "favorite theater"),
        ("preferred flavour", "favorite flavor"), ("favourite colour", "favorite color"), ("grey tyre", "gray tire"),
        ("neighbour", "neighbor"), ("shopping centre", "shopping center"), ("programme", "program"),
        ("driving licence", "driving license"), ("jewellery", "jewelry"), ("the", "the"), ("s", "s"),
        ("name of cat", "cat name"), ("her new current car", "car"),
    ],
)  # fmt: skip
def test_idle_words_owners_and_spellings_make_no_other_attribute(attribute, name):
    assert attribute_name(attribute) == name


@pytest.mark.parametrize(
    ("attribute", "earlier"),
    [
        ("place", "location"), ("lives in", "home"), ("cause of death", "fate"), ("owes", "debt"),
        ("job", "occupation"),
        ("disposition", "attitude"), ("aim", "goal"), ("afraid of", "fear"), ("condition", "state"), ("called", "name"),
        ("wife", "wife"), ("vehicle", "vehicle"), ("favourite fruit", "favourite fruit"), ("new phone", "new phone"),
    ],
)  # fmt: skip
def test_the_name_that_older_stores_gave_an_attribute(attribute, earlier):
    assert earlier_attribute_name(attribute) == earlier


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("The user now lives in Oslo.", "home", "Oslo"), ("The user still resides at the mill.", "home", "the mill"),
        ("The user currently lives on Skye.", "home", "Skye"), ("The user lives now in Oslo.", "home", "Oslo"),
        ("The user moved to Oslo.", "home", "Oslo"), ("The user has moved to Oslo.", "home", "Oslo"),
        ("Der Benutzer lebt nun in Bonn.", "home", "Bonn"), ("Der Nutzer zieht jetzt nach Bonn.", "home", "Bonn"),
        ("Die Benutzerin ist nach Bonn gezogen.", "home", "Bonn"),
        ("Die Nutzerin ist nach Bonn umgezogen!", "home", "Bonn"),
        ("The user works now as a nurse.", "occupation", "nurse"), ("User works as an actor", "occupation", "actor"),
        ("Der Benutzer arbeitet jetzt als Koch.", "occupation", "Koch"),
        ("The user works at Acme.", "employer", "Acme"),
        ("The user now works for Acme.", "employer", "Acme"),
        ("Der Benutzer arbeitet bei Siemens.", "employer", "Siemens"),
        ("Der Benutzer arbeitet für Siemens.", "employer", "Siemens"), ("User now drives a Volvo.", "car", "Volvo"),
        ("Der Benutzer fährt einen Volvo.", "car", "Volvo"), ("The user is now married to Eva.", "partner", "Eva"),
        ("Der Benutzer ist jetzt verheiratet mit Eva.", "partner", "Eva"), ("The user is called Ann.", "name", "Ann"),
        ("The user is named Ann.", "name", "Ann"), ("Der Benutzer heißt Ann.", "name", "Ann"),
        ("The user was born on 3 May 1985.", "birthday", "3 May 1985"),
        ("Der Benutzer wurde geboren am 3. Mai 1985.", "birthday", "3. Mai 1985"),
        ("The user eats strictly vegan food.", "diet", "vegan"),
        ("The user is now a pescatarian.", "diet", "pescatarian"),
        ("Der Benutzer ist vegetarisch.", "diet", "vegetarisch"), ("The user lives in Oslo instead!", "home", "Oslo"),
        ("The user lives in Oslo now, these days.", "home", "Oslo"),
        ("The user lives in Oslo currently.", "home", "Oslo"),
        ("The user does not live in Oslo any longer.", "home", "no longer Oslo"),
        ("The user doesn't live in Oslo any more.", "home", "no longer Oslo"),
        ("The user doesn’t work at Acme anymore.", "employer", "no longer Acme"),
        ("The user does not drive a Volvo.", "car", "no longer Volvo"),
        ("Der Benutzer arbeitet nicht mehr als Koch.", "occupation", "no longer Koch"),
        ("Der Benutzer lebt nicht mehr in Bonn.", "home", "no longer Bonn"),
        ("The user's job is nurse now.", "occupation", "nurse"),
        ("The user’s favourite colour is now red.", "favorite color", "red"),
        ("The user's age is 40", "age", "40"),
    ],
)  # fmt: skip
def test_the_sentences_that_give_a_property_its_value(text, attribute, value):
    assert stated_property(text) == ("the user", attribute, value)


@pytest.mark.parametrize(
    "text",
    [
        "The users live in Oslo.", "The user lives in Oslo, with Eva.", "Der Benutzer fährt nach Bonn.",
        "The user's goal is to win.", "The user's location is Oslo.", "The user's state is fine.",
        "The user's fear is fire.",
        "The user's debt is small.", "The user's attitude is kind.", "The user's instruction is to be brief.",
        "The user does not sing.",
    ],
)  # fmt: skip
def test_the_sentences_that_give_no_property_its_one_value(text):
    assert stated_property(text) is None


def test_with_a_subject_the_sentence_begins_with_it():
    assert stated_property("The mill is called Old Bess.", "the mill") == ("the mill", "name", "Old Bess")
    assert stated_property("Mill is called Old Bess.", "The mill") == ("The mill", "name", "Old Bess")
    assert stated_property("Goran (the smith) lives.", "Goran (the smith)") is None
    assert stated_property("Oda lives at the mill.", "Goran") is None
    assert stated_property("Goran's wife is Oda.", "Goran") == ("Goran", "partner", "Oda")

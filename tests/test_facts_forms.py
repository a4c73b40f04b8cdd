"""An app's own facts: classes with slots, instructions, metadata and a time to live, in both of its doors."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal

import pytest
from answering import Answering, Talk
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from scripted import call, say

from questbook import (
    Fact,
    FactNotes,
    Query,
    Recall,
    build_agent,
    campaign_namespace,
    keep_valid,
    note_facts,
    recall,
)
from questbook.graphs.settings import AppRules
from questbook.memory.facts.forms import check_forms, forms_tool, read_forms
from questbook.notebooks.errors import DeclarationError

FACTS = campaign_namespace("ann", "agent:agent", "facts")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).isoformat()


class Order(BaseModel):
    """An order of the customer."""

    SLOT: ClassVar = ("number",)
    TTL: ClassVar = timedelta(days=90)
    number: str
    state: Literal["paid", "sent", "returned"]


class Likes(BaseModel):
    """What somebody likes."""

    SLOT: ClassVar = ("who", "what")
    who: str
    what: str
    how: str = ""

    @property
    def text(self):
        return f"{self.who} likes {self.what}."


class Visit(BaseModel):
    """A visit, of which there are many."""

    place: str


class DietPlan(BaseModel):
    """What the person eats."""

    SLOT: ClassVar = ()
    plan: str


class Room12Key(BaseModel):
    """Who has the key of room 12."""

    SLOT: ClassVar = ()
    who: str
    note: str = ""


@pytest.mark.parametrize(
    ("form", "filled", "slot", "text"),
    [
        (Room12Key, {"who": "Ann"}, "user|room12 key", "room12 key: who Ann"),
        (Order, {"number": "A17", "state": "sent"}, "a17|order", "order: number A17, state sent"),
        (Likes, {"who": "Ann", "what": "tea"}, "ann|tea", "Ann likes tea."),
        (Visit, {"place": "Rome"}, "", "visit: place Rome"),
        (DietPlan, {"plan": "vegan"}, "user|diet plan", "diet plan: plan vegan"),
    ],
)
def test_a_filled_form_is_a_fact_in_the_slot_that_its_class_says(form, filled, slot, text):
    [[(fact, ttl)], problems] = read_forms([form], [{form.__name__: [filled]}])
    assert (fact.slot, fact.text, fact.form, problems) == (slot, text, form.__name__, [])
    assert fact.data == form(**filled).model_dump()
    assert ttl == getattr(form, "TTL", None)


def test_the_tool_has_a_list_for_each_form_and_what_does_not_fit_is_named_without_its_words():
    assert set(forms_tool([Order, Visit])["function"]["parameters"]["properties"]) == {"Order", "Visit"}
    assert set(forms_tool([Fact, Order])["function"]["parameters"]["properties"]) == {"facts", "Order"}
    facts, [problem] = read_forms([Order], [{"Order": [{"number": "1", "state": "swordfish"}]}, {"Visit": "Rome"}])
    assert facts == []
    assert problem.startswith("Order.state: ")
    assert "swordfish" not in problem


class Plain:
    """No form."""


class Wrong(BaseModel):
    SLOT: ClassVar = ("colour",)
    name: str = ""


class Ended(BaseModel):
    TTL: ClassVar = timedelta()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"schema": [Plain]}, "schema: got <class .*Plain"),
        ({"schema": Order}, "schema: "),
        ({"schema": [Wrong]}, r"Wrong.SLOT: got \('colour',\)"),
        ({"schema": [Ended]}, "Ended.TTL"),
        ({"schema": [Order, Order]}, "names of their own"),
        ({"instructions": 3}, "instructions: got 3"),
        ({"ttl": 30}, "ttl: got 30"),
        ({"ttl": timedelta(0)}, "ttl: got"),
        ({"ttl": timedelta.max}, "expected above 0, to 100 years"),
        ({"team": 3}, "team: got 3"),
        ({"metadata": ["x"]}, "metadata: got"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules, said):
    with pytest.raises(DeclarationError, match=said):
        AppRules(**rules)
    with pytest.raises(DeclarationError, match="Take 'inline'"):
        FactNotes(noting="background", instructions="Be brief.")


def noted(**lists):
    return say("", call("Facts", **lists))


NOTES = FactNotes(schema=[Order, Fact], instructions="Note every order.", ttl=timedelta(days=30))


class Desk:
    """The same agent, made by `build_agent`."""

    def __init__(self, **options):
        self.model, self.store = Answering(), InMemoryStore()
        graph = build_agent([], model=self.model, **options)
        self.agent = graph.compile(checkpointer=InMemorySaver(), store=self.store)

    async def say(self, words, config=None, *answers):
        self.model.answers += answers
        thread = {"configurable": {"thread_id": "1", "user": "ann"}}
        return await self.agent.ainvoke({"messages": [HumanMessage(words)]}, config or thread)


@pytest.mark.parametrize("door", [Talk, Desk])
async def test_notes_are_taken_as_the_app_says_in_both_doors(door):
    talk = door(facts=NOTES, metadata=lambda _: {"project": "blue"})
    paid, sent = ({"number": "A17", "state": state} for state in ("paid", "sent"))
    home = {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", "value": "Oslo"}
    await talk.say("I paid order A17. I live in Oslo.", None, "Fine.", noted(Order=[paid], facts=[home]))
    assert "Note every order." in talk.model.prompts[-1][0].text
    await talk.say("It was sent.", None, "Fine.", noted(Order=[sent, {"number": 3}]))
    items = await talk.store.asearch(FACTS)
    holding = await keep_valid(talk.store, items)
    texts = sorted(item.value["text"] for item in holding)
    assert texts == ["The user lives in Oslo.", "order: number A17, state sent"]
    assert {item.value["metadata"]["project"] for item in items} == {"blue"}
    now = datetime.now(UTC)
    days = {(datetime.fromisoformat(item.value["expires"]) - now).days + 1 for item in items}
    assert days == {30, 90}, "a class's own time to live counts first"
    exchanges = await talk.store.asearch(campaign_namespace("ann", "agent:agent", "exchanges"))
    assert {item.value["metadata"]["project"] for item in exchanges} == {"blue"}


async def test_what_has_expired_is_not_recalled_and_may_be_said_again():
    store, timeline = InMemoryStore(), [("a", 1)]
    weather = {"text": "It rains in Oslo.", "subject": "Oslo", "attribute": "weather", "value": "rain"}
    await note_facts(store, FACTS, [weather | {"expires": LONG_AGO}], timeline=timeline)
    assert await recall(store, FACTS, Query("weather in Oslo", timeline=timeline)) == []
    items = await store.asearch(FACTS)
    assert await keep_valid(store, items, timeline=timeline) == []
    changes = await note_facts(store, FACTS, [weather], timeline=[("a", 2)])
    assert (len(changes.new), changes.repetitions) == (1, {})
    assert len(await recall(store, FACTS, Query("weather in Oslo", timeline=[("a", 2)]))) == 1
    soon, late = ((datetime.now(UTC) + timedelta(days=days)).isoformat() for days in (1, 9))
    for turn, expires, new in ((3, soon, 0), (4, soon, 1), (5, late, 1), (6, soon, 0), (7, "", 1)):
        said = {"text": "Ann stays at the inn." if turn > 3 else weather["text"], "expires": expires}
        changes = await note_facts(store, FACTS, [said], timeline=[("a", turn)])
        assert len(changes.new) == new, (turn, "a fact that is said again lives on; one without end is not ended")
    changes = await note_facts(store, FACTS, [weather | {"value": "snow", "expires": soon}], timeline=[("a", 8)])
    assert (len(changes.new), len(changes.superseded)) == (1, 1)
    for turn, expires, new in ((9, soon, 0), (10, late, 1)):
        said = weather | {"value": "snow", "expires": expires}
        assert len((await note_facts(store, FACTS, [said], timeline=[("a", turn)])).new) == new, "of a slot, too"
    with pytest.raises(ValueError, match="offset"):
        Fact(text="x", expires="2026-01-01T10:00:00")


async def test_only_what_has_the_metadata_is_recalled():
    talk = Talk(metadata={"project": "blue"}, recall=Recall(metadata={"project": "blue"}))
    await talk.say("The lamp is red.")
    other = Talk(talk.store, recall=Recall(metadata={"project": "green"}))
    other.thread = {"configurable": {"thread_id": "2"}}
    await other.say("Which colour is the lamp?")
    assert "red" not in other.model.remembered
    talk.thread = {"configurable": {"thread_id": "3"}}
    await talk.say("Which colour is the lamp?")
    assert "red" in talk.model.remembered


class Note(BaseModel):
    """A note with a sentence of its own and fields that may be empty."""

    text: str = ""
    place: str = ""
    tags: list[str] = []
    extra: dict[str, str] = {}
    count: int = 0


class Three(BaseModel):
    SLOT: ClassVar = ("a", "b", "c")
    a: str = ""
    b: str = ""
    c: str = ""


class Text(BaseModel):
    SLOT: ClassVar = "a"
    a: str = ""


class Days(BaseModel):
    TTL: ClassVar = 30


class Facts(BaseModel):
    """A class whose name is taken."""


@pytest.mark.parametrize(
    ("forms", "says"),
    [
        ([Three], r"^Three\.SLOT: got \('a', 'b', 'c'\); expected at most two of \('a', 'b', 'c'\)$"),
        ([Text], r"^Text\.SLOT: got 'a'; expected at most two of \('a',\)$"),
        ([Days], r"^Days\.TTL: got 30; expected a timedelta above 0$"),
        ([Ended], r"^Ended\.TTL: got .*; expected a timedelta above 0$"),
        ([Plain], "expected classes derived from pydantic's BaseModel, or Fact$"), ([7], "got 7; expected classes"),
        ([type("facts", (Visit,), {})], r"got \['facts'\]; expected classes with names of their own, none .*'facts'$"),
        ([Visit, Visit], "expected classes with names of their own"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_form_that_makes_no_sense_is_named(forms, says):
    with pytest.raises(ValueError, match=says):
        check_forms(forms)
    check_forms([Visit, Order, Likes, DietPlan, Fact, Facts])
    check_forms([])


@pytest.mark.parametrize(
    ("filled", "text", "value"),
    [
        ({}, "note: count 0", ", [], {}, 0"), ({"place": "Rome"}, "note: place Rome, count 0", "Rome, [], {}, 0"),
        ({"text": "We met.", "place": "Rome"}, "We met.", "Rome, [], {}, 0"),
        ({"tags": ["a"], "count": 2}, "note: tags ['a'], count 2", ", ['a'], {}, 2"),
    ],
)  # fmt: skip
def test_the_sentence_of_a_form_without_one_is_what_its_fields_say(filled, text, value):
    [[(fact, _)], []] = read_forms([Note], [{"Note": [filled]}])
    assert (fact.text, fact.value, fact.subject, fact.attribute, fact.slot) == (text, value, "", "", "")


def test_forms_are_read_from_whatever_a_model_sends():
    paid = {"number": "A17", "state": "paid"}
    facts, problems = read_forms(
        [Order, Visit], [None, "x", {"Order": paid}, {"Order": None, "Visit": [{"place": "Rome"}]}, [paid]]
    )
    assert [(fact.form, fact.data) for fact, _ in facts] == [("Order", paid), ("Visit", {"place": "Rome"})]
    assert problems == []
    facts, problems = read_forms([Order], [{"Order": [paid, {"number": "1"}, "x"]}])
    assert len(facts) == 1
    assert problems[0] == "Order.state: Field required; it was left out."
    assert problems[1].startswith("Order: Input should be")
    assert len(problems) == 2


def test_long_fields_of_a_form_are_cut_to_what_a_fact_takes():
    [[(fact, _)], []] = read_forms([Likes], [{"Likes": {"who": "w" * 300, "what": "x" * 300, "how": "h" * 300}}])
    assert [len(part) for part in (fact.subject, fact.attribute, fact.value)] == [200, 200, 200]
    [[(fact, _)], []] = read_forms([Note], [{"Note": {"text": "t" * 2000}}])
    assert len(fact.text) == 1000

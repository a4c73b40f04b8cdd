"""Facts of a conversation: the model is asked once after the reply, and what it sends gets slots and a timeline."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from companion_thread import Companion
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from scripted import call, malformed, say, sections_of

from questbook import Fact, FactNotes
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.errors import ModelError
from questbook.graphs.settings import AppRules, NotingContext, Settings
from questbook.graphs.turn.facts import ask_facts, learn, rules_of
from questbook.graphs.turn.state import FACT_CHANNELS, FactState
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key
from questbook.notebooks import DeclarationError

TURN = {"turn": 1, "player": "My sister Anna lives in Bergen now.", "reply": "A fine town."}
BERGEN = {"text": "Anna lives in Bergen.", "subject": "Anna", "attribute": "home", "value": "Bergen", "kind": "trait"}


async def test_the_model_is_asked_once_for_the_facts_of_turns(model):
    model.queue("facts", say("", call("Facts", facts=[BERGEN])))
    noted = await ask_facts([TURN], Settings(), known='{"subject": "Anna", "attributes": ["home"]}')
    [fact] = noted.facts
    assert (fact.subject, fact.slot, fact.value, noted.remarks) == ("Anna", "anna|home", "Bergen", [])
    [prompt] = model.asked("facts")
    assert '"attributes": ["home"]' in sections_of(prompt)
    assert '"user": "My sister Anna lives in Bergen now."' in prompt[-1].text
    assert (await ask_facts([TURN], Settings())).facts == [], "no change"


async def test_a_fact_ends_by_itself_only_where_an_app_says_so(model):
    class Short(Settings):
        APP = AppRules(ttl=timedelta(days=30))

    ends = []
    for settings in (Settings, Short, CompanionContext):
        model.queue("facts", say("", call("Facts", facts=[BERGEN])))
        [fact] = (await ask_facts([TURN], settings(), now=datetime(2026, 1, 1, tzinfo=UTC))).facts
        ends.append(fact.expires)
    assert ends == ["", "2026-01-31T00:00:00+00:00", ""]


async def test_what_cannot_be_read_is_asked_for_again_with_the_reason(model):
    model.queue("facts", malformed("Facts", '{"facts": ['), say("", call("Facts", facts=[BERGEN])))
    assert len((await ask_facts([TURN], Settings())).facts) == 1
    [result] = [message for message in model.asked("facts")[1] if isinstance(message, ToolMessage)]
    assert "no JSON object" in result.text
    model.queue("facts", say("Noted."), say("", call("Facts", facts=[BERGEN])))
    assert len((await ask_facts([TURN], Settings())).facts) == 1, "prose is asked for a call"
    model.queue("facts", *[malformed("Facts", "{")] * 3)
    with pytest.raises(ModelError, match="no JSON object"):
        await ask_facts([TURN], Settings())


@pytest.mark.parametrize(
    ("fact", "spoken", "expected"),
    [
        ({"text": "The user lives in Oslo.", "subject": "me"}, "I live in Oslo.", ("trait", "the user", "")),
        ({"text": "The user paints.", "subject": "User", "claimed_by": "the user"}, "I paint.",
         ("trait", "the user", "")),
        ({"text": "Lemons cure colds.", "subject": "lemons"}, "What helps? My throat is really sore.",
         ("rumour", "lemons", "the assistant")),
        ({"text": "Lemons cure colds.", "subject": "lemons"}, "Yes, quite.", ("trait", "lemons", "")),
        ({"text": "If the user wins, they would move.", "subject": "user"}, "If I win I would move.",
         ("rumour", "the user", "")),
        ({"text": "Anna is ill.", "subject": "Anna", "claimed_by": "Ben"}, "Ben says Anna is ill.",
         ("rumour", "Anna", "Ben")),
        ({"text": "The user snores.", "kind": "secret", "known_by": ["Anna"]}, "I snore.", ("trait", "", "")),
    ],
)  # fmt: skip
async def test_a_fact_is_what_the_person_said_and_no_attempt_of_a_player(model, fact, spoken, expected):
    model.queue("facts", say("", call("Facts", facts=[{"kind": "trait"} | fact])))
    turn = {"turn": 1, "player": spoken, "reply": "Lemons cure colds, they say."}
    [noted] = (await ask_facts([turn], Settings())).facts
    assert (noted.kind, noted.subject, noted.claimed_by) == expected
    assert noted.known_by == []


def fact(text, subject="the user", attribute="", value="", **more):
    return {"text": text, "subject": subject, "attribute": attribute, "value": value, "kind": "trait"} | more


def taught(*facts):
    return say("", call("Facts", facts=list(facts)))


async def test_the_companion_notes_facts_unasked_and_the_newest_of_a_slot_holds(companion):
    companion.model.queue("facts", taught(fact("The user lives in Oslo.", attribute="home", value="Oslo")))
    await companion.say("I live in Oslo.")
    ended = fact("The user does not live in Oslo any more.", attribute="home", value="no longer Oslo")
    companion.model.queue("facts", taught(ended))
    await companion.say("I don't live in Oslo any more.")
    assert await companion.holding() == ["The user does not live in Oslo any more."]
    assert '{"subject": "the user", "attributes": ["home"]}' in sections_of(companion.model.asked("facts")[1])
    assert companion.values["facts_through"] == 2
    [first, second] = companion.records("facts")
    assert (first["turns"], second["turns"], len(second["messages"])) == ([1, 1], [2, 2], 2)


@pytest.mark.parametrize(("zone", "hours"), [("Pacific/Kiritimati", 14), ("Pacific/Niue", -11)])
async def test_tomorrow_is_counted_in_the_persons_timezone(companion, zone, hours):
    companion.settings |= {"timezone": zone}
    companion.model.queue("facts", taught(fact("The user goes to the dentist tomorrow.")))
    await companion.say("I go to the dentist tomorrow.")
    tomorrow = f"{datetime.now(UTC) + timedelta(hours=hours, days=1):%Y-%m-%d}"
    assert companion.records("facts")[0]["when"] == [tomorrow, tomorrow]


async def test_a_new_thread_does_not_note_the_last_turn_once_more(companion):
    companion.model.queue("facts", taught(fact("The user paints.")))
    await companion.say("I paint.")
    again = Companion(companion.model, companion.saver, companion.store)
    await again.say("Hello again.")
    assert '"turn": 1' not in companion.model.asked("facts")[-1][-1].text
    assert again.values["facts_through"] == 2


async def test_the_setting_facts_turns_it_off(companion):
    companion.settings |= {"facts": False}
    await companion.say("I paint.")
    assert companion.model.asked("facts") == []


class Carrying(FactState):
    CARRIED: ClassVar = (*FactState.CARRIED, *FACT_CHANNELS)


SAID = ["My sister Anna lives in Bergen.", "Anna has a boat.", "I paint."]
NAMESPACE = ("ann", "default", "facts")


def taught_turns(*words, **channels):
    """The state after turns of these words, each answered."""
    pairs = [(HumanMessage(text, id=f"h{n}"), AIMessage("I see.", id=f"a{n}")) for n, text in enumerate(words, 1)]
    turn, messages = len(words), [message for pair in pairs for message in pair]
    values = {"turn": turn, "timeline": [("a", turn)], "remembered_through": turn, "messages": messages}
    return Carrying(**values | channels)


async def learn_in(store, state, **settings):
    info = ExecutionInfo(checkpoint_id="c", checkpoint_ns="", task_id="", thread_id="t")
    context = NotingContext.of({"user": "ann", "model": "scripted"} | settings)
    return await learn(state, Runtime(context=context, store=store, execution_info=info))


async def test_turns_that_are_due_are_noted_with_where_they_come_from_and_the_head_says_so(model):
    store = InMemoryStore()
    model.queue("facts", taught(BERGEN | {"importance": 7}))
    update = await learn_in(store, taught_turns(*SAID, unreflected=5, facts_through=1))
    assert update == {"facts_through": 3, "unreflected": 12, "notices": []}
    [prompt] = model.asked("facts")
    assert [words in prompt[-1].text for words in SAID] == [False, True, True]
    [record] = store.search(NAMESPACE)
    told = {"branch": "a", "turn": 3, "turns": [2, 3], "messages": ["h2", "a2", "h3", "a3"], "thread": "t"}
    assert {name: record.value[name] for name in told} == told
    [head] = store.search(("ann", "default", "head"))
    assert (head.value["facts_through"], head.value["unreflected"], head.value["thread"]) == (3, 12, "t")
    model.queue("facts", say("no change"))
    lie = {"text": "Anna lies.", "subject": "Anna", "attribute": "lie", "slot": "anna|lie", "kind": "trait"}
    await store.aput(NAMESPACE, "other", lie | Stamp("another future", 1).to_json())
    await learn_in(store, taught_turns(*SAID, "Anna sings.", facts_through=3))
    known = '{"subject": "Anna", "attributes": ["home"]}'
    assert known in sections_of(model.asked("facts")[1])


async def test_what_is_too_much_for_one_question_is_noted_in_portions(model):
    update = await learn_in(InMemoryStore(), taught_turns(*SAID), buffer_tokens=500)
    assert update["facts_through"] == 3
    long = [f"{text} {'And so it is. ' * 200}" for text in SAID]
    window = {"model": "scripted", "tokens": 900}
    update = await learn_in(InMemoryStore(), taught_turns(*long, window=window))
    assert update["facts_through"] == 1
    assert [words in model.asked("facts")[1][-1].text for words in SAID] == [True, False, False]


async def test_private_turns_and_those_without_a_place_are_not_noted_and_a_failure_leaves_them_for_the_next(model):
    store, private = InMemoryStore(), "Don't remember this: I am Zelda."
    assert await learn_in(None, taught_turns(*SAID)) == {"facts_through": 3}
    assert await learn_in(store, taught_turns(*SAID, remembered_through=2)) == {}
    assert await learn_in(store, taught_turns(private)) == {"facts_through": 1}
    assert model.asked("facts") == []
    update = await learn_in(store, taught_turns(*SAID, private))
    assert update["facts_through"] == 4, "behind the last one that may be noted"
    assert "Zelda" not in str(model.asked("facts"))
    model.queue("facts", ConnectionError("cut"))
    update = await learn_in(store, taught_turns(*SAID))
    assert list(update) == ["notices"]
    [told] = update["notices"]
    assert told["text"].startswith("What this turn taught was not noted; the next turn will catch up.")
    assert (told["turn"], told["node"]) == (3, "learn")


async def test_days_of_a_fact_are_counted_from_when_its_turn_was_said(model):
    """Notes may come days later."""
    store = InMemoryStore()
    value = {"kind": "exchange", "said_at": "2026-01-05T12:00:00+00:00"}
    await store.aput(("ann", "default", "exchanges"), record_key("a", 1, "exchange"), value)
    model.queue("facts", taught(fact("The user goes to the dentist tomorrow.")))
    await learn_in(store, taught_turns("I go to the dentist tomorrow."))
    [record] = store.search(NAMESPACE)
    assert record.value["when"] == ["2026-01-06", "2026-01-06"]
    assert 'now: "Monday, 2026-01-05"' in sections_of(model.asked("facts")[0])


def test_notes_of_facts_say_what_they_take_and_reach_the_settings():
    notes = FactNotes(reflection="inline", reflection_importance=9, instructions="All.", ttl=timedelta(1))
    assert notes.settings() == {"reflection": "inline", "reflection_importance": 9, "noting": "inline"}
    assert rules_of(notes, "crew", {"app": "a"}) == AppRules(
        team="crew", metadata={"app": "a"}, instructions="All.", ttl=timedelta(1)
    )
    assert rules_of(True, None, None) == AppRules(team="", metadata={})
    for option in ({"schema": [Fact]}, {"instructions": "All."}, {"ttl": timedelta(1)}):
        with pytest.raises(DeclarationError, match="noting: got 'background' with a schema, instructions or ttl"):
            FactNotes(noting="background", **option)


class Order(BaseModel):
    """An order."""

    SLOT: ClassVar = ("number",)
    number: str


class Ordering(Settings):
    APP = AppRules(schema=[Order, Fact])


FINE = {"text": "Anna sings.", "subject": "Anna"}


@pytest.mark.parametrize(("settings", "answers", "kept", "lost"), [
    (Settings, [say("", call("Facts", facts=[FINE]))], 1, None),
    (Settings, [say("", call("Facts", facts=[FINE, 7]))], 1, "A fact was no object and was left out"),
    (Settings, [say("", call("Facts", facts=[FINE] * 501))], 1, "Of 501 facts in one answer the first 500 were read"),
    (Settings, [say("", call("Facts", facts=[FINE]), call("Fly"))] * 3, 1, "There is no tool 'Fly'"),
    (Ordering, [say("", call("Facts", facts=[FINE], Order=[{"number": "A1"}, {"number": []}]))], 2, "it was left out."),
    (Ordering, [say("", call("Facts", Order=[{"number": "A1"}]))], 1, None),
])  # fmt: skip
async def test_what_could_not_be_kept_of_a_turn_is_told_with_why(model, settings, answers, kept, lost):
    model.queue("facts", *answers)
    noted = await ask_facts([TURN], settings())
    assert len({fact.text for fact in noted.facts}) == kept
    if lost is None:
        assert noted.remarks == []
    else:
        [(told, detail)] = noted.remarks
        assert told == "Not every fact of this turn could be kept."
        assert lost in detail

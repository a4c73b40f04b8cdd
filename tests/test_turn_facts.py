"""Facts of a conversation: the model is asked once after the reply, and what it sends gets slots and a timeline."""

from datetime import UTC, datetime, timedelta

import pytest
from companion_thread import Companion
from langchain_core.messages import ToolMessage
from scripted import call, malformed, say, sections_of

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.errors import ModelError
from questbook.graphs.settings import AppRules, Settings
from questbook.graphs.turn.facts import ask_facts

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

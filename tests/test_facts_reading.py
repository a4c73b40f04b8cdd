"""Facts as models send them: what can be read is read, also their days, nothing is made up, and each oddity is told."""

import json
import random
from datetime import UTC, datetime

import pytest
from fact_play import play, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from stores import stores_of

from questbook import Query, note_facts, recall
from questbook.graphs.dungeon_master.facts import FACT_WORDS
from questbook.memory.facts.days import find_calendar_day, find_days, line_date
from questbook.memory.facts.fact import KINDS, NOT_ASKED, Fact, facts_tool, is_secret_record, slot_of
from questbook.memory.facts.reading import MAX_FACTS, classify_statement, read_facts, sounds_unreal
from questbook.memory.recall.query import Present
from questbook.memory.timeline.records import CALENDAR_TIME

WHOLE = {
    "kind": "trait", "text": "Goran lives at the mill.", "subject": "Goran", "attribute": "home", "value": "the mill",
    "importance": 7, "story_time": "day 3, dusk", "real_time": "2026-05-03", "known_by": ["Goran", "Mira"],
    "claimed_by": "",
}  # fmt: skip


def read(*facts):
    return read_facts({"facts": list(facts)})


def test_a_whole_fact_is_read_as_it_is():
    [fact], notices = read(WHOLE)
    days = {"when": ["2026-05-03", "2026-05-03"], "date": "20260503", "month": "202605"}
    assert fact.record() == {**WHOLE, "slot": "goran|home", **days}
    assert notices == []


def test_the_tool_asks_for_what_is_read_and_nothing_else():
    entry = facts_tool(FACT_WORDS)["function"]["parameters"]["properties"]["facts"]["items"]
    assert set(entry["properties"]) == set(Fact(text="x").model_dump()) - NOT_ASKED | {"about"}
    assert entry["properties"]["kind"]["enum"] == list(KINDS)
    assert "secret" not in str(facts_tool()), "an app that hides nothing has none"


@pytest.mark.parametrize(
    "given",
    [{"facts": [WHOLE]}, [{"facts": [WHOLE]}], [WHOLE], WHOLE, {"facts": WHOLE}, [{"facts": []}, {"facts": [WHOLE]}]],
)
def test_facts_are_found_wherever_a_model_puts_them(given):
    assert [fact.text for fact in read_facts(given).facts] == [WHOLE["text"]]


def test_missing_fields_are_left_open_and_not_made_up():
    [fact], notices = read({"text": "The lamp went out."})
    assert fact.record() == {
        "kind": "event", "text": "The lamp went out.", "subject": "", "attribute": "", "value": "", "importance": 5,
        "story_time": "", "real_time": "", "known_by": [], "claimed_by": "", "slot": "",
    }  # fmt: skip
    assert notices == []


def test_without_a_text_the_fields_say_it_and_prose_is_kept_as_a_sentence():
    [fact], notices = read_facts("Goran has left the village.")
    assert fact.text == "Goran has left the village."
    assert "bare sentence" in notices[0]
    assert read_facts({}) == read_facts(None) == ([], [])
    [fact], notices = read({"subject": "Goran", "attribute": "home", "value": "the mill"})
    assert fact.text == "Goran, home: the mill"
    assert "put together" in notices[0]


@pytest.mark.parametrize("nothing", [{}, {"text": " "}, {"text": None}, {"subject": "Goran"}, 7, None, ["x"], True])
def test_what_says_nothing_is_left_out_and_told(nothing):
    facts, notices = read(nothing, WHOLE)
    assert [fact.text for fact in facts] == [WHOLE["text"]]
    assert any("left out" in line for line in notices)


@pytest.mark.parametrize(
    ("said", "importance", "odd"),
    [
        (7, 7, False), ("7", 7, False), ("7/10", 7, False), (7.4, 7, False), (None, 5, False), (1, 1, False),
        (10, 10, False), (0, 1, True), (11, 10, True), (-3, 1, True), ("very", 5, True), (True, 5, True),
        (float("inf"), 5, True), (float("nan"), 5, True), ([], 5, True), ({"a": 1}, 5, True), ("1" * 400, 5, True),
        (10**400, 5, True), (1e9, 5, True), (1e9 - 1, 10, True),
    ],
)  # fmt: skip
def test_importance_is_a_number_from_1_to_10_whatever_was_said(said, importance, odd):
    [fact], notices = read(WHOLE | {"importance": said})
    assert fact.importance == importance
    assert bool(notices) == odd


@pytest.mark.parametrize(
    ("said", "real", "story"),
    [
        ("2026-05-03", "2026-05-03", "day 3, dusk"),
        ("2026-05-03T10:00:00+02:00", "2026-05-03T10:00:00+02:00", "day 3, dusk"), ("0000-01-01", "", "day 3, dusk"),
        ("9999-12-31T23:59:59", "", "day 3, dusk"), ("0001-01-01", "", "day 3, dusk"),
        ("last summer", "", "day 3, dusk"), (20260503, "2026-05-03T00:00:00", "day 3, dusk"),
    ],
)  # fmt: skip
def test_a_real_time_is_a_date_of_ours_or_none(said, real, story):
    [fact], notices = read(WHOLE | {"real_time": said})
    assert (fact.real_time, fact.calendar_time) == (real, story)
    assert bool(notices) == (not real)
    [fact], notices = read(WHOLE | {"real_time": "the year 0", "story_time": ""})
    assert (fact.real_time, fact.calendar_time) == ("", "the year 0")
    assert "kept as it was said" in notices[0]


@pytest.mark.parametrize(("about", "now", "day"), [("", 9, 3), ("player", 9, None), ("", None, None)])
def test_a_day_of_an_apps_own_calendar_is_that_of_facts_that_are_not_of_the_person(about, now, day):
    likes = {"text": "Goran likes tea on day 3.", "kind": "preference", "about": about, "story_time": "day 3"}
    [fact], _ = read_facts([likes], day=now)
    assert fact.day == day


def test_five_hundred_facts_at_once_are_all_read_and_what_is_more_is_told():
    many = [{"text": f"The stone number {n} is red."} for n in range(MAX_FACTS + 20)]
    facts, notices = read_facts({"facts": many[:MAX_FACTS]})
    assert len(facts) == 500
    assert notices == []
    facts, notices = read_facts({"facts": many})
    assert [fact.text for fact in facts] == [fact["text"] for fact in many[:MAX_FACTS]]
    assert notices == ["Of 520 facts in one answer the first 500 were read (1×)."]
    facts, notices = read_facts([{"text": f"Stone {n}.", "kind": "a very important event"} for n in range(500)])
    assert notices == ["A fact's kind was unknown; it counts as an event, for example 'a very important event' (500×)."]


def test_facts_of_one_answer_that_contradict_or_repeat_each_other_are_told():
    facts, notices = read(WHOLE, WHOLE | {"text": "Goran lives at the inn.", "value": "the inn"})
    assert [fact.value for fact in facts] == ["the mill", "the inn"], "both stand: the later one holds, the other did"
    assert "contradict" in notices[0]
    facts, notices = read(WHOLE, WHOLE | {"text": "goran LIVES at the mill"})
    assert len(facts) == 1
    assert "twice" in notices[0]


def test_notices_hold_nothing_of_what_may_be_secret():
    secret = "the innkeeper is the murderer of the old king"
    odd = {"kind": "secret", "text": secret, secret: 1} | {"importance": secret, "real_time": secret}
    odd["known_by"] = {secret: 1}
    [fact], notices = read(odd)
    assert fact.text == secret
    assert len(notices) == 4
    assert secret not in " ".join(notices)


def test_slots_are_alike_for_other_words_and_apart_for_other_voices():
    assert slot_of("The Goran", "lives in") == slot_of("goran", "Home") == slot_of("GORAN ", "residence") != ""
    assert slot_of("Goran", "home", claimed_by="Oda") not in (slot_of("Goran", "home"), "")
    assert slot_of("Goran", "home", "rumour") != slot_of("Goran", "home")
    assert slot_of("Goran", "home", "secret") != slot_of("Goran", "home")
    assert [slot_of("Mira", "promise"), slot_of("", "home"), slot_of("Mira", ""), slot_of("Mira", "event")] == [""] * 4
    assert slot_of("Mira", "promise to Wen") != ""


def test_a_fact_cannot_be_made_wrong():
    for wrong in ({"importance": 11}, {"kind": "gossip"}, {"text": ""}, {"text": "x" * 2000}, {"nonsense": 1}):
        with pytest.raises(ValidationError):
            Fact(**({"text": "x"} | wrong))


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from([*WHOLE, "about", "sujet", ""])
ENTRY = ODD | st.dictionaries(FIELDS, ODD | st.sampled_from([*KINDS, *map(str, WHOLE.values())]), max_size=11)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(ODD | st.lists(ENTRY, max_size=6) | st.fixed_dictionaries({"facts": st.lists(ENTRY, max_size=6)}))
def test_500_fuzzed_answers_make_no_crash_and_no_wrong_record(given_):
    facts, notices = read_facts(given_)
    for fact in facts:
        assert Fact.model_validate(fact.model_dump()) == fact
        assert fact.text.strip()
        json.dumps(fact.record()).encode("ascii")
        json.dumps(fact.record(), ensure_ascii=False).encode("utf-8")
    assert all(isinstance(line, str) and len(line) < 300 for line in notices)


def test_what_a_model_tells_is_never_lost_among_odd_neighbours():
    chance, good = random.Random(4), [{"text": f"The {word} lamp burns."} for word in ("red", "blue", "green")]
    junk = [None, 3, "", {}, [], {"text": 0.5}, {"text": "x" * 5000}, {"importance": "very"}]
    for _ in range(50):
        mixed = chance.sample([*good, *chance.choices(junk, k=6)], 9)
        assert {fact["text"] for fact in good} <= {fact.text for fact in read_facts(mixed).facts}


def test_a_text_that_is_too_long_is_cut_to_the_limit_and_told():
    for field, limit in (("text", 1000), ("subject", 200), ("value", 200), ("claimed_by", 200), ("story_time", 200)):
        [whole], notices = read({"text": "x", field: "y" * limit})
        assert (whole.model_dump()[field], notices) == ("y" * limit, []), field
        [cut], notices = read({"text": "x", field: "y" * (limit + 1)})
        assert cut.model_dump()[field] == "y" * (limit - 1) + "…", field
        assert notices == [f"A field was longer than {limit:,} characters and was cut (1×)."]


def test_who_knows_a_fact_is_a_list_of_names_however_it_was_sent():
    assert read({"text": "x", "known_by": "Goran, Mira; Goran"}).facts[0].known_by == ["Goran", "Mira"]
    many = [f"Man {number}" for number in range(21)]
    [fact], notices = read({"text": "x", "known_by": many})
    assert fact.known_by == many[:20]
    assert notices == ["More than 20 names knew a fact; the first ones were kept (1×)."]
    assert read({"text": "x", "known_by": many[:20]}).notices == []
    [fact], notices = read({"text": "x", "known_by": 7})
    assert (fact.known_by, len(notices)) == ([], 1)


def test_lists_and_numbers_in_a_field_are_written_out_and_control_characters_are_not():
    [fact], _ = read({"text": "x", "value": ["a rope", 3, ""], "subject": 1.5, "attribute": "its\tplace\u2028now"})
    assert (fact.value, fact.subject, fact.attribute) == ("a rope, 3", "1.5", "its place now")
    assert read({"text": "x", "value": 10**15}).facts[0].value == str(10**15)
    [fact], notices = read({"text": "x", "value": 10**15 + 1})
    assert (fact.value, notices) == ("", ["A number was too large and was left out (1×)."])
    assert read({"text": "x", "value": float("inf")}).facts[0].value == ""


def test_what_is_said_of_the_player_is_theirs_only_as_a_preference_or_a_trait():
    for kind, mine in (("preference", True), ("trait", True), ("event", False), ("secret", False)):
        [fact], notices = read({"text": "x", "kind": kind, "about": "Player "})
        assert (fact.of_person, bool(notices)) == (mine, not mine), kind
    [claim], notices = read({"text": "x", "kind": "trait", "about": "player", "claimed_by": "Oda"})
    assert (claim.kind, claim.of_person, len(notices)) == ("rumour", False, 1)
    assert not read({"text": "x", "kind": "trait", "about": "story"}).facts[0].of_person


@pytest.mark.parametrize(
    ("kind", "read_as"), [("Lie ", "rumour"), ("vow", "promise"), ("state", "trait"), (7, "event")]
)
def test_other_words_for_a_kind_are_read_and_claims_are_rumours(kind, read_as):
    assert read({"text": "x", "kind": kind}).facts[0].kind == read_as
    [claim], _ = read({"text": "x", "kind": kind, "claimed_by": "Oda"})
    assert (claim.kind, claim.claimed_by) == (read_as if read_as == "promise" else "rumour", "Oda")
    assert [kind for kind in KINDS if is_secret_record({"kind": kind})] == ["secret"]


def test_facts_that_agree_in_their_slot_are_no_contradiction():
    _, notices = read(WHOLE, WHOLE | {"text": "He still lives at the mill."}, WHOLE | {"text": "y", "subject": "Oda"})
    assert notices == []
    claimed = WHOLE | {"text": "Goran lives at the inn.", "value": "the inn", "claimed_by": "Oda"}
    assert read(WHOLE, claimed).notices == [], "a claim is in a slot of its own"


FACTS = ("ann", "isle", "facts")
NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The user has a dentist appointment on 14 December.", "2026-12-14 2026-12-14"),
        ("The user flies to Rome in three weeks.", "2026-03-31 2026-03-31"),
        ("The user's wedding is next Saturday.", "2026-03-14 2026-03-14"),
        ("The user flies home in two fortnights.", "2026-04-07 2026-04-07"),
        ("The user has an exam tomorrow.", "2026-03-11 2026-03-11"),
        ("The rent is due next month.", "2026-04-01 2026-04-30"),
        ("The user is on holiday from 10 to 20 December.", "2026-12-10 2026-12-20"),
        ("The user planned a trip for 3 May.", "2026-05-03 2026-05-03"),
        ("The user moved to Bergen in May.", "2025-05-01 2025-05-31"),
        ("The user was ill the week before last.", "2026-02-23 2026-03-01"),
        ("The user saw the doctor on Sunday.", "2026-03-08 2026-03-08"),
        ("The user sees the doctor on Sunday.", "2026-03-15 2026-03-15"),
        ("The user was born on 3 May 1985.", "1985-05-03 1985-05-03"),
        ("Der Benutzer hat morgen einen Termin.", "2026-03-11 2026-03-11"),
        ("Anna heiratet am 14. Dezember.", "2026-12-14 2026-12-14"),
        ("Anna hat am 14. Dezember geheiratet.", "2025-12-14 2025-12-14"),
        ("The user goes to the gym every Tuesday.", ""), ("The user learnt it in two days, and passed.", ""),
        ("The user sang over the last three years.", ""),
        ("The user lives in Oslo.", ""), ("A fair from 30 December 1899 to 2 January 1900.", ""),
    ],
)  # fmt: skip
def test_days_of_a_sentence_are_counted_from_when_it_was_said(text, days):
    assert " ".join(find_days(text, NOW)) == days


def test_a_weekday_of_a_property_is_one_of_every_week_and_days_of_the_story_go_by_its_own_clock():
    assert find_days("The user's gym day is Tuesday.", NOW, in_slot=True) == []
    assert find_days("The user's wedding is next Tuesday.", NOW, in_slot=True) == ["2026-03-17", "2026-03-17"]
    told = ("The feast is in three days.", "It happened three days ago.", "day 1", "at dusk", "tomorrow", "each day 9")
    assert [find_calendar_day(text, 4) for text in told] == [7, 1, 1, None, 5, None]
    assert find_calendar_day("day 9", None) is None
    assert find_calendar_day("day 0", 4) is None, "a calendar has no day before its first"


@pytest.mark.parametrize(
    ("spoken", "claimed_by"), [("Yes, that is right.", ""), ("Bring tea.", ""), ("Bring green tea.", "the assistant")]
)
def test_who_says_more_than_a_short_yes_has_not_confirmed_what_only_the_assistant_said(spoken, claimed_by):
    fact = Fact(text="The user plays the violin.", kind="trait", subject="the user")
    assert classify_statement(fact, spoken, "A violin, is it?").claimed_by == claimed_by, "half of its words are enough"
    claimed = fact.model_copy(update={"claimed_by": "Bo"})
    assert classify_statement(claimed, spoken, "You play the violin, don't you?").claimed_by == "Bo"


async def test_days_that_a_fact_brings_along_are_not_counted_again(store):
    days = ["2026-12-14", "2027-01-02"]
    gym = {"text": "Gym day: Tuesday.", "subject": "the user", "attribute": "gym day"}
    await note_facts(store, FACTS, [Fact(text="The user meets Anna tomorrow.", when=days), gym], noted_at=NOW)
    meets, every = sorted(await store.asearch(FACTS, limit=9), key=lambda item: item.value["at"])
    assert (meets.value["when"], meets.value["date"], meets.value["month"]) == (days, "20261214", "202612")
    assert "when" not in every.value, "it is one of every week"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"when": ["2026-12-14", "2026-12-14"]}, "Mon 2026-12-14"),
        ({"when": ["2026-12-10", "2026-12-20"]}, "2026-12-10 to 2026-12-20"),
        ({"real_time": "2026-05-03T12:00:00"}, "Sun 2026-05-03"), ({"day": 7, "story_time": "in three days"}, "day 7"),
        ({"day": 3, "story_time": "day 3, dusk"}, "day 3, dusk"), ({}, ""), ({"when": ["soon"]}, ""),
    ],
)  # fmt: skip
def test_a_line_shows_when(value, shown):
    assert line_date(value) == shown


def test_a_real_time_as_it_was_said_is_counted_from_the_turn():
    [fact], notices = read_facts({"text": "The user meets Anna.", "real_time": "next Tuesday"}, NOW)
    assert (fact.real_time, fact.when, notices) == ("2026-03-17", ["2026-03-17", "2026-03-17"], [])
    dates = {
        "today": "2026-03-10",
        "this evening": "2026-03-10",
        "tomorrow": "2026-03-11",
        "yesterday": "2026-03-09",
        "three days ago": "2026-03-07",
        "last Monday": "2026-03-09",
    }
    for said, real in dates.items() | dict.fromkeys(("two weeks ago", "on Tuesday", "3 May"), "").items():
        [fact], notices = read_facts({"text": "Ann's sister came.", "real_time": said}, NOW)
        assert (fact.real_time, fact.calendar_time, bool(notices)) == (real, "" if real else said, not real), said
    [fact], _ = read_facts({"text": "The user is away.", "real_time": "next week"}, NOW)
    assert (fact.real_time, fact.when) == ("", ["2026-03-16", "2026-03-22"])
    with pytest.raises(ValidationError, match="14 December"):
        Fact(text="x", when=["14 December"])


store = stores_of()


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("What is on 14 December?", "The user has a dentist appointment on 14 December."),
        ("What is on next month?", "The user visits the parents in four weeks."),
        ("Plans for next week?", "The user flies to Rome next Tuesday."),
        ("Was ist am 14. Dezember?", "The user has a dentist appointment on 14 December."),
        ("What did I do on 14 December?", "The user went skating on 14 December."),
    ],
)
async def test_questions_find_what_was_noted_for_those_days(store, question, best):
    said = "has a dentist appointment on 14 December,went skating on 14 December,flies to Rome next Tuesday"
    said += ",visits the parents in four weeks,likes what is on in theatres"
    noted = [f"The user {what}." for what in said.split(",")]
    await note_facts(store, FACTS, noted, timeline=[("a", 1)], provenance={"said_at": NOW.isoformat()})
    query = Query(question, timeline=[("a", 1)], present=Present(now=NOW.replace(day=12)))
    found = [record.text for record in await recall(store, FACTS, query)]
    assert best in found[: 2 if "month" in question else 1], "“next” is a word of another one, too"


async def test_in_a_game_tomorrow_is_a_day_of_the_story(new_game):
    game = new_game()
    await game.begin()
    day = game.values["quest"]["clock"]["day"]
    await play(game, "I ask.", {"text": "The feast is in three days.", "subject": "the feast"}, reply="In three days!")
    [feast] = [value for value in (await stored(game)).values() if "feast" in value["text"]]
    assert feast["day"] == day + 3
    assert "when" not in feast


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("fact state name insight trait", "trait"),
        ("claim rumor lie dream hypothetical rumour", "rumour"),
        ("vow oath promise PROMISE", "promise"),
        ("boundary preference", "preference"),
        ("secret", "secret"),
        ("event gossip trade-off", "event"),
    ],
)
def test_every_other_word_for_a_kind_is_read(words, kind):
    assert {word: read({"text": "x", "kind": word}).facts[0].kind for word in words.split()} == dict.fromkeys(
        words.split(), kind
    )


@pytest.mark.parametrize(
    ("sent", "field", "value"),
    [
        ({"ends": True}, "ends", True), ({"ends": "true"}, "ends", True), ({"ends": "yes"}, "ends", True),
        ({"ends": "false"}, "ends", False), ({"ends": "no"}, "ends", False), ({"ends": None}, "ends", False),
        ({"importance": 7.6}, "importance", 8), ({"importance": " 8 / 10 "}, "importance", 8),
        ({"importance": "7.6"}, "importance", 8), ({"importance": "8/5"}, "importance", 5),
        ({"value": "a\x07b\x00c"}, "value", "a b c"), ({"value": "  a \n b "}, "value", "a b"),
        ({"value": [str(n) for n in range(25)]}, "value", ", ".join(str(n) for n in range(20))),
        ({"value": True}, "value", ""), ({"value": {"a": 1}}, "value", ""), ({"value": 3}, "value", "3"),
        ({"real_time": "1900-01-01"}, "real_time", "1900-01-01"), ({"real_time": "1899-12-31"}, "real_time", ""),
        ({"real_time": "2199-12-31"}, "real_time", "2199-12-31"), ({"real_time": "2200-01-01"}, "real_time", ""),
        ({"known_by": "Goran;Mira, Oda"}, "known_by", ["Goran", "Mira", "Oda"]),
        ({"known_by": ["Goran", "", "Goran", 7]}, "known_by", ["Goran", "7"]),
        ({"kind": "preference", "about": "player", "claimed_by": "Oda"}, "of_person", False),
        ({"kind": "preference", "about": " PLAYER "}, "of_person", True),
        ({"kind": "promise", "claimed_by": "Oda"}, "kind", "promise"),
        ({"kind": "event", "claimed_by": "Oda"}, "kind", "rumour"),
        ({"kind": "trait", "claimed_by": "Oda"}, "kind", "rumour"),
        ({"kind": "secret", "claimed_by": "Oda"}, "kind", "secret"),
    ],
    ids=repr,
)  # fmt: skip
def test_how_a_field_is_read(sent, field, value):
    [fact], _ = read({"text": "The lamp is red."} | sent)
    assert fact.model_dump(by_alias=False)[field] == value


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ("The lamp is red.", "A fact came as a bare sentence (1×)."),
        (7, "A fact was no object and was left out, for example 7 (1×)."),
        ({"text": "x", "colour": "red"}, "A fact had an unknown field, for example 'colour' (1×)."),
        ({"subject": "Goran", "value": "gone"}, "A fact had no text; its fields were put together (1×)."),
        ({"subject": "Goran"}, "A fact said nothing and was left out (1×)."),
        (
            {"text": "x", "kind": "event", "about": "player"},
            "A fact about the person was no preference, boundary or name; it was kept with the campaign (1×).",
        ),
        ({"text": "x", "value": True}, "A field was no text and was left out, for example True (1×)."),
        (
            {"text": "x", "kind": "k" * 22},
            f"A fact's kind was unknown; it counts as an event, for example {'k' * 22!r} (1×).",
        ),
        ({"text": "x", "kind": "k" * 23}, "A fact's kind was unknown; it counts as an event (1×)."),
        (
            {"text": "x", "importance": "very"},
            "An importance was no number from 1 to 10; 5 was taken, for example 'very' (1×).",
        ),
        (
            {"text": "x", "importance": 11},
            "An importance was outside of 1 to 10 and was moved to the nearer end, for example 11 (1×).",
        ),
        ({"text": "x", "known_by": 7}, "Who knows a fact was no list of names and was left out, for example 7 (1×)."),
        (
            {"text": "x", "real_time": "soon"},
            "A real time was no date from 1900 to 2199; it was kept as it was said, for example 'soon' (1×).",
        ),
        (
            {"text": "x", "real_time": "soon", "story_time": "dusk"},
            "A real time was no date from 1900 to 2199; it was left out, for example 'soon' (1×).",
        ),
    ],
    ids=range(14),
)
def test_each_oddity_is_told_in_one_sentence(sent, says):
    assert read(sent).notices == [says]


def test_the_first_short_value_of_an_oddity_is_its_example():
    facts = [{"text": str(n), "importance": value} for n, value in enumerate(("a" * 30, "high", "low"))]
    assert read(*facts).notices == ["An importance was no number from 1 to 10; 5 was taken, for example 'high' (3×)."]


def test_without_an_attribute_subject_and_value_are_put_together():
    assert read({"subject": "Goran", "value": "gone"}).facts[0].text == "Goran: gone"


def test_the_same_words_of_another_kind_or_of_another_voice_are_another_fact():
    same = {"text": "Goran is a spy."}
    facts, notices = read(same, same | {"kind": "secret"}, same | {"claimed_by": "Oda"}, same | {"kind": "event"})
    assert [(fact.kind, fact.claimed_by) for fact in facts] == [("event", ""), ("secret", ""), ("rumour", "Oda")]
    assert notices == ["A fact was sent twice in one answer (1×)."]


@pytest.mark.parametrize(("about", "when"), [("player", ["2026-03-11", "2026-03-11"]), ("", [])])
def test_in_a_game_only_what_is_of_the_person_is_on_a_real_day(about, when):
    away = {"text": "The player is away tomorrow.", "kind": "preference", "about": about}
    [fact], _ = read_facts([away], NOW, day=3)
    assert (fact.when, fact.day) == (when, None if about else 4)


@pytest.mark.parametrize(
    "name", ["user", "the user", "I", "me", "myself", "you", "the person", "person", "speaker", "human", "The User"]
)
def test_the_person_has_one_name_and_what_they_say_of_themselves_is_so(name):
    fact = classify_statement(Fact(text="Tea.", kind="rumour", subject=name, claimed_by=name), "I like tea.", "Fine.")
    assert (fact.subject, fact.claimed_by, fact.kind) == ("the user", "", "trait")


def test_in_a_talk_nothing_is_secret_or_of_the_person_beside_the_talk():
    given = Fact(text="The user likes tea.", kind="secret", of_person=True, known_by=["Ann"], subject="Goran")
    fact = classify_statement(given, "I like tea.", "Fine.")
    assert (fact.kind, fact.of_person, fact.known_by, fact.subject) == ("trait", False, [], "Goran")
    dream = Fact(text="The user dreamt of a ship.", kind="rumour", claimed_by="I")
    assert classify_statement(dream, "I dreamt of a ship.", "Nice.").kind == "rumour"
    assert (
        classify_statement(dream.model_copy(update={"claimed_by": "", "kind": "event"}), "A ship.", "").kind == "rumour"
    )


@pytest.mark.parametrize(
    ("text", "unreal"),
    [
        ("What if the bell rings?", True), ("Suppose Oda left.", True), ("He supposed that Oda left.", True),
        ("Hypothetically, Oda left.", True), ("Oda imagines a ship.", True), ("She was pretending to sleep.", True),
        ("Goran dreamt of it.", True), ("It was in a vision.", True), ("In her nightmare it fell.", True),
        ("Oda would have left.", True), ("Oda could have left.", True), ("Oda might have left.", True),
        ("If only Oda left.", True), ("There are rumours of it.", True), ("It is rumored to be so.", True),
        ("Oda allegedly left.", True), ("Oda supposedly left.", True), ("If Oda leaves, it falls.", True),
        ("Oda asks if it falls.", False), ("Oda has left.", False), ("Oda is supposed to leave.", True),
        ("The dreamy imagery is lovely.", False), ("She has a vision of the tower.", False),
    ],
)  # fmt: skip
def test_what_sounds_unreal(text, unreal):
    assert sounds_unreal(text) is unreal


@pytest.mark.parametrize(
    "text",
    [
        *(
            "The user goes weekly, next on Friday.",
            "The user swims each Friday.",
            "always on Friday",
            "usually tomorrow",
        ),
        *("monthly on 3 May", "yearly on 3 May", "every Tuesday", "jeden Freitag", "jede Woche, morgen wieder"),
        *("immer am Freitag", "meistens übermorgen", "wöchentlich am Freitag"),
        *("on Mondays", "on Tuesdays", "on Wednesdays", "on Thursdays", "on Fridays", "on Saturdays", "on Sundays"),
        *("Der Benutzer geht montags zum Sport.", "Dienstags hat Anna Chor.", "mittwochs", "donnerstags", "freitags"),
        *("samstags", "sonntags"),
    ],
)
def test_what_recurs_is_of_no_one_day(text):
    assert find_days(text, NOW) == []
    assert find_calendar_day(f"{text} day 9", 4) is None


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("The user will fly on 3 May.", 2026), ("The user is going to fly on 3 May.", 2026),
        ("The user has booked a flight for 3 May.", 2026), ("The user is invited on 3 May.", 2026),
        ("The exam is scheduled for 3 May.", 2026), ("The exam has been planned for 3 May.", 2026),
        ("The rent had been due on 3 May.", 2026), ("The user is expected on 3 May.", 2026),
        ("The user is still supposed to fly on 3 May.", 2026), ("The user promised to come on 3 May.", 2026),
        ("The user plans a trip, said on 3 May.", 2026), ("The user books what was said for 3 May.", 2026),
        ("The user wants what was said on 3 May.", 2026), ("The user must go where she was on 3 May.", 2026),
        ("The user needs to go on 3 May and was ill.", 2026), ("Der Flug ist gebucht für den 3. Mai.", 2026),
        ("Der Benutzer hat geplant, am 3. Mai zu fliegen.", 2026), ("Anna wird am 3. Mai getauft.", 2026),
        ("The user went on 3 May.", 2025), ("The user flew home on 3 May.", 2025), ("Anna kam am 3. Mai.", 2025),
    ],
)  # fmt: skip
def test_what_is_planned_lies_ahead_though_its_verb_looks_past(text, year):
    assert find_days(text, NOW) == [f"{year}-05-03"] * 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"when": ["2026-12-14"]}, "Mon 2026-12-14"), ({"when": "2026-12-14"}, ""), ({"when": [7]}, ""),
        ({"when": ["2026-12-14", "x"]}, ""), ({"day": True, "story_time": "dusk"}, "dusk"), ({"day": 7}, "day 7"),
        ({"day": 12, "story_time": "day 1, dusk"}, "day 12"), ({"real_time": "soon", "story_time": "dusk"}, "dusk"),
        ({"when": (), "real_time": "2026-12-14"}, "Mon 2026-12-14"),
    ],
)  # fmt: skip
def test_a_line_shows_what_can_be_read_of_when(value, shown):
    assert line_date(value) == shown


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("text", ["x", "x" * 1000], ["", "x" * 1001, None]), ("subject", ["", "x" * 200], ["x" * 201]),
        ("attribute", ["x" * 200], ["x" * 201]), ("value", ["x" * 200], ["x" * 201]),
        ("claimed_by", ["x" * 200], ["x" * 201]),
        ("calendar_time", ["x" * 200], ["x" * 201]), ("importance", [1, 10], [0, 11, 1.5]), ("day", [1, None], [0, -1]),
        ("when", [[], ["2026-12-14"], ["2026-12-14", "2026-12-15"]], [["2026-12-14"] * 3, ["soon"], ["2026-02-30"]]),
        ("known_by", [[], ["x"] * 20], [["x"] * 21]), ("kind", list(KINDS), ["insight", "fact", ""]),
        ("expires", ["", "2027-01-31T12:00:00+00:00"], ["2027-01-31T12:00:00", "2027-01-31", "soon"]),
        ("form", ["x" * 200], ["x" * 201]),
    ],
)  # fmt: skip
def test_each_field_of_a_fact_has_its_limits(field, right, wrong):
    for value in right:
        assert getattr(Fact(**({"text": "x"} | {field: value})), field) == value
    for value in wrong:
        with pytest.raises(ValidationError, match=field):
            Fact(**({"text": "x"} | {field: value}))


def test_what_no_database_takes_is_no_part_of_a_fact_and_an_older_name_of_a_field_is_known():
    fact = Fact(text="a\0b\ud800c", metadata={"x": "\0y"}, of_player=True)
    assert (fact.text, fact.metadata, fact.of_person) == ("abc", {"x": "y"}, True)
    assert Fact(text="x", of_person=True).of_person
    assert Fact.model_validate({"text": "x", CALENDAR_TIME: "dusk"}).calendar_time == "dusk"


def test_only_what_says_something_is_kept_of_what_may_be_left_out():
    record = Fact(text="x").record()
    assert not {"when", "day", "ends", "expires", "metadata", "form", "data", "of_person"} & record.keys()
    told = {
        "day": 3,
        "ends": True,
        "expires": "2027-01-31T12:00:00+00:00",
        "metadata": {"a": 1},
        "form": "F",
        "data": {"b": 2},
    }
    assert Fact(text="x", when=["2026-12-14"], **told).record().items() >= (told | {"when": ["2026-12-14"]}).items()


@pytest.mark.parametrize(
    ("subject", "attribute", "kind", "claimed_by", "slot"),
    [
        ("the mill", "State", "trait", "", "mill|state"), ("A mill", "condition", "event", "", "mill|state"),
        ("an owl", "age", "trait", "", "owl|age"),
        ("Goran", "home", "rumour", "", "goran|home|rumour"), ("Goran", "home", "secret", "", "goran|home|secret"),
        ("Goran", "home", "secret", "Oda", "goran|home|claimed by oda"),
        ("Goran", "home", "rumour", "ODA", "goran|home|claimed by oda"),
        ("Goran", "home", "preference", "", "goran|home"), ("the", "home", "trait", "", ""),
        ("Goran", "the", "trait", "", "goran|the"),
        *(("Goran", word, "trait", "", "") for word in ("promise", "vow", "oath", "pledge", "event", "action",
        "deed", "fact", "info")),
        *(("Goran", word, "trait", "", "") for word in ("detail", "trait", "note", "rumour", "secret", "preferences",
        "history", "past")),
    ],
)  # fmt: skip
def test_which_slot_a_fact_fills(subject, attribute, kind, claimed_by, slot):
    assert slot_of(subject, attribute, kind, claimed_by) == slot


GENERIC = "promise promises vow oath pledge event action act did deed happened fact info detail trait not rumour secret"


@pytest.mark.parametrize("attribute", [*GENERIC.split(), "preference", "history", "past", "secret promise"])
def test_an_attribute_that_says_nothing_makes_no_slot(attribute):
    assert slot_of("Mira", attribute) == ""
    assert slot_of("Mira", f"{attribute} to Goran") != ""


@pytest.mark.parametrize(("said", "read"), [("7/10", 7), (" 7 / 10 ", 7), ("7.6", 8), ("7 of 10", 5), (11, 10), (0, 1)])
def test_an_importance_may_be_said_of_ten(said, read):
    assert read_facts([{"text": "The lamp is lit.", "importance": said}]).facts[0].importance == read


def test_a_fact_may_be_about_weeks_but_not_about_more_than_a_year():
    assert find_days("We will travel in the next eight weeks.", NOW) == ["2026-03-10", "2026-05-05"]
    assert find_days("We will travel in the next two years.", NOW) == []


def test_several_days_of_the_story_are_no_day():
    assert find_calendar_day("We have walked for the last 3 days.", 9) is None
    assert find_calendar_day("We walked 3 days ago.", 9) == 6

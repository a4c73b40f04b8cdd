"""The days that facts are about: counted from when they were said, kept, shown, and found."""

from datetime import UTC, datetime

import pytest
from fact_play import play, stored
from pydantic import ValidationError
from stores import stores_of

from questbook import Fact, Query, note_facts, recall
from questbook.memory.facts.days import find_days, find_story_day, line_date
from questbook.memory.facts.reading import read_facts
from questbook.memory.recall.query import Present

FACTS = ("ann", "isle", "facts")
NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The user has a dentist appointment on 14 December.", "2026-12-14 2026-12-14"),
        ("The user flies to Rome in three weeks.", "2026-03-31 2026-03-31"),
        ("The user's wedding is next Saturday.", "2026-03-14 2026-03-14"),
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
        ("The user goes to the gym every Tuesday.", ""),
        ("The user learnt it in two days, and passed.", ""),
        ("The user lives in Oslo.", ""),
    ],
)
def test_days_of_a_sentence_are_counted_from_when_it_was_said(text, days):
    assert " ".join(find_days(text, NOW)) == days


def test_a_weekday_that_is_the_value_of_a_property_is_one_of_every_week():
    assert find_days("The user's gym day is Tuesday.", NOW, in_slot=True) == []
    assert find_days("The user's wedding is next Tuesday.", NOW, in_slot=True) == ["2026-03-17", "2026-03-17"]


def test_days_of_the_story_are_counted_by_its_own_clock():
    told = ("The feast is in three days.", "It happened yesterday.", "day 9", "at dusk", "tomorrow")
    assert [find_story_day(text, 4) for text in told] == [7, 3, 9, None, 5]
    assert find_story_day("tomorrow", None) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"when": ["2026-12-14", "2026-12-14"]}, "Mon 2026-12-14"),
        ({"when": ["2026-12-10", "2026-12-20"]}, "2026-12-10 to 2026-12-20"),
        ({"real_time": "2026-05-03T12:00:00"}, "Sun 2026-05-03"),
        ({"day": 7, "story_time": "in three days"}, "day 7"),
        ({"day": 3, "story_time": "day 3, dusk"}, "day 3, dusk"),
        ({}, ""),
        ({"when": ["soon"]}, ""),
    ],
)
def test_a_line_shows_when(value, shown):
    assert line_date(value) == shown


def test_a_real_time_as_it_was_said_is_counted_from_the_turn():
    [fact], notices = read_facts({"text": "The user meets Anna.", "real_time": "next Tuesday"}, NOW)
    assert (fact.real_time, fact.when, notices) == ("2026-03-17", ["2026-03-17", "2026-03-17"], [])
    dates = {"yesterday": "2026-03-09", "three days ago": "2026-03-07", "last Monday": "2026-03-09"}
    for said, real in dates.items() | dict.fromkeys(("two weeks ago", "on Tuesday", "3 May"), "").items():
        [fact], notices = read_facts({"text": "Ann's sister came.", "real_time": said}, NOW)
        assert (fact.real_time, fact.story_time, bool(notices)) == (real, "" if real else said, not real), said
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

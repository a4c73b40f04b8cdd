"""Times that lie ahead, as people name them, in English and German."""

from datetime import UTC, datetime, timedelta

import pytest

from questbook.memory.recall.times import read_asked_time, score_time, time_filters
from questbook.memory.timeline.records import Record

NOW = datetime(2026, 3, 10, 15, 0, tzinfo=UTC)  # a Tuesday


def days_of(start, end):
    return (start.date().isoformat(), (end - timedelta(seconds=1)).date().isoformat())


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What do I have tomorrow?", ("2026-03-11", "2026-03-11")),
        ("the day after tomorrow", ("2026-03-12", "2026-03-12")),
        ("plans for next week", ("2026-03-16", "2026-03-22")),
        ("next month", ("2026-04-01", "2026-04-30")),
        ("What is on next Tuesday?", ("2026-03-17", "2026-03-17")),
        ("Tuesday next week", ("2026-03-17", "2026-03-17")),
        ("this Friday", ("2026-03-13", "2026-03-13")),
        ("in three weeks", ("2026-03-31", "2026-03-31")),
        ("3 weeks from now", ("2026-03-31", "2026-03-31")),
        ("next weekend", ("2026-03-14", "2026-03-15")),
        ("in the next three days", ("2026-03-10", "2026-03-13")),
        ("the week after next", ("2026-03-23", "2026-03-29")),
        ("what is coming up?", ("2026-03-10", "2027-03-09")),
        ("What plans do I have?", ("2026-03-10", "2027-03-09")),
        ("Anything soon?", ("2026-03-10", "2027-03-09")),
        ("Was habe ich morgen vor?", ("2026-03-11", "2026-03-11")),
        ("übermorgen", ("2026-03-12", "2026-03-12")),
        ("Was ist nächsten Dienstag?", ("2026-03-17", "2026-03-17")),
        ("in drei Wochen", ("2026-03-31", "2026-03-31")),
        ("Was mache ich nächste Woche Mittwoch?", ("2026-03-18", "2026-03-18")),
        ("Was steht an?", ("2026-03-10", "2027-03-09")),
        ("Welche Termine habe ich?", ("2026-03-10", "2027-03-09")),
    ],
)
def test_what_can_only_lie_ahead(question, days):
    asked = read_asked_time(question, NOW)
    assert asked.start is None
    assert days_of(*asked.ahead) == days


@pytest.mark.parametrize(
    ("question", "last", "following"),
    [
        ("What is on 14 December?", "2025-12-14", "2026-12-14"),
        ("on 14 January", "2026-01-14", "2027-01-14"),
        ("What's on Friday?", "2026-03-06", "2026-03-13"),
        ("Was ist am 14. Dezember?", "2025-12-14", "2026-12-14"),
        ("am 14.12.", "2025-12-14", "2026-12-14"),
        ("Was ist am Freitag?", "2026-03-06", "2026-03-13"),
    ],
)
def test_a_date_without_a_year_is_the_last_or_the_next(question, last, following):
    asked = read_asked_time(question, NOW)
    assert (days_of(asked.start, asked.end), days_of(*asked.ahead)) == ((last, last), (following, following))


@pytest.mark.parametrize(
    "question", ["What did I do on 14 December?", "Was I in Rome in May?", "When did we meet on Friday?"]
)
def test_a_question_for_what_was_asks_the_past_alone(question):
    asked = read_asked_time(question, NOW)
    assert asked.start < NOW
    assert asked.ahead is None


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("the week before last", ("2026-02-23", "2026-03-01")),
        ("Was habe ich gestern gesagt?", ("2026-03-09", "2026-03-09")),
        ("vor drei Tagen", ("2026-03-07", "2026-03-07")),
        ("letzte Woche", ("2026-03-02", "2026-03-08")),
        ("vorletzte Woche", ("2026-02-23", "2026-03-01")),
    ],
)
def test_the_past_in_german_and_the_week_before_last(question, days):
    asked = read_asked_time(question, NOW)
    assert days_of(asked.start, asked.end) == days


def test_spans_of_days_share_their_month():
    for text in ("between 10 and 20 December", "10–20 December", "vom 10. bis 20. Dezember"):
        assert days_of(*read_asked_time(text, NOW).ahead) == ("2026-12-10", "2026-12-20"), text


@pytest.mark.parametrize(
    "text", ["Guten Morgen!", "Version 2.1. is out", "Where do I live?", "He sings vor the song", "Wo wohne ich?"]
)
def test_what_names_no_time_in_either_language(text):
    assert not read_asked_time(text, NOW, day=9).is_named


def test_days_of_the_story_are_counted_ahead_as_well():
    assert read_asked_time("What is planned for tomorrow?", NOW, day=9).days == (10, 10)
    assert read_asked_time("in drei Tagen", NOW, day=9).days == (12, 12)
    assert read_asked_time("in two weeks", NOW, day=9).days == (23, 23)
    assert read_asked_time("next month", NOW, day=9).days is None


def test_what_was_planned_for_a_day_fits_it_and_what_was_said_today_does_not():
    asked = read_asked_time("What is on 14 December?", NOW)
    fits = [
        score_time(asked, Record.from_json(value))
        for value in (
            {"when": ["2026-12-14", "2026-12-14"]},
            {"when": ["2026-12-10", "2026-12-20"]},
            {"real_time": "2026-12-14"},
            {"when": ["2025-12-14", "2025-12-14"]},
            {"when": ["2026-12-17", "2026-12-17"]},
            {"said_at": NOW.isoformat()},
            {"when": ["no date"]},
        )
    ]
    assert fits[:4] == pytest.approx([1, 1, 1, 0.8]), "the last such date is meant less often where nothing says so"
    assert 0 < fits[4] < 0.8
    assert fits[5:] == pytest.approx([0, 0], abs=1e-6)


def test_of_all_that_is_to_come_the_nearer_fits_better_and_the_past_does_not():
    asked = read_asked_time("What is coming up?", NOW)
    near, far, past = (
        score_time(asked, Record.from_json({"when": [day, day]})) for day in ("2026-03-12", "2026-12-14", "2026-02-01")
    )
    assert near > far >= 0.5 > 0.1 > past


def test_filters_propose_the_days_and_their_month():
    assert {"date": "20261214"} in time_filters(read_asked_time("on 14 December", NOW))
    assert {"month": "202612"} in time_filters(read_asked_time("on 14 December", NOW))
    assert {"date": "20251214"} in time_filters(read_asked_time("on 14 December", NOW))
    coming = time_filters(read_asked_time("What is coming up?", NOW))
    assert {"month": "202603"} in coming
    assert {"month": "202608"} in coming
    assert {"day": 10} in time_filters(read_asked_time("tomorrow", NOW, day=9))

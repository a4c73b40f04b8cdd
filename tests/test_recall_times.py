"""The time that a question names, behind or ahead, and how well a record fits it."""

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from questbook.memory.recall.dates import is_bare_weekday
from questbook.memory.recall.times import (
    AskedTime,
    calendar_day,
    names_time,
    phrase_age,
    read_asked_time,
    score_time,
    time_filters,
)
from questbook.memory.timeline.records import Record

NOW = datetime(2026, 3, 10, 15, 0, tzinfo=UTC)  # a Tuesday


def span(query, now=NOW):
    when = read_asked_time(query, now, day=9, session=4)
    return (when.start.date().isoformat(), (when.end - timedelta(seconds=1)).date().isoformat()) if when.start else None


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("What did I buy yesterday?", ("2026-03-09", "2026-03-09")),
        ("what did she say the day before yesterday", ("2026-03-08", "2026-03-08")),
        ("Who came last night?", ("2026-03-09", "2026-03-09")),
        ("What happened earlier today?", ("2026-03-10", "2026-03-10")), ("this morning", ("2026-03-10", "2026-03-10")),
        ("three days ago", ("2026-03-07", "2026-03-07")), ("a couple of days ago", ("2026-03-08", "2026-03-08")),
        ("2 weeks ago", ("2026-02-21", "2026-02-27")), ("a month ago", ("2026-01-26", "2026-02-25")),
        ("last week", ("2026-03-02", "2026-03-08")), ("last month!", ("2026-02-01", "2026-02-28")),
        ("this year", ("2026-01-01", "2026-12-31")), ("last weekend", ("2026-03-07", "2026-03-08")),
        ("a year ago", ("2024-09-09", "2025-09-08")), ("half a year ago", ("2025-03-11", "2026-03-10")),
        ("a fortnight ago", ("2026-02-21", "2026-02-27")),
        ("in the last three days", ("2026-03-07", "2026-03-11")), ("on Sunday", ("2026-03-08", "2026-03-08")),
        ("last Tuesday", ("2026-03-03", "2026-03-03")), ("on 3 May", ("2025-05-03", "2025-05-03")),
        ("on 3 march", ("2026-03-03", "2026-03-03")), ("on May 3rd, 2023", ("2023-05-03", "2023-05-03")),
        ("on the 3rd of May 2023", ("2023-05-03", "2023-05-03")), ("on 2024-02-29", ("2024-02-29", "2024-02-29")),
        ("on Tuesday, 3 March", ("2026-03-03", "2026-03-03")), ("on Friday in June 2023", ("2023-06-01", "2023-06-30")),
        ("in June 2023", ("2023-06-01", "2023-06-30")), ("in May", ("2025-05-01", "2025-05-31")),
        ("in 2022", ("2022-01-01", "2022-12-31")), ("between 3 May 2023 and 5 May 2023", ("2023-05-03", "2023-05-05")),
        ("December 9999", None), ("on 31 February 2023", ("2023-02-01", "2023-02-28")),
        ("in December 2022 or in 1823", ("2022-12-01", "2022-12-31")),
        ("the week before last", ("2026-02-23", "2026-03-01")),
        ("Was habe ich gestern gesagt?", ("2026-03-09", "2026-03-09")),
        ("vor drei Tagen", ("2026-03-07", "2026-03-07")), ("letzte Woche", ("2026-03-02", "2026-03-08")),
        ("vorletzte Woche", ("2026-02-23", "2026-03-01")),
    ],
)  # fmt: skip
def test_spans(query, days):
    assert span(query) == days


@pytest.mark.parametrize(
    "query",
    [
        "May I have the second option?", "march to the mill", "I have 2000 gold", "4000 years ago",
        "Have I been here before?", "When did we meet?", "", "Guten Morgen!", "Version 2.1. is out", "Where do I live?",
        "He sings vor the song", "Wo wohne ich?", "in Sepember 2024",
    ],
)  # fmt: skip
def test_what_names_no_time(query):
    assert not read_asked_time(query, NOW, day=9, session=4).is_named


def test_hours_and_minutes():
    when = read_asked_time("What did he say an hour ago?", NOW)
    assert when.start < NOW - timedelta(hours=1) < when.end < NOW
    assert read_asked_time("half an hour ago", NOW).start > NOW - timedelta(minutes=40)
    assert score_time(when, Record.from_json({"said_at": (NOW - timedelta(hours=1)).isoformat()})) == 1
    assert score_time(when, Record.from_json({"said_at": (NOW - timedelta(days=1)).isoformat()})) < 0.01


def test_without_story_or_session_only_real_time_is_read():
    when = read_asked_time("yesterday, or last session", NOW)
    assert when.days is None
    assert when.sessions is None
    assert when.start is not None


@pytest.mark.parametrize(
    ("query", "relation", "anchor"),
    [
        ("Whom did we meet before we reached the tower?", "before", "we reached the tower"),
        ("What have I lost since the storm?", "after", "the storm"),
        ("Where was I after Oda left?", "after", "Oda left"), ("before the 3rd of May 2023", None, ""),
        ("“Before we left?” I ask. What did Oda say after the fire: no?", "after", "the fire"),
        ("What did I promise before I left", "before", "I left"),
        ("Whom did I meet after I had sung?", "after", "I had sung"),
        ("What did she say? Not before he is out", None, ""), ("Who said: not until we came there?", None, ""),
        ("Before I touch anything: what exactly have I promised, and to whom?", None, ""),
        ("What did she say must be done before he is out?", None, ""), ("I hide until the guard turns.", None, ""),
        ('She said "not a word". "Wait until Pell came back!" I say.', None, ""),
        ("What did I want to do before the door will open?", None, ""), ("After the feast I steal it", None, ""),
        ("What has she eaten since the storm ?", "after", "the storm"),
        ("What did I do before the 3rd of May 2023?", None, ""), ("Who came after the day we met in 2023?", None, ""),
        ("What did I do since the feast two weeks ago?", None, ""), ("Who came before the last two weeks?", None, ""),
        ("Who came after the 2026-01-02 feast?", None, ""), ("Who came before the Sunday of the feast?", None, ""),
        ("Who came after the fair in May?", None, ""), ("Who came after the fair in May fell?", None, ""),
        ("Who came after the week before last?", None, ""), ("Who came before the day before yesterday?", None, ""),
    ],
)  # fmt: skip
def test_events(query, relation, anchor):
    when = read_asked_time(query, NOW)
    assert (when.relation, when.anchor) == (relation, anchor)


def test_days_change_at_the_players_midnight():
    tokyo = timezone(timedelta(hours=9))
    now = datetime(2026, 3, 10, 1, 0, tzinfo=tokyo)
    when = read_asked_time("yesterday", now)
    assert score_time(when, Record.from_json({"said_at": "2026-03-09T14:59:00+00:00"})) == 1, "23:59 in Tokyo"
    assert score_time(when, Record.from_json({"said_at": "2026-03-09T15:01:00+00:00"})) < 1, "0:01 in Tokyo, today"
    assert score_time(when, Record.from_json({"said_at": "2026-03-09T14:59:00"})) == 1, "without an offset: UTC"


@pytest.mark.parametrize("value", [{}, {"said_at": ""}, {"said_at": "long ago"}, {"said_at": 7}, {"day": True}])
def test_what_has_no_time_is_no_error_and_gets_nothing(value):
    assert (
        score_time(read_asked_time("yesterday, on day 3, last session", NOW, session=4), Record.from_json(value)) == 0
    )


def test_nearer_fits_better_and_what_lies_before_counts_double():
    when = read_asked_time("on 3 March", NOW)
    fits = [score_time(when, Record.from_json({"said_at": f"2026-03-0{day}T12:00:00+00:00"})) for day in (3, 4, 6, 9)]
    assert fits == sorted(fits, reverse=True)
    assert fits[0] == 1 > fits[1] > fits[3] > 0
    later, earlier = (
        score_time(when, Record.from_json({"said_at": f"2026-03-{day}T00:00:00+00:00"})) for day in ("06", "01")
    )
    assert earlier < later


def test_before_and_after_an_event():
    when = AskedTime(relation="before", anchor="the storm")
    before, there, after = (score_time(when, Record.from_json({"turn": turn}), 20) for turn in (18, 20, 22))
    assert before > there > after > 0
    near, far = (score_time(when, Record.from_json({"turn": turn}), 20) for turn in (8, 32))
    assert (near, far) == pytest.approx((math.exp(-1 / 4), math.exp(-2) / 2)), "twelve turns away"
    assert score_time(when, Record.from_json({"turn": 18}), None) == 0
    assert score_time(when._replace(relation="after"), Record.from_json({"turn": 22}), 20) == before


def test_a_time_of_the_apps_own_calendar_may_be_said_in_words():
    assert calendar_day(Record.from_json({"story_time": "Day 12, dusk"})) == 12
    assert calendar_day(Record.from_json({"story_time": "dusk"})) is None
    assert calendar_day(Record.from_json({"day": 3, "story_time": "day 4"})) == 3


@pytest.mark.parametrize("now", [datetime(1, 1, 1, 3, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
@pytest.mark.parametrize(
    "query", ["yesterday", "last year", "two weeks ago", "last weekend", "today", "in May", "next"]
)
def test_at_the_ends_of_the_calendar(now, query):
    when = read_asked_time(query, now)
    assert when.start is None or when.end is None or when.start <= when.end
    for said_at in (date.min.isoformat(), "9999-12-31T23:59:59+00:00"):
        assert 0 <= score_time(when, Record.from_json({"said_at": said_at})) <= 1


def test_what_names_a_time():
    assert names_time("I went there yesterday")
    assert names_time("We will go in May")
    assert not names_time("I may go")
    assert not names_time("three of them march")


@pytest.mark.parametrize(
    ("query", "day", "days"),
    [
        ("yesterday", 1, None), ("yesterday", 2, (1, 1)), ("3 days ago", 3, None), ("3 days ago", 4, (1, 1)),
        ("the last 3 days", 3, None), ("the last 3 days", 4, (1, 4)), ("2 weeks ago", 99, None),
        ("the last 2 weeks", 99, None), ("3 days ago", None, None), ("on day 4", 9, (4, 4)), ("today", 9, (9, 9)),
        ("on the third day", 9, (3, 3)), ("twenty days", 9, None), ("40 days ago", 9, None),
    ],
)  # fmt: skip
def test_days_of_the_story_are_counted_back_to_its_first_and_no_further(query, day, days):
    assert read_asked_time(query, NOW, day=day).days == days


@pytest.mark.parametrize(
    ("query", "session", "sessions"),
    [
        ("last session", 1, None), ("last session", 2, (1, 1)), ("this session", 1, (1, 1)), ("last time", 1, None),
        ("last time we played", 2, (1, 1)), ("5 sessions ago", 3, (1, 1)), ("2 sessions ago", 3, (1, 1)),
        ("the last 5 sessions", 3, (1, 3)), ("the last 2 sessions", 4, (2, 4)), ("2 sessions ago", None, None),
        ("the previous session", 4, (3, 3)), ("in the first session", 4, (1, 1)), ("session 2", 4, (2, 2)),
    ],
)  # fmt: skip
def test_sessions_are_counted_back_to_the_first_and_no_further(query, session, sessions):
    assert read_asked_time(query, NOW, session=session).sessions == sessions


def test_a_span_in_hours_has_a_quarter_of_slack_and_one_until_now_ends_now():
    ago, last = read_asked_time("8 hours ago", NOW), read_asked_time("the last 8 hours", NOW)
    assert (NOW - ago.start, NOW - ago.end) == (timedelta(hours=10), timedelta(hours=6))
    assert (NOW - last.start, last.end) == (timedelta(hours=10), NOW)


def test_the_29th_of_february_without_a_year_is_that_of_this_year():
    assert span("on 29 February", datetime(2028, 1, 10, tzinfo=UTC)) == ("2028-02-29", "2028-02-29")


def test_every_word_that_names_a_time_is_enough_to_look_for_one():
    """What spares the patterns lets no question pass that one of them would read."""
    now = datetime(2026, 3, 10, 15, tzinfo=UTC)
    for question in (
        "in sept", "since feb", "this weekend", "the current session", "half an hour ago", "a few nights back",
        "last time", "on the third night", "until we left", "Till Anna came", "session 2", "day 4",
        "2026-01-02",
        "today", "tonight", "last night", "this morning", "on Wednesday", "the past couple of months", "by October",
        "what_happened yesterday", "the previous game", "the current year",
    ):  # fmt: skip
        assert read_asked_time(question, now, day=9, session=5).is_named, question


def days_of(start, end):
    return (start.date().isoformat(), (end - timedelta(seconds=1)).date().isoformat())


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What do I have tomorrow?", ("2026-03-11", "2026-03-11")),
        ("the day after tomorrow", ("2026-03-12", "2026-03-12")), ("plans for next week", ("2026-03-16", "2026-03-22")),
        ("next month", ("2026-04-01", "2026-04-30")), ("What is on next Tuesday?", ("2026-03-17", "2026-03-17")),
        ("Tuesday next week", ("2026-03-17", "2026-03-17")), ("this Friday", ("2026-03-13", "2026-03-13")),
        ("in three weeks", ("2026-03-31", "2026-03-31")), ("3 weeks from now", ("2026-03-31", "2026-03-31")),
        ("next weekend", ("2026-03-14", "2026-03-15")),
        ("What do I have in a fortnight?", ("2026-03-24", "2026-03-24")),
        ("in the next three days", ("2026-03-10", "2026-03-13")),
        ("the week after next", ("2026-03-23", "2026-03-29")), ("what is coming up?", ("2026-03-10", "2027-03-09")),
        ("What plans do I have?", ("2026-03-10", "2027-03-09")), ("Anything soon?", ("2026-03-10", "2027-03-09")),
        ("Was habe ich morgen vor?", ("2026-03-11", "2026-03-11")), ("übermorgen", ("2026-03-12", "2026-03-12")),
        ("Was ist nächsten Dienstag?", ("2026-03-17", "2026-03-17")), ("in drei Wochen", ("2026-03-31", "2026-03-31")),
        ("Was mache ich nächste Woche Mittwoch?", ("2026-03-18", "2026-03-18")),
        ("Was steht an?", ("2026-03-10", "2027-03-09")), ("Welche Termine habe ich?", ("2026-03-10", "2027-03-09")),
    ],
)  # fmt: skip
def test_what_can_only_lie_ahead(question, days):
    asked = read_asked_time(question, NOW)
    assert asked.start is None
    assert days_of(*asked.ahead) == days


@pytest.mark.parametrize(
    ("question", "last", "following"),
    [
        ("What is on 14 December?", "2025-12-14", "2026-12-14"), ("on 14 January", "2026-01-14", "2027-01-14"),
        ("What's on Friday?", "2026-03-06", "2026-03-13"), ("Was ist am 14. Dezember?", "2025-12-14", "2026-12-14"),
        ("am 14.12.", "2025-12-14", "2026-12-14"), ("Was ist am Freitag?", "2026-03-06", "2026-03-13"),
    ],
)  # fmt: skip
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


def test_spans_of_days_share_their_month():
    for text in ("between 10 and 20 December", "10–20 December", "VOM 10. BIS ZUM 20. DEZEMBER"):
        assert days_of(*read_asked_time(text, NOW).ahead) == ("2026-12-10", "2026-12-20"), text


def test_days_of_the_story_are_counted_ahead_as_well():
    assert read_asked_time("What is planned for tomorrow?", NOW, day=9).days == (10, 10)
    assert read_asked_time("in drei Tagen", NOW, day=9).days == (12, 12)
    assert read_asked_time("in two weeks", NOW, day=9).days == (23, 23)
    assert read_asked_time("next month", NOW, day=9).days is None


def test_what_was_planned_for_a_day_fits_it_and_what_was_said_today_does_not():
    asked = read_asked_time("What is on 14 December?", NOW)
    whole, span, last, later = (
        {"when": list(days)}
        for days in (("2026-12-14",) * 2, ("2026-12-10", "2026-12-20"), ("2025-12-14",) * 2, ("2026-12-17",) * 2)
    )
    told = (whole, span, {"real_time": "2026-12-14"}, last, later, {"said_at": NOW.isoformat()}, {"when": ["no date"]})
    fits = [score_time(asked, Record.from_json(value)) for value in told]
    assert fits[:4] == pytest.approx([1, 1, 1, 0.8]), "the last such date is meant less often where nothing says so"
    assert 0 < fits[4] < 0.8
    assert fits[5:] == pytest.approx([0, 0], abs=1e-6)
    assert score_time(read_asked_time("What did I do on 14 December?", NOW), Record.from_json(last)) == 1


def test_of_all_that_is_to_come_the_nearer_fits_better_and_the_past_does_not():
    asked = read_asked_time("What is coming up?", NOW)
    near, far, past = (
        score_time(asked, Record.from_json({"when": [day, day]})) for day in ("2026-03-12", "2026-12-14", "2026-02-01")
    )
    assert near > far >= 0.5 > 0.1 > past


def test_how_a_time_that_is_to_come_fades_and_that_what_has_begun_is_here():
    asked = read_asked_time("What is coming up?", NOW)
    in_thirty_days, begun = ({"when": days} for days in (["2026-04-09"], ["2026-02-20", "2026-04-01"]))
    assert score_time(asked, Record.from_json(in_thirty_days)) == pytest.approx((1 + math.exp(-1)) / 2)
    assert score_time(asked, Record.from_json(begun)) == 1


def test_days_of_a_record_are_those_of_the_question_and_the_last_one_counts():
    tokyo = timezone(timedelta(hours=9))
    for question in ("What did I do yesterday?", "What is on on 9 March 2026?", "What is on tomorrow?"):
        now = datetime(2026, 3, 10 if "tomorrow" not in question else 8, 10, tzinfo=tokyo)
        two_days_before = {"when": ["2026-03-01", "2026-03-07"]}
        asked = read_asked_time(question, now)
        assert score_time(asked, Record.from_json(two_days_before)) == pytest.approx(math.exp(-1 / 4)), question
    planned = {"when": ["2026-12-14", "2026-12-14"], "real_time": "2026-03-09T12:00:00+00:00"}
    assert score_time(read_asked_time("yesterday", NOW), Record.from_json(planned)) == 1, (
        "the day on which it was planned"
    )


def test_a_record_without_a_turn_is_on_no_side_of_an_event_and_no_time_at_all_is_no_error():
    assert score_time(AskedTime(relation="before", anchor="the storm"), Record.from_json({}), 20) == 0
    asked = read_asked_time("0 hours ago", NOW)
    told = [{"said_at": time.isoformat()} for time in (NOW, NOW - timedelta(seconds=1))]
    assert [score_time(asked, Record.from_json(value)) for value in told] == [1, 0]


def test_filters_propose_the_days_and_their_month():
    tokyo = datetime(2026, 3, 10, 10, tzinfo=timezone(timedelta(hours=9)))
    assert time_filters(read_asked_time("yesterday", tokyo)) == [{"date": "20260308"}, {"date": "20260309"}], "in UTC"
    today = time_filters(read_asked_time("today", NOW))
    assert today.count({"date": "20260310"}) == 1, "behind or ahead, it is looked up once"
    assert time_filters(read_asked_time("tomorrow", NOW)) == [{"date": "20260311"}, {"month": "202603"}]
    assert time_filters(read_asked_time("What is coming up?", NOW))[-1] == {"month": "202610"}, "for seven months"
    assert {"date": "20261214"} in time_filters(read_asked_time("on 14 December", NOW))
    assert {"month": "202612"} in time_filters(read_asked_time("on 14 December", NOW))
    assert {"date": "20251214"} in time_filters(read_asked_time("on 14 December", NOW))
    coming = time_filters(read_asked_time("What is coming up?", NOW))
    assert {"month": "202603"} in coming
    assert {"month": "202608"} in coming
    assert {"day": 10} in time_filters(read_asked_time("tomorrow", NOW, day=9))


@pytest.mark.parametrize(
    ("before", "phrase"),
    [
        (timedelta(0), "just now"), (timedelta(seconds=59), "just now"), (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"), (timedelta(hours=1), "earlier today"),
        (timedelta(hours=15), "earlier today"), (timedelta(hours=15, seconds=1), "yesterday"),
        (timedelta(hours=39), "yesterday"), (timedelta(hours=39, seconds=1), "2 days ago"),
        (timedelta(days=13), "13 days ago"), (timedelta(days=14), "2 weeks ago"), (timedelta(days=59), "8 weeks ago"),
        (timedelta(days=60), "2 months ago"), (timedelta(days=729), "23 months ago"),
        (timedelta(days=730), "2 years ago"), (timedelta(seconds=-60), "just now"),
        (timedelta(seconds=-61), "in the future"), (timedelta(hours=-2), "in the future"),
    ],
)  # fmt: skip
def test_every_boundary(before, phrase):
    assert phrase_age(NOW - before, NOW) == phrase
    assert phrase_age((NOW - before).isoformat(), NOW) == phrase


def test_sixty_days_are_two_months_whatever_months_they_are():
    told = [phrase_age(now - timedelta(days=60), now) for now in (NOW + timedelta(days=day) for day in range(366))]
    assert set(told) == {"2 months ago"}


@pytest.mark.parametrize("unknown", [None, "", "long ago"])
def test_a_missing_or_unreadable_time_is_said_to_be_unknown(unknown):
    assert phrase_age(unknown, NOW) == "at an unknown time"


def test_days_change_at_the_listeners_midnight():
    tokyo = timezone(timedelta(hours=9))
    now = datetime(2026, 3, 10, 1, 0, tzinfo=tokyo)
    assert phrase_age("2026-03-09T14:30:00+00:00", now) == "yesterday"
    assert phrase_age("2026-03-09T14:30:00", now.astimezone(UTC)) == "earlier today"
    assert phrase_age(datetime(2026, 3, 9, 15, 30), now) == "30 minutes ago", "without an offset it is UTC"  # noqa: DTZ001


@pytest.mark.parametrize(
    ("sessions", "phrase"), [(None, "3 days ago in real time"), (2, "3 days ago in real time (two sessions ago)")]
)
def test_beside_a_storys_time_an_age_says_that_it_is_real_time(sessions, phrase):
    assert phrase_age(NOW - timedelta(days=3), NOW, sessions, own_calendar=True) == phrase
    assert phrase_age("unknown", NOW, own_calendar=True) == "at an unknown time"
    told = [phrase_age("", NOW, sessions) for sessions in (-1, 0, 1, 10, 11)]
    unknown = ["at an unknown time"] * 2
    assert told == [*unknown, "last session", "ten sessions ago", "11 sessions ago"]


def test_what_is_on_today_may_lie_behind_or_ahead_and_ends_with_the_day():
    asked = read_asked_time("What is on today?", NOW)
    assert days_of(asked.start, asked.end) == days_of(*asked.ahead) == ("2026-03-10", "2026-03-10")


def test_a_time_without_an_end_is_no_span():
    asked, record = AskedTime(start=NOW), Record.from_json({"said_at": NOW.isoformat()})
    assert score_time(asked, record) == 0
    assert time_filters(asked) == []


SATURDAY = NOW + timedelta(days=4)


@pytest.mark.parametrize(
    ("question", "now", "last", "following"),
    [
        ("What is on 10 March?", NOW, ("2026-03-10",) * 2, ("2026-03-10",) * 2),
        ("What is on in March?", NOW, ("2026-03-01", "2026-03-31"), ("2026-03-01", "2026-03-31")),
        ("What is on this Tuesday?", NOW, None, ("2026-03-10",) * 2),
        ("next weekend", SATURDAY, None, ("2026-03-21", "2026-03-22")),
        ("this weekend", SATURDAY, ("2026-03-14", "2026-03-15"), ("2026-03-14", "2026-03-15")),
        ("last weekend", SATURDAY, ("2026-03-07", "2026-03-08"), None),
        ("this coming weekend", SATURDAY, None, ("2026-03-14", "2026-03-15")),
        ("coming weekend", SATURDAY, None, ("2026-03-21", "2026-03-22")),
        ("on 9 March 2026", NOW, ("2026-03-09",) * 2, None),
        ("on 3 May next year", NOW, None, ("2027-01-01", "2027-12-31")),
        ("Did we plan anything for tomorrow?", NOW, None, ("2026-03-11",) * 2),
        ("What is planned for tomorrow?", NOW, None, ("2026-03-11",) * 2),
        ("What is planned on 9 March 2026?", NOW, ("2026-03-09",) * 2, None),
    ],
)
def test_today_this_month_and_this_weekend_are_neither_the_last_nor_the_next_ones(question, now, last, following):
    asked = read_asked_time(question, now)
    assert (asked.start and days_of(asked.start, asked.end)) == last
    assert (asked.ahead and days_of(*asked.ahead)) == following


@pytest.mark.parametrize(
    ("question", "number"),
    [("in two months", None), ("the last 3 days", None), ("3 days ago", {"day": 6}), ("on day 4", {"day": 4}),
     ("the last 2 sessions", None), ("last session", {"session": 3})],
)  # fmt: skip
def test_one_day_of_the_story_and_one_session_are_looked_up_and_several_are_not(question, number):
    filters = time_filters(read_asked_time(question, NOW, day=9, session=4))
    assert [one for one in filters if {"day", "session"} & one.keys()] == ([number] if number else [])


@pytest.mark.parametrize(("days", "day"), [((4, 5), 3), ((4, 5), 6)])
def test_a_day_of_the_story_on_either_side_fits_less(days, day):
    fits = [score_time(AskedTime(days=days), Record.from_json({"day": number})) for number in (*days, day)]
    assert fits[:2] == [1, 1]
    assert 0 < fits[2] < 0.2


@pytest.mark.parametrize(("days", "filters"), [(8, 8), (9, 1)])
def test_more_than_eight_days_are_looked_up_by_their_month(days, filters):
    assert len(time_filters(AskedTime(start=NOW, end=NOW + timedelta(days=days - 1)))) == filters


BEHIND = """
vor einem Tag: 2026-03-09|vor einer Woche: 2026-02-28 2026-03-06|vor zwei Wochen: 2026-02-21 2026-02-27
vor vier Tagen: 2026-03-06|vor fünf Tagen: 2026-03-05|vor sechs Tagen: 2026-03-04|vor sieben Tagen: 2026-03-03
vor acht Tagen: 2026-03-02|vor neun Tagen: 2026-03-01|vor zehn Tagen: 2026-02-28|vor elf Tagen: 2026-02-27
vor zwölf Tagen: 2026-02-26|vor ein paar Tagen: 2026-03-07|vor 3 Monaten: 2025-11-25 2025-12-25
vor einem Jahr: 2024-09-09 2025-09-08|vorgestern: 2026-03-08|letztes Wochenende: 2026-03-07 2026-03-08
vorletzte Woche: 2026-02-23 2026-03-01|vergangene Woche: 2026-03-02 2026-03-08|vorige Woche: 2026-03-02 2026-03-08
letzten Monat: 2026-02-01 2026-02-28|letztes Jahr: 2025-01-01 2025-12-31|letzten Montag: 2026-03-09
die letzten zwei Wochen: 2026-02-24 2026-03-11|die letzten paar Tage: 2026-03-07 2026-03-11
im Jänner 2025: 2025-01-01 2025-01-31|im Juni 2024: 2024-06-01 2024-06-30|am 2.1.2025: 2025-01-02
am 2. 1. 2025: 2025-01-02|3.5.2024: 2024-05-03|am 3. Mai 2024: 2024-05-03|a few days ago: 2026-03-07
several weeks ago: 2026-01-31 2026-02-06|3 days earlier: 2026-03-07|3 days back: 2026-03-07
past year: 2025-01-01 2025-12-31|previous week: 2026-03-02 2026-03-08|month before last: 2026-01-01 2026-01-31
the past 3 nights: 2026-03-07 2026-03-11|previous two months: 2026-01-10 2026-03-11|last Friday: 2026-03-06
late June 2024: 2024-06-01 2024-06-30|during 2024: 2024-01-01 2024-12-31|the year 2024: 2024-01-01 2024-12-31
of 2024: 2024-01-01 2024-12-31|by 2024: 2024-01-01 2024-12-31|since 1999: 1999-01-01 1999-12-31
3 NIGHTS AGO: 2026-03-07|from 2026-02-31 to 2026-03-05: 2026-03-05
in 1823: 1823-01-01 1823-12-31|in sept 2024: 2024-09-01 2024-09-30|in Sept. 2024: 2024-09-01 2024-09-30
in May, 2024: 2024-05-01 2024-05-31|in May of 2024: 2024-05-01 2024-05-31|December the 3rd, 2024: 2024-12-03
on 3 May of 2024: 2024-05-03|eleven months ago: 2025-03-26 2025-04-25|a dozen 2nd thoughts 12 days ago: 2026-02-26
"""
AHEAD = """
in einem Monat: 2026-04-10|in zwei Jahren: 2028-03-10|in 5 Tagen: 2026-03-15|in ein paar Tagen: 2026-03-13
nächstes Wochenende: 2026-03-14 2026-03-15|übernächste Woche: 2026-03-23 2026-03-29
kommende Woche: 2026-03-16 2026-03-22|folgende Woche: 2026-03-16 2026-03-22|kommenden Monat: 2026-04-01 2026-04-30
nächstes Jahr: 2027-01-01 2027-12-31|in den nächsten drei Tagen: 2026-03-10 2026-03-13|diesen Mittwoch: 2026-03-11
nächsten Donnerstag: 2026-03-12|in the next few days: 2026-03-10 2026-03-13|in a couple of days: 2026-03-12
the following five days: 2026-03-10 2026-03-15|the coming six weeks: 2026-03-10 2026-04-21
in several weeks: 2026-04-14|in 2 nights: 2026-03-12|two weeks hence: 2026-03-24|3 days from today: 2026-03-13
three weeks from today: 2026-03-31|a year from now: 2027-03-10|in about a week: 2026-03-17|in seven days: 2026-03-17
the coming week: 2026-03-16 2026-03-22|the following month: 2026-04-01 2026-04-30
Next Friday: 2026-03-13|This Friday: 2026-03-13
this coming weekend: 2026-03-14 2026-03-15|coming Friday: 2026-03-13|next Friday: 2026-03-13|this Friday: 2026-03-13
the month after next: 2026-05-01 2026-05-31|the year after next: 2028-01-01 2028-12-31|next year: 2027-01-01 2027-12-31
"""
EITHER = """
am Dienstag: 2026-03-10, 2026-03-17|am Freitag: 2026-03-06, 2026-03-13|am Samstag: 2026-03-07, 2026-03-14
am Sonnabend: 2026-03-07, 2026-03-14|am Sonntag: 2026-03-08, 2026-03-15|am 24.12.: 2025-12-24, 2026-12-24
zum 3. Mai: 2025-05-03, 2026-05-03|vom 3.5. bis 7.5.: 2025-05-03 2025-05-07, 2026-05-03 2026-05-07
im Januar: 2026-01-01 2026-01-31, 2027-01-01 2027-01-31|im Februar: 2026-02-01 2026-02-28, 2027-02-01 2027-02-28
seit März: 2026-03-01 2026-03-31, 2026-03-01 2026-03-31|im April: 2025-04-01 2025-04-30, 2026-04-01 2026-04-30
im Mai: 2025-05-01 2025-05-31, 2026-05-01 2026-05-31|im Juli: 2025-07-01 2025-07-31, 2026-07-01 2026-07-31
im August: 2025-08-01 2025-08-31, 2026-08-01 2026-08-31|im September: 2025-09-01 2025-09-30, 2026-09-01 2026-09-30
ab Oktober: 2025-10-01 2025-10-31, 2026-10-01 2026-10-31|bis November: 2025-11-01 2025-11-30, 2026-11-01 2026-11-30
im Dezember: 2025-12-01 2025-12-31, 2026-12-01 2026-12-31|Dec. 3rd: 2025-12-03, 2026-12-03
3rd of Dec: 2025-12-03, 2026-12-03|mid June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
early June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30|late June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
since June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30|by June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
around June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30|until June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
the end of June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30|for June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
the start of June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
during June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
the beginning of June: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
till Jun: 2025-06-01 2025-06-30, 2026-06-01 2026-06-30
diese Woche: 2026-03-09 2026-03-15, 2026-03-10 2026-03-15|diesen Monat: 2026-03-01 2026-03-31, 2026-03-10 2026-03-31
dieses Jahr: 2026-01-01 2026-12-31, 2026-03-10 2026-12-31|current month: 2026-03-01 2026-03-31, 2026-03-10 2026-03-31
dieses Wochenende: 2026-03-07 2026-03-08, 2026-03-14 2026-03-15|in 2100: 2100-01-01 2100-12-31, 2100-01-01 2100-12-31
heute Abend: 2026-03-10, 2026-03-10|heute Nacht: 2026-03-10, 2026-03-10|heute früh: 2026-03-10, 2026-03-10
heute Vormittag: 2026-03-10, 2026-03-10|heute Morgen: 2026-03-10, 2026-03-10|this afternoon: 2026-03-10, 2026-03-10
this evening: 2026-03-10, 2026-03-10|tonight: 2026-03-10, 2026-03-10
"""
WHEN = [(line, kind) for kind, lines in (("behind", BEHIND), ("ahead", AHEAD), ("either", EITHER))
        for line in lines.strip().replace("\n", "|").split("|")]  # fmt: skip


@pytest.mark.parametrize(("line", "kind"), WHEN)
def test_what_words_name_which_days(line, kind):
    words, _, days = line.rpartition(": ")
    spans = [tuple((part.split() * 2)[:2]) if " " not in part else tuple(part.split()) for part in days.split(", ")]
    asked = read_asked_time(words, NOW)
    behind = days_of(asked.start, asked.end) if asked.start else None
    ahead = days_of(*asked.ahead) if asked.ahead else None
    assert (behind, ahead) == {"behind": (spans[0], None), "ahead": (None, spans[0]), "either": (spans[0], spans[-1])}[
        kind
    ]


@pytest.mark.parametrize(
    "words",
    [
        "am Wochenende", "der 2.1. ist ein Kapitel", "Guten Morgen", "jeden Morgen", "am Morgen", "Wie war der Morgen?",
        "in 2200", "in 1799", "on 2026-02-31", "fourteen days ago", "the seventh day", "May I?", "vor der Tür",
        "Version 2.13.",
    ],
)  # fmt: skip
def test_what_words_name_no_day(words):
    asked = read_asked_time(words, NOW)
    assert (asked.start, asked.ahead) == (None, None)


@pytest.mark.parametrize(
    ("words", "days", "sessions"),
    [
        ("on the 2nd day", (2, 2), None), ("of day 4", (4, 4), None), ("night 12", (12, 12), None),
        ("of the fourth night", (4, 4), None), ("on the third night", (3, 3), None), ("session number 3", None, (3, 3)),
        ("the fifth session", None, (5, 5)), ("last time we met", None, (3, 3)), ("last time I spoke", None, (3, 3)),
        ("last time we talked", None, (3, 3)), ("last time we sat there", None, (3, 3)),
        ("the last game", None, (3, 3)),
        ("this game", None, (4, 4)), ("the current session", None, (4, 4)), ("the previous game", None, (3, 3)),
        ("the past session", None, (3, 3)), ("yesterday", (8, 8), None), ("vorgestern", (7, 7), None),
        ("the past 3 nights", (6, 9), None), ("two weeks hence", (23, 23), None), ("3 days from today", (12, 12), None),
        ("in two months", None, None), ("last session, not session 2", None, (3, 3)),
    ],
)  # fmt: skip
def test_what_words_name_which_day_of_the_story_or_session(words, days, sessions):
    asked = read_asked_time(words, NOW, day=9, session=4)
    assert (asked.days, asked.sessions) == (days, sessions)


@pytest.mark.parametrize(
    "question",
    [
        "What is turning up?", "Anything upcoming?", "What is planned?", "What is she planning next?",
        "What is scheduled?",
        "What is on my schedule?", "What is on the agenda?", "Which appointments do I have?", "What lies ahead?",
        "What can I look forward to?", "What am I looking forward to?", "What happens in the near future?",
        "What is in the future?", "What is due?", "What is next?", "What’s next?", "Was steht diese Zeit noch an?",
        "Welche Dinge stehen an?", "Was ist anstehend?", "Was gibt es demnächst?", "Was ist bald?", "Was ist geplant?",
        "Welche Pläne habe ich?", "Welchen Termin habe ich?", "Was haben wir vor?", "Was habe ich noch vor?",
    ],
)  # fmt: skip
def test_a_question_for_what_is_to_come_looks_a_year_ahead(question):
    assert days_of(*read_asked_time(question, NOW).ahead) == ("2026-03-10", "2027-03-09")


def test_a_weekday_of_a_recurring_thing_is_bare():
    bare = {
        text: is_bare_weekday(text) for text in ("on Tuesday", "next Tuesday", "Tuesday next week", "Tuesday, 3 May")
    }
    assert bare == {"on Tuesday": True, "next Tuesday": False, "Tuesday next week": False, "Tuesday, 3 May": False}
    assert not is_bare_weekday("Tuesday, 2026-05-03")
    assert not is_bare_weekday("someday")


def test_days_of_early_years_are_looked_up_as_they_are_kept():
    early = datetime(823, 5, 3, tzinfo=UTC)
    assert time_filters(AskedTime(start=early, end=early)) == [{"date": "08230503"}]
    assert {"month": "082305"} in time_filters(AskedTime(start=early, end=early + timedelta(days=40)))

"""Ages as people say them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from questbook.memory.recall.times import phrase_age

NOW = datetime(2026, 3, 10, 15, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "phrase"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=1), "earlier today"),
        (timedelta(hours=15), "earlier today"),
        (timedelta(hours=15, seconds=1), "yesterday"),
        (timedelta(hours=39), "yesterday"),
        (timedelta(hours=39, seconds=1), "2 days ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(days=14), "2 weeks ago"),
        (timedelta(days=59), "8 weeks ago"),
        (timedelta(days=60), "2 months ago"),
        (timedelta(days=729), "23 months ago"),
        (timedelta(days=730), "2 years ago"),
        (timedelta(seconds=-60), "just now"),
        (timedelta(seconds=-61), "in the future"),
        (timedelta(hours=-2), "in the future"),
    ],
)
def test_every_boundary(before, phrase):
    assert phrase_age(NOW - before, NOW) == phrase
    assert phrase_age((NOW - before).isoformat(), NOW) == phrase


@pytest.mark.parametrize("unknown", [None, "", "long ago"])
def test_a_missing_or_unreadable_time_is_said_to_be_unknown(unknown):
    assert phrase_age(unknown, NOW) == "at an unknown time"


def test_days_change_at_the_listeners_midnight():
    tokyo = timezone(timedelta(hours=9))
    now = datetime(2026, 3, 10, 1, 0, tzinfo=tokyo)
    assert phrase_age("2026-03-09T14:30:00+00:00", now) == "yesterday"
    assert phrase_age("2026-03-09T14:30:00", now.astimezone(UTC)) == "earlier today"


@pytest.mark.parametrize(
    ("sessions", "phrase"), [(None, "3 days ago in real time"), (2, "3 days ago in real time (two sessions ago)")]
)
def test_beside_a_storys_time_an_age_says_that_it_is_real_time(sessions, phrase):
    assert phrase_age(NOW - timedelta(days=3), NOW, sessions, of_story=True) == phrase
    assert phrase_age("unknown", NOW, of_story=True) == "at an unknown time"

"""The days that a fact is about: "in three weeks" is counted from when it was said, once, when the fact is noted."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

from questbook.memory.recall.dates import coming_span, in_english, is_bare_weekday
from questbook.memory.recall.times import PAST, read_named_time
from questbook.memory.timeline.records import CALENDAR_TIME
from questbook.types import JSON

_LONGEST = timedelta(days=366)
_ANY_DATE = datetime.fromisoformat("2000-06-01").astimezone()  # of days of an app's own calendar only the count matters
YEARS = range(1900, 2200)  # a year outside of these is no date of the real world
_RECURRING = re.compile(
    r"(?i)\b(?:every|each|always|usually|weekly|monthly|yearly|jede[nrsm]?|immer|meistens|wöchentlich"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs)\b"
)
# "Is booked", "has planned" are of what is to come, though their verb looks like one of the past.
_PLANNED = re.compile(
    r"(?i)\b(?:will|going to|(?:is|are|be|been|has|have|had) (?:\w+ )?(?:booked|planned|scheduled|invited|supposed"
    r"|expected|due)|plan(?:s|ned|ning)?|book(?:s|ed)|promised|wants?|must|needs? to|wird|werden|soll"
    r"|möchte|muss|gebucht|geplant)\b"
)


def find_days(text: str, said: datetime, *, in_slot: bool = False) -> list[str]:
    """Return the first and the last day that a sentence is about, ISO 8601; none if it names no time of up to a year.

    What may be the last or the next one is the last in a sentence about the past, else the next. If the sentence gives
    a property its value (`in_slot`), a bare weekday is one of every week ("gym day: Tuesday").
    """
    recurs, text = _RECURRING.search(text), in_english(text)  # first: in English "freitags" is "Friday"
    if recurs or (in_slot and is_bare_weekday(text)):
        return []
    past = PAST.search(text) is not None and _PLANNED.search(text) is None
    if past and coming_span(text, said)[0] is not None:
        return []  # "learnt it in two days" lasted that long
    named = read_named_time(text, said)
    start, end = named.start, named.end
    if named.ahead is not None and (start is None or not past):
        start, end = named.ahead
    if start is None or end is None or end - start > _LONGEST:
        return []
    with suppress(OverflowError):
        days = start.date(), (end - timedelta(microseconds=1)).date()
        if all(day.year in YEARS for day in days):
            return [day.isoformat() for day in days]
    return []


def only_day(text: str, said: datetime) -> str:
    """Return the one day that a text surely names, ISO 8601; "" for a span, or what may be the last or the next."""
    named = read_named_time(in_english(text), said)
    if named.start is not None and named.ahead is not None and named.start != named.ahead.start:
        return ""
    when = find_days(text, said)
    return when[0] if when and when[0] == when[1] else ""


def find_calendar_day(text: str, day: int | None) -> int | None:
    """Return the day of the app's own calendar that a sentence is about, counted from the day on which it was told."""
    if day is None or _RECURRING.search(text):
        return None
    days = read_named_time(in_english(text), _ANY_DATE, day=day).days
    return days[0] if days is not None and days[0] == days[1] and days[0] > 0 else None


def day_fields(when: list[str]) -> JSON:
    """Return the fields by which a store finds a record of these days: `date` and `month` of the first."""
    digits = when[0].replace("-", "") if when else ""
    return {"date": digits, "month": digits[:6]} if digits else {}


def line_date(value: Mapping[str, Any]) -> str:
    """Return when a fact is, for its line: "Mon 2026-12-14", "2026-12-10 to 2026-12-20", "day 7"; "" if unknown."""
    when = value.get("when")
    days = [day for day in when if isinstance(day, str)] if isinstance(when, list | tuple) else []
    days = days or [str(value.get("real_time") or "")[:10]]
    with suppress(ValueError):
        first, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
        return f"{first:%a %Y-%m-%d}" if first == last else f"{first} to {last}"
    day, told = value.get("day"), str(value.get(CALENDAR_TIME) or "")
    return f"day {day}" if isinstance(day, int) and not isinstance(day, bool) and f"day {day}" not in told else told

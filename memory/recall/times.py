"""The time that a question names, and how well the time of a record fits it.

"Yesterday", "three days ago", "on 3 May", "last session", "on day 4", "before we reached the tower": read by rules from
English, without a model; python-dateutil reads and counts dates. A time is a preference, never a filter: a record fits
it more or less, and a record without a time loses nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple

from questbook.memory.text.words import split_words
from questbook.memory.timeline.records import Record, read_time

_SCALE_DAYS = 4.0  # a record that is four days from the span scores 1/e; measured, see docs/figures.md
_BEFORE = 2.0  # days before the span count double: things are told after they happened, seldom before
_TURNS = 12.0  # turns on the wrong side of an event at which the score has fallen to 1/e² of one half
_OTHER_NUMBER = 2.0  # each day of the story, or session, from those asked for divides the score by e²


class AskedTime(NamedTuple):
    """The time that a question names; what it does not name is None.

    Attributes:
        start: Beginning of the span in real time, with an offset.
        end: Its end, not included.
        days: First and last day of the story.
        sessions: First and last session, counted from 1.
        relation: Whether what is sought happened before or after `anchor`.
        anchor: An event, in the question's words: "we reached the tower".
    """

    start: datetime | None = None
    end: datetime | None = None
    days: tuple[int, int] | None = None
    sessions: tuple[int, int] | None = None
    relation: Literal["before", "after"] | None = None
    anchor: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the question names a time at all."""
        return any(self)


class _Clock(NamedTuple):
    """What time it is: real time, day of the story, session."""

    now: datetime
    day: int | None
    session: int | None

    @property
    def today(self) -> datetime:
        """The last midnight."""
        return datetime.combine(self.now.date(), time.min, self.now.tzinfo)


_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            ("a", "an", "one", "1st", "first"),
            ("two", "couple", "2nd", "second"),
            ("three", "few", "3rd", "third"),
            ("four", "4th", "fourth"),
            ("five", "several", "5th", "fifth"),
            ("six", "6th", "sixth"),
            ("seven", "7th", "seventh"),
            ("eight", "8th", "eighth"),
            ("nine", "9th", "ninth"),
            ("ten", "10th", "tenth"),
            ("eleven", "11th", "eleventh"),
            ("twelve", "12th", "twelfth"),
        ),
        1,
    )
    for word in words
}
_COUNT = rf"(?P<n>\d{{1,4}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})(?:\s+of)?"
_UNITS = ("minute", "hour", "day", "night", "week", "month", "year", "session")
_UNIT = rf"(?P<unit>{'|'.join(_UNITS)})s?"
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_PREPOSITION = r"(?:in|since|during|until|till|by|around|early|mid|late|last|this|end\s+of|start\s+of|beginning\s+of)"
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DATE = re.compile(
    rf"\b(?:(?P<d1>{_DAY})\s+(?:of\s+)?(?P<m1>{_MONTH})|(?P<m2>{_MONTH})\s+(?:the\s+)?(?P<d2>{_DAY})(?!\d))"
    r"(?:\s*,?\s*(?:of\s+|in\s+)?(?P<y>\d{4}))?\b",
    re.I,
)
# "May" alone is a verb more often than a month: it takes a year or a preposition.
_WHOLE_MONTH = re.compile(
    rf"\b(?:(?P<m1>{_MONTH})\s*,?\s*(?:of\s+)?(?P<y>\d{{4}})|{_PREPOSITION}\s+(?P<m2>{_MONTH}))(?!\s+\d)", re.I
)
_YEAR = re.compile(r"\b(?:in|during|since|of|year|by|until)\s+(?P<y>(?:1[89]|20|21)\d\d)\b", re.I)
_AGO = re.compile(rf"\b(?:(?P<half>half\s+an?)|(?:a\s+)?{_COUNT})\s+{_UNIT}\s+(?:ago|earlier|back)\b", re.I)
_LAST_FEW = re.compile(rf"\b(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}\b", re.I)
_THIS = re.compile(
    r"\b(?P<which>last|past|previous|this|current)\s+(?P<unit>week(?:end)?|month|year|session|game)\b", re.I
)
_WEEKDAY = re.compile(rf"\b(?P<day>{'|'.join(_WEEKDAYS)})\b", re.I)
_SESSION = re.compile(rf"\b(?:(?:the\s+)?{_COUNT}\s+session\b|session\s+(?:number\s+)?(?P<m>\d{{1,4}}))", re.I)
_LAST_TIME = re.compile(r"\blast\s+time(?:\s+(?:we|i)\s+(?:played|met|spoke|talked|sat))?\b", re.I)
_STORY_DAY = re.compile(
    rf"\b(?:(?:on|of)\s+(?:the\s+)?{_COUNT}\s+(?:day|night)|(?:day|night)\s+(?P<m>\d{{1,6}}))\b", re.I
)
_NEAR = (
    (re.compile(r"\bday\s+before\s+yesterday\b", re.I), 2),
    (re.compile(r"\byesterday\b|\blast\s+night\b", re.I), 1),
    (re.compile(r"\btoday\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b", re.I), 0),
)
TIME_WORDS = frozenset(
    {*_NUMBERS, *_MONTHS, *_WEEKDAYS, "ago", "back", "last", "past", "previous", "this", "time", "today", "tonight"}
    | {"yesterday", "before", "after", "since", "game", "weekend", "morning", "afternoon", "evening"}
    | {f"{unit}{end}" for unit in _UNITS for end in ("", "s")}
)
"""Words by which a question names a time, and which a record of that time need not have."""
_NEEDED = (TIME_WORDS - _NUMBERS.keys()) | {"until", "till", "sept"} | {month[:3] for month in _MONTHS}
_RECORD_DAY = re.compile(r"\bday\s+(\d{1,6})\b", re.IGNORECASE)
# One pattern for many texts: which time they name is not asked.
_TIME_WORD = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|(?:last|next|this|past|previous)\s+(?:few\s+)?"
    r"(?:weekend|week|month|year|night|morning|spring|summer|autumn|fall|winter)s?"
    rf"|{'|'.join(_WEEKDAYS)}|{'|'.join(month for month in _MONTHS if month not in ('may', 'march'))}"
    r"|(?-i:May|March)|(?:1[89]|20|21)\d\d|day\s+\d+)\b",
    re.I,
)
_ANCHOR = re.compile(
    r"\b(?P<relation>before|after|since|until|till)\s+(?P<what>(?:(?:i|we|he|she|they|you|it|the|my|our|his|her|their|that)"
    r"\b|(?-i:[A-Z]))[^?.!;,]{3,})",
    re.I,
)


def read_asked_time(question: str, now: datetime, *, day: int | None = None, session: int | None = None) -> AskedTime:
    """Read the time that a question names.

    Args:
        question: Any text.
        now: The present, with an offset; days change at its midnight, and a date without a year is the last such.
        day: Day of the story now; without it, "yesterday" is only the real one.
        session: Number of the session now; without it, only sessions named by number are read.
    """
    asked, clock = AskedTime(), _Clock(now, day, session)
    if question.isascii() and not _may_name_time(question):
        return asked
    for read in (_read_dates, _read_span, _read_session, _read_story_day):
        with suppress(OverflowError, ValueError):  # beyond the calendar, where nothing can have been remembered
            asked = read(question, clock, asked)
    anchor = next((match for match in _ANCHOR.finditer(question) if not _names_time(match["what"])), None)
    if anchor is not None:
        relation: Literal["before", "after"] = "after" if anchor["relation"].lower() in ("after", "since") else "before"
        asked = asked._replace(relation=relation, anchor=anchor["what"].strip())
    return asked


def _may_name_time(question: str) -> bool:
    """Return whether a question has a digit or a word that some pattern here needs; far faster than the patterns."""
    return not _NEEDED.isdisjoint(split_words(question)) or any(map(str.isdigit, question))


def names_time(text: str) -> bool:
    """Return whether a text names a time: a date, a weekday, "yesterday", "two weeks ago", "next month"."""
    return _TIME_WORD.search(text) is not None


def score_time(asked: AskedTime, record: Record, anchor_turn: int | None = None) -> float:
    """Return from 0 to 1 how well a record's time fits; 0 also for one without a time.

    Args:
        asked: What the question names.
        record: Its `real_time` and `said_at`, its day of the story, its session and its turn count.
        anchor_turn: The turn in which the event of `asked.anchor` happened; None if no record tells.
    """
    scores = [0.0]
    if asked.start is not None and asked.end is not None:
        times = (read_time(text) for text in (record.real_time, record.stamp.said_at) if text)
        scores += [_score_span(asked.start, asked.end, time) for time in times if time]
    if asked.days is not None and (day := story_day(record)) is not None:
        scores.append(_score_number(asked.days, day))
    if asked.sessions is not None and record.stamp.session is not None:
        scores.append(_score_number(asked.sessions, record.stamp.session))
    if anchor_turn is not None and asked.relation and record.stamp.turn:
        turns = anchor_turn - record.stamp.turn
        right_side = turns if asked.relation == "before" else -turns
        near = math.exp(-right_side / _TURNS / 4) if right_side > 0 else math.exp(2 * right_side / _TURNS) / 2
        scores.append(near)
    return max(scores)


def story_day(record: Record) -> int | None:
    """Return the day of the story on which a record's event happened; None if it does not say."""
    if record.stamp.day is not None:
        return record.stamp.day
    match = _RECORD_DAY.search(record.story_time)
    return int(match[1]) if match else None


def _score_span(start: datetime, end: datetime, time: datetime) -> float:
    gap = (start - time) * _BEFORE if time < start else max(time - end, timedelta(0))
    scale = min(timedelta(days=_SCALE_DAYS), (end - start) * _SCALE_DAYS)
    return math.exp(-gap / scale) if scale else float(not gap)


def _score_number(span: tuple[int, int], number: int) -> float:
    first, last = span
    return math.exp(-_OTHER_NUMBER * max(first - number, number - last, 0))


def _names_time(text: str) -> bool:
    patterns = (_ISO, _DATE, _WHOLE_MONTH, _YEAR, _AGO, _LAST_FEW, _THIS, _WEEKDAY, *(near for near, _ in _NEAR))
    return any(pattern.search(text) for pattern in patterns)


def _read_dates(question: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read the dates that are written out: the span from the first to the last."""
    spans = list(_date_spans(question, clock.now))
    return asked._replace(start=min(s for s, _ in spans), end=max(e for _, e in spans)) if spans else asked


def _date_spans(question: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans of ISO dates, and of the most exact other kind that there is: days, months, years."""
    yield from _iso_days(question, now)
    for kind in (_written_days, _written_months, _written_years):
        if spans := list(kind(question, now)):
            yield from spans
            return


def _midnight(now: datetime, year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=now.tzinfo)


def _iso_days(question: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    for match in _ISO.finditer(question):
        with suppress(ValueError):  # 2026-02-31
            start = _midnight(now, *map(int, match.groups()))
            yield start, start + timedelta(days=1)


def _written_days(question: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    from dateutil import parser  # 60 ms, which a question without a date does not need

    for match in _DATE.finditer(question):
        year = int(match["y"]) if match["y"] else now.year
        try:
            read = parser.parse(f"{match['d1'] or match['d2']} {(match['m1'] or match['m2'])[:3]} {year:04}")
            start = _midnight(now, read.year, read.month, read.day)
        except (ValueError, OverflowError):  # 31 February
            continue
        if not match["y"] and start > now and (start.month, start.day) != (2, 29):
            start = start.replace(year=year - 1)
        yield start, start + timedelta(days=1)


def _written_months(question: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    for match in _WHOLE_MONTH.finditer(question):
        name = (match["m1"] or match["m2"]).lower().rstrip(".")[:3]
        month = next(n for n, full in enumerate(_MONTHS, 1) if full.startswith(name))
        year = int(match["y"] or now.year) - (not match["y"] and month > now.month)
        if 1 <= year < 9999:
            start = _midnight(now, year, month, 1)
            yield start, _move(start, "month", 1)


def _written_years(question: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    for match in _YEAR.finditer(question):
        yield _midnight(now, int(match["y"]), 1, 1), _midnight(now, int(match["y"]) + 1, 1, 1)


def _read_span(question: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read a time that is counted from now: "yesterday", "two weeks ago", "last month", "on Monday"."""
    for pattern, back in _NEAR:
        if pattern.search(question):
            start = clock.today - timedelta(days=back)
            days = None if clock.day is None or back >= clock.day else _only(clock.day - back)
            return asked._replace(start=start, end=start + timedelta(days=1), days=days)
    if match := _AGO.search(question):
        return _count_back(match, clock, asked)
    if match := _LAST_FEW.search(question):
        return _count_last(match, clock, asked)
    if match := _THIS.search(question):
        return _this(match, clock, asked)
    if asked.start is None and (match := _WEEKDAY.search(question)):
        back = (clock.now.weekday() - _WEEKDAYS.index(match["day"].lower())) % 7
        if back == 0 and re.search(rf"\blast\s+{match['day']}", question, re.I):
            back = 7
        start = clock.today - timedelta(days=back)
        return asked._replace(start=start, end=start + timedelta(days=1))
    return asked


def _count_back(match: re.Match[str], clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read "two weeks ago", which is no more exact than half a week."""
    unit = _unit(match)
    half = match["half"] is not None
    count = 1 if half else _number(match["n"])
    if unit == "session":
        return asked if clock.session is None else asked._replace(sessions=_only(max(1, clock.session - count)))
    then = clock.now - timedelta(minutes=30) if half else _move(clock.now, unit, -count)
    if unit in ("minute", "hour"):
        about = (clock.now - then) / 4
        return asked._replace(start=then - about, end=then + about)
    midnight = datetime.combine(then.date(), time.min, clock.now.tzinfo)
    slack = {"day": 0, "week": 3, "month": 15, "year": 182}[unit]
    start, end = midnight - timedelta(days=slack), midnight + timedelta(days=slack + 1)
    days = _only(clock.day - count) if unit == "day" and clock.day is not None and count < clock.day else None
    return asked._replace(start=start, end=end, days=days)


def _count_last(match: re.Match[str], clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read "the last two weeks", which reach until now."""
    unit, count = _unit(match), _number(match["n"])
    if unit == "session":
        session = clock.session
        return asked if session is None else asked._replace(sessions=(max(1, session - count), session))
    then = _move(clock.now, unit, -count)
    if unit in ("minute", "hour"):
        return asked._replace(start=then - (clock.now - then) / 4, end=clock.now)
    start = datetime.combine(then.date(), time.min, clock.now.tzinfo)
    days = (clock.day - count, clock.day) if unit == "day" and clock.day is not None and count < clock.day else None
    return asked._replace(start=start, end=clock.now + timedelta(days=1), days=days)


def _this(match: re.Match[str], clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read "this week", "last month"."""
    back = 0 if match["which"].lower() in ("this", "current") else 1
    unit, today = match["unit"].lower(), clock.today
    if unit in ("session", "game"):
        if clock.session is None or clock.session <= back:
            return asked
        return asked._replace(sessions=_only(clock.session - back))
    if unit == "weekend":
        start = today - timedelta(days=(today.weekday() - 5) % 7 + (7 * back if today.weekday() >= 5 else 0))
        return asked._replace(start=start, end=start + timedelta(days=2))
    begin: dict[str, Callable[[date], date]] = {
        "week": lambda day: day - timedelta(days=day.weekday()),
        "month": lambda day: day.replace(day=1),
        "year": lambda day: day.replace(month=1, day=1),
    }
    start = _move(datetime.combine(begin[unit](today.date()), time.min, today.tzinfo), unit, -back)
    return asked._replace(start=start, end=_move(start, unit, 1))


def _read_session(question: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read a session by its number, or as "last time"."""
    if asked.sessions is not None:
        return asked
    if match := _SESSION.search(question):
        return asked._replace(sessions=_only(_number(match["m"] or match["n"])))
    if clock.session is not None and clock.session > 1 and _LAST_TIME.search(question):
        return asked._replace(sessions=_only(clock.session - 1))
    return asked


def _read_story_day(question: str, _: _Clock, asked: AskedTime) -> AskedTime:
    """Read a day of the story by its number."""
    if match := _STORY_DAY.search(question):
        return asked._replace(days=_only(_number(match["m"] or match["n"])))
    return asked


def _only(number: int) -> tuple[int, int]:
    """Return a span of one day of the story, or one session."""
    return number, number


def _unit(match: re.Match[str]) -> str:
    return match["unit"].lower().replace("night", "day")


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS[word.lower()]


def _move(then: datetime, unit: str, count: int) -> datetime:
    """Return the time so many units later, or earlier with a negative count."""
    from dateutil.relativedelta import relativedelta

    steps = {
        "minute": relativedelta(minutes=count),
        "hour": relativedelta(hours=count),
        "day": relativedelta(days=count),
        "week": relativedelta(weeks=count),
        "month": relativedelta(months=count),
        "year": relativedelta(years=count),
    }
    return then + steps[unit]

"""When: the time that a question names, read by rules from English, without a model.

"Yesterday", "three days ago", "on 3 May", "last session", "on day 4", "before we reached the tower". What is read is a
wish, never a condition: a record fits it more or less (`questbook.memory.recall.time_fit`), and one without a time is
none the worse. Dates are read and counted by python-dateutil.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Literal, NamedTuple


class When(NamedTuple):
    """The time that a question names; what it does not name is None.

    Attributes:
        start: Beginning of the span in real time, with an offset.
        end: Its end, not included.
        days: First and last day of the story.
        sessions: First and last session, counted from 1.
        relation: Whether what is sought lies before or after `anchor`.
        anchor: What happened then, in the question's words: "we reached the tower".
    """

    start: datetime | None = None
    end: datetime | None = None
    days: tuple[int, int] | None = None
    sessions: tuple[int, int] | None = None
    relation: Literal["before", "after"] | None = None
    anchor: str = ""

    @property
    def said(self) -> bool:
        """Whether the question names a time at all."""
        return any(part for part in self)


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
_UNIT = r"(?P<unit>minute|hour|day|night|week|month|year|session)s?"
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
# One pattern for many texts; which time is named is not asked.
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


def read_when(query: str, now: datetime, *, day: int | None = None, session: int | None = None) -> When:
    """Read the time that a question names.

    Args:
        query: Any text.
        now: The present, with an offset; days change at its midnight, and a date without a year is the last such.
        day: Day of the story now; without it, "yesterday" is only the real one.
        session: Number of the session now; without it, only sessions named by number are read.
    """
    found = When()
    for reader in (_dates, _spans, _sessions, _story):
        with suppress(OverflowError, ValueError):  # beyond the calendar, where nothing can have been remembered
            found = reader(query, now, day, session, found)
    anchor = next((match for match in _ANCHOR.finditer(query) if not _names_time(match["what"])), None)
    if anchor is not None:
        relation: Literal["before", "after"] = "after" if anchor["relation"].lower() in ("after", "since") else "before"
        found = found._replace(relation=relation, anchor=anchor["what"].strip())
    return found


def names_time(text: str) -> bool:
    """Whether a text names a time: a date, a weekday, "yesterday", "two weeks ago", "next month"."""
    return _TIME_WORD.search(text) is not None


def _names_time(text: str) -> bool:
    patterns = (_ISO, _DATE, _WHOLE_MONTH, _YEAR, _AGO, _LAST_FEW, _THIS, _WEEKDAY, *(near for near, _ in _NEAR))
    return any(pattern.search(text) for pattern in patterns)


def _dates(query: str, now: datetime, day: int | None, session: int | None, found: When) -> When:  # noqa: ARG001
    spans = list(_written(query, now))
    return found._replace(start=min(s for s, _ in spans), end=max(e for _, e in spans)) if spans else found


def _written(query: str, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Find the dates that are written out."""
    from dateutil import parser  # 60 ms, which a question without a date does not need

    def midnight(year: int, month: int, of_month: int) -> datetime:
        return datetime(year, month, of_month, tzinfo=now.tzinfo)

    def month_of(name: str) -> int:
        return next(n for n, month in enumerate(_MONTHS, 1) if month.startswith(name.lower().rstrip(".")[:3]))

    for match in _ISO.finditer(query):
        try:
            start = midnight(*map(int, match.groups()))
        except ValueError:
            continue
        yield start, start + timedelta(days=1)
    taken = False
    for match in _DATE.finditer(query):
        year = int(match["y"]) if match["y"] else now.year
        try:
            read = parser.parse(f"{match['d1'] or match['d2']} {(match['m1'] or match['m2'])[:3]} {year:04}")
            start = midnight(read.year, read.month, read.day)
        except (ValueError, OverflowError):  # 31 February
            continue
        if not match["y"] and start > now:
            start = start.replace(year=year - 1) if (start.month, start.day) != (2, 29) else start
        taken = True
        yield start, start + timedelta(days=1)
    if taken:
        return
    for match in _WHOLE_MONTH.finditer(query):
        month, year = month_of(match["m1"] or match["m2"]), int(match["y"] or now.year)
        if not match["y"] and month > now.month:
            year -= 1
        if 1 <= year < 9999:
            taken = True
            yield midnight(year, month, 1), _later(midnight(year, month, 1), "month", 1)
    if not taken:
        for match in _YEAR.finditer(query):
            yield midnight(int(match["y"]), 1, 1), midnight(int(match["y"]) + 1, 1, 1)


def _spans(query: str, now: datetime, day: int | None, session: int | None, found: When) -> When:
    """Find the times that are counted from now."""
    today = datetime.combine(now.date(), time.min, now.tzinfo)
    for pattern, back in _NEAR:
        if pattern.search(query):
            start = today - timedelta(days=back)
            story = None if day is None or back >= day else (day - back, day - back)
            return found._replace(start=start, end=start + timedelta(days=1), days=story)
    for pattern, reaches_now in ((_AGO, False), (_LAST_FEW, True)):
        if match := pattern.search(query):
            unit = match["unit"].lower().replace("night", "day")
            half = not reaches_now and match["half"] is not None
            count = 1 if half else _number(match["n"])
            return _counted(found, now, unit, count, day, session, reaches_now=reaches_now, half=half)
    if match := _THIS.search(query):
        return _this(match, today, session, found)
    if found.start is None and (match := _WEEKDAY.search(query)):
        back = (now.weekday() - _WEEKDAYS.index(match["day"].lower())) % 7
        if back == 0 and re.search(rf"\blast\s+{match['day']}", query, re.I):
            back = 7
        start = today - timedelta(days=back)
        return found._replace(start=start, end=start + timedelta(days=1))
    return found


def _counted(
    found: When, now: datetime, unit: str, count: int, day: int | None, session: int | None, *, reaches_now: bool,
    half: bool,
) -> When:  # fmt: skip
    if unit == "session":
        if session is None:
            return found
        return found._replace(sessions=(max(1, session - count), session if reaches_now else max(1, session - count)))
    then = now - timedelta(minutes=30) if half else _later(now, unit, -count)
    if unit in ("minute", "hour"):
        about = (now - then) / 4
        return found._replace(start=then - about, end=now if reaches_now else then + about)
    start = datetime.combine(then.date(), time.min, now.tzinfo)
    if reaches_now:
        end = now + timedelta(days=1)
    else:  # "two weeks ago" is no more exact than half a week
        slack = {"day": 0, "week": 3, "month": 15, "year": 182}[unit]
        start, end = start - timedelta(days=slack), start + timedelta(days=slack + 1)
    story = None
    if unit == "day" and day is not None and count < day:
        story = (day - count, day if reaches_now else day - count)
    return found._replace(start=start, end=end, days=story)


def _this(match: re.Match[str], today: datetime, session: int | None, found: When) -> When:
    back = 0 if match["which"].lower() in ("this", "current") else 1
    unit = match["unit"].lower()
    if unit in ("session", "game"):
        return (
            found if session is None or session <= back else found._replace(sessions=(session - back, session - back))
        )
    if unit == "weekend":
        start = today - timedelta(days=(today.weekday() - 5) % 7 + (7 * back if today.weekday() >= 5 else 0))
        return found._replace(start=start, end=start + timedelta(days=2))
    starts: dict[str, Callable[[date], date]] = {
        "week": lambda one: one - timedelta(days=one.weekday()),
        "month": lambda one: one.replace(day=1),
        "year": lambda one: one.replace(month=1, day=1),
    }
    start = _later(datetime.combine(starts[unit](today.date()), time.min, today.tzinfo), unit, -back)
    return found._replace(start=start, end=_later(start, unit, 1))


def _sessions(query: str, now: datetime, day: int | None, session: int | None, found: When) -> When:  # noqa: ARG001
    if found.sessions is None and (match := _SESSION.search(query)):
        number = int(match["m"]) if match["m"] else _number(match["n"])
        return found._replace(sessions=(number, number))
    if found.sessions is None and session is not None and session > 1 and _LAST_TIME.search(query):
        return found._replace(sessions=(session - 1, session - 1))
    return found


def _story(query: str, now: datetime, day: int | None, session: int | None, found: When) -> When:  # noqa: ARG001
    if match := _STORY_DAY.search(query):
        number = int(match["m"]) if match["m"] else _number(match["n"])
        return found._replace(days=(number, number))
    return found


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS[word.lower()]


def _later(then: datetime, unit: str, count: int) -> datetime:
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

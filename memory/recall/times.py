"""The time that a question names, and how well the time of a record fits it.

"Yesterday", "on 3 May", "next week", "what is coming up?", "last session", "on day 4", "before we reached the tower":
read by rules, English and German. A time is a preference, never a filter: a record without one loses nothing.
"""

import math
import re
import tomllib
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Literal, NamedTuple

from questbook.memory.recall import dates
from questbook.memory.recall.dates import Span
from questbook.memory.recall.intents import QUOTATION
from questbook.memory.text.words import split_words
from questbook.memory.timeline.records import CALENDAR_TIME, Record, read_time, utc_date
from questbook.types import JSON

_SCALE_DAYS = 4.0  # a record that is four days from the span scores 1/e; measured, see docs/figures.md
_BEFORE = 2.0  # days before the span count double: things are told after they happened, seldom before
_TURNS = 12.0  # turns on the wrong side of an event at which the score has fallen to 1/e² of one half
_FORESEEN = timedelta(days=365)  # how far "what is coming up?" looks
_LAST_ONE = 0.8  # what a fact of the last such date scores where the question may mean the next one
_SOON = timedelta(days=30)
_OTHER_NUMBER = 2.0  # each day of the app's calendar, or session, from those asked for divides the score by e²


class AskedTime(NamedTuple):
    """The time that a question names; what it does not name is None."""

    start: datetime | None = None  # of the span in real time, with an offset, in which something was said or happened
    end: datetime | None = None  # not included
    ahead: Span | None = None  # what may be meant of what was planned: "on 14 December" may be the last or the next one
    days: tuple[int, int] | None = None  # first and last day of the app's own calendar
    sessions: tuple[int, int] | None = None  # first and last, counted from 1
    relation: Literal["before", "after"] | None = None  # of what is sought to the anchor
    anchor: str = ""  # an event, in the question's words: "we reached the tower"

    @property
    def is_named(self) -> bool:
        """Whether the question names a time at all."""
        return any(self)


class _Clock(NamedTuple):
    """What time it is: real time, day of the app's own calendar, session."""

    now: datetime
    today: datetime  # the last midnight
    day: int | None
    session: int | None


_AGO, _LAST_FEW, _THIS, _SESSION, _LAST_TIME, _CALENDAR_DAY, _TIME_WORD, _ANCHOR, _PRESENT = (
    dates.EXPRESSIONS[name]
    for name in ["AGO", "LAST_FEW", "THIS", "SESSION", "LAST_TIME", "CALENDAR_DAY", "TIME_WORD", "ANCHOR", "PRESENT"]
)
_NEAR = (
    (re.compile(r"\bday\s+before\s+yesterday\b", re.I), 2),
    (re.compile(r"\byesterday\b|\blast\s+night\b", re.I), 1),
    (re.compile(r"\b(?<!from )today\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b", re.I), 0),
)
_LISTS = tomllib.loads(files("questbook.memory.recall").joinpath("times.toml").read_text("utf-8"))
_WORDS = {name: "|".join(expressions) for name, expressions in _LISTS.items()}
_COMING = re.compile(rf"(?i)\b(?:{_WORDS['coming']})\b|\bwhat(?:['’]s| is) next\b")
_PAST = re.compile(rf"\b(?:{_WORDS['past_question']})\b", re.I)
PAST = re.compile(rf"\b(?:{_WORDS['past']})\b", re.I)
"""Verbs by which a sentence tells what was."""
TIME_WORDS = frozenset(
    {*dates.NUMBERS, *dates.MONTHS, *dates.WEEKDAYS, *dates.UNITS, *(f"{unit}s" for unit in dates.UNITS)}
    | {"ago", "back", "last", "past", "previous", "this", "time", "today", "tonight", "yesterday", "before", "after"}
    | {"since", "game", "weekend", "morning", "afternoon", "evening", "tomorrow", "next", "coming", "upcoming", "soon"}
)
"""Words by which a question names a time, and which a record of that time need not have."""
_NEEDED = (TIME_WORDS - dates.NUMBERS.keys()) | {"until", "till", "sept"} | {month[:3] for month in dates.MONTHS}
_RECORD_DAY = re.compile(r"\bday\s+(\d{1,6})\b", re.IGNORECASE)


def read_asked_time(question: str, now: datetime, *, day: int | None = None, session: int | None = None) -> AskedTime:
    """Read the time that a question names; days change at the midnight of `now`, which has an offset.

    A date without a year is the last such or, unless the question asks for what was, the next. Without the `day` of the
    app's own calendar, "yesterday" is only the real one; without the session, only sessions named by number are read.
    """
    if question.isascii() and not _may_name_time(question):
        return AskedTime()
    question = dates.in_english(question)
    asked = read_named_time(question, now, day=day, session=session)
    if _PAST.search(question):
        asked = asked._replace(ahead=None) if asked.start else asked
    elif not (asked.start or asked.ahead) and _COMING.search(question):
        asked = asked._replace(ahead=Span(dates.midnight(now), dates.midnight(now) + _FORESEEN))
    said = QUOTATION.sub("“”", question)  # what somebody says asks for nothing
    events = _ANCHOR.finditer(said) if PAST.search(said) or _PAST.search(said) else ()
    # An event that was: the storm, "we reached the tower"; and not "I touch it", "he is out".
    past = (event for event in events if PAST.search(event["what"]) or not _PRESENT.search(event["what"]))
    times = (
        *dates.DATES,
        _AGO,
        _LAST_FEW,
        _THIS,
        *(near for near, _ in _NEAR),
    )
    anchor = next((event for event in past if not any(time.search(event["what"]) for time in times)), None)
    if anchor is not None:
        relation: Literal["before", "after"] = "after" if anchor["relation"].lower() in ("after", "since") else "before"
        asked = asked._replace(relation=relation, anchor=anchor["what"].strip())
    return asked


def read_named_time(text: str, now: datetime, *, day: int | None = None, session: int | None = None) -> AskedTime:
    """Read the time that any text names, in English words, whether it lies behind or ahead; arguments as above.

    What may be either has both: `start` and `end` of the last such date, and the next such as `ahead`.
    """
    asked, clock = AskedTime(), _Clock(now, dates.midnight(now), day, session)
    for read in (_read_coming, _read_dates, _read_span, _read_session, _read_calendar_day):
        with suppress(OverflowError, ValueError):  # beyond the calendar, where nothing can have been remembered
            asked = read(text, clock, asked)
    return asked


def _may_name_time(question: str) -> bool:
    """Return whether a question has a digit or a word that some pattern here needs; far faster than the patterns."""
    if not _NEEDED.isdisjoint(split_words(question)) or any(map(str.isdigit, question)):
        return True
    return _COMING.search(question) is not None or dates.in_english(question) != question


def names_time(text: str) -> bool:
    """Return whether a text names a time: a date, a weekday, "yesterday", "two weeks ago", "next month"."""
    return _TIME_WORD.search(text) is not None


def time_filters(asked: AskedTime) -> list[JSON]:
    """Return store filters, for equality alone, for records of the time that is asked for, to be proposed as well."""
    filters: list[JSON] = []  # no ranges: InMemoryStore fails on one if any record lacks the field
    if asked.start is not None and asked.end is not None:
        filters += dates.day_filters(utc_date(asked.start), utc_date(asked.end))
    if asked.ahead is not None:  # of days, which have no zone; one of several days is found by its month
        first, last = asked.ahead.start.date(), (asked.ahead.end - timedelta(days=1)).date()
        filters += dates.day_filters(first, last)
        filters += dates.month_filters(first, last if (last - first).days <= 210 else first + timedelta(days=210))
    if asked.days is not None and asked.days[0] == asked.days[1]:
        filters.append({"day": asked.days[0]})
    if asked.sessions is not None and asked.sessions[0] == asked.sessions[1]:
        filters.append({"session": asked.sessions[0]})
    return [one for n, one in enumerate(filters) if one not in filters[:n]]


def score_time(asked: AskedTime, record: Record, anchor_turn: int | None = None) -> float:
    """Return from 0 to 1 how well a record's time fits; 0 also for one without a time.

    `anchor_turn` is the turn in which the event of `asked.anchor` happened; None if no record tells.
    """
    scores = [0.0]
    when = _when(record, asked)
    if asked.ahead is not None and when is not None:
        scores.append(_score_ahead(asked.ahead, when))
    if asked.start is not None and asked.end is not None:
        span = Span(asked.start, asked.end)
        if when is not None:
            scores.append(_score_days(span, when) * (_LAST_ONE if asked.ahead else 1.0))
        times = (read_time(text) for text in (record.real_time, record.stamp.said_at) if text)
        gaps = [max((span.start - time) * _BEFORE, time - span.end, timedelta(0)) for time in times if time]
        scores += [_fade(gap, span) for gap in gaps]
    if asked.days is not None and (day := calendar_day(record)) is not None:
        scores.append(_score_number(asked.days, day))
    if asked.sessions is not None and record.stamp.session is not None:
        scores.append(_score_number(asked.sessions, record.stamp.session))
    if anchor_turn is not None and asked.relation and record.stamp.turn:
        turns = anchor_turn - record.stamp.turn
        right_side = turns if asked.relation == "before" else -turns
        scores.append(math.exp(-right_side / _TURNS / 4) if right_side > 0 else math.exp(2 * right_side / _TURNS) / 2)
    return max(scores)


def calendar_day(record: Record) -> int | None:
    """Return the day of the app's own calendar on which a record's event happened; None if it does not say."""
    if record.stamp.day is not None:
        return record.stamp.day
    match = _RECORD_DAY.search(str(record.stored.get(CALENDAR_TIME)))
    return int(match[1]) if match else None


def _when(record: Record, asked: AskedTime) -> Span | None:
    """Return the days on which what a record tells is, in the zone of the question; None if it does not say."""
    said = record.when or ((record.real_time[:10],) if record.real_time else ())
    zone = next((span.tzinfo for span in (asked.ahead and asked.ahead.start, asked.start) if span), None)
    if not said:
        return None
    with suppress(ValueError, OverflowError):
        first, last = (datetime.combine(date.fromisoformat(said[n]), datetime.min.time(), zone) for n in (0, -1))
        return Span(first, last + timedelta(days=1))
    return None


def _score_ahead(asked: Span, when: Span) -> float:
    """Score as `_score_days`; where all that is to come is asked for, what is nearer fits better, by up to a half."""
    score, distance = _score_days(asked, when), max(when.start - asked.start, timedelta(0))
    return score if asked.end - asked.start < _FORESEEN else score * (1 + math.exp(-distance / _SOON)) / 2


def _score_days(asked: Span, when: Span) -> float:
    return _fade(max(asked.start - when.end, when.start - asked.end, timedelta(0)), asked)


def _fade(gap: timedelta, asked: Span) -> float:
    scale = min(timedelta(days=_SCALE_DAYS), (asked.end - asked.start) * _SCALE_DAYS)
    return math.exp(-gap / scale) if scale else float(not gap)


def _score_number(span: tuple[int, int], number: int) -> float:
    first, last = span
    return math.exp(-_OTHER_NUMBER * max(first - number, number - last, 0))


def _read_coming(text: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read what can only lie ahead: "tomorrow", "next week", "in three days", by the app's calendar as well."""
    span, days = dates.coming_span(text, clock.now)
    by_calendar = _only(clock.day + days) if clock.day is not None and days is not None else None
    return asked if span is None else asked._replace(ahead=span, days=by_calendar)


def _read_dates(text: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read the dates that are written out: the span from the first to the last."""
    last, following = (_whole(dates.dated_spans(text, clock.now, ahead=ahead)) for ahead in (False, True))
    if last is None or following is None or asked.ahead is not None:
        return asked
    return asked._replace(start=last.start, end=last.end, ahead=following if following.end > clock.today else None)


def _whole(spans: list[Span]) -> Span | None:
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def _read_span(question: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read a time that is counted from now: "yesterday", "two weeks ago", "last month", "on Monday"."""
    for pattern, back in _NEAR:
        if pattern.search(question):
            start = clock.today - timedelta(days=back)
            days = None if clock.day is None or back >= clock.day else _only(clock.day - back)
            ahead = Span(start, start + timedelta(days=1)) if back == 0 else None
            return asked._replace(start=start, end=start + timedelta(days=1), ahead=ahead, days=days)
    for pattern in (_AGO, _LAST_FEW):
        if match := pattern.search(question):
            return _count_from_now(match, clock, asked, until_now=pattern is _LAST_FEW)
    if match := _THIS.search(question):
        return _this(match, clock, asked)
    if asked.start is None and asked.ahead is None and (last := dates.weekday_span(question, clock.now)) is not None:
        return asked._replace(start=last.start, end=last.end, ahead=dates.weekday_span(question, clock.now, ahead=True))
    return asked


def _count_from_now(match: re.Match[str], clock: _Clock, asked: AskedTime, *, until_now: bool) -> AskedTime:
    """Read "two weeks ago", no more exact than half a week, or "the last two weeks", which reach `until_now`."""
    unit, half = dates.unit_of(match["unit"]), match.groupdict().get("half") is not None
    count = 1 if half else dates.number(match["n"])
    if unit == "session":
        if clock.session is None:
            return asked
        first = max(1, clock.session - count)
        return asked._replace(sessions=(first, clock.session if until_now else first))
    then = dates.shift(clock.now, unit, -count)
    then += (clock.now - then) / 2 if half else timedelta()
    if unit in ("minute", "hour"):
        about = (clock.now - then) / 4
        return asked._replace(start=then - about, end=clock.now if until_now else then + about)
    begin, a_day = dates.midnight(then), timedelta(days=1)
    slack = a_day * (0 if until_now else {"day": 0, "week": 3, "fortnight": 3, "month": 15, "year": 182}[unit])
    end = (clock.now if until_now else begin + slack) + a_day
    days = None
    if unit == "day" and clock.day is not None and count < clock.day:
        days = clock.day - count, clock.day if until_now else clock.day - count
    return asked._replace(start=begin - slack, end=end, days=days)


def _this(match: re.Match[str], clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read "this week", "last month"."""
    back = 2 if match["far"] else 0 if match["which"].lower() in ("this", "current") else 1
    unit, today = (match["unit"] or match["far"]).lower(), clock.today
    if unit in ("session", "game"):
        is_known = clock.session is not None and clock.session > back
        return asked._replace(sessions=_only((clock.session or 0) - back)) if is_known else asked
    if unit == "weekend":
        start = today - timedelta(days=(today.weekday() - 5) % 7 + (7 * back if today.weekday() >= 5 else 0))
        return asked._replace(start=start, end=start + timedelta(days=2))
    start = dates.shift(dates.begin_of(unit, today), unit, -back)
    ahead = Span(today, dates.shift(start, unit, 1)) if back == 0 else None
    return asked._replace(start=start, end=dates.shift(start, unit, 1), ahead=ahead)


def _read_session(question: str, clock: _Clock, asked: AskedTime) -> AskedTime:
    """Read a session by its number, or as "last time"."""
    if asked.sessions is not None:
        return asked
    if match := _SESSION.search(question):
        return asked._replace(sessions=_only(dates.number(match["m"] or match["n"])))
    if clock.session is not None and clock.session > 1 and _LAST_TIME.search(question):
        return asked._replace(sessions=_only(clock.session - 1))
    return asked


def _read_calendar_day(question: str, _: _Clock, asked: AskedTime) -> AskedTime:
    """Read a day of the app's own calendar by its number."""
    match = _CALENDAR_DAY.search(question)
    return asked._replace(days=_only(dates.number(match["m"] or match["n"]))) if match else asked


def _only(number: int) -> tuple[int, int]:
    return number, number


# How long ago something was, in words for people

_COUNTS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def phrase_age(
    then: datetime | str | None, now: datetime, sessions_ago: int | None = None, *, own_calendar: bool = False
) -> str:
    """Return how long before `now` something was, as people say it: "earlier today", "3 days ago (two sessions ago)".

    A time without an offset is taken as UTC; days change at the midnight of `now`. What is no time, nor its ISO 8601
    text, is unknown; of 0 or fewer sessions nothing is said. For an app with its own calendar it says that it means
    real time.
    """
    age = _age(then, now)
    if age and own_calendar:
        age = f"{age} in real time"
    if sessions_ago is None or sessions_ago <= 0:
        return age or "at an unknown time"
    count = _COUNTS[sessions_ago] if sessions_ago < len(_COUNTS) else sessions_ago
    session = "last session" if sessions_ago == 1 else f"{count} sessions ago"
    return f"{age} ({session})" if age else session


def _age(then: datetime | str | None, now: datetime) -> str:
    then = read_time(then) if isinstance(then, str) else then
    if not isinstance(then, datetime):
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if seconds < 60:
        return "in the future" if seconds < -60 else "just now"
    if seconds < 3600:
        return _count(int(seconds // 60), "minute")
    with suppress(OverflowError):  # within a day of the calendar's beginning the zone makes no difference to the answer
        then = then.astimezone(now.tzinfo)
    days = (now.date() - then.date()).days
    if days in (0, 1):
        return "yesterday" if days else "earlier today"
    if days < 14:
        return _count(days, "day")
    if days < 60:
        return _count(days // 7, "week")
    months = 12 * (now.year - then.year) + now.month - then.month - (now.day < then.day)
    return _count(max(months, 2), "month") if months < 24 else _count(months // 12, "year")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'} ago"

"""Dates that a text names: written out, as a weekday, or counted forward from the present.

A date without a year is the last such or the next one: who asks of it may mean either. `dated_spans` reads both,
`coming_span` what can only lie ahead: "tomorrow", "next Tuesday", "in three weeks".
"""

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

from questbook.memory.text.parts import fill, read_parts
from questbook.types import JSON

_MOST_DATES = 8  # days or months, each of which is searched by itself; a longer time needs no search of its own
_NUMBER_WORDS = (
    "a an one 1st first|two couple 2nd second|three few 3rd third|four 4th fourth|five several 5th fifth|six 6th sixth"
    "|seven 7th seventh|eight 8th eighth|nine 9th ninth|ten 10th tenth|eleven 11th eleventh|twelve 12th twelfth"
)
NUMBERS = {word: number for number, words in enumerate(_NUMBER_WORDS.split("|"), 1) for word in words.split()}
COUNT = rf"(?P<n>\d{{1,4}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})(?:\s+of)?"
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = rf"(?:{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)}|sept)\b\.?"
UNITS = ("minute", "hour", "day", "night", "week", "month", "year", "session", "fortnight")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_LISTS = {"WEEKDAYS": "|".join(WEEKDAYS), "UNITS": "|".join(UNITS), "OTHER_COUNT": COUNT.replace("<n>", "<k>")}
_TEXTS = read_parts("questbook.memory.recall", "dates.toml", wrapped=True, MONTH=_MONTH, COUNT=COUNT, **_LISTS)
EXPRESSIONS = {name: re.compile(text, re.I) for name, text in _TEXTS.items() if name not in ("OTHER_COUNT", "UNITS")}
"""Those of dates.toml, by name."""
_DATE, _WHOLE_MONTH, _WEEKDAY, _NEXT = (EXPRESSIONS[name] for name in ("DATE", "WHOLE_MONTH", "WEEKDAY", "NEXT"))
DATES = (_ISO, _DATE, _WHOLE_MONTH, EXPRESSIONS["YEAR"], _WEEKDAY)
_NEAR_AHEAD = ((re.compile(r"\bday\s+after\s+tomorrow\b", re.I), 2), (re.compile(r"\btomorrow\b", re.I), 1))


class Span(NamedTuple):
    """A span of real time, with an offset; its end is not included."""

    start: datetime
    end: datetime


def dated_spans(text: str, now: datetime, *, ahead: bool = False) -> list[Span]:
    """Return the spans of ISO dates, and of the most exact other kind that there is: days, months, years.

    A date without a year is the last such, or with `ahead` the next.
    """
    text = EXPRESSIONS["DAY_TO_DAY"].sub(r"\g<d> \g<m> \g<rest>", text)
    spans = list(_iso_days(text, now))
    for kind in (_written_days, _written_months):
        if found := list(kind(text, now, ahead)):
            return spans + found
    years = [int(match["y"]) for match in EXPRESSIONS["YEAR"].finditer(text)]
    return spans + [Span(_on(now, year, 1, 1), _on(now, year + 1, 1, 1)) for year in years]


def weekday_span(text: str, now: datetime, *, ahead: bool = False) -> Span | None:
    """Return the last such weekday, today included, or the next; None if the text names none.

    "Last Tuesday" and "next Tuesday" are never today.
    """
    match = _WEEKDAY.search(text)
    if match is None or ((match["which"] or "").lower() == "last" and ahead):
        return None
    which, weekday = (match["which"] or "").lower(), WEEKDAYS.index(match["day"].lower())
    back = (now.weekday() - weekday) % 7
    days = (-back % 7 or (0 if which == "this" else 7)) if ahead else -(back or (7 if which == "last" else 0))
    return _days(midnight(now) + timedelta(days=days))


def is_bare_weekday(text: str) -> bool:
    """Return whether all that a text names of a time is a weekday: "on Tuesday", not "next Tuesday" or a date."""
    match = _WEEKDAY.search(text)
    return match is not None and not match["which"] and not any(p.search(text) for p in (_ISO, _DATE, _NEXT))


def coming_span(text: str, now: datetime) -> tuple[Span | None, int | None]:
    """Return the span that a text names and that can only lie ahead, and how many days, if these are counted."""
    today = midnight(now)
    for pattern, days in _NEAR_AHEAD:
        if pattern.search(text):
            return _days(today + timedelta(days=days)), days
    if match := EXPRESSIONS["NEXT_FEW"].search(text):
        unit, count = unit_of(match["unit"]), number(match["n"])
        return Span(today, shift(today, unit, count) + timedelta(days=1)), None
    if match := EXPRESSIONS["IN_SOME"].search(text):
        unit, count = unit_of(match["unit"] or match["u"]), number(match["n"] or match["k"])
        start = shift(today, unit, count)
        return _days(start), (start - today).days if unit in ("day", "week") else None
    if match := _NEXT.search(text):
        return _next(text, match, today), None
    match = _WEEKDAY.search(text)
    is_ahead = match is not None and (match["which"] or "").lower() in ("next", "coming", "this")
    return weekday_span(text, now, ahead=True) if is_ahead else None, None


def midnight(now: datetime) -> datetime:
    """Return the last midnight."""
    return datetime.combine(now.date(), time.min, now.tzinfo)


def number(word: str) -> int:
    """Read a number, in digits or as a word."""
    return int(word) if word.isdecimal() else NUMBERS[word.lower()]


def shift(then: datetime, unit: str, count: int) -> datetime:
    """Return the time so many units later, or earlier with a negative count."""
    from dateutil.relativedelta import relativedelta

    steps: dict[str, Any] = {"weeks": 2 * count} if unit == "fortnight" else {f"{unit}s": count}
    return then + relativedelta(**steps)


def begin_of(unit: str, today: datetime) -> datetime:
    """Return the beginning of the week, month or year that a day is in."""
    if unit == "week":
        return today - timedelta(days=today.weekday())
    return today.replace(day=1) if unit == "month" else today.replace(month=1, day=1)


def day_filters(first: date, last: date) -> list[JSON]:
    """Return store filters for the days, or for their months where they are many; none where those are many, too."""
    if (days := (last - first).days + 1) <= _MOST_DATES:
        return [{"date": f"{first + timedelta(days=n):%Y%m%d}".zfill(8)} for n in range(days)]
    return month_filters(first, last)


def month_filters(first: date, last: date) -> list[JSON]:
    """Return store filters for the months of days; none where they are many."""
    months = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
    return [{"month": f"{n // 12:04}{n % 12 + 1:02}"} for n in months] if len(months) <= _MOST_DATES else []


def _next(text: str, match: re.Match[str], today: datetime) -> Span:
    """Read "next week", "this weekend", "the month after next"; "Tuesday next week" is that day of it."""
    if match["this"] or match["unit"] == "weekend":
        later = 7 if not match["this"] and today.weekday() >= 5 else 0
        start = today + timedelta(days=5 - today.weekday() + later)
        return Span(start, start + timedelta(days=2))
    unit = (match["unit"] or match["far"]).lower()
    start = shift(begin_of(unit, today), unit, 2 if match["far"] else 1)
    if unit == "week" and (day := _WEEKDAY.search(text)):
        return _days(start + timedelta(days=WEEKDAYS.index(day["day"].lower())))
    return Span(start, shift(start, unit, 1))


def _days(start: datetime) -> Span:
    return Span(start, start + timedelta(days=1))


def unit_of(word: str) -> str:
    """Return a unit of time in small letters; a night is a day."""
    return "day" if word.lower() == "night" else word.lower()


def _on(now: datetime, year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=now.tzinfo)


def _iso_days(text: str, now: datetime) -> Iterator[Span]:
    for match in _ISO.finditer(text):
        with suppress(ValueError):  # 2026-02-31
            yield _days(_on(now, *map(int, match.groups())))


def _written_days(text: str, now: datetime, ahead: bool) -> Iterator[Span]:
    from dateutil import parser  # 60 ms, which a text without a date does not need

    for match in _DATE.finditer(text):
        year = int(match["y"]) if match["y"] else now.year
        try:
            read = parser.parse(f"{match['d1'] or match['d2']} {(match['m1'] or match['m2'])[:3]} {year:04}")
            start = _on(now, read.year, read.month, read.day)
        except (ValueError, OverflowError):  # 31 February
            continue
        other_year = start < midnight(now) if ahead else start > now
        if not match["y"] and other_year and (start.month, start.day) != (2, 29):
            start = start.replace(year=year + 1 if ahead else year - 1)
        yield _days(start)


def _written_months(text: str, now: datetime, ahead: bool) -> Iterator[Span]:
    for match in _WHOLE_MONTH.finditer(text):
        name = (match["m1"] or match["m2"]).lower().rstrip(".")
        month = next(n for n, full in enumerate(MONTHS, 1) if full.startswith(name))
        other_year = 0 if match["y"] else (month < now.month) if ahead else -(month > now.month)
        year = int(match["y"] or now.year) + other_year
        if 1 <= year < 9999:
            start = _on(now, year, month, 1)
            yield Span(start, shift(start, "month", 1))


# German words of time in English ones

_GERMAN = tomllib.loads(files("questbook.memory.recall").joinpath("german.toml").read_text("utf-8"))
_PARTS = {name.upper(): "|".join(_GERMAN[name]) for name in ("n", "unit", "name")}
for _name, _part in _GERMAN["parts"].items():
    _PARTS[_name] = fill(_part, _PARTS)
_MAY_BE_GERMAN = re.compile(_PARTS["MAY_BE"], re.I)
_TRANSLATIONS = [(re.compile(fill(each, _PARTS), re.I), english) for each, english in _GERMAN["translations"].items()]


def in_english(text: str) -> str:
    """Return a text with its German words of time in English; any other text as it is."""
    if not _MAY_BE_GERMAN.search(text):
        return text
    for pattern, english in _TRANSLATIONS:
        text = pattern.sub(partial(_translate, english), text)
    return text


def _translate(english: str, match: re.Match[str]) -> str:
    """Fill English words in for a match, each group's by its own table."""
    words = {group: found or "" for group, found in match.groupdict().items()}
    return english.format_map({group: _GERMAN.get(group, {}).get(word.lower(), word) for group, word in words.items()})

"""How long ago something was, in words for people."""

from __future__ import annotations

from datetime import UTC, datetime

_NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def phrase_age(
    then: datetime | str | None, now: datetime, sessions_ago: int | None = None, *, of_story: bool = False
) -> str:
    """Return how long before `now` something was, as people say it: "earlier today", "3 days ago (two sessions ago)".

    A time without an offset is taken as UTC; days change at the midnight of `now`. What is no time, nor its ISO 8601
    text, is unknown; of 0 or fewer sessions nothing is said. Part of a story has a time of its own: then it says that
    it means real time.
    """
    age = _age(then, now)
    if age and of_story:
        age = f"{age} in real time"
    if not sessions_ago or sessions_ago < 0:
        return age or "at an unknown time"
    session = _session(sessions_ago)
    return f"{age} ({session})" if age else session


def _age(then: datetime | str | None, now: datetime) -> str:
    if isinstance(then, str):
        try:
            then = datetime.fromisoformat(then)
        except ValueError:
            return ""
    if not isinstance(then, datetime):
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if seconds < -60:
        return "in the future"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return _count(int(seconds // 60), "minute")
    try:
        then = then.astimezone(now.tzinfo)
    except OverflowError:  # within a day of the calendar's beginning, where the zone makes no difference to the answer
        then = then.replace(tzinfo=now.tzinfo)
    days = (now.date() - then.date()).days
    if days == 0:
        return "earlier today"
    if days == 1:
        return "yesterday"
    if days < 14:
        return _count(days, "day")
    if days < 60:
        return _count(days // 7, "week")
    months = 12 * (now.year - then.year) + now.month - then.month - (now.day < then.day)
    return _count(max(months, 2), "month") if months < 24 else _count(months // 12, "year")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'} ago"


def _session(ago: int) -> str:
    if ago == 1:
        return "last session"
    return f"{_NUMBERS[ago] if ago < len(_NUMBERS) else ago} sessions ago"

"""How long ago, in words for people."""

from __future__ import annotations

from datetime import UTC, datetime


def phrase_age(then: datetime | str | None, now: datetime) -> str:
    """Say how long before `now` something was, as a person would.

    Args:
        then: A time, or its ISO 8601 text; without an offset it is taken as UTC. None or other text: unknown.
        now: The present, with an offset; days change at its midnight.
    """
    if isinstance(then, str):
        try:
            then = datetime.fromisoformat(then)
        except ValueError:
            then = None
    if then is None:
        return "at an unknown time"
    then = (then if then.tzinfo else then.replace(tzinfo=UTC)).astimezone(now.tzinfo)
    seconds = (now - then).total_seconds()
    if seconds < -60:
        return "in the future"
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return _count(int(seconds // 60), "minute")
    days = (now.date() - then.date()).days
    if days == 0:
        return "earlier today"
    if days == 1:
        return "yesterday"
    if days < 14:
        return _count(days, "day")
    if days < 60:
        return _count(days // 7, "week")
    return _count(days // 30, "month") if days < 730 else _count(days // 365, "year")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'} ago"

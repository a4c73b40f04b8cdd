"""Days as a person means them: whole, inclusive, in their own timezone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from questbook.memory.errors import BadQueryError

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


class Days(NamedTuple):
    """A range of days, both ends included; None leaves an end open.

    Attributes:
        first: The first day.
        last: The last day; the whole of it counts.
        zone: Where the days begin and end.
    """

    first: date | None
    last: date | None
    zone: tzinfo

    def hold(self, moment: str) -> bool:
        """Whether a time, ISO 8601, lies in the range; without an offset it is taken as UTC. No time lies in none."""
        if self.first is None and self.last is None:
            return True
        try:
            when = datetime.fromisoformat(moment)
        except (ValueError, TypeError):
            return False
        day = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(self.zone).date()
        return (self.first is None or day >= self.first) and (self.last is None or day <= self.last)


def zone_of(name: str) -> tzinfo:
    """Return the timezone with an IANA name; "" is this machine's own.

    Raises:
        BadQueryError: There is no such timezone.
    """
    if not name:
        return datetime.now().astimezone().tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadQueryError(
            f"There is no timezone {name!r:.60}; expected an IANA name, such as Europe/Berlin."
        ) from error


def days_of(first: str | None, last: str | None, now: datetime) -> Days:
    """Read a range of days as a model or a person writes them.

    Args:
        first: "2026-03-14", a time in ISO 8601, "today", "now" or "yesterday"; None or blank leaves the end open.
        last: The same.
        now: The present in the person's timezone.

    Raises:
        BadQueryError: One is no day, or the range ends before it begins.
    """
    begins, ends = _day(first, "start", now), _day(last, "end", now)
    if begins and ends and ends < begins:
        raise BadQueryError(f"The range ends on {ends}, before it begins on {begins}: give the earlier day first.")
    return Days(begins, ends, now.tzinfo or UTC)


def _day(said: str | None, which: str, now: datetime) -> date | None:
    word = (said or "").strip().casefold()
    if not word:
        return None
    if word in ("today", "now", "yesterday"):
        return now.date() - timedelta(days=word == "yesterday")
    try:
        if _ISO.fullmatch(word):
            return date.fromisoformat(word)
        when = datetime.fromisoformat(word.upper())
        return (when.astimezone(now.tzinfo) if when.tzinfo else when).date()
    except ValueError as error:
        raise BadQueryError(
            f"{which}: got {said!r:.40}; expected a day as YYYY-MM-DD, such as {now.date()}, which is today."
        ) from error

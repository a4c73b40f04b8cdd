"""Fit: how well a record's time fits the time that a question names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from questbook.memory.recall.times import When
from questbook.memory.timeline.records import read_time

_SCALE_DAYS = 4.0  # a record that lies four days beside the span fits to 1/e; measured, see docs/memory.md
_BEFORE = 2.0  # days before the span count double: things are told after they happened, seldom before
_TURNS = 12.0  # turns beside an event until "before" or "after" it fits to 1/e
_STORY_DAY = re.compile(r"\bday\s+(\d{1,6})\b", re.IGNORECASE)


def fit(when: When, value: Mapping[str, Any], anchor: int | None = None) -> float:
    """Return between 0 and 1 how well a record's time fits; 0 also for one without a time.

    Args:
        when: What the question names.
        value: The record: `said_at` or `real_time` (ISO 8601, UTC unless it says otherwise), `day` or `story_time`
            (day of the story), `session`, `turn`.
        anchor: The turn at which happened what `when.anchor` names; None if no record tells.
    """
    fits = [0.0]
    if when.start is not None and when.end is not None:
        fits += [
            _near(when.start, when.end, then) for name in ("real_time", "said_at") if (then := moment(value, name))
        ]
    if when.days is not None and (day := story_day(value)) is not None:
        fits.append(_beside(when.days, day))
    if when.sessions is not None and isinstance(session := value.get("session"), int):
        fits.append(_beside(when.sessions, session))
    if anchor is not None and when.relation and isinstance(turn := value.get("turn"), int):
        past = anchor - turn if when.relation == "before" else turn - anchor
        fits.append(math.exp(-past / _TURNS / 4) if past > 0 else math.exp(2 * past / _TURNS) / 2)
    return max(fits)


def moment(value: Mapping[str, Any], name: str = "said_at") -> datetime | None:
    """Return a record's time with an offset; None if it has none that can be read."""
    text = value.get(name)
    return read_time(text) if isinstance(text, str) and text else None


def story_day(value: Mapping[str, Any]) -> int | None:
    """Return the day of the story on which a record's event happened; None if it does not say."""
    day = value.get("day")
    if isinstance(day, int) and not isinstance(day, bool):
        return day
    found = _STORY_DAY.search(str(value.get("story_time") or ""))
    return int(found[1]) if found else None


def _near(start: datetime, end: datetime, then: datetime) -> float:
    gap = (start - then) * _BEFORE if then < start else max(then - end, timedelta(0))
    scale = min(timedelta(days=_SCALE_DAYS), (end - start) * _SCALE_DAYS)
    return math.exp(-gap / scale) if scale else float(not gap)


def _beside(span: tuple[int, int], number: int) -> float:
    first, last = span
    return math.exp(-2.0 * max(first - number, number - last, 0))

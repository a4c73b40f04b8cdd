"""Reading facts as a model sends them: nothing is lost that can be read, nothing is made up, each oddity is told."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from questbook.memory.facts.facts import KINDS, MOST_KNOWERS, SHORT, TEXT, USUAL, Fact
from questbook.memory.recall.times import read_when
from questbook.memory.text.wording import content_stems, normalize

JSON = dict[str, Any]

MOST = 500  # facts that are read of one answer
_YEARS = range(1900, 2200)  # outside of these no real date can have been meant
_SHOWN = 24  # characters of a value that are quoted
# Times that say which day without a guess: "Tuesday" may be the last one or the next, "3 May" of any year.
_COUNTED = re.compile(
    r"\b(?:yesterday|today|tonight|this (?:morning|afternoon|evening)|last night|days? ago|\d{4})\b"
    r"|\blast (?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    re.IGNORECASE,
)
_KINDS = {"fact": "trait", "state": "trait", "claim": "rumour", "rumor": "rumour", "lie": "rumour", "dream": "rumour",
          "hypothetical": "rumour", "vow": "promise", "oath": "promise", "boundary": "preference",
          "name": "trait", "insight": "trait"}  # fmt: skip
_FIELDS = frozenset(Fact.model_fields) - {"of_player"} | {"about"}


class Reading(NamedTuple):
    """What was read.

    Attributes:
        facts: The facts, in the order in which they were sent.
        notices: One sentence for each oddity, with how often it was met. They hold nothing of a fact's text, since it
            may be secret.
    """

    facts: list[Fact]
    notices: list[str]


class Oddities:
    """Counts what was odd, so that 500 like cases make one sentence."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._example: dict[str, str] = {}

    def add(self, what: str, value: object = None) -> None:
        """Count a case. The first one's value is quoted, if it is short: a long one may be a secret."""
        self._found[what] += 1
        shown = repr(value)
        if value is not None and what not in self._example and len(shown) <= _SHOWN:
            self._example[what] = shown

    def sentences(self) -> list[str]:
        """Return one sentence for each kind of oddity."""
        return [
            f"{what}{f', for example {self._example[what]}' if what in self._example else ''} ({count}×)."
            for what, count in self._found.items()
        ]


def read_facts(given: Any, now: datetime | None = None) -> Reading:
    """Read what a model sent as facts.

    Args:
        given: The arguments of one call of the tool `Facts`, or of several in a list: any JSON.
        now: When it was said, with an offset: a real time that is counted from then ("yesterday", "three days ago") is
            read by rules; None: it is kept as a time of the story.
    """
    odd = Oddities()
    entries = _entries(given)
    if len(entries) > MOST:
        odd.add(f"Of {len(entries):,} facts in one answer the first {MOST} were read")
    facts: list[Fact] = []
    seen: set[tuple[str, str, str]] = set()
    values: dict[str, str] = {}
    for entry in entries[:MOST]:
        fact = _fact(entry, odd, now)
        if fact is None:
            continue
        same = (normalize(fact.text), fact.claimed_by, fact.kind)
        if same in seen:
            odd.add("A fact was sent twice in one answer")
            continue
        seen.add(same)
        slot = fact.record()["slot"]
        if slot and content_stems(values.get(slot, fact.value)) != content_stems(fact.value):
            odd.add("Facts of one answer contradict each other, and the last one holds")
        if slot:
            values[slot] = fact.value
        facts.append(fact)
    return Reading(facts, odd.sentences())


def _entries(given: Any) -> list[Any]:
    """Find the list of facts in what may be a call's arguments, several of them, a list, or one fact."""
    if isinstance(given, Mapping):
        found = given.get("facts", given)
        return _entries(found) if found is not given else ([dict(given)] if given else [])
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        entries: list[Any] = []
        for entry in given:
            entries += _entries(entry) if isinstance(entry, Mapping) and "facts" in entry else [entry]
        return entries
    return [] if given is None else [given]


def _fact(entry: Any, odd: Oddities, now: datetime | None) -> Fact | None:
    if isinstance(entry, str) and entry.strip():
        odd.add("A fact came as a bare sentence")
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        odd.add("A fact was no object and was left out", entry)
        return None
    for name in sorted(str(name) for name in entry if name not in _FIELDS):
        odd.add("A fact had a field that there is not", name)
    subject, attribute, value = (_short(entry, name, odd) for name in ("subject", "attribute", "value"))
    text = _clipped(_said(entry.get("text"), odd), TEXT, odd)
    if not text and subject and value:
        odd.add("A fact had no text; its fields were put together")
        text = f"{subject}, {attribute}: {value}" if attribute else f"{subject}: {value}"
    if not text:
        odd.add("A fact said nothing and was left out")
        return None
    about = str(entry.get("about") or "").strip().casefold()
    kind = _kind(entry.get("kind"), odd)
    story_time, real_time = _times(entry, odd, now)
    claimed_by = _short(entry, "claimed_by", odd)
    if claimed_by and kind in ("event", "trait"):
        kind = "rumour"  # what rests on somebody's word is no fact of the world
    of_player = about == "player" and kind in ("preference", "trait") and not claimed_by
    if about == "player" and not of_player:
        odd.add("A fact about the player was no preference, boundary or name; it was kept with the campaign")
    return Fact(
        kind=kind,
        text=text,
        subject=subject,
        attribute=attribute,
        value=value,
        importance=_importance(entry.get("importance"), odd),
        story_time=story_time,
        real_time=real_time,
        known_by=_knowers(entry.get("known_by"), odd),
        claimed_by=claimed_by,
        of_player=of_player,
    )


def _said(value: Any, odd: Oddities) -> str:
    """Return a text on one line, without what no database takes; numbers are said as they are."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        odd.add("A field was no text and was left out", value)
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    if isinstance(value, int) and abs(value) > 10**15:
        odd.add("A number was too large and was left out")
        return ""
    text = "" if value is None else str(value).encode("utf-8", "ignore").decode("utf-8")
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text).split())


def _short(entry: Mapping[Any, Any], name: str, odd: Oddities) -> str:
    value = entry.get(name)
    if isinstance(value, list):
        value = ", ".join(part for part in (_said(part, odd) for part in value[:MOST_KNOWERS]) if part)
    return _clipped(_said(value, odd), SHORT, odd)


def _clipped(text: str, most: int, odd: Oddities) -> str:
    if len(text) <= most:
        return text
    odd.add(f"A field was longer than {most:,} characters and was cut")
    return text[: most - 1] + "…"


def _kind(value: Any, odd: Oddities) -> str:
    kind = value.strip().casefold() if isinstance(value, str) else value
    if isinstance(kind, str) and (kind in KINDS or kind in _KINDS):
        return _KINDS.get(kind, kind)
    if value is not None:
        odd.add("A fact's kind was none that there is; it counts as an event", value)
    return "event"


def _importance(value: Any, odd: Oddities) -> int:
    number: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
        number = float(value)
    elif isinstance(value, str) and (found := re.fullmatch(r"\s*(-?\d{1,6}(?:\.\d{1,6})?)\s*(?:/\s*10)?\s*", value)):
        number = float(found[1])
    if number is None:
        if value is not None:
            odd.add(f"An importance was no number from 1 to 10; {USUAL} was taken", value)
        return USUAL
    clamped = min(10, max(1, round(number)))
    if not 1 <= number <= 10:
        odd.add("An importance lay outside of 1 to 10 and was moved to the nearer end", value)
    return clamped


def _times(entry: Mapping[Any, Any], odd: Oddities, now: datetime | None) -> tuple[str, str]:
    """Read both times; a real time that is none is kept as it was told, as a time of the story."""
    story, told = _short(entry, "story_time", odd), _short(entry, "real_time", odd)
    if not told or (real := _iso(told) or _counted(told, now)):
        return story, real if told else ""
    odd.add(
        "A real time was no date from 1900 to 2199; "
        + ("it was left out" if story else "it was kept as a time of the story"),
        told,
    )
    return story or told, ""


def _counted(told: str, now: datetime | None) -> str:
    """Return the one day that a real time says, counted from when it was said; "" if it says no single one."""
    if now is None or not _COUNTED.search(told):
        return ""
    when = read_when(told, now)
    if when.start is None or when.end is None or when.end - when.start > timedelta(days=1):
        return ""
    return _iso(when.start.date().isoformat())


def _iso(told: str) -> str:
    try:
        day_only = re.fullmatch(r"\d{4}-\d{2}-\d{2}", told) is not None
        moment: date = date.fromisoformat(told) if day_only else datetime.fromisoformat(told)
    except ValueError:
        return ""
    return moment.isoformat() if moment.year in _YEARS else ""


def _knowers(value: Any, odd: Oddities) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        value = re.split(r"[,;]", value)
    if not isinstance(value, list):
        odd.add("Who knows a fact was no list of names and was left out", value)
        return []
    names = list(dict.fromkeys(name for part in value if (name := _clipped(_said(part, odd), SHORT, odd))))
    if len(names) > MOST_KNOWERS:
        odd.add(f"More than {MOST_KNOWERS} names knew a fact; the first ones were kept")
    return names[:MOST_KNOWERS]

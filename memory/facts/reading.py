"""Read facts that a model sent: their fields (`read_facts`), and what each of them is (`classify_statement`).

Reading is lenient: whatever can be read is read, nothing is invented, and each oddity is reported.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from questbook.memory.facts.attributes import PERSON as PERSON
from questbook.memory.facts.days import YEARS, find_calendar_day, find_days, only_day
from questbook.memory.facts.fact import DEFAULT_IMPORTANCE, KINDS, MAX_FIELD, MAX_KNOWERS, MAX_TEXT, NOT_ASKED, Fact
from questbook.memory.text.words import content_stems, normalize
from questbook.memory.timeline.records import CALENDAR_TIME
from questbook.types import JSON

MAX_FACTS = 500  # facts that are read of one answer
SUPPORT = 0.5  # share of a fact's words that must be in a text for the fact to come from there

_QUOTED = 24  # characters of a value that a notice may quote
_KIND_SYNONYMS = (
    dict.fromkeys(("fact", "state", "name", "insight"), "trait")
    | dict.fromkeys(("claim", "rumor", "lie", "dream", "hypothetical"), "rumour")
    | dict.fromkeys(("vow", "oath"), "promise")
    | {"boundary": "preference"}
)
_FIELDS = frozenset(Fact.model_fields) - NOT_ASKED | {"about", CALENDAR_TIME}

_UNREAL = re.compile(
    r"\b(?:what if|suppos(?:e|es|ed|ing) (?:that )?\w+|hypothetical(?:ly)?|imagin(?:e|es|ed|ing)|pretend(?:s|ed|ing)?"
    r"|dream(?:s|t|ed|ing)?|in (?:a|the|his|her|their) (?:dream|vision|nightmare)|would have|could have|might have"
    r"|if only|rumou?r(?:s|ed)?|allegedly|supposedly)\b|^if\b",
    re.IGNORECASE,
)
_SHORT_ANSWER = 2  # words of a message that may only confirm what it answers: "Yes, that is right."
_PERSON_NAMES = frozenset({"user", "the user", "i", "me", "myself", "you", "the person", "person", "speaker", "human"})


class FactReading(NamedTuple):
    """Facts as they were sent, and a sentence for each kind of oddity; none quotes a fact, which may be secret."""

    facts: list[Fact]
    notices: list[str]


class Oddities:
    """Counts oddities by kind, so that 500 equal cases make one sentence."""

    def __init__(self) -> None:
        self._counts, self._examples = Counter[str](), dict[str, str]()

    def add(self, kind: str, value: object = None) -> None:
        """Count a case and quote the first short value as an example; a long one may be a secret."""
        self._counts[kind] += 1
        if value is not None and len(quote := repr(value)) <= _QUOTED:
            self._examples.setdefault(kind, f", for example {quote}")

    def sentences(self) -> list[str]:
        """Return one sentence for each kind, with its count."""
        return [f"{kind}{self._examples.get(kind, '')} ({count}×)." for kind, count in self._counts.items()]


def read_facts(arguments: Any, now: datetime | None = None, *, day: int | None = None) -> FactReading:
    """Read what a model sent as facts: the arguments of one call of the tool `Facts`, or of several in a list.

    `now` is when they were said: from it a relative real time counts, and the days that a fact is about; without it a
    relative time is kept as it was said. `day` is that of the app's own calendar, if it has one: then days are counted
    by that, and only a real time is a date.
    """
    odd = Oddities()
    entries = _fact_entries(arguments)
    if len(entries) > MAX_FACTS:
        odd.add(f"Of {len(entries):,} facts in one answer the first {MAX_FACTS} were read")
    facts, identities, values = list[Fact](), set[tuple[Any, ...]](), dict[str, str]()
    for entry in entries[:MAX_FACTS]:
        fact = _read_fact(entry, odd, now, day)
        if fact is None:
            continue
        identity = fact.identity
        if identity in identities:
            odd.add("A fact was sent twice in one answer")
            continue
        identities.add(identity)
        if slot := fact.slot:
            if content_stems(values.get(slot, fact.value)) != content_stems(fact.value):
                odd.add("Facts of one answer contradict each other, and the last one holds")
            values[slot] = fact.value
        facts.append(fact)
    return FactReading(facts, odd.sentences())


def classify_statement(fact: Fact, spoken: str, reply: str) -> Fact:
    """Return a fact of a conversation with an assistant as what it is; the person is "the user" in all of them.

    What the person says of themselves is so. What only the assistant has said, though the person said something else,
    is the assistant's claim. What by its words is a dream, a joke or an if is a rumour.
    """
    by_person = normalize(fact.claimed_by) in _PERSON_NAMES
    changes: JSON = {"of_person": False, "known_by": [], "kind": "trait" if fact.kind == "secret" else fact.kind}
    if normalize(fact.subject) in _PERSON_NAMES:
        changes["subject"] = PERSON
    if by_person:
        changes["claimed_by"] = ""
        changes["kind"] = "trait" if fact.kind == "rumour" and not sounds_unreal(fact.text) else fact.kind
    elif not fact.claimed_by and fact.kind != "rumour":
        words = content_stems(f"{fact.text} {fact.value}") - content_stems(fact.subject) - content_stems(PERSON)
        said_more = len(content_stems(spoken)) > _SHORT_ANSWER
        if said_more and not share_of(words, spoken) and share_of(words, reply) >= SUPPORT:
            changes |= {"claimed_by": "the assistant", "kind": "rumour"}
        elif sounds_unreal(fact.text):
            changes["kind"] = "rumour"
    return fact.model_copy(update=changes)


def _fact_entries(arguments: Any) -> list[Any]:
    """Find the list of facts in a call's arguments, several calls' arguments, a list of facts, or one fact."""
    if isinstance(arguments, Mapping) and "facts" in arguments:
        return _fact_entries(arguments["facts"])
    if isinstance(arguments, Sequence) and not isinstance(arguments, str | bytes):
        calls = (isinstance(entry, Mapping) and "facts" in entry for entry in arguments)
        parts = [_fact_entries(entry) if call else [entry] for entry, call in zip(arguments, calls, strict=True)]
        return [entry for part in parts for entry in part]
    return [arguments] if arguments or not isinstance(arguments, Mapping | None) else []


def _read_fact(entry: Any, odd: Oddities, now: datetime | None, day: int | None) -> Fact | None:
    if isinstance(entry, str) and entry.strip():
        odd.add("A fact came as a bare sentence")
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        odd.add("A fact was no object and was left out", entry)
        return None
    for name in sorted(str(name) for name in entry if name not in _FIELDS):
        odd.add("A fact had an unknown field", name)
    slot = {name: _read_field(entry, name, odd) for name in ("subject", "attribute", "value")}
    subject, attribute, value = slot.values()
    text = _shorten(_read_text(entry.get("text"), odd), MAX_TEXT, odd)
    if not text and subject and value:
        odd.add("A fact had no text; its fields were put together")
        text = f"{subject}, {attribute}: {value}" if attribute else f"{subject}: {value}"
    if not text:
        odd.add("A fact said nothing and was left out")
        return None
    about, sent = str(entry.get("about") or "").strip().casefold(), entry.get("kind")
    kind = sent.strip().casefold() if isinstance(sent, str) else ""
    if (kind := _KIND_SYNONYMS.get(kind, kind)) not in KINDS:
        kind = "event"
        if sent is not None:
            odd.add("A fact's kind was unknown; it counts as an event", sent)
    calendar_time, real_time, when = _read_times(entry, odd, now)
    claimed_by = _read_field(entry, "claimed_by", odd)
    if claimed_by and kind in ("event", "trait"):
        kind = "rumour"  # a claim is no fact of the world
    of_person = about == "player" and kind in ("preference", "trait") and not claimed_by
    if about == "player" and not of_person:
        odd.add("A fact about the person was no preference, boundary or name; it was kept with the campaign")
    if not when and now is not None and (of_person or day is None):
        when = find_days(text, now, in_slot=bool(attribute))
    return Fact(
        kind=kind,
        text=text,
        **slot,
        importance=_read_importance(entry.get("importance"), odd),
        calendar_time=calendar_time,
        real_time=real_time,
        when=when,
        day=None if of_person else find_calendar_day(calendar_time or text, day),
        known_by=_read_knowers(entry.get("known_by"), odd),
        ends=entry.get("ends") in (True, "true", "yes"),
        claimed_by=claimed_by,
        of_person=of_person,
    )


def _read_text(value: Any, odd: Oddities) -> str:
    """Return a value as text on one line, without characters that no database takes; a number is written out."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        odd.add("A field was no text and was left out", value)
        return ""
    if isinstance(value, int | float) and not abs(value) <= 10**15:  # also what is no number
        odd.add("A number was too large and was left out")
        return ""
    text = "" if value is None else str(value).encode("utf-8", "ignore").decode("utf-8")
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text).split())


def _read_field(entry: Mapping[Any, Any], name: str, odd: Oddities) -> str:
    value = entry.get(name)
    if isinstance(value, list):
        value = ", ".join(part for part in (_read_text(part, odd) for part in value[:MAX_KNOWERS]) if part)
    return _shorten(_read_text(value, odd), MAX_FIELD, odd)


def _shorten(text: str, limit: int, odd: Oddities) -> str:
    if len(text) <= limit:
        return text
    odd.add(f"A field was longer than {limit:,} characters and was cut")
    return text[: limit - 1] + "…"


def _read_importance(value: Any, odd: Oddities) -> int:
    if value is None:
        return DEFAULT_IMPORTANCE
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9:
        number = float(value)
    elif isinstance(value, str) and (match := re.fullmatch(r"\s*(-?\d{1,6}(?:\.\d{1,6})?)\s*(?:/\s*10\s*)?", value)):
        number = float(match[1])
    else:
        odd.add(f"An importance was no number from 1 to 10; {DEFAULT_IMPORTANCE} was taken", value)
        return DEFAULT_IMPORTANCE
    if not 1 <= number <= 10:
        odd.add("An importance was outside of 1 to 10 and was moved to the nearer end", value)
    return min(10, max(1, round(number)))


def _read_times(entry: Mapping[Any, Any], odd: Oddities, now: datetime | None) -> tuple[str, str, list[str]]:
    """Return calendar time, real time, and its days; a real time that is no single day is kept as it was said."""
    told, real = _read_field(entry, CALENDAR_TIME, odd), _read_field(entry, "real_time", odd)
    if not real:
        return told, "", []
    if time := _iso_time(real):
        return told, time, [time[:10], time[:10]]
    if now is not None and (day := only_day(real, now)):
        return told, day, [day, day]
    odd.add(f"A real time was no date from 1900 to 2199; it was {'left out' if told else 'kept as it was said'}", real)
    said = f"{_read_text(entry.get('text'), Oddities()).rstrip('.')}, {real}"  # its verb tells the last from the next
    return told or real, "", find_days(said, now) if now is not None else []


def _iso_time(text: str) -> str:
    try:
        day_only = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None
        moment: date = date.fromisoformat(text) if day_only else datetime.fromisoformat(text)
    except ValueError:
        return ""
    return moment.isoformat() if moment.year in YEARS else ""


def _read_knowers(value: Any, odd: Oddities) -> list[str]:
    value = re.split(r"[,;]", value) if isinstance(value, str) else [] if value is None else value
    if not isinstance(value, list):
        odd.add("Who knows a fact was no list of names and was left out", value)
        return []
    names = list(dict.fromkeys(name for part in value if (name := _shorten(_read_text(part, odd), MAX_FIELD, odd))))
    if len(names) > MAX_KNOWERS:
        odd.add(f"More than {MAX_KNOWERS} names knew a fact; the first ones were kept")
    return names[:MAX_KNOWERS]


def sounds_unreal(text: str) -> bool:
    """Return whether a text tells by its words a dream, a rumour or an if."""
    return _UNREAL.search(text) is not None


def share_of(words: frozenset[str], text: str) -> float:
    """Return how many of the words a text has, from 0 to 1."""
    return len(words & content_stems(text)) / max(len(words), 1)

"""Recollection: answers about the past, from the memories, summary, pages and conversation in the prompt alone."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.offline.storyteller.choices import is_offer
from questbook.graphs.offline.storyteller.hearsay import Exchange, heard
from questbook.graphs.offline.storyteller.phrases import filled, lower
from questbook.graphs.offline.storyteller.roots import bases, roots
from questbook.graphs.offline.storyteller.tables import table

JSON = dict[str, Any]

_TOLD = ("event", "trait", "promise", "preference", "insight", "lore")  # kinds of memories that may be told as true


_OWN_DEED = re.compile(
    r"\W*(?:what|whom?|which \w+|where|when|how|why) (?:did|have|had) (?:i|we) (?:\w+ly )?(?:do|done|take|taken|took|"
    r"steal|stolen|buy|bought|get|got|give|given|sell|sold|drop|dropped|eat|eaten|drink|promised?|swear|attack\w*|"
    r"hit|kill\w*)\b",
    re.IGNORECASE,
)
_MET = re.compile(
    r"\W*(?:who|whom|which people) (?:did|have|had) (?:i|we) (?:\w+ )?(?:meet|met|seen|know|known)\b", re.IGNORECASE
)
_WHETHER = re.compile(r"\W*(?:did|have|had) (?:i|we)\b", re.IGNORECASE)


class Trace(NamedTuple):
    """One sentence that something in the prompt holds.

    Attributes:
        text: The sentence.
        source: Where from: "you" (the player's words), "story" (a reply), "notes" (a page) or "summary".
        when: How long ago, in words; "" if unknown.
        order: Later things have a higher number.
    """

    text: str
    source: str
    when: str
    order: int


def remember(
    subject: str,
    question: str,
    *,
    page: JSON,
    character: JSON,
    summary: str,
    memories: Sequence[JSON],
    exchanges: Sequence[tuple[str, str]],
    chance: random.Random,
) -> str:
    """Answer a question about the past, or say plainly that the character does not know."""
    past = _past(memories, exchanges)
    if said := heard(question, page, past):
        told = " ".join(_quote(Trace(text, "story", when, 0)) for text, when in said)
        return f"{chance.choice(table('remembered'))} {told}"
    if _MET.match(question) and (met := [_portrait(name, person) for name, person in _entries(page.get("people"))]):
        return f"{chance.choice(table('remembered'))} {' '.join(f'{one}.' for one in met)}"
    traces = _traces(page, character, summary, memories, past)
    asked = roots(f"{subject} {question}")
    best = _best(asked, traces, question) if asked else []
    if not best:
        if not asked and (news := [reply for _, reply, _ in past if reply]):
            return f"You think back over the last hours. {_clipped(news[-1])}"
        return f"{_unknown(subject, question, chance)} You could ask around, or go and look."
    told = " ".join(_quote(trace) for trace in best)
    return f"{chance.choice(table('remembered'))} {told}"


def _unknown(subject: str, question: str, chance: random.Random) -> str:
    if _OWN_DEED.match(question) or _WHETHER.match(question):
        return "You think it over, and remember nothing of the kind."
    clause = re.match(r"\W*wh\w+ (?:do|did|does|had|has|have) ", question, re.I)  # "the baker say" alone is no phrase
    whole = not subject or (clause and question[clause.end() :].startswith(subject))
    shown = lower((question if whole else subject).strip(" ?.!"))[:80]
    yours = {"my": "your", "me": "you", "i": "you"}
    if not re.search(r"\byou\b", shown, re.I):
        shown = re.sub(r"\b(?:my|me|i)\b", lambda m: yours[m[0].lower()], shown, flags=re.I)
    return filled(chance.choice(table("unknown")), subject=f"“{shown}”", subject_c=f"“{shown}”")


def _best(asked: list[str], traces: Sequence[Trace], question: str) -> list[Trace]:
    if _OWN_DEED.match(question):
        traces = [trace for trace in traces if trace.source == "you" or trace.text.startswith("You ")]
    # "Did I eat the pie?" is not answered by a pie that was not eaten.
    least = 0.7 if _WHETHER.match(question) else 0.45
    known = [bases(roots(trace.text)) for trace in traces]
    spread = Counter(word for words in known for word in words)
    weight = {word: math.log(1 + len(traces) / (1 + spread[word])) + 0.3 for word in asked}
    whole = sum(weight.values())
    if not whole:
        return []
    scored = []
    for trace, words in zip(traces, known, strict=True):
        share = sum(weight[word] for word in asked if word in words) / whole
        # Notes are the truth as it stands; the player's own words are next, for only they hold what the player planted.
        liking = {"notes": 0.06, "you": 0.05, "story": 0.0, "summary": -0.02}[trace.source]
        scored.append((share + liking if share else 0.0, trace.order, trace))
    scored.sort(key=lambda entry: (-entry[0], -entry[1]))
    if not scored or scored[0][0] < least:
        return []
    chosen: list[Trace] = []
    for score, _, trace in scored:
        fresh = all(_overlap(trace.text, other.text) < 0.7 for other in chosen)
        if score >= max(least, scored[0][0] * 0.75) and fresh:
            chosen.append(trace)
        if len(chosen) == 3:
            break
    return chosen


def _past(memories: Sequence[JSON], exchanges: Sequence[tuple[str, str]]) -> list[Exchange]:
    """List what was said and told, oldest first, without what is no news: echoes, and choices that were held out."""
    past = []
    for memory in sorted(memories, key=lambda m: m["turn"] if isinstance(m.get("turn"), int) else 0):
        player, reply = (str(memory.get(part) or "") for part in ("player", "reply"))
        past.append(Exchange(player, _news(player, reply), _when(memory)))
    for number, (player, reply) in enumerate(exchanges):
        ago = len(exchanges) - number
        past.append(Exchange(player, _news(player, reply), "just now" if ago == 1 else f"{ago} turns ago"))
    return past


def _traces(
    page: JSON, character: JSON, summary: str, memories: Sequence[JSON], past: Sequence[Exchange]
) -> list[Trace]:
    traces: list[Trace] = []

    def add(text: str, source: str, when: str = "") -> None:
        for sentence in _sentences(text):
            if len(sentence) < 4:
                continue
            asked = source == "summary" and sentence.rstrip('”"’ ').endswith("?")  # what was asked answers nothing
            if not asked:
                traces.append(Trace(sentence, source, when, len(traces)))

    add(summary, "summary")
    for memory in memories:
        add(" ".join(str(memory[kind]) for kind in _TOLD if memory.get(kind)), "story", _when(memory))
    for player, reply, when in past:
        add("" if player.strip().endswith("?") else player, "you", when)
        add(reply, "story", when)
    for subject, fact in _entries(page.get("facts")):
        traces.append(Trace(f"{subject}: {fact}", "notes", "", len(traces)))
    for name, person in _entries(page.get("people")):
        traces.append(Trace(_portrait(name, person), "notes", "", len(traces)))
    for title, quest in _entries(page.get("quests")):
        if isinstance(quest, Mapping):
            traces.append(
                Trace(f"“{title}” ({quest.get('status', 'open')}): {quest.get('notes', '')}", "notes", "", len(traces))
            )
    for name, fate in _entries(page.get("fallen")):
        traces.append(Trace(f"{name} is dead: {fate}", "notes", "", len(traces)))
    for field in ("background", "goal", "appearance", "personality"):
        if character.get(field):
            traces.append(Trace(f"Your {field}: {character[field]}", "notes", "", len(traces)))
    return traces


def _quote(trace: Trace) -> str:
    text = _clipped(trace.text)
    when = f" ({trace.when})" if trace.when else ""
    if trace.source == "you":
        return f"You said{when}: “{text.rstrip('.')}.”"
    if trace.source == "story":
        # A sentence out of the middle of a speech has lost a quotation mark, or both of one kind.
        text = f"“{text}" if text.count("“") < text.count("”") else text
        text = f"{text}”" if text.count("“") > text.count("”") else text
        return f"It went like this{when}: {text}"
    return text if text.endswith((".", "!", "?", "”")) else f"{text}."


def _portrait(name: str, person: Any) -> str:
    if not isinstance(person, Mapping):
        return name
    parts = [str(person["role"])] if person.get("role") else []
    if person.get("alive", True) is False:
        parts.append(f"dead: {person.get('fate') or 'no one says how'}")
    elif person.get("attitude"):
        parts.append(f"{person['attitude']} towards you")
    seen = f", last seen at {person['last_seen']}" if person.get("last_seen") else ""
    return f"{name}: {'; '.join(parts)}{seen}"


def _when(memory: JSON) -> str:
    turn, age = memory.get("turn"), memory.get("age")
    ago = f"{age} turn{'' if age == 1 else 's'} ago" if isinstance(age, int) else str(age or "")
    return ", ".join(part for part in (f"turn {turn}" if turn is not None else "", ago) if part)


def _news(player: str, reply: str) -> str:
    """Leave out of a reply what was quoted from memory or from the player, not known, or held out as a choice."""
    if (
        any(reply.startswith(opening) for opening in table("remembered"))
        or "You could ask around, or go and look." in reply
    ):
        return ""
    said = " ".join(player.split()).casefold()
    told = (
        " ".join(s for s in _sentences(paragraph) if not is_offer(s) and not _echoes(s, said))
        for paragraph in reply.split("\n\n")
    )
    return "\n\n".join(paragraph for paragraph in told if paragraph)


def _echoes(sentence: str, said: str) -> bool:
    """Whether a sentence quotes the player."""
    return any(quote.strip(" .!?").casefold() in said for quote in re.findall(r"“([^”]+)”", sentence))


def _sentences(text: str) -> list[str]:
    parts = re.split(r"(?:(?<=[.!?])|(?<=[.!?][”\"’]))\s+(?=[A-Z“\"‘])|\n+", text)
    return [part.strip() for part in parts if part.strip()]


def _entries(value: Any) -> list[tuple[str, Any]]:
    return [(str(name), entry) for name, entry in value.items()] if isinstance(value, Mapping) else []


def _clipped(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 260 else flat[:257].rsplit(" ", 1)[0] + " …"


def _overlap(one: str, other: str) -> float:
    first, second = set(roots(one)), set(roots(other))
    return len(first & second) / max(1, min(len(first), len(second)))

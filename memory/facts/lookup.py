"""Look facts up: the latest, those about a person, the slots that a text may be about, and insights.

Insights, and facts that a person wrote by hand, come along with what is recalled (`add_insights`): they may share no
word with the question, and no turn in the prompt says them.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, SearchItem, SearchOp

from questbook.memory.facts.attributes import PERSON, attribute_name
from questbook.memory.facts.fact import BY_HAND, INSIGHT
from questbook.memory.facts.validity import Namespace, keep_valid, position_of, read_records, recent_spans
from questbook.memory.recall.candidates import Scope, propose_candidates
from questbook.memory.recall.intents import is_standing
from questbook.memory.recall.order import fits
from questbook.memory.recall.query import Reason, Recalled
from questbook.memory.store.any_store import JointReads, is_own, search_all
from questbook.memory.text.words import content_stems, names_in, normalize
from questbook.memory.timeline.timeline import Timeline, UserTimeline, search_visible, visible_filters
from questbook.types import JSON

_FEW = 128  # facts of a branch that are read at first; with fewer, these are all
_MOST = 10_000  # facts of a branch that are read in one span
_ABOUT = 256  # facts, the latest, among which `facts_about` looks
_MAX_SUBJECTS = 6  # subjects whose facts `find_slots` searches one by one
_SLOT_SEARCH = 32  # facts that `find_slots` reads for their slots
_MAX_QUERY = 2000  # characters of a text that the store is searched with
_SOURCES = 8  # recalled records, best first, whose insights come along
_REACH = 100  # turns after a record in which a reflection cites it; one is due about every 24 turns
_LAST_TURN = 99_999_999
_READ = 32  # records of some turns in a row that are read
_OF_ONE = 2  # insights that one record brings
_UNSAID = 3  # insights and facts by hand of the turns in the prompt
_NAME = re.compile(r"[^\W\d_a-z][^\W_]+(?:[ ](?:of[ ]|the[ ])?[^\W\d_a-z][^\W_]+)*")
_MINE = re.compile(r"^(?:my|our|mein\w*|unser\w*)\s+", re.I)
_WANTS = re.compile(
    r"(?i)\b(?:wants?|would like|wishes|prefers?|asks?|expects?) (?:(?:the )?(?:assistant|answers?|replies|responses)"
    r"|you|to be (?:answered|addressed|called|told|asked))\b|\bmöchte, dass\b"
)


class Slot(NamedTuple):
    """A slot that facts have held; subject and attribute are as the fact with this key has them."""

    slot: str
    subject: str
    attribute: str
    key: str


async def latest_facts(
    store: BaseStore, namespace: Namespace, only: JSON, *, timeline: Timeline, count: int
) -> list[SearchItem]:
    """Return the latest facts that meet a store filter, the oldest of them first, whether or not they still hold.

    What was noted last is searched first, so that the cost does not grow with the facts.
    """
    filters = [only] if isinstance(timeline, UserTimeline) else [part | only for part in visible_filters(timeline)]
    items: list[SearchItem] = []
    for since, limit in [({}, _FEW), *((since, _MOST) for since in recent_spans(timeline))]:
        searches = [SearchOp(namespace, filter=one | since, limit=limit) for one in filters]
        found = await search_visible(store, searches, timeline)
        items = sorted((item for one in found for item in one.items), key=lambda i: (position_of(i.value), i.key))
        # A search that is full may have left out any fact.
        if (limit == _MOST or all(one.is_all for one in found)) and (not since or len(items) >= count):
            break
    return items[-count:]


async def facts_about(
    store: BaseStore, namespace: Namespace, *, timeline: Timeline, subject: str = PERSON
) -> list[SearchItem]:
    """Return what holds of a subject and of what is theirs, the latest last: all slots, and the cat's as well.

    Theirs is what a fact of theirs names as its value, and whose own facts name them ("relation to the user").
    """
    items = await latest_facts(store, namespace, {}, timeline=timeline, count=_ABOUT)
    items = [item for item in await keep_valid(store, items, timeline=timeline) if item.value.get("kind") != "rumour"]
    own, person, named = {normalize(subject)}, normalize(PERSON), f" {normalize(subject)} "
    values = {_normal(item.value, "value") for item in items if _normal(item.value, "subject") in own}
    about = {_normal(item.value, "subject") for item in items if _names(item.value, named)} | values
    own |= about - {person, ""}
    return [item for item in items if _normal(item.value, "subject") in own or _names(item.value, named)]


async def facts_asked_for(store: BaseStore, namespace: Namespace, whom: str, *, timeline: Timeline) -> list[SearchItem]:
    """Return what holds of whom a question asks about (`asks_about`): the person (""), a name, or such as "my cat"."""
    if (named := _MINE.sub("", whom)) == whom:
        return await facts_about(store, namespace, timeline=timeline, subject=whom or PERSON)
    own, name = await facts_about(store, namespace, timeline=timeline), attribute_name(named)
    found = {item.key: item for item in own if attribute_name(str(item.value.get("attribute") or "")) == name}
    names = {str(item.value.get("value") or "") for item in found.values()} - {""} or {named}
    for name in sorted(names):
        found |= {item.key: item for item in await facts_about(store, namespace, timeline=timeline, subject=name)}
    return sorted(found.values(), key=lambda item: position_of(item.value))


def is_standing_fact(value: Mapping[str, Any]) -> bool:
    """Return whether a fact says how the person always wants to be answered: what a prompt should never be without."""
    if value.get("claimed_by") or value.get("ends") or value.get("kind") == "rumour":
        return False
    if attribute_name(str(value.get("attribute") or "")).split(" ")[0] == "instruction":
        return True
    text = str(value.get("text") or "")
    of_person = _normal(value, "subject") in ("", normalize(PERSON), "user", "player")
    return of_person and (is_standing(text) or (value.get("kind") == "preference" and bool(_WANTS.search(text))))


async def find_slots(
    store: BaseStore,
    namespace: Namespace,
    text: str,
    *,
    subjects: Iterable[str] = (),
    keys: Sequence[str] = (),
    timeline: Timeline | None = None,
    before: int | None = None,
) -> list[Slot]:
    """Find the slots that may matter to a text from which facts are to be drawn, whether or not their facts still hold.

    Each comes once: first those of the facts with these `keys`, then by how well a fact of theirs fits the text. Facts
    of `subjects`, and of those that the text names, are searched by themselves.
    """
    reads = JointReads.of(store)
    # What is written like a name, the most frequent first: "Goran", "Tower of Ash".
    named = [name for name, _ in Counter(match[0] for match in _NAME.finditer(text)).most_common() if names_in(name)]
    searched = list(dict.fromkeys([*subjects, *named]))[:_MAX_SUBJECTS]
    scope = Scope(namespace, timeline, before, [{"subject": subject} for subject in searched])
    proposed, records = await asyncio.gather(
        propose_candidates(reads, [scope] if text.strip() else [], [text[:_MAX_QUERY]], [_SLOT_SEARCH]),
        read_records(reads, namespace, keys),
    )
    slots: dict[str, Slot] = {}
    for key, value in [*records.items(), *((item.key, item.value) for [items] in proposed for item in items)]:
        slot, subject, attribute = (str(value.get(name) or "") for name in ("slot", "subject", "attribute"))
        if slot:
            slots.setdefault(slot, Slot(slot, subject, attribute, key))
    return list(slots.values())


def subjects_in(text: str, subjects: Iterable[str]) -> frozenset[str]:
    """Return the subjects that a text names: by all of their words, or by a word that both write like a name."""
    words, names = content_stems(text), set(names_in(text))
    own = {subject: content_stems(subject) for subject in subjects}
    return frozenset(s for s, stems in own.items() if stems and (stems <= words or names & set(names_in(s))))


def _normal(value: Mapping[str, Any], field: str) -> str:
    return normalize(str(value.get(field) or ""))


def _names(value: Mapping[str, Any], named: str) -> bool:
    """Return whether a fact about another subject, or about none, names a subject."""
    return any(named in f" {_normal(value, part)} " for part in ("text", "attribute", "value"))


async def add_insights(
    store: BaseStore, recalled: Sequence[Recalled], facts: Namespace, *, question: str, timeline: Timeline, since: int
) -> list[Recalled]:
    """Return the records, each of the best followed by what was concluded from it, or from a fact of its turn.

    What was concluded or written by hand from turn `since` on, which the prompt holds word for word, comes first, as
    far as it fits the question. Nothing is embedded.
    """
    turns, said = (
        [only for first, last in spans for only in visible_filters(timeline, last + 1, first=first)]
        for spans in (_spans(recalled, since), [(since, _LAST_TURN)])
    )
    wanted: list[JSON] = [{"kind": INSIGHT} | only for only in turns] + [{"by": BY_HAND} | only for only in said]
    limit = _READ
    if wanted and getattr(store, "filters_any", False):  # few are of a kind, and only these are asked for their turns
        limit, wanted = _READ * len(wanted), [{"$or": [{"kind": INSIGHT, "$or": turns}, {"by": BY_HAND, "$or": said}]}]
    found = await search_all(store, [SearchOp(facts, filter=dict(only), limit=limit) for only in wanted])
    unique = {item.key: item for items in found for item in items if is_own(item, facts)}
    ordered = sorted(unique.values(), key=lambda item: (str(item.value.get("at")), item.key))
    records = await keep_valid(store, ordered, timeline=timeline) if ordered else []
    insights = [item for item in records if item.value.get("kind") == INSIGHT]
    in_prompt = [item for item in records if int(item.value.get("turn") or 0) >= since]
    texts = [str(item.value.get("text", "")) for item in in_prompt]
    fitting = await asyncio.to_thread(fits, question, texts) if texts else []
    first = [item for item, fit in zip(in_prompt, fitting, strict=True) if fit][-_UNSAID:]
    because = "fits, and nobody has said it in the conversation"
    added = {(tuple(item.namespace), item.key): _as_recalled(item, because) for item in first}
    for number, record in enumerate(recalled):
        added.setdefault((record.namespace, record.key), record)
        drawn = [item for item in insights if _is_drawn_from(item.value, record)] if number < _SOURCES else []
        for item in drawn[-_OF_ONE:]:
            insight = _as_recalled(item, f"concluded from turn {record.value.get('turn')}, which came")
            added.setdefault((insight.namespace, insight.key), insight)
    return list(added.values())


def _spans(recalled: Sequence[Recalled], since: int) -> list[tuple[int, int]]:
    """Return the turns, first and last, in which insights of the best records were written, and those in the prompt."""
    turns = {int(record.value.get("turn") or 0) for record in recalled[:_SOURCES]} - {0}
    spans: list[tuple[int, int]] = []
    for first, last in sorted([*((turn, turn + _REACH) for turn in turns), (since, _LAST_TURN)]):
        begin, end = spans.pop() if spans and first <= spans[-1][1] + 1 else (first, last)
        spans.append((begin, max(end, last)))
    return spans


def _is_drawn_from(insight: JSON, record: Recalled) -> bool:
    """Return whether an insight cites a record, or of an exchange a fact that its turn taught."""
    cited = [str(key) for key in insight.get("cites") or ()]
    if record.value.get("kind", "exchange") != "exchange":
        return record.key in cited
    of_turn = f"{record.value.get('branch')}-{record.value.get('turn')}-"
    return any(key.startswith(of_turn) for key in cited)


def _as_recalled(item: SearchItem, because: str) -> Recalled:
    return Recalled(item.key, item.value, None, 0.0, tuple(item.namespace), Reason(because=because))

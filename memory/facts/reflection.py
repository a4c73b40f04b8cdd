"""Reflection without a model: which facts wait for it, and what a model's answers come to.

A reflection asks salient questions about the facts since the last one, recalls what answers them, draws insights that
cite their sources, and judges contradictions (Park et al., "Generative Agents", 2023, section 4.2).

A finished one leaves a record with its stamp after all else that it writes: one that failed counts as not done, and a
fork from before it reflects for itself. An insight that is drawn again from other records is noted beside the facts
(second drawing), and takes the place of the first one when the sources of that are removed.
"""

import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, Item, PutOp, SearchOp

from questbook.memory.facts.fact import DEFAULT_IMPORTANCE, INSIGHT, Fact
from questbook.memory.facts.reading import Oddities, read_facts
from questbook.memory.facts.relations import is_same_fact
from questbook.memory.facts.validity import ALL_MARKS, Namespace
from questbook.memory.store.any_store import AnyItem, is_own, newest_items
from questbook.memory.timeline.records import may_know
from questbook.memory.timeline.timeline import Timeline, is_visible, record_key, search_visible, visible_filters
from questbook.types import JSON

QUESTIONS, REFLECTION = "Questions", "Reflection"
"""Names of the tools by which a model hands over its questions and conclusions."""
MAX_QUESTIONS, MAX_INSIGHTS, MAX_CONTRADICTIONS = 3, 5, 20
SOURCES = "sources"  # last label of the namespaces, beside those of facts, that hold second drawings of insights
HEARSAY = "hearsay"  # who claims an insight that rests on rumours alone, if they do not all have the same speaker

_SAME_AS = "same_as"
_MAX_QUESTION = 300  # characters of a question
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]{8,}\?")
_NUMBER = re.compile(r"[\s#(\[]*(\d{1,6})[\s.)\]]*")


class Dependents(NamedTuple):
    """What rests on records that are removed."""

    items: list[Item]  # insights drawn from them or from such insights, and second drawings
    replacements: list[PutOp]  # writes by which second drawings from other sources take the place of removed insights


class Evidence(NamedTuple):
    """A record that the model is shown; its number in the prompt is its place in the list, from 1."""

    key: str
    value: JSON


class Backlog(NamedTuple):
    """The facts after turn `since` that wait for reflection, the oldest first, and their importance together."""

    since: int
    facts: Sequence[Item]
    importance: int


class Insight(NamedTuple):
    """A sentence that a reflection concluded."""

    fact: Fact  # its text, subject and importance
    cites: list[str]  # keys of the records that it rests on, at least one
    same_as: str  # key of the insight that it repeats in other words; "" if none

    def record(self, shown: Mapping[str, JSON], viewer: Sequence[str]) -> JSON:
        """Return the fields of its record, without stamp and provenance.

        An insight is of kind "secret" if it rests on something that the viewer does not know. If it rests on rumours
        alone, their speaker claims it, so that thinking about a lie does not make it true.
        """
        sources = [shown[key] for key in self.cites]
        kind = INSIGHT if all(may_know(source, viewer) for source in sources) else "secret"
        value = self.fact.record() | {"kind": kind, "slot": "", "cites": self.cites}
        if all(_is_rumour(source) for source in sources):
            speakers = {str(source.get("claimed_by") or "") for source in sources}
            value["claimed_by"] = (speakers.pop() if len(speakers) == 1 else "") or HEARSAY
        return value


class Conclusions(NamedTuple):
    """What a model's reflection comes to."""

    insights: list[Insight]  # in the order in which they were sent
    contradictions: list[tuple[str, str]]  # pairs of keys: the fact that ends, the fact that holds
    notices: list[str]  # one sentence for each kind of oddity; they quote no text of a record


async def find_backlog(
    store: BaseStore, facts: Namespace, reflections: Namespace, timeline: Timeline, through: int
) -> Backlog:
    """Return the facts of a timeline through a turn that no finished reflection has considered."""
    finished = [item for item in await store.asearch(reflections, limit=ALL_MARKS) if is_own(item, reflections)]
    since = max((int(item.value["through"]) for item in finished if is_visible(timeline, item.value)), default=0)
    later = visible_filters(timeline, through + 1, first=since + 1, joined=getattr(store, "filters_any", False))
    items = [item for item in await newest_items(store, facts, later, sys.maxsize) if not _is_insight(item.value)]
    return Backlog(since, items, sum(importance_of(item.value) for item in items))


def finished_op(reflections: Namespace, stamp: Mapping[str, Any], through: int, outcome: Mapping[str, Any]) -> PutOp:
    """Make the write that says that a timeline was reflected on through a turn, at the turn of the stamp."""
    key = record_key(str(stamp["branch"]), int(stamp["turn"]), "reflection")
    return PutOp(reflections, key, {**outcome, **stamp, "through": through}, index=False)


def importance_of(record: Mapping[str, Any]) -> int:
    """Return a record's importance, 1 to 10; 5 if it has none."""
    importance = record.get("importance")
    return importance if isinstance(importance, int) and 1 <= importance <= 10 else DEFAULT_IMPORTANCE


def read_questions(calls: Sequence[Any], prose: str = "") -> tuple[list[str], list[str]]:
    """Read a model's questions from its calls' arguments, or its prose; return them, and a sentence for each oddity."""
    odd, questions = Oddities(), list[str]()
    for arguments in calls:
        entries: Any = arguments.get("questions") if isinstance(arguments, Mapping) else arguments
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, str) and entry.strip():
                questions.append(" ".join(entry.split()))
            else:
                odd.add("A question was no text and was left out")
    if not calls and (in_prose := [" ".join(question.split()) for question in _QUESTION.findall(prose)]):
        odd.add("The questions came as prose")
        questions = in_prose
    unique = list(dict.fromkeys(questions))
    if len(unique) > MAX_QUESTIONS:
        odd.add(f"Of {len(unique)} questions the first {MAX_QUESTIONS} were asked")
    return [question[:_MAX_QUESTION] for question in unique[:MAX_QUESTIONS]], odd.sentences()


def read_reflection(calls: Sequence[Any], shown: Sequence[Evidence]) -> Conclusions:
    """Read what a model concluded, any JSON that names the shown records by number; an insight cites at least one."""
    odd = Oddities()
    entries = _entries_of(calls, "insights", odd)
    insights = [insight for entry in entries if (insight := _read_insight(entry, shown, odd)) is not None]
    if len(insights) > MAX_INSIGHTS:
        odd.add(f"Of {len(insights)} insights the first {MAX_INSIGHTS} were kept")
    judged = list[tuple[str, str]]()
    for entry in _entries_of(calls, "contradictions", odd)[:MAX_CONTRADICTIONS]:
        pair = _read_contradiction(entry, shown, odd)
        if pair is None or pair in judged:
            continue
        ended = {key for key, _ in judged}
        if pair[0] in ended or pair[1] in ended or any(holds == pair[0] for _, holds in judged):
            odd.add("Contradictions were judged two ways, and the first judgement counts")
            continue
        judged.append(pair)
    return Conclusions(insights[:MAX_INSIGHTS], judged, odd.sentences())


def may_end(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a record may supersede another that it contradicts.

    An exchange or a page of lore neither ends nor is ended, since it was said or written. A rumour ends only a rumour,
    an insight only an insight, and a secret only a secret.
    """
    if any(record.get("kind", "exchange") in ("exchange", "lore") for record in (old, new)):
        return False
    if _is_rumour(new) and not _is_rumour(old):
        return False
    if _is_insight(new) and not _is_insight(old):
        return False
    return new.get("kind") != "secret" or old.get("kind") == "secret"


def second_drawing_op(facts: Namespace, key: str, insight: str, value: Mapping[str, object]) -> PutOp:
    """Make the write that says that an insight was drawn again, with the key and record that it would have had."""
    return PutOp((*facts[:-1], SOURCES), key, {**value, _SAME_AS: insight}, index=False)


async def find_sources(
    store: BaseStore, facts: Namespace, insights: Iterable[AnyItem], *, timeline: Timeline | None = None
) -> dict[str, list[str]]:
    """Return the keys of all records that insights rest on, by the insight's key."""
    asked, namespace = list(insights), (*facts[:-1], SOURCES)
    searches = [SearchOp(namespace, filter={_SAME_AS: insight.key}, limit=ALL_MARKS) for insight in asked]
    sources: dict[str, list[str]] = {}
    for insight, found in zip(asked, await search_visible(store, searches, timeline), strict=True):
        again = sorted((item.value for item in found.items), key=lambda value: str(value.get("at")))
        drawings = [insight.value, *again]
        sources[insight.key] = list(dict.fromkeys(key for value in drawings for key in value.get("cites") or []))
    return sources


def find_dependents(facts: Namespace, removed: Collection[str], known: Sequence[Item]) -> Dependents:
    """Find what rests on records with these keys, among insights and second drawings of every branch."""
    keys, items = set(removed), list[Item]()
    while resting := [item for item in known if item.key not in keys and keys & set(item.value.get("cites") or [])]:
        items += resting
        keys |= {item.key for item in resting}
    insights = {item.key for item in known if item.key in keys and item.namespace == facts}
    drawings = [item for item in known if item.key not in keys and item.value.get(_SAME_AS) in insights]
    replacements, heirs = list[PutOp](), dict[tuple[str, str], str]()
    # Of each insight and branch, the first second drawing becomes the insight.
    for item in sorted(drawings, key=lambda item: (str(item.value.get("at")), item.key)):
        insight, branch = str(item.value[_SAME_AS]), str(item.value.get("branch"))
        heir = heirs.setdefault((insight, branch), item.key)
        if heir == item.key:
            value: JSON = {name: part for name, part in item.value.items() if name != _SAME_AS}
            replacements += [PutOp(facts, item.key, value), PutOp(item.namespace, item.key, None)]
        else:
            replacements.append(PutOp(item.namespace, item.key, {**item.value, _SAME_AS: heir}, index=False))
    return Dependents(items, replacements)


def _entries_of(calls: Sequence[Any], name: str, odd: Oddities) -> list[Any]:
    collected: list[Any] = []
    for arguments in calls:
        entries = arguments.get(name) if isinstance(arguments, Mapping) else None
        if isinstance(entries, list | Mapping):
            collected += entries if isinstance(entries, list) else [entries]
        elif entries is not None:
            odd.add(f"What was sent as {name} was no list and was left out")
    return collected


def _read_insight(entry: Any, shown: Sequence[Evidence], odd: Oddities) -> Insight | None:
    if not isinstance(entry, Mapping):
        odd.add("An insight was no object and was left out")
        return None
    facts, notices = read_facts([{name: entry[name] for name in ("text", "subject", "importance") if name in entry}])
    for line in notices:
        odd.add(line.replace("A fact", "An insight").rpartition(" (")[0])
    if not facts:
        return None
    cites = _read_numbers(entry.get("cites"), shown, odd)
    if not cites:
        odd.add("An insight cited nothing that exists and was left out")
        return None
    insights = {record.key for record in shown if _is_insight(record.value)}
    sources = [{"text": str(record.value.get("text", ""))} for record in shown if record.key not in insights]
    if any(is_same_fact({"text": facts[0].text}, source) for source in sources):
        odd.add("An insight only said what a memory says and was left out")
        return None
    named = _read_numbers(entry.get("same_as") or None, shown, odd)
    same_as = next((key for key in named if key in insights), "")
    if named and not same_as:
        odd.add("An insight named a record to merge with that is no insight; it was kept by itself")
    return Insight(facts[0], [key for key in cites if key != same_as] or cites, same_as)


def _read_contradiction(entry: Any, shown: Sequence[Evidence], odd: Oddities) -> tuple[str, str] | None:
    if not isinstance(entry, Mapping):
        odd.add("A contradiction was no object and was left out")
        return None
    ended, holding = (_read_numbers([entry.get(side)], shown, odd) for side in ("ended", "holds"))
    values = {record.key: record.value for record in shown}
    if not ended or not holding or ended == holding:
        odd.add("A contradiction did not name two memories and was left out")
    elif may_end(values[ended[0]], values[holding[0]]):
        return ended[0], holding[0]
    else:
        odd.add("A judgement was refused: only a fact ends a fact, not a rumour, a secret or a guess")
    return None


def _read_numbers(numbers: Any, shown: Sequence[Evidence], odd: Oddities) -> list[str]:
    """Return the keys of the records with these numbers; unknown numbers are dropped and reported."""
    keys: list[str] = []
    for number in numbers if isinstance(numbers, list) else [] if numbers is None else [numbers]:
        match = _NUMBER.fullmatch(str(number)) if isinstance(number, str | int) else None
        if match and 1 <= int(match[1]) <= len(shown):
            keys.append(shown[int(match[1]) - 1].key)
        else:
            odd.add("A cited memory does not exist, and the citation was dropped", number)
    return list(dict.fromkeys(keys))


def _is_rumour(record: Mapping[str, Any]) -> bool:
    return record.get("kind") == "rumour" or bool(record.get("claimed_by"))


def _is_insight(record: Mapping[str, Any]) -> bool:
    return record.get("kind") == INSIGHT or bool(record.get("cites"))

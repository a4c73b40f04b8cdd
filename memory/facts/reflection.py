"""Reflection: what it is made of, told without a model: which facts wait for it, and what a model's answer comes to.

A reflection asks salient questions about the facts since the last one, recalls what answers them, draws insights that
cite their sources, and judges contradictions with both sides before it. (The idea: Park et al., "Generative Agents",
2023, section 4.2, where 150 is the sum of importance at which agents reflect.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from questbook.memory.facts.facts import Fact
from questbook.memory.facts.likeness import alike
from questbook.memory.facts.reading import Oddities, read_facts
from questbook.memory.timeline.secrets import may_know

JSON = dict[str, Any]

QUESTIONS, REFLECTION = "Questions", "Reflection"
"""Names of the tools by which a model hands over its questions, and what it concluded."""
MOST_QUESTIONS, MOST_INSIGHTS, MOST_CONTRADICTIONS = 3, 5, 20
INSIGHT = "insight"
HEARSAY = "hearsay"
"""Who claims an insight that rests on rumours alone, if they do not name one and the same speaker."""

_LONGEST = 300  # characters of a question
_ASKED = re.compile(r"[^.!?\n]{8,}\?")
_NUMBER = re.compile(r"[\s#(\[]*(\d{1,6})[\s.)\]]*")


class Evidence(NamedTuple):
    """A record that the model was shown; its number in the prompt is its place in the list, from 1."""

    key: str
    value: JSON


class Insight(NamedTuple):
    """What a model concluded.

    Attributes:
        fact: Its text, subject and importance.
        cites: Keys of the records that it rests on, at least one.
        same_as: Key of the insight that it says again in other words; "" if none.
    """

    fact: Fact
    cites: list[str]
    same_as: str

    def record(self, shown: Mapping[str, JSON], viewer: Sequence[str]) -> JSON:
        """Return the fields of its record, without where it comes from.

        What rests on something that the player's character does not know is of kind "secret"; what rests on rumours
        alone is claimed by who spread them, so that a lie does not become a truth by being thought about.

        Args:
            shown: The records that were shown, by key.
            viewer: Names of the player's character.
        """
        sources = [shown[key] for key in self.cites]
        open_to_all = all(may_know(source, viewer) for source in sources)
        value = self.fact.record() | {"kind": INSIGHT if open_to_all else "secret", "slot": "", "cites": self.cites}
        if all(_hearsay(source) for source in sources):
            speakers = {str(source.get("claimed_by") or "") for source in sources}
            value["claimed_by"] = (speakers.pop() if len(speakers) == 1 else "") or HEARSAY
        return value


class Concluded(NamedTuple):
    """What a model's answer comes to.

    Attributes:
        insights: In the order in which they were sent.
        contradictions: Pairs of keys: of the fact that ends, and of the one that holds.
        notices: One sentence for each oddity; they quote no text of a record.
    """

    insights: list[Insight]
    contradictions: list[tuple[str, str]]
    notices: list[str]


def read_questions(given: Sequence[Any], prose: str = "") -> tuple[list[str], list[str]]:
    """Read a model's questions; return them and what was odd.

    Args:
        given: The arguments of its calls of the tool `Questions`: any JSON.
        prose: What it wrote beside or instead of a call; its sentences that end with "?" count if there was no call.
    """
    odd, found = Oddities(), list[str]()
    for args in given:
        entries: Any = args.get("questions") if isinstance(args, Mapping) else args
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, str) and entry.strip():
                found.append(" ".join(entry.split()))
            else:
                odd.add("A question was no text and was left out")
    if not given and (asked := [" ".join(question.split()) for question in _ASKED.findall(prose)]):
        odd.add("The questions came as prose")
        found = asked
    unique = list(dict.fromkeys(found))
    if len(unique) > MOST_QUESTIONS:
        odd.add(f"Of {len(unique)} questions the first {MOST_QUESTIONS} were asked")
    return [question[:_LONGEST] for question in unique[:MOST_QUESTIONS]], odd.sentences()


def read_reflection(given: Sequence[Any], shown: Sequence[Evidence]) -> Concluded:
    """Read what a model concluded. Nothing is made up: what cites nothing that it was shown is left out, and told.

    Args:
        given: The arguments of its calls of the tool `Reflection`: any JSON.
        shown: The records that it was shown, in the order of their numbers.
    """
    odd = Oddities()
    insights = [i for entry in _entries(given, "insights", odd) if (i := _insight(entry, shown, odd)) is not None]
    if len(insights) > MOST_INSIGHTS:
        odd.add(f"Of {len(insights)} insights the first {MOST_INSIGHTS} were kept")
    judged, ended = list[tuple[str, str]](), set[str]()
    for entry in _entries(given, "contradictions", odd)[:MOST_CONTRADICTIONS]:
        pair = _contradiction(entry, shown, odd)
        if pair is None or pair in judged:
            continue
        if pair[0] in ended or pair[1] in ended or any(holds == pair[0] for _, holds in judged):
            odd.add("Contradictions were judged two ways, and the first judgement counts")
            continue
        ended.add(pair[0])
        judged.append(pair)
    return Concluded(insights[:MOST_INSIGHTS], judged, odd.sentences())


def _entries(given: Sequence[Any], name: str, odd: Oddities) -> list[Any]:
    found: list[Any] = []
    for args in given:
        entries = args.get(name) if isinstance(args, Mapping) else None
        if isinstance(entries, Mapping):
            entries = [entries]
        if isinstance(entries, list):
            found += entries
        elif entries is not None:
            odd.add(f"What was sent as {name} was no list and was left out")
    return found


def _insight(entry: Any, shown: Sequence[Evidence], odd: Oddities) -> Insight | None:
    if not isinstance(entry, Mapping):
        odd.add("An insight was no object and was left out")
        return None
    asked = {name: entry[name] for name in ("text", "subject", "importance") if name in entry}
    facts, notices = read_facts([asked])
    for line in notices:
        odd.add(line.replace("A fact", "An insight").rpartition(" (")[0])
    if not facts:
        return None
    cites = _cited(entry.get("cites"), shown, odd)
    if not cites:
        odd.add("An insight cited nothing that there is and was left out")
        return None
    said = {"text": facts[0].text}
    if any(alike(said, {"text": str(one.value.get("text", ""))}) for one in shown if not _is_insight(one.value)):
        odd.add("An insight only said what a memory says and was left out")
        return None
    same_as = ""
    if entry.get("same_as") not in (None, "", 0):
        same = _cited([entry["same_as"]], shown, odd)
        known = {one.key for one in shown if _is_insight(one.value)}
        same_as = next((key for key in same if key in known), "")
        if same and not same_as:
            odd.add("What an insight was to be merged with is none; it stands by itself")
    return Insight(facts[0], [key for key in cites if key != same_as] or cites, same_as)


def _contradiction(entry: Any, shown: Sequence[Evidence], odd: Oddities) -> tuple[str, str] | None:
    if not isinstance(entry, Mapping):
        odd.add("A contradiction was no object and was left out")
        return None
    sides = [_cited([entry.get(side)], shown, odd) for side in ("ended", "holds")]
    if not all(sides) or sides[0] == sides[1]:
        odd.add("A contradiction did not name two memories and was left out")
        return None
    values = {one.key: one.value for one in shown}
    ends, holds = sides[0][0], sides[1][0]
    if not may_end(values[ends], values[holds]):
        odd.add("What was judged to be contradicted stands: only a fact ends a fact, not a rumour, a secret or a guess")
        return None
    return ends, holds


def may_end(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a record may take the place of another that it contradicts.

    What was said was said: an exchange or a page of lore neither ends nor is ended. A rumour ends a rumour alone, an
    insight an insight, and a secret nothing that the player believes.
    """
    if any(value.get("kind", "exchange") in ("exchange", "lore") for value in (old, new)):
        return False
    if _hearsay(new) and not _hearsay(old):
        return False
    if _is_insight(new) and not _is_insight(old):
        return False
    return new.get("kind") != "secret" or old.get("kind") == "secret"


def _cited(given: Any, shown: Sequence[Evidence], odd: Oddities) -> list[str]:
    """Return the keys of the records with these numbers; numbers that there are not are dropped and told."""
    numbers = given if isinstance(given, list) else [] if given is None else [given]
    keys: list[str] = []
    for number in numbers:
        found = _NUMBER.fullmatch(str(number)) if isinstance(number, str | int) and number is not True else None
        if found and 1 <= int(found[1]) <= len(shown):
            keys.append(shown[int(found[1]) - 1].key)
        else:
            odd.add("A cited memory does not exist, and the citation was dropped", number)
    return list(dict.fromkeys(keys))


def _hearsay(value: Mapping[str, Any]) -> bool:
    return value.get("kind") == "rumour" or bool(value.get("claimed_by"))


def _is_insight(value: Mapping[str, Any]) -> bool:
    return value.get("kind") == INSIGHT or bool(value.get("cites"))

"""Answers: questions about the character, the quest and the past, from the two notebooks, memories and conversation."""

import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from questbook.graphs.offline.storyteller import language
from questbook.graphs.offline.storyteller.intent import read
from questbook.graphs.offline.storyteller.language import (
    addressed,
    article,
    entries,
    lower,
    pattern,
    roots,
    series,
    table,
)
from questbook.types import JSON

_TRUE_KINDS = ("event", "trait", "promise", "preference", "insight")
"""Kinds of memories that may be told as true; claims, rumours and secrets may not."""
_ASK_AROUND = "You could ask around, or go and look."
_LEAST, _LEAST_WHETHER = 0.45, 0.7
"""Share of the question that a sentence must answer; "Did I eat the pie?" is not answered by a pie left alone."""
_LIKING = {"notes": 0.06, "you": 0.05, "story": 0.0, "lore": 0.0, "summary": -0.02}
"""Notes hold what is true now; only the player's own words hold what the player planted."""
_DEED = re.compile(r"(?:grew|was|were|lived|came|served|worked|used|kept|left|ran|lost|sailed|fought|learnt|learned)\b")
_OWN_DEEDS = ("plant", "carve", "use", "drop")  # what of the player's words places or tells a thing
_Exchange = tuple[str, str, str]  # the player's words, what the reply told, and how long ago, in words
_FELLOWS, _FACTS, _TURNS = 6, 4, 4  # how many people, facts and turns a recap tells, the last ones


@dataclass(frozen=True)
class Past:
    """What the prompt holds: pages, summary, recalled records; `exchanges` are (words, reply), oldest first."""

    page: JSON = field(default_factory=dict)
    character: JSON = field(default_factory=dict)
    summary: str = ""
    memories: Sequence[JSON] = ()
    exchanges: Sequence[tuple[str, str]] = ()


class Trace(NamedTuple):
    """One sentence that something in the prompt holds."""

    text: str
    source: str  # where from: "you" (the player's words), "story" (a reply), "notes" (a page), "lore" or "summary"
    when: str = ""  # how long ago, in words; of lore where it is written; "" if unknown


def remember(subject: str, question: str, past: Past, chance: random.Random) -> str:
    """Answer a question about the past, on a subject such as "the bell", or say that one does not know."""
    exchanges = _exchanges(past)
    quotes = [_quote(trace) for trace in _hearsay(question, past.page, exchanges)]
    if not quotes and pattern("questions", "met").match(question):
        quotes = [f"{_portrait(name, person)}." for name, person in entries(past.page.get("people"))]
    asked = roots(pattern("questions", "likeness").sub("", f"{subject} {question}"))
    if not quotes and asked:
        quotes = [_quote(trace) for trace in _best(asked, list(_traces(past, exchanges)), question)]
    if quotes:
        return f"{chance.choice(table('remembered'))} {' '.join(quotes)}"
    replies = [reply for _, reply, _ in exchanges if reply]
    if not asked and replies:
        return f"You think back over the last hours. {_clip(replies[-1])}"
    if pattern("questions", "own_deed").match(question) or pattern("questions", "whether").match(question):
        return f"You think it over, and remember nothing of the kind. {_ASK_AROUND}"
    clause = re.match(r"\W*wh\w+ (?:do|did|does|had|has|have) ", question, re.I)  # "the baker say" alone is no phrase
    whole = not subject or (clause and question[clause.end() :].startswith(subject))
    shown = (question if whole else subject).strip(" ?.!")[:80]
    shown = lower(shown) if pattern("questions", "common").match(shown) else shown  # a name keeps its capital
    quote = f"“{shown if 'you' in shown.casefold().split() else addressed(shown)}”"
    return f"{language.fill(chance.choice(table('unknown')), {'subject': quote, 'subject_c': quote})} {_ASK_AROUND}"


def own_words(subject: str, past: Past, chance: random.Random) -> str:
    """Quote what the player last told or did about all of a subject; "" if they never have."""
    asked = set(roots(subject))
    said = (trace for trace in _traces(past, _exchanges(past)) if trace.source == "you")
    told = [t for t in said if asked and asked <= language.bases(roots(t.text)) and read(t.text).verb in _OWN_DEEDS]
    return f"{chance.choice(table('remembered'))} {_quote(told[-1])}" if told else ""


def cite(question: str, memories: Sequence[JSON]) -> str:
    """Quote the lore among the memories that answers a question; "" if none does."""
    asked = roots(question)
    return "".join(map(_quote, _best(asked, list(_lore(memories)), "")[:1])) if asked else ""


def _best(asked: list[str], traces: Sequence[Trace], question: str) -> list[Trace]:
    if pattern("questions", "own_deed").match(question):
        traces = [trace for trace in traces if trace.source == "you" or trace.text.startswith("You ")]
    asks_name = pattern("questions", "asks_name").search(question)
    least = _LEAST_WHETHER if pattern("questions", "whether").match(question) else _LEAST
    texts = [language.bases(roots(trace.text)) for trace in traces]
    spread = Counter(word for words in texts for word in words)
    weights = {word: math.log(1 + len(traces) / (1 + spread[word])) + 0.3 for word in asked}
    scores = {}
    for order, (trace, words) in enumerate(zip(traces, texts, strict=True)):
        if share := sum(weight for word, weight in weights.items() if word in words) / sum(weights.values()):
            named = asks_name and share >= least and pattern("questions", "says_name").search(trace.text)
            scores[order] = share + _LIKING[trace.source] + (0.5 if named else 0)
    best = sorted(scores, key=lambda order: (-scores[order], -order))
    least = max(least, scores[best[0]] * 0.75) if best else least
    chosen: list[tuple[Trace, set[str]]] = []
    for trace in (traces[order] for order in best if scores[order] >= least):
        words = set(roots(trace.text))
        if all(len(words & other) < 0.7 * max(1, min(len(words), len(other))) for _, other in chosen):
            chosen.append((trace, words))
    return [trace for trace, _ in chosen[:3]]


def _hearsay(question: str, page: JSON, exchanges: Sequence[_Exchange]) -> list[Trace]:
    """Find at most two paragraphs that answer "What did Joss say about the bell?"; none for another question."""
    asked = pattern("questions", "hearsay").search(question.strip(" ?.!"))
    if asked is None or (asked["who"].casefold() == "you" and not asked["what"].strip()):
        return []
    # The words that name whom the player means, and those that name the other people of the page.
    who = set() if pattern("questions", "somebody").fullmatch(asked["who"].strip()) else set(roots(asked["who"]))
    others = set[str]()
    for name, person in entries(page.get("people")):
        role = str(person.get("role") or "") if isinstance(person, Mapping) else ""
        (who if who & set(roots(f"{name} {role}")) else others).update(roots(name))
    about = set(roots(asked["what"]))
    traces: list[tuple[bool, float, int, Trace]] = []
    for order, (player, reply, when) in enumerate(exchanges):
        for paragraph in (" ".join(part.split()) for part in reply.split("\n\n") if "“" in part):
            narration = set(roots(f"{player} {re.sub('“[^”]*”', ' ', paragraph)}"))
            named = not who or bool(who & narration)
            share = len(about & set(roots(f"{player} {paragraph}"))) / len(about) if about else float(named)
            if share >= 0.5 and (named or not others & narration):
                traces.append((named, share, order, Trace(paragraph, "story", when)))
    return [trace for *_, trace in sorted(traces, key=lambda entry: entry[:3], reverse=True)[:2]]


def _exchanges(past: Past) -> list[_Exchange]:
    memories = sorted(past.memories, key=lambda m: m["turn"] if isinstance(m.get("turn"), int) else 0)
    told = [(str(one.get("player") or ""), str(one.get("reply") or ""), _when(one)) for one in memories]
    ages = [*(f"{ago} turns ago" for ago in range(len(past.exchanges), 1, -1)), "just now"]
    told += [(*exchange, age) for exchange, age in zip(past.exchanges, ages, strict=False)]
    return [(player, _news(player, reply), when) for player, reply, when in told]


def _traces(past: Past, exchanges: Sequence[_Exchange]) -> Iterator[Trace]:
    """Cut the past into sentences; later ones win over earlier ones that fit equally well."""
    summary = [part for part in _sentences(past.summary) if not part.rstrip('”"’ ').endswith("?")]  # answers nothing
    yield from (Trace(sentence, "summary") for sentence in summary)
    true = [(" ".join(str(one[kind]) for kind in _TRUE_KINDS if one.get(kind)), _when(one)) for one in past.memories]
    yield from (Trace(sentence, "story", when) for text, when in true for sentence in _sentences(text))
    yield from _lore(past.memories)
    for player, reply, when in exchanges:
        yield from (Trace(one, "you", when) for one in _sentences("" if player.strip().endswith("?") else player))
        yield from (Trace(one, "story", when) for one in _sentences(reply))
    page = past.page
    notes = [f"{subject}: {fact}" for subject, fact in entries(page.get("facts"))]
    notes += [_portrait(name, person) for name, person in entries(page.get("people"))]
    notes += [_quest_line(title, quest) for title, quest in entries(page.get("quests")) if isinstance(quest, Mapping)]
    notes += [f"{name} is dead: {fate}" for name, fate in entries(page.get("fallen"))]
    own = ("background", "goal", "appearance", "personality")
    notes += [f"Your {part}: {past.character[part]}" for part in own if past.character.get(part)]
    yield from (Trace(note, "notes") for note in notes)


def _lore(memories: Sequence[JSON]) -> Iterator[Trace]:
    for memory in memories:
        for sentence in _sentences(str(memory.get("text") or "") if memory.get("source") else ""):
            yield Trace(sentence, "lore", str(memory["source"]))


def _quote(trace: Trace) -> str:
    text = _clip(trace.text)
    if trace.source == "lore":
        return f"You have read of it ({trace.when}): “{text}”"
    when = f" ({trace.when})" if trace.when else ""
    if trace.source == "you":
        end = "" if text.endswith(("!", "?", "…")) else "."
        return f"You said{when}: “{text.rstrip('.')}{end}”"
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
    if reply.startswith(tuple(table("remembered"))) or _ASK_AROUND in reply:
        return ""
    words = " ".join(player.split()).casefold()

    def is_news(sentence: str) -> bool:
        offered = pattern("questions", "offers").match(sentence) or sentence in language.saying("honest")
        return not (offered or any(one.strip(" .!?").casefold() in words for one in re.findall("“([^”]+)”", sentence)))

    paragraphs = [" ".join(filter(is_news, _sentences(paragraph))) for paragraph in reply.split("\n\n")]
    return "\n\n".join(filter(None, paragraphs))


def _sentences(text: str) -> list[str]:
    parts = re.split(r"(?:(?<=[.!?])|(?<=[.!?][”\"’]))\s+(?=[A-Z“\"‘])|\n+", text)
    return [part.strip() for part in parts if len(part.strip()) > 3]


def _clip(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 260 else flat[:257].rsplit(" ", 1)[0] + " …"


def asked(words: str) -> dict[str, str]:
    """Find what of the pages each question asks for, by its name in questions.toml; others at ""; {} if none does."""
    found: dict[str, str] = {}
    for question in pattern("questions", "between_pages").split(" ".join(words.split())[:400]):
        plain = pattern("questions", "after_page").sub("", pattern("questions", "before_page").sub("", question))
        names = (n for n in language.load("questions")["pages"] if pattern("questions", "pages", n).fullmatch(plain))
        if plain and not (about := next(names, "")) and not pattern("questions", "clause").match(plain):
            return {}
        if plain:
            found[about] = f"{found.get(about, '')} {question}?".strip()
    return found if any(found) else {}


def tell(about: str, past: Past) -> str:
    """Answer a question that `asked` has named from the pages; "" if they do not say."""
    if about in _OF_QUEST:
        return _OF_QUEST[about](past.page)
    if about == "recap":
        return _recap(past)
    if about == "self":
        kind = " ".join(str(past.character.get(part) or "") for part in ("ancestry", "class")).strip()
        who = ", ".join(filter(None, [str(past.character.get("name") or ""), article(kind)]))
        parts = (tell(part, past) for part in ("background", "appearance", "personality", "goal"))
        return " ".join(filter(None, [f"You are {who}." if who else "", *parts]))
    field = str(past.character.get(about) or "").strip(" .")
    forms = dict.fromkeys(("class", "ancestry"), f"You are {article(field)}.") | {"name": f"You are {field}."}
    forms |= {"background": _background(field), "goal": f"What you want is this: {language.spoken(field)}."}
    return forms.get(about, f"Your {about}, as your page has it: {addressed(field)}.") if field else ""


def _background(text: str) -> str:
    if text.startswith("from "):
        return f"You come {addressed(text)}."
    return f"You {addressed(f'i {text}')[4:]}." if _DEED.match(text) else f"Where you come from: {addressed(text)}."


def _day(page: JSON) -> str:
    clock = page.get("clock") or {}
    return f"It is {clock.get('time') or 'daytime'} of day {clock.get('day') or 1}."


def _open_quests(page: JSON) -> dict[str, str]:
    quests = entries(page.get("quests"))
    return {title: str(quest.get("notes") or "") for title, quest in quests if quest.get("status") == "open"}


def _quest(page: JSON) -> str:
    quests = " ".join(f"“{title}”: {notes}" for title, notes in _open_quests(page).items())
    objective = lower(str(page.get("objective") or ""))
    about = f"What you are about: {objective}." if objective else ""
    return f"Your quest is {quests} {about}".strip() if quests else about or "You have no quest at the moment."


def _quests(page: JSON) -> str:
    return " ".join(_quest_line(title, quest) for title, quest in entries(page.get("quests")))


def _quest_line(title: str, quest: Any) -> str:
    return f"“{title}” ({quest.get('status', 'open')}): {quest.get('notes', '')}"


def things(page: JSON) -> str:
    """Say what the character carries; "" before the story has begun."""
    carried = [(item, number) for item, number in entries(page.get("inventory")) if isinstance(number, int)]
    held = [f"{number} × {item}" if number > 1 else article(item) for item, number in carried if number > 0]
    gold = page.get("gold") or 0
    told = f"You carry {series(held) or 'nothing but your wits'}, and {gold} gold piece{'' if gold == 1 else 's'}."
    return f"{told} All of it seems to be waiting for you to have an idea." if page else ""


def _giver(page: JSON) -> str:
    for title, notes in _open_quests(page).items():
        words = set(roots(notes.replace("-", " ")))
        for name, person in entries(page.get("people")):
            role = str(person.get("role") or "")
            if words & set(roots(name)) or (role and set(roots(role.replace("-", " "))) & words):
                return f"“{title}” came to you from {name}{f', {article(role)}' if role else ''}."
        return f"“{title}”: {notes}"
    return _quest({}) if page.get("quests") else ""


def _recap(past: Past) -> str:
    page = past.page
    people, facts = entries(page.get("people"))[-_FELLOWS:], entries(page.get("facts"))[-_FACTS:]
    did = [words.strip(" .") for words, _ in past.exchanges[-_TURNS:] if not ("?" in words or asked(words))]
    met = [f"{name} ({person['role']})" if person.get("role") else name for name, person in people]
    told = [
        _quests(page),
        f"You have met {series(met)}." if met else "",
        f"You have learnt: {'; '.join(f'{subject}: {fact}' for subject, fact in facts)}." if facts else "",
        f"Of late you said: “{'”, “'.join(did)}”." if did else "",
        str(page.get("scene") or ""),
    ]
    return " ".join(filter(None, told))


_OF_QUEST = {"quest": _quest, "quests": _quests, "giver": _giver, "day": _day, "things": things}

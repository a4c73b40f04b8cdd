"""Notes: what is kept of turns: a page that stays short, facts for the memory, a running summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from questbook.graphs.offline.storyteller.language import article
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.types import JSON

_MOST_FACTS, _MOST_PEOPLE, _MOST_QUESTS = 16, 9, 8
_INNER_QUOTES = str.maketrans('“”"', "‘’'")
_STATUS = {"open": "is open", "done": "is done", "failed": "has failed"}
_DEFAULT_WORDS = 240
_PROMISES = re.compile(
    r"\b(?:remember|tell|told|promise|swear|swore|carve|write|bury|hide|my|name|secret|password)\b", re.I
)
_EVENTS = re.compile(r"\b(?:dead|dies|killed|gold|key|gives?|takes?|learn|found|find|over|pays?|opens?|wakes?)\b", re.I)


def shorten(scene: Scene) -> JSON:
    """Strike from the page the oldest of what there is too much of; return the patch of the whole turn."""
    here = set(scene.tale.names.values()) if scene.tale else set()
    quests = scene.page.get("quests") or {}
    oldest = {
        "facts": list(scene.page.get("facts") or {})[:-_MOST_FACTS],
        "quests": [title for title, quest in quests.items() if quest.get("status") != "open"][:-_MOST_QUESTS],
        "people": [name for name in scene.page.get("people") or {} if name not in here][:-_MOST_PEOPLE],
    }
    for part, names in oldest.items():
        if names:
            scene.note({part: dict.fromkeys(names)})
    return scene.patch


def facts_of(patch: JSON, page: JSON) -> list[JSON]:
    """Return the facts in a patch of the quest's page, as the tool `Facts` takes them.

    What the player learnt, whom they met and how those stand to them, how quests stand, and the tale's truth, which is
    secret. What the page says already is left out; where people were seen last changes with every step and stays on
    the page alone.
    """
    news = _news(patch, page)
    return [*_learnt(news), *_people(news), *_quests(news), *_truth(news)]


def _news(patch: JSON, page: JSON) -> JSON:
    news = {name: part for name, part in patch.items() if part is not None and part != page.get(name)}
    for name, part in news.items():
        before = page.get(name)
        if isinstance(part, dict) and isinstance(before, dict):
            news[name] = _news(part, before)
    return news


def _learnt(patch: JSON) -> Iterator[JSON]:
    for subject, known in _entries(patch, "facts"):
        if isinstance(known, str):
            yield {"kind": "trait", "text": f"{subject}: {known}", "subject": subject, "importance": 6}


def _people(patch: JSON) -> Iterator[JSON]:
    for name, entry in _entries(patch, "people"):
        if not isinstance(entry, dict):
            continue
        role, attitude = entry.get("role"), entry.get("attitude")
        if entry.get("alive") is False:
            fate = str(entry.get("fate") or "is dead")
            yield _trait(name, "fate", fate, f"{name} is dead: {fate}.", importance=8)
        elif role and str(role).casefold() not in name.casefold():  # "Widow Garrow" says it
            yield _trait(name, "role", str(role), f"{name} is {article(str(role))}.", importance=4)
        if attitude:
            yield _trait(name, "attitude", str(attitude), f"{name}'s attitude is {attitude}.", importance=4)


def _quests(patch: JSON) -> Iterator[JSON]:
    for title, quest in _entries(patch, "quests"):
        status = quest.get("status") if isinstance(quest, dict) else None
        if status in _STATUS:
            yield _trait(title, "quest", str(status), f"The quest “{title}” {_STATUS[str(status)]}.", importance=7)


def _truth(patch: JSON) -> Iterator[JSON]:
    truth = dict(_entries(patch, "secrets")).get("truth")
    if isinstance(truth, str):
        yield {"kind": "secret", "text": truth, "importance": 9}


def _trait(subject: str, attribute: str, value: str, text: str, *, importance: int) -> JSON:
    slot = {"subject": subject, "attribute": attribute, "value": value}
    return {"kind": "trait", "text": text, **slot, "importance": importance}


def _entries(patch: JSON, field: str) -> list[tuple[str, Any]]:
    entries = patch.get(field)
    return list(entries.items()) if isinstance(entries, dict) else []


def word_limit(instructions: str) -> int:
    """Read the number of words that the instructions allow a summary."""
    match = re.search(r"at most (\d+) words", instructions)
    return max(10, int(match[1])) if match else _DEFAULT_WORDS


def summarize(summary: str, turns: Sequence[JSON], words: int) -> str:
    """Fold turns into a summary of at most `words` words: what weighs least and is oldest goes first."""
    lines = [line.strip() for line in re.split(r"\n+", summary) if line.strip()]
    lines += [line for turn in turns if (line := _line(turn))]
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > words:
        lines.pop(min(range(len(lines)), key=lambda at: (_weight(lines[at]) + at / len(lines), at)))
    return " ".join("\n".join(lines).split(" ")[:words]).strip() or "Nothing has happened yet."


def _line(turn: JSON) -> str:
    """Write a turn as one line: what the player wrote, and the sentence of the reply that tells most."""
    player = _clip(str(turn.get("player") or ""), 30).translate(_INNER_QUOTES)
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z“])", " ".join(str(turn.get("reply") or "").split()))
    best = max(sentences[:6], key=lambda s: len(_EVENTS.findall(s)) + len(re.findall(r"(?<=\s)[A-Z]\w+", s)) / 3)
    number = f"Turn {turn['turn']}: " if isinstance(turn.get("turn"), int) else ""
    quote = f"You: “{player}” " if player else ""
    return f"{number}{quote}{_clip(best, 10 if player.endswith('?') else 24)}".strip()


def _weight(line: str) -> float:
    # A line without a turn comes from an older summary, where it was found worth keeping.
    older, names = not line.startswith("Turn "), re.search(r"\s[A-Z][a-z]", line)
    return 1.5 * older + 2.0 * bool(_PROMISES.search(line)) + bool(_EVENTS.search(line)) + 0.5 * bool(names)


def _clip(text: str, words: int) -> str:
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")

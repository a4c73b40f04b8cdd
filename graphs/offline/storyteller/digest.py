"""Digest: what is kept of turns: a page that stays short, facts for the memory, a running summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from questbook.graphs.offline.storyteller.language import article, entries
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.types import JSON

_MOST_FACTS, _MOST_PEOPLE, _MOST_QUESTS = 16, 9, 8
_INNER_QUOTES = str.maketrans('“”"', "‘’'")
_STATUS = {"open": "is open", "done": "is done", "failed": "has failed"}
_TOLD = re.compile(r"^(?!Turn )|\b(?:remember|tell|told|promise|swear|swore|carve|my|name|secret|password)\b", re.I)


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
    for subject, known in entries(patch.get("facts")):
        if isinstance(known, str):
            yield {"kind": "trait", "text": f"{subject}: {known}", "subject": subject, "importance": 6}


def _people(patch: JSON) -> Iterator[JSON]:
    for name, entry in entries(patch.get("people")):
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
    for title, quest in entries(patch.get("quests")):
        status = quest.get("status") if isinstance(quest, dict) else None
        if status in _STATUS:
            yield _trait(title, "quest", str(status), f"The quest “{title}” {_STATUS[str(status)]}.", importance=7)


def _truth(patch: JSON) -> Iterator[JSON]:
    truth = dict(entries(patch.get("secrets"))).get("truth")
    if isinstance(truth, str):
        yield {"kind": "secret", "text": truth, "importance": 9}


def _trait(subject: str, attribute: str, value: str, text: str, *, importance: int) -> JSON:
    slot = {"subject": subject, "attribute": attribute, "value": value}
    return {"kind": "trait", "text": text, **slot, "importance": importance}


def summarize(summary: str, turns: Sequence[JSON], words: int) -> str:
    """Fold turns into a summary of at most `words` words: the oldest goes first, promises and what was told go last."""
    lines = [line for line in summary.split("\n") if line.strip()]
    lines += map(_line, turns)
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > words:
        lines.pop(min(range(len(lines)), key=lambda at: (bool(_TOLD.search(lines[at])), at)))
    return " ".join("\n".join(lines).split(" ")[:words])


def _line(turn: JSON) -> str:
    """Write a turn as one line: what the player said, as a quotation under their name, and what was told."""
    number = f"Turn {turn['turn']}: " if isinstance(turn.get("turn"), int) else ""
    player = _clip(turn.get("player")).translate(_INNER_QUOTES)
    return f"{number}{f'You: “{player}” ' if player else ''}{_clip(turn.get('reply'))}"


def _clip(text: Any) -> str:
    words = str(text or "").split()
    return " ".join(words[:24]) + (" …" if len(words) > 24 else "")

"""Learned: what a turn taught, as facts, from what the storyteller itself has just noted. No model, no guess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

JSON = dict[str, Any]

_STATUS = {"open": "is open", "done": "is done", "failed": "has failed"}


def facts_of(patch: JSON) -> list[JSON]:
    """Return the facts in a patch of the quest's page, as the tool `Facts` takes them.

    What the player learnt, whom they met and how those stand to them, how quests stand, and the tale's truth, which is
    secret. Where people were seen last changes with every step and stays on the page alone.
    """
    return [*_learnt(patch), *_people(patch), *_quests(patch), *_secrets(patch)]


def _learnt(patch: JSON) -> Iterator[JSON]:
    for subject, known in _entries(patch, "facts"):
        if isinstance(known, str):
            yield {"kind": "trait", "text": f"{subject}: {known}", "subject": subject, "importance": 6}


def _people(patch: JSON) -> Iterator[JSON]:
    for name, entry in _entries(patch, "people"):
        if not isinstance(entry, dict):
            continue
        if entry.get("alive") is False:
            fate = str(entry.get("fate") or "is dead")
            yield _of(name, "fate", fate, f"{name} is dead: {fate}.", importance=8)
        elif entry.get("role"):
            yield _of(name, "role", str(entry["role"]), f"{name} is {entry['role']}.", importance=4)
        if entry.get("attitude"):
            mood = str(entry["attitude"])
            yield _of(name, "attitude", mood, f"{name}'s attitude is {mood}.", importance=4)


def _quests(patch: JSON) -> Iterator[JSON]:
    for title, quest in _entries(patch, "quests"):
        status = quest.get("status") if isinstance(quest, dict) else None
        if status in _STATUS:
            yield _of(title, "quest", str(status), f"The quest “{title}” {_STATUS[str(status)]}.", importance=7)


def _secrets(patch: JSON) -> Iterator[JSON]:
    truth = dict(_entries(patch, "secrets")).get("truth")
    if isinstance(truth, str):
        yield {"kind": "secret", "text": truth, "importance": 9}


def _of(subject: str, attribute: str, value: str, text: str, *, importance: int) -> JSON:
    slot = {"subject": subject, "attribute": attribute, "value": value}
    return {"kind": "trait", "text": text, **slot, "importance": importance}


def _entries(patch: JSON, field: str) -> list[tuple[str, Any]]:
    found = patch.get(field)
    return list(found.items()) if isinstance(found, dict) else []

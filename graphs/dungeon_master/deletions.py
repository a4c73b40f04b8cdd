"""Deletions: what the notes took off the quest's page although the story did not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from questbook.graphs.turn.state import Turn
from questbook.memory.text.words import content_stems, plain_words, strip_ending
from questbook.notebooks import StateNotebook, render_value
from questbook.types import JSON

_NAMED = 3  # entries that the notice names
_FULL = 0.8  # share of the page's limit
_LABELS = {"quests": "the quest", "people": "the person", "facts": "the fact", "inventory": "the item"}


def deletion_notice(before: StateNotebook, after: StateNotebook, turns: Sequence[Turn]) -> str:
    """Say which important entries the notes of these turns deleted on their own; "" if they deleted none.

    Quests that are over, the dead, and items that the turns speak of leave the page as the story goes; an entry that
    another one of its kind replaces was only renamed. On a page that is nearly full the model was asked to make room.
    All else is for the player to know, but secrets.
    """
    if len(before.render()) > _FULL * before.LIMIT:
        return ""
    said = "\n".join(str(turn[part]) for turn in turns for part in ("player", "rolls", "reply") if part in turn)
    candidates: dict[str, list[str]] = {
        "quests": [title for title, quest in before.quests.items() if quest.status == "open"],
        "people": [name for name, person in before.people.items() if person.alive],
        "facts": list(before.facts),
        "inventory": [item for item in sorted(before.inventory) if not _is_spoken_of(item, content_stems(said))],
    }
    pages = before.as_json(), after.as_json()
    lost = [
        (field, name)
        for field, names in candidates.items()
        for name in names
        if _is_gone(name, pages[0].get(field, {}), pages[1].get(field, {}))
    ]
    texts = [f"{_LABELS[field]} “{name}”" for field, name in lost[:_NAMED]]
    texts += [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    if not texts:
        return ""
    hint = f"/why {'.'.join(lost[0])} says after which message."
    return f"The notes dropped something that the story did not: {', '.join(texts)}. {hint}"


def _is_spoken_of(item: str, said: Collection[str]) -> bool:
    """Whether stems of what was said have an item by its last word: who breaks the iron key only says "the key"."""
    words = plain_words(item)
    return bool(words) and strip_ending(words[-1]) in said


def _is_gone(name: str, before: JSON, after: JSON) -> bool:
    if name in after:
        return False
    new = (f"{other} {render_value(after[other])}" for other in after.keys() - before.keys())
    return not any(content_stems(name) & content_stems(text) for text in new)  # "the innkeeper" is Tansy, innkeeper

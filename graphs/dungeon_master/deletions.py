"""Deletions: what the notes took off the quest's page although the story did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from questbook.memory.facts.writing import subjects_in
from questbook.memory.text.wording import content_stems
from questbook.notebooks import StateNotebook
from questbook.types import JSON

_NAMED = 3  # entries that the notice names
_LABELS = {"quests": "the quest", "people": "the person", "facts": "the fact", "inventory": "the item"}


def deletion_notice(before: StateNotebook, after: StateNotebook, turns: Sequence[JSON]) -> str:
    """Say which important entries the notes deleted on their own; "" if they deleted none.

    Quests that are over, the dead, and items that the turns speak of leave the page as the story goes; an entry that
    another one of its kind replaces was only renamed. All else is for the player to know. Secrets are not named.

    Args:
        before: The page before the notes.
        after: The page after them.
        turns: The turns that were noted, as `state.transcript` has them.
    """
    said = "\n".join(str(turn[part]) for turn in turns for part in ("player", "rolls", "reply") if part in turn)
    candidates: dict[str, list[str]] = {
        "quests": [title for title, quest in before.quests.items() if quest.status == "open"],
        "people": [name for name, person in before.people.items() if person.alive],
        "facts": list(before.facts),
        "inventory": sorted(set(before.inventory) - subjects_in(said, before.inventory)),
    }
    lost = [
        (field, name)
        for field, names in candidates.items()
        for name in names
        if _is_gone(name, getattr(before, field), getattr(after, field))
    ]
    texts = [f"{_LABELS[field]} “{name}”" for field, name in lost[:_NAMED]]
    texts += [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    if any(_is_gone(name, before.secrets, after.secrets) for name in before.secrets):
        texts.append("a secret of the dungeon master's")
    if not texts:
        return ""
    hint = f" /why {'.'.join(lost[0])} says after which message." if lost else ""
    return f"The notes dropped something that the story did not: {', '.join(texts)}.{hint}"


def _is_gone(name: str, before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    new = after.keys() - before.keys()
    return name not in after and not any(content_stems(name) & content_stems(other) for other in new)

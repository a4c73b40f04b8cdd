"""Prune: keep the page short, whatever the campaign's length."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller.scene import Scene

JSON = dict[str, Any]

_FACTS, _PEOPLE, _QUESTS, _MOST_ITEMS = 16, 9, 8, 40


def prune(scene: Scene) -> JSON:
    """Strike from the page what is oldest of what there is too much of; return the patch of the whole turn."""
    facts = list(scene.page.get("facts") or {})
    scene.note({"facts": dict.fromkeys(facts[:-_FACTS])} if len(facts) > _FACTS else {})
    quests = [title for title, quest in (scene.page.get("quests") or {}).items() if quest.get("status") != "open"]
    scene.note({"quests": dict.fromkeys(quests[:-_QUESTS])} if len(quests) > _QUESTS else {})
    present = set(scene.tale.names.values()) if scene.tale else set()
    passed = [name for name in scene.page.get("people") or {} if name not in present]
    scene.note({"people": dict.fromkeys(passed[:-_PEOPLE])} if len(passed) > _PEOPLE else {})
    return scene.patch

"""Elsewhere: people who are called for where they are not."""

from __future__ import annotations

from questbook.graphs.offline.storyteller import choices
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tale import called, match


def named(scene: Scene, words: str) -> str | None:
    """Find somebody of the tale whom words call by name, and who is not here; the id."""
    names = {person: name for person, name in scene.story.names.items() if called(name, words)}
    person = match(words, names)
    return None if person in scene.people_here() else person


def miss(scene: Scene, person: str) -> None:
    """Say that somebody is not here, and when they were seen last."""
    name = scene.story.names[person]
    if not scene.alive(person):
        scene.say(f"{name} is dead, and the dead are poor company. You stand a moment with the thought.")
    else:
        scene.say(f"{name} is not here.")
        remind(scene, person)
    choices.offer(scene)


def remind(scene: Scene, person: str) -> None:
    """Say where somebody was seen last, if they ever were."""
    seen = ((scene.page.get("people") or {}).get(scene.story.names[person]) or {}).get("last_seen")
    if seen:
        scene.say(f"You saw each other last at {seen}.")

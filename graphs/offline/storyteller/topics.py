"""Topics: what people know, whom they would tell it, and what they have told already."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tale import stems

JSON = dict[str, Any]


def best(scene: Scene, words: str) -> tuple[str, JSON] | None:
    """Find somebody here who has something to say on these words."""
    said = stems(words)
    found: tuple[str, JSON] | None = None
    most = 0
    for person in scene.people_here():
        for topic in scene.story["people"][person]["topics"]:
            shared = len(said & stems(topic["on"]))
            if shared > most and is_open(scene, person, topic):
                found, most = (person, topic), shared
    return found


def untold(scene: Scene, person: str) -> list[str]:
    """List what a person could still be asked about, by its first word."""
    told = scene.story["people"][person]["topics"]
    return [title(t) for t in told if is_open(scene, person, t) and not scene.did(heard(person, t))]


def is_open(scene: Scene, person: str, topic: JSON) -> bool:
    """Whether a person would speak about a topic now."""
    return scene.done(topic.get("needs")) and (not topic.get("trust") or scene.did(f"trust {person}"))


def heard(person: str, topic: JSON) -> str:
    """Name the deed of having been told a topic."""
    return f"heard {person} {title(topic).split()[-1]}"


def title(topic: JSON) -> str:
    """Say what a topic is called."""
    return str(topic.get("title") or f"the {topic['on'].split()[0]}")

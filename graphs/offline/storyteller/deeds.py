"""Deeds: what a tale has foreseen that somebody might do."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller import choices, plot
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tale import stems

JSON = dict[str, Any]


def play_out(scene: Scene, verbs: str, what: str, whom: str = "") -> bool:
    """Do what the tale has foreseen for these words here, if anything; the story moves on then."""
    for deed in scene.tale.part("deeds") if scene.tale else []:
        if not set(verbs.split()) & set(deed.get("verbs", "use").split()):
            continue
        if scene.done(deed["sets"]) or ("at" in deed and deed["at"] != scene.location()):
            continue
        if deed.get("with") and (deed["with"] not in scene.people_here() or not _meant(scene, deed, f"{what} {whom}")):
            continue
        item = deed.get("item")
        if item and not stems(f"{item} {deed.get('as', '')}") & stems(f"{what} {whom}"):
            continue
        if not item and not stems(deed.get("as", "")) & stems(f"{what} {whom}"):
            continue
        if item and item not in scene.carried() and deed.get("carried", True):
            scene.say(f"You have no {item} to do that with. Not yet.")
            choices.offer(scene)
            return True
        if not scene.done(deed.get("needs")):
            scene.say(deed.get("lacks", "Not yet: something else has to happen first."))
            choices.offer(scene)
            return True
        plot.happen(scene, deed)
        return True
    return False


def _meant(scene: Scene, deed: JSON, said: str) -> bool:
    here = scene.people_here()
    return len(here) == 1 or scene.story.person(said, here) == deed["with"]

"""Obstacles: what a tale puts in the way, to be climbed, forced or crept past by a check."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller import choices, combat, plot
from questbook.graphs.offline.storyteller.abilities import check
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tale import stems

JSON = dict[str, Any]


def find(scene: Scene, said: str, verb: str = "") -> JSON | None:
    """Find the open check of this place that the words are about."""
    words = stems(said)
    for found in scene.story.part("checks"):
        if found["at"] != scene.location() or scene.done(found["sets"]) or not scene.done(found.get("needs")):
            continue
        if verb in found["verbs"].split() or words & stems(found["verbs"]):
            return dict(found)
    return None


def face(scene: Scene, obstacle: JSON) -> None:
    """Try one's luck with an obstacle; what comes of it, either way, is for the tale to say."""
    if check(scene, obstacle["skill"], int(obstacle["dc"]), f"to {obstacle['to']}"):
        gained = {k: obstacle[k] for k in ("sets", "fact", "gains", "gold", "move") if k in obstacle}
        plot.happen(scene, {"text": obstacle["win"]} | gained)
    else:
        scene.say(obstacle["lose"])
        _hurt(scene, int(obstacle.get("harm", 0)))
        scene.happening = f"{scene.name} failed to {obstacle['to']} at {scene.location()}."
        choices.offer(scene, apart=True)
    combat.press(scene)


def _hurt(scene: Scene, harm: int) -> None:
    """Take harm from something that is not a foe; it never kills."""
    if harm <= 0:
        return
    now, most = scene.hit_points()
    left = max(1, now - harm)
    scene.note({"condition": {"hp": left}})
    scene.say(f"It costs you {now - left}; you have {left} of {most} hit points.")

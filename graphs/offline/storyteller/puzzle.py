"""Puzzle: what to make of words that were not understood."""

from __future__ import annotations

from questbook.graphs.offline.storyteller import choices, combat, deeds, obstacles, talk, topics, travel
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.words import Intent


def puzzle(scene: Scene, intent: Intent) -> None:
    """Guess at what the words may mean here, or hold out some that would be understood."""
    if deeds.play_out(scene, "use give take", intent.said):
        return None
    if obstacle := obstacles.find(scene, intent.said):
        return obstacles.face(scene, obstacle)
    story = scene.story
    ways = story["places"][scene.location()]["ways"]
    if len(intent.said.split()) < 5 and (towards := story.place(intent.said, ways)):
        return travel.travel(scene, towards)
    if topics.best(scene, intent.said):
        return talk.question(scene, intent)
    choices.shrug(scene, intent.said)
    return combat.press(scene)

"""Choices: what could be done next, held out to the player at the end of a turn."""

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller import topics
from questbook.graphs.offline.storyteller.phrases import filled, lower, series, upper
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]

_OFFERS = re.compile(
    r"(?:From here it goes to|From .+ you can go to|Ways lead to|You could|You might|Then again, you might|Press on)\b|"
    r"(?:Do you|What do you do|What now)\b.*\?$"
)


def options(scene: Scene) -> list[str]:
    """List things to do here and now, in an order that varies with the turn."""
    story, here = scene.tale, scene.location()
    if story is None:
        return ["take the road and see what comes", "rest", "go through what you carry"]
    people = [
        f"ask {story.names[p]} about {topics.untold(scene, p)[0]}"
        for p in scene.people_here()
        if topics.untold(scene, p)
    ]
    people += [f"talk to {story.names[p]}" for p in scene.people_here()][:1]
    foes = [f"face the {foe}" for foe in scene.foes_here()]
    things = [f"take the {thing}" for thing in scene.things_here()[:2]]
    ways = [f"go to {place}" for place in story["places"][here]["ways"]]
    details = [f"look at the {detail}" for detail in story["places"][here].get("details", {})]
    found = [
        *people[:1],
        *things[:1],
        "search the place",
        *ways[:1],
        *details[:1],
        *people[1:2],
        *ways[1:],
        *details[1:],
    ]
    turned = scene.beat % max(1, len(found))
    return [*foes, *found[turned:], *found[:turned]]


def offer(scene: Scene, *, apart: bool = False) -> None:
    """End with something to decide."""
    if scene.foes_here() and scene.secrets.get("fight"):
        return
    story = scene.tale
    if story is None:
        scene.say("The road lies open before you. What now?", apart=apart)
        return
    ways: JSON = story["places"][scene.location()]["ways"]
    roads = series([f"{place} ({way})" for place, way in ways.items()], "or")
    first, second, third = [*options(scene), "wait", "rest", "think it over"][:3]
    scene.say(
        scene.pick(
            [
                f"From here it goes to {roads}.",
                f"Do you {first}, or {second}?",
                f"You could {first} – or {second}, or {third}.",
                f"Ways lead to {roads}. What do you do?",
                f"You might {first}. Then again, you might {second}.",
            ],
            "offer",
        ),
        apart=apart,
    )


def is_offer(sentence: str) -> bool:
    """Whether a sentence of a reply holds out choices, and tells nothing that happened."""
    return _OFFERS.match(sentence) is not None


def suggest(scene: Scene, _: Intent) -> None:
    """Say what one could do now."""
    scene.quiet = True
    if objective := str(scene.page.get("objective") or ""):
        scene.say(f"What you are about is this: {lower(objective)}.")
    scene.say(f"You could {series(options(scene)[:4], 'or')}. Or anything else: plain sentences do it.")


def silence(scene: Scene, _: Intent) -> None:
    """Answer nothing with nearly nothing."""
    scene.quiet = True
    scene.say("You say nothing, and for a moment the story holds its breath with you.")
    offer(scene)


def shrug(scene: Scene, words: str) -> None:
    """Say that nothing comes of some words, and hold out others that something would come of."""
    shown = " ".join(words.split())[:90].strip(" .!?")
    scene.say(filled(scene.pick(table("confused"), "confused"), words=shown, place_c=upper(scene.location())))
    scene.say(f"You could {series(options(scene)[:3], 'or')}.")
